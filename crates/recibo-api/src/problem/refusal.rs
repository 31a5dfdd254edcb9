//! Refusals of the core as problems.

use recibo_core::plan::Refusal;
use serde_json::json;

use super::{Code, Problem};

const REUSED_HINT: &str = "the tool_call_id was reused for another call; providers do this, \
     so prefix it with the turn and the position of the call in it";

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::InputMismatch { first_seen_at, tool, input_hash } => {
                let differs = [("tool", tool), ("input_hash", input_hash)];
                let differs = differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name);
                Self::new(
                    Code::InputMismatch,
                    "the call was first seen with another tool or another input",
                )
                .with("differs", differs.collect::<Vec<_>>())
                .with("first_seen_at", first_seen_at.to_string())
                .with("hint", REUSED_HINT)
            }
            Refusal::EffectMismatch { frozen } => Self::new(
                Code::EffectMismatch,
                format!("the call's first attempt froze its effect as {}", frozen.as_str()),
            )
            .with("effect", frozen.as_str()),
            Refusal::EffectWeakerThanPolicy { policy } => Self::new(
                Code::EffectWeakerThanPolicy,
                format!(
                    "the policy says {}; only a stricter effect can be stated",
                    policy.as_str()
                ),
            )
            .with("policy_effect", policy.as_str()),
            Refusal::OperationKeyMismatch => Self::new(
                Code::OperationKeyMismatch,
                "an operation_key must be the same on every attempt, the first one included",
            ),
            Refusal::OperationKeyTaken { holder, decision } => Self::new(
                Code::OperationKeyTaken,
                "another call of this namespace holds the operation_key",
            )
            .with(
                "holder",
                json!({
                    "run_id": holder.run_id.as_str(),
                    "tool_call_id": holder.tool_call_id.as_str(),
                }),
            )
            .with("decision", decision.kind.as_str()),
            Refusal::AttemptConflict { next } => Self::new(
                Code::AttemptConflict,
                format!("the next attempt is {next}; what an attempt holds is never overwritten"),
            )
            .with("next_attempt", next),
            Refusal::ClaimUsed { attempt } => Self::new(
                Code::ClaimUsed,
                format!(
                    "the claim_id was granted attempt {attempt}; draw a fresh one to try again"
                ),
            )
            .with("attempt", attempt),
            Refusal::AttemptOpen { attempt, lease_expires_at } => Self::new(
                Code::AttemptOpen,
                format!("attempt {attempt} is open until its outcome or {lease_expires_at}"),
            )
            .with("attempt", attempt)
            .with("lease_expires_at", lease_expires_at.to_string()),
            Refusal::LeaseLive { lease_expires_at } => Self::new(
                Code::LeaseLive,
                format!("an attempt may still report until {lease_expires_at}"),
            )
            .with("lease_expires_at", lease_expires_at.to_string()),
            Refusal::ScopeNotFound => {
                Self::new(Code::ScopeNotFound, "no such scope; open one first")
            }
            Refusal::ScopeGone => Self::new(
                Code::ScopeGone,
                "the scope was closed or ended with an earlier process; open a new one",
            ),
            Refusal::CallNotFound => Self::new(Code::CallNotFound, "no such call"),
            Refusal::AttemptNotFound => {
                Self::new(Code::AttemptNotFound, "the call has no such attempt")
            }
            Refusal::LeaseTokenWrong => Self::new(
                Code::LeaseTokenWrong,
                "an outcome needs the lease token of its own attempt",
            ),
            Refusal::OutcomeConflict => Self::new(
                Code::OutcomeConflict,
                "the attempt has an outcome that this one cannot add to",
            ),
            Refusal::AttemptSettled => Self::new(
                Code::AttemptSettled,
                "only an attempt that reads unknown or timeout can be checked",
            ),
            Refusal::VersionMismatch => {
                Self::new(Code::VersionMismatch, "read the call again and resolve what it is now")
            }
            Refusal::NothingToResolve => Self::new(
                Code::NothingToResolve,
                "only a call that is unknown, retryable or in conflict can be resolved, or one \
                 whose state rests on the resolution that `corrects` names",
            ),
            Refusal::LeaseOver => Self::new(
                Code::LeaseOver,
                "the lease is over; report the outcome, which is still taken",
            ),
            Refusal::ScopeLimit { max } => Self::new(
                Code::ScopeLimit,
                format!(
                    "{max} scopes of the namespace live; close those that are not needed, or \
                     give them a shorter ttl_ms"
                ),
            )
            .with("limit", max),
        }
    }
}

#[cfg(test)]
mod tests {
    use recibo_core::decision::Decision;
    use recibo_core::effect::Effect;
    use recibo_core::id::{CallRef, RunId, ToolCallId};
    use recibo_core::status::{CallState, DecisionKind, Reason};
    use recibo_core::time::Time;

    use super::*;

    #[test]
    fn every_refusal_has_its_code_and_its_members() {
        let at = Time::from_ms(0);
        let holder = CallRef {
            run_id: RunId::parse("r").unwrap(),
            tool_call_id: ToolCallId::parse("t").unwrap(),
        };
        let decision = Decision {
            kind: DecisionKind::Reuse,
            reason: Reason::AlreadyOk,
            state: CallState::Ok,
            retry_after_ms: None,
        };
        let cases: Vec<(Refusal, &str, &[&str])> = vec![
            (
                Refusal::InputMismatch { first_seen_at: at, tool: false, input_hash: true },
                "input_mismatch",
                &["differs", "first_seen_at", "hint"],
            ),
            (Refusal::EffectMismatch { frozen: Effect::Keyed }, "effect_mismatch", &["effect"]),
            (
                Refusal::EffectWeakerThanPolicy { policy: Effect::Opaque },
                "effect_weaker_than_policy",
                &["policy_effect"],
            ),
            (Refusal::OperationKeyMismatch, "operation_key_mismatch", &[]),
            (
                Refusal::OperationKeyTaken { holder, decision },
                "operation_key_taken",
                &["decision", "holder"],
            ),
            (Refusal::AttemptConflict { next: 2 }, "attempt_conflict", &["next_attempt"]),
            (Refusal::ClaimUsed { attempt: 1 }, "claim_used", &["attempt"]),
            (Refusal::ScopeNotFound, "scope_not_found", &[]),
            (Refusal::ScopeGone, "scope_gone", &[]),
            (Refusal::CallNotFound, "call_not_found", &[]),
            (Refusal::AttemptNotFound, "attempt_not_found", &[]),
            (Refusal::LeaseTokenWrong, "lease_token_wrong", &[]),
            (Refusal::OutcomeConflict, "outcome_conflict", &[]),
            (
                Refusal::AttemptOpen { attempt: 1, lease_expires_at: at },
                "attempt_open",
                &["attempt", "lease_expires_at"],
            ),
            (Refusal::AttemptSettled, "attempt_settled", &[]),
            (Refusal::VersionMismatch, "version_mismatch", &[]),
            (Refusal::LeaseLive { lease_expires_at: at }, "lease_live", &["lease_expires_at"]),
            (Refusal::NothingToResolve, "nothing_to_resolve", &[]),
            (Refusal::LeaseOver, "lease_over", &[]),
            (Refusal::ScopeLimit { max: 3 }, "scope_limit", &["limit"]),
        ];
        for (refusal, code, members) in cases {
            let problem = Problem::from(refusal);
            assert_eq!(problem.code.as_str(), code);
            let extra: Vec<_> = problem.extra.keys().map(String::as_str).collect();
            assert_eq!(extra, members, "{code}");
        }
    }
}
