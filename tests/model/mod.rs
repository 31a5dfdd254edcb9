//! A model check of the rules: every interleaving of claims, sends, effects, lost answers,
//! crashes, ends of leases, late reports, status checks and an operator's word, for up to three
//! attempts and each effect, against the promises of the ledger.
//!
//! The ledger's side is the real code of `recibo-core`; only the world around it is modelled
//! (see `world.rs`). Time is unbounded: what is over stays over, so times are kept only as far
//! as they can still matter, and the states are finitely many.

mod checker;
mod laws;
mod rules;
mod step;
mod world;

use checker::{Laws, Report, explore};
use recibo_core::effect::Effect;
use rules::{Fault, Rules};

fn check(effect: Effect) -> Report {
    match explore(&Rules::of(effect), Laws::All) {
        Ok(report) => {
            println!("{:<10} {report}", effect.as_str());
            report
        }
        Err(violation) => panic!("{}: {violation}", effect.as_str()),
    }
}

/// Explores the rules with a fault in them, and gives the shortest way to a second effect.
fn second_effect(effect: Effect, fault: Option<Fault>) -> String {
    let mut rules = Rules::of(effect);
    rules.fault = fault;
    match explore(&rules, Laws::OneEffect) {
        Ok(report) => panic!("{}: {fault:?} is not noticed in {report}", effect.as_str()),
        Err(violation) => {
            println!("{} with {fault:?}: {violation}", effect.as_str());
            violation.to_string()
        }
    }
}

#[test]
fn read_only_calls_keep_their_promises() {
    check(Effect::ReadOnly);
}

#[test]
fn idempotent_calls_keep_their_promises() {
    check(Effect::Idempotent);
}

#[test]
fn keyed_calls_take_effect_at_most_once() {
    check(Effect::Keyed);
}

#[test]
fn queryable_calls_take_effect_at_most_once() {
    check(Effect::Queryable);
}

#[test]
fn opaque_calls_take_effect_at_most_once() {
    check(Effect::Opaque);
}

#[test]
fn the_world_itself_can_do_it_twice() {
    for effect in [Effect::ReadOnly, Effect::Idempotent] {
        let trace = second_effect(effect, None);
        assert!(trace.contains("takes effect"), "{trace}");
    }
}

#[test]
fn running_again_after_the_lease_is_caught() {
    for effect in [Effect::Queryable, Effect::Opaque] {
        let trace = second_effect(effect, Some(Fault::ExpiredIsRetryable));
        assert!(!trace.contains("operator"), "nobody but the fault allowed it: {trace}");
    }
}

#[test]
fn counting_an_immediate_not_executed_is_caught() {
    let trace = second_effect(Effect::Queryable, Some(Fault::NoSettleTime));
    assert!(trace.contains("not_executed"), "{trace}");
}

#[test]
fn sending_after_the_lease_is_caught() {
    for effect in [Effect::Queryable, Effect::Opaque] {
        second_effect(effect, Some(Fault::SendsAfterLease));
    }
}

#[test]
fn booking_a_stale_report_on_the_newest_attempt_is_caught() {
    for effect in [Effect::Queryable, Effect::Opaque] {
        second_effect(effect, Some(Fault::NoFence));
    }
}
