//! Recording the outcome. It has happened, so no effort is spared to record it.

use recibo_api::answer::OutcomeAnswer;
use recibo_api::request::OutcomeRequest;
use recibo_api::{Code, Word};
use recibo_core::status::OutcomeStatus;
use recibo_core::{limits, summary};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::LedgerError;
use crate::leased::LeasedAttempt;
use crate::outcome::{Outcome, Output};
use crate::retry::Backoff;

/// Longest result, as JSON, that is sent as text. Longer ones go as a hash: the ledger would only
/// hash them, and proxies often have body limits of 1 MiB.
const TEXT_BYTES_MAX: usize = 700 * 1024;

/// An outcome on its way.
pub(crate) struct OutcomeDelivery {
    pub(crate) lease_token: String,
    /// A living scope, if the attempt's own is gone.
    pub(crate) scope_id: Option<String>,
    /// Whether the ledger found the text too large.
    pub(crate) is_too_large: bool,
    pub(crate) outcome: Outcome,
}

/// Sends the outcome, again and again while no answer comes. The same outcome twice is one.
pub(crate) async fn send(
    leased: &LeasedAttempt,
    outcome: Outcome,
) -> Result<OutcomeAnswer, LedgerError> {
    let ledger = leased.scope.ledger();
    let policy = &ledger.retry_policy;
    let mut backoff = Backoff::new(policy.report_tries, policy);
    let mut signer_backoff = Backoff::new(policy.claim_tries, policy);
    let mut delivery = OutcomeDelivery::new(leased, outcome);
    loop {
        if delivery.outcome.status == OutcomeStatus::Ok {
            match leased.scope.other_signer(&leased.scope_id).await {
                Ok(scope_id) => delivery.scope_id = scope_id,
                Err(error) if error.is_transient() && signer_backoff.take() => {
                    signer_backoff.wait().await;
                    ledger.find_again().await;
                    continue;
                }
                // To be recorded is more than to be signed.
                Err(error) => tracing::warn!(%error, "no scope is known to sign a success"),
            }
        }
        let error = match ledger.report(&leased.call, leased.attempt, &delivery).await {
            Ok(answer) => {
                if delivery.scope_id.is_some() {
                    leased.scope.close_if_closed().await;
                }
                return Ok(answer);
            }
            Err(error) => error,
        };
        if error.code() == Some(Code::BodyTooLarge) && !delivery.is_too_large {
            delivery.is_too_large = true;
            continue;
        }
        if !error.is_transient() || !backoff.take() {
            return Err(error);
        }
        backoff.wait().await;
        // The service may have ended or moved.
        ledger.find_again().await;
    }
}

impl OutcomeDelivery {
    fn new(leased: &LeasedAttempt, outcome: Outcome) -> Self {
        let lease_token = leased.lease_token.clone();
        Self { lease_token, scope_id: None, is_too_large: false, outcome }
    }

    /// The result as a JSON string, if it is a text that may be sent. Looks at the length first:
    /// the JSON of a text is up to six times as long.
    pub(crate) fn text(&self) -> Option<Box<RawValue>> {
        match &self.outcome.output {
            Some(Output::Text(text)) if !self.is_too_large && text.len() <= TEXT_BYTES_MAX => {
                let json = to_raw_value(text).expect("a text always has a JSON form");
                (json.get().len() <= TEXT_BYTES_MAX).then_some(json)
            }
            _ => None,
        }
    }

    /// The shape of a result whose text is not sent: what the ledger would have found itself.
    pub(crate) fn shape(&self) -> Option<Box<RawValue>> {
        match &self.outcome.output {
            Some(Output::Text(text)) if self.outcome.summary.is_none() => {
                let shape = RawValue::from_string(summary::shape(text));
                Some(shape.expect("a shape is a JSON object"))
            }
            _ => None,
        }
    }

    /// The request: with the text, else with its hash.
    pub(crate) fn request<'a>(
        &'a self,
        text: Option<&'a RawValue>,
        shape: Option<&'a RawValue>,
    ) -> OutcomeRequest<'a> {
        let outcome = &self.outcome;
        let hash = match text {
            Some(_) => None,
            None => outcome.output.as_ref().map(|output| output.hash().to_string()),
        };
        let duration_ms = u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX);
        OutcomeRequest {
            lease_token: self.lease_token.clone(),
            status: Word(outcome.status),
            duration_ms: duration_ms.min(limits::NUMBER_MAX),
            output: text,
            output_hash: hash,
            output_summary: outcome.summary.as_deref().or(shape),
            error_class: outcome.error_class.clone(),
            provider_ref: outcome.provider_ref.clone(),
            message_id: outcome.message_id.clone(),
            scope_id: self.scope_id.clone(),
            answered: (outcome.answered && outcome.status == OutcomeStatus::Unknown)
                .then_some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recibo_core::hash::OutputHash;
    use serde_json::{Value, json};

    use super::*;

    fn sent(outcome: Outcome, is_too_large: bool) -> Value {
        let lease_token = "t".into();
        let delivery = OutcomeDelivery { lease_token, scope_id: None, is_too_large, outcome };
        let text = delivery.text();
        let shape = if text.is_none() { delivery.shape() } else { None };
        serde_json::to_value(delivery.request(text.as_deref(), shape.as_deref())).unwrap()
    }

    fn ok(text: &str) -> Outcome {
        Outcome::ok(Duration::from_millis(5), Output::Text(text.into()))
    }

    #[test]
    fn a_long_output_goes_as_a_hash_with_its_shape() {
        let whole = sent(ok("hi\n"), false);
        assert_eq!(
            whole,
            json!({"lease_token": "t", "status": "ok", "duration_ms": 5, "output": "hi\n"})
        );
        // A control character takes six bytes of JSON.
        for long in ["x".repeat(TEXT_BYTES_MAX), "\u{1}".repeat(TEXT_BYTES_MAX / 6 + 1)] {
            let body = sent(ok(&long), false);
            assert!(body.get("output").is_none());
            assert_eq!(body["output_hash"], OutputHash::of_text(&long).to_string());
            assert_eq!(body["output_summary"]["bytes"], long.len());
        }
        let refused = sent(ok(r#"{"a":1}"#), true);
        assert!(refused.get("output").is_none());
        assert_eq!(refused["output_summary"], json!({"fields": ["a"], "bytes": 7}));
    }

    #[test]
    fn a_failure_goes_without_an_output() {
        let outcome = Outcome::failed(OutcomeStatus::Unknown, Duration::MAX, "exit_3");
        let body = sent(outcome, false);
        assert_eq!(
            body,
            json!({"lease_token": "t", "status": "unknown", "duration_ms": limits::NUMBER_MAX,
                "error_class": "exit_3"})
        );
    }
}
