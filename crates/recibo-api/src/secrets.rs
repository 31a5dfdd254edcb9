//! Refuses credentials where nothing is masked. Separate from the shape of a request, since
//! these checks come after the role.

use recibo_core::effect::Policy;
use recibo_core::plan::{Claim, OneShot};
use recibo_core::secret;

use crate::problem::{Code, Problem};

/// What becomes of a claim whose labels hold a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretPolicy {
    /// It is masked.
    #[default]
    Mask,
    /// The claim is refused.
    Refuse,
}

/// Refuses a claim with a credential in an id or the tool; by policy, in the labels too.
///
/// # Errors
/// `secret_detected` naming the member.
pub fn refuse_claim(claim: &Claim, policy: SecretPolicy) -> Result<(), Problem> {
    refuse([
        ("run_id", Some(claim.call.run_id.as_str())),
        ("tool_call_id", Some(claim.call.tool_call_id.as_str())),
        ("claim_id", Some(claim.claim_id.as_str())),
        ("tool", Some(claim.tool.as_str())),
        ("operation_key", claim.operation_key.as_ref().map(|key| key.as_str())),
        ("message_id", claim.message_id.as_ref().map(|id| id.as_str())),
    ])?;
    if policy == SecretPolicy::Refuse && claim.redacted {
        return Err(detected("labels"));
    }
    Ok(())
}

/// Refuses a finished call with a credential in an id or the tool.
///
/// # Errors
/// `secret_detected` naming the member.
pub fn refuse_one_shot(shot: &OneShot) -> Result<(), Problem> {
    refuse([
        ("run_id", Some(shot.call.run_id.as_str())),
        ("tool_call_id", Some(shot.call.tool_call_id.as_str())),
        ("tool", Some(shot.tool.as_str())),
        ("operation_key", shot.operation_key.as_ref().map(|key| key.as_str())),
    ])
}

/// Refuses an effect policy with a credential in a tool pattern.
///
/// # Errors
/// `secret_detected`.
pub fn refuse_policy(policy: &Policy) -> Result<(), Problem> {
    refuse(policy.rules.iter().map(|rule| ("match", Some(rule.pattern.as_str()))))
}

fn refuse<'a>(
    members: impl IntoIterator<Item = (&'static str, Option<&'a str>)>,
) -> Result<(), Problem> {
    for (name, text) in members {
        if text.is_some_and(|text| secret::finds(text).is_some()) {
            return Err(detected(name));
        }
    }
    Ok(())
}

fn detected(member: &str) -> Problem {
    let detail = format!("{member} holds what looks like a credential; nothing was stored");
    Problem::new(Code::SecretDetected, detail).with("member", member)
}
