//! A call with a thousand attempts is answered like one with a single attempt.

use recibo_core::event::Outcome;
use recibo_core::hash::OutputHash;
use recibo_core::id::ErrorClass;
use recibo_core::plan::{ClaimedAs, Report};
use recibo_core::status::{AttemptStatus, CallState, DecisionKind, OutcomeStatus};
use recibo_store::Store;
use recibo_tests::service::namespace;

use super::disk::BreakingDisk;
use super::failed_commits::{call, claim, open, open_with};

const ATTEMPTS: u32 = 1000;

fn outcome(status: OutcomeStatus) -> Outcome {
    let is_ok = status == OutcomeStatus::Ok;
    Outcome {
        status,
        duration_ms: 1,
        output_hash: is_ok.then(|| OutputHash::of_text("x")),
        output_summary: None,
        error_class: (!is_ok).then(|| ErrorClass::parse("busy").expect("a class")),
        provider_ref: None,
        message_id: None,
        redacted: false,
        answered: false,
    }
}

fn report(store: &Store, attempt: u32, token: &str, status: OutcomeStatus) {
    let report = Report { call: call("c"), attempt, outcome: outcome(status) };
    store.report(&namespace("default"), report, token.to_owned(), None).wait().expect("taken");
}

#[test]
fn a_thousand_attempts_are_decided_like_one() {
    let store = open(BreakingDisk::default());
    let ns = namespace("default");
    let scope = store.open_scope(&ns, None, 1_000_000).wait().expect("a scope").scope_id;
    let mut tokens = Vec::new();
    for number in 1..=ATTEMPTS {
        let answer = store.claim(&ns, claim("c", &format!("claim-{number}"), &scope)).wait();
        let answer = answer.expect("an answer");
        assert!(matches!(answer.claimed, ClaimedAs::Granted { attempt, .. } if attempt == number));
        tokens.push(answer.lease_token.expect("a token"));
        report(&store, number, &tokens[number as usize - 1], OutcomeStatus::RetryableError);
    }
    let snapshot = store.snapshot().expect("a snapshot");
    let view = snapshot.decision(&ns, &call("c")).expect("a decision");
    assert_eq!(view.decision.kind, DecisionKind::Proceed);
    assert_eq!(view.record.expect("a record").attempt, ATTEMPTS);
    let middle = snapshot.attempt(&ns, &call("c"), 500).expect("read").expect("a call");
    assert_eq!(middle.expect("an attempt").status, AttemptStatus::RetryableError);
    assert!(snapshot.attempt(&ns, &call("c"), 1001).expect("read").expect("a call").is_none());
    let whole = snapshot.call(&ns, &call("c")).expect("read").expect("a call");
    assert!(whole.records.iter().map(|r| r.attempt).eq(1..=ATTEMPTS));
    drop(snapshot);

    // A used claim id is recognized however old it is, and late evidence finds its attempt.
    let used = store.claim(&ns, claim("c", "claim-3", &scope)).wait();
    assert!(used.is_err(), "{used:?}");
    report(&store, 7, &tokens[6], OutcomeStatus::Ok);
    let snapshot = store.snapshot().expect("a snapshot");
    let view = snapshot.decision(&ns, &call("c")).expect("a decision");
    assert_eq!(view.decision.kind, DecisionKind::Stop, "contradicting evidence stops");
    let whole = snapshot.call(&ns, &call("c")).expect("read").expect("a call");
    assert!(whole.conflict && whole.state == CallState::Retryable);
    assert_eq!(whole.records[6].outcomes.len(), 2);
    store.close();
}

/// Disk reads of one decision, and of a claim with a used claim id, at so many attempts.
fn reads(attempts: u32) -> (u64, u64) {
    let disk = BreakingDisk::default();
    // Nothing is cached, so that every page that is looked at is counted.
    let store = open_with(disk.clone(), 0, Box::new(|bytes: &mut [u8]| rand::fill(bytes)));
    let ns = namespace("default");
    let scope = store.open_scope(&ns, None, 1_000_000).wait().expect("a scope").scope_id;
    for number in 1..=attempts {
        let answer = store.claim(&ns, claim("c", &format!("claim-{number}"), &scope)).wait();
        let token = answer.expect("an answer").lease_token.expect("a token");
        report(&store, number, &token, OutcomeStatus::RetryableError);
    }
    let snapshot = store.snapshot().expect("a snapshot");
    let before = disk.reads();
    snapshot.decision(&ns, &call("c")).expect("a decision");
    let decision = disk.reads() - before;
    drop(snapshot);
    let before = disk.reads();
    store.claim(&ns, claim("c", "claim-3", &scope)).wait().expect_err("it is used");
    let claim = disk.reads() - before;
    store.close();
    (decision, claim)
}

#[test]
fn the_cost_of_a_decision_and_of_a_claim_does_not_grow_with_the_attempts() {
    let (few, many) = (reads(10), reads(500));
    println!("reads of a decision and of a claim: {few:?} at 10 attempts, {many:?} at 500");
    // The trees may be some levels deeper; nothing is read per attempt.
    assert!(many.0 <= few.0 + 16, "a decision: {few:?} {many:?}");
    assert!(many.1 <= few.1 + 32, "a claim: {few:?} {many:?}");
}
