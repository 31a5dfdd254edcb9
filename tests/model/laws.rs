//! What must hold: the promises of the ledger, about one world and about one step.

use recibo_core::effect::Effect;
use recibo_core::plan::{ClaimedAs, Refusal};
use recibo_core::status::{CallState, DecisionKind, OutcomeStatus};

use super::rules::Rules;
use super::step::Action;
use super::world::World;

/// Which laws a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laws {
    /// All of them.
    All,
    /// Only that there are no two effects, whatever the effect of the call. With this one,
    /// faults show as what they do to people.
    OneEffect,
}

type Kept = Result<(), String>;

fn must(holds: bool, law: &str) -> Kept {
    if holds { Ok(()) } else { Err(law.to_owned()) }
}

/// The laws about one world.
pub fn of_world(rules: &Rules, laws: Laws, world: &World) -> Kept {
    let is_once = !rules.effect.is_repeatable();
    if is_once || laws == Laws::OneEffect {
        must(world.effects <= 1, "the call took effect twice")?;
    }
    if laws == Laws::OneEffect {
        return Ok(());
    }
    let state = world.state();
    must(state != CallState::Ok || world.effects > 0, "a call is ok only if it took effect")?;
    if is_once {
        let no_effect = matches!(state, CallState::Retryable | CallState::Terminal);
        must(
            !no_effect || !world.may_have_effect(),
            "a call with a possible effect is not known to have none",
        )?;
    }
    // Of a keyed call several attempts may be unknown; an operator's "ok" then covers them all,
    // and the late word of one of them that it did nothing is a contradiction.
    if matches!(rules.effect, Effect::Queryable | Effect::Opaque) {
        let conflict = world.call.as_ref().is_some_and(|call| call.tip.conflict);
        must(!conflict, "a truthful world contradicts itself nowhere")?;
    }
    evidence(rules, world, state)?;
    claims(rules, world)
}

/// `retryable` rests on a word that says so, never on silence; `unknown` permits nothing but
/// what the effect permits.
fn evidence(rules: &Rules, world: &World, state: CallState) -> Kept {
    let Some(call) = &world.call else { return Ok(()) };
    let decision = rules.decision(Some(call), world.now);
    must(decision.state == state, "the table looks at the state")?;
    if state == CallState::Retryable {
        let newest = &call.tip.newest;
        let said = newest.outcomes.iter().any(|o| o.status == OutcomeStatus::RetryableError);
        let settled = newest.settled.and_then(|settled| settled.status);
        must(
            said || settled == Some(OutcomeStatus::RetryableError),
            "a call is retryable only if somebody said so",
        )?;
    }
    if state == CallState::Unknown {
        let inside = world.window_end().is_some_and(|end| world.now < end);
        let expected = match rules.effect {
            Effect::ReadOnly | Effect::Idempotent => DecisionKind::Proceed,
            Effect::Keyed if inside => DecisionKind::Proceed,
            Effect::Keyed | Effect::Opaque => DecisionKind::Stop,
            Effect::Queryable => DecisionKind::CheckStatus,
        };
        must(decision.kind == expected, "unknown is decided by the effect")?;
    }
    Ok(())
}

/// A claim decides as the advice says, and a claim id that had its grant gets no other.
fn claims(rules: &Rules, world: &World) -> Kept {
    let call = world.call.as_ref();
    let advice = rules.decision(call, world.now);
    let next = call.map_or(1, |call| call.tip.attempts() + 1);
    let agrees = match rules.claim(call, world.now, None) {
        Ok(claimed) => match claimed.answer {
            ClaimedAs::Advice(decision) => {
                advice == decision && advice.kind != DecisionKind::Proceed
            }
            ClaimedAs::Granted { decision, attempt, replayed, .. } => {
                advice == decision && attempt == next && !replayed
            }
        },
        Err(_) => false,
    };
    must(agrees, "a claim decides as the advice says")?;
    let Some(call) = call else { return Ok(()) };
    for n in 1..next {
        let is_live = n == call.tip.attempts() && call.tip.newest.is_live(world.now);
        let kept = match rules.claim(Some(call), world.now, Some(n)) {
            Ok(claimed) => match claimed.answer {
                ClaimedAs::Granted { attempt, replayed, .. } => is_live && attempt == n && replayed,
                ClaimedAs::Advice(decision) => {
                    !is_live && advice == decision && advice.kind != DecisionKind::Proceed
                }
            },
            Err(Refusal::ClaimUsed { attempt }) => {
                attempt == n && advice.kind == DecisionKind::Proceed
            }
            Err(_) => false,
        };
        must(kept, "a claim id gets one grant")?;
    }
    Ok(())
}

/// The laws about one step.
pub fn of_step(rules: &Rules, laws: Laws, before: &World, action: Action, after: &World) -> Kept {
    if laws == Laws::OneEffect {
        return Ok(());
    }
    let (state, state_after) = (before.state(), after.state());
    if matches!(state, CallState::Ok | CallState::Terminal) {
        must(state == state_after, "ok and terminal never change")?;
    }
    if action == Action::Claim {
        let possible = before.may_have_effect();
        let allowed = match rules.effect {
            Effect::ReadOnly | Effect::Idempotent => true,
            Effect::Keyed => before.window_end().is_none_or(|end| before.now < end),
            Effect::Queryable | Effect::Opaque => false,
        };
        must(allowed || !possible, "no grant while an earlier effect is possible")?;
    }
    Ok(())
}
