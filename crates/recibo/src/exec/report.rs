//! Recording the outcome. It has happened, so no effort is spared to record it.

use std::time::Duration;

use recibo_api::answer::OutcomeAnswer;
use recibo_core::hash::OutputHash;
use recibo_core::status::OutcomeStatus;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::claim::{Grant, Wish, open_scope};
use super::classify::Class;
use super::exit;
use crate::cli::Target;
use crate::failure::Failure;
use crate::ledger::{IfMissing, Ledger, Request, find};

/// Longest result, as JSON, that is sent as text: the body limit is 1 MiB, and something is
/// left for the other members. Longer ones go as a hash.
pub const TEXT_BYTES_MAX: usize = 700 * 1024;
/// About 12 s together: long enough for a restart of the service.
const PAUSES_MS: [u64; 6] = [200, 400, 800, 1_600, 3_200, 6_400];

/// What is reported.
pub struct Outcome<'a> {
    /// How it ended.
    pub class: &'a Class,
    /// By a clock that never steps back.
    pub duration_ms: u64,
    /// What the model will see, byte for byte.
    pub output: &'a [u8],
    /// What came after it and is not seen.
    pub dropped_bytes: u64,
}

/// Sends the outcome, again and again while no answer comes. The same outcome twice is one.
pub async fn send(
    ledger: &mut Ledger,
    target: &Target,
    wish: &Wish,
    grant: &Grant,
    outcome: &Outcome<'_>,
) -> Result<OutcomeAnswer, Failure> {
    let attempt = grant.attempt.to_string();
    let path = ["runs", &wish.run, "calls", &wish.call, "attempts", &attempt, "outcome"];
    let mut body = body(grant, outcome);
    let mut pauses = PAUSES_MS.iter();
    loop {
        let failure = match ledger.call(Request::post(&path, &body)).await {
            Ok(answer) => return answer.read().map_err(|error| lost(error.into(), wish)),
            Err(failure) => failure,
        };
        let Some(pause) = pauses.next().filter(|_| failure.is_passing()) else {
            return Err(lost(failure, wish));
        };
        sleep(Duration::from_millis(*pause)).await;
        renew(ledger, target, wish, &mut body).await;
    }
}

/// The service may have ended or moved; then its scopes are gone with it, and a success needs
/// another one that signs. Failures here show in the next try.
async fn renew(ledger: &mut Ledger, target: &Target, wish: &Wish, body: &mut Value) {
    if let Ok(found) = find(target, IfMissing::Fail).await {
        std::mem::replace(ledger, found).close().await;
    }
    if body["status"] == OutcomeStatus::Ok.as_str()
        && body.get("scope_id").is_none()
        && let Ok(scope_id) = open_scope(ledger, wish).await
    {
        body["scope_id"] = json!(scope_id);
    }
}

fn body(grant: &Grant, outcome: &Outcome<'_>) -> Value {
    let class = outcome.class;
    let mut body = json!({
        "lease_token": grant.lease_token,
        "status": class.status.as_str(),
        "duration_ms": outcome.duration_ms,
    });
    if let Some(error_class) = &class.error_class {
        body["error_class"] = json!(error_class);
    }
    if class.status == OutcomeStatus::Ok {
        match std::str::from_utf8(outcome.output) {
            Ok(text) if fits(text) => body["output"] = json!(text),
            _ => body["output_hash"] = json!(OutputHash::of_bytes(outcome.output).to_string()),
        }
        if outcome.dropped_bytes > 0 {
            body["output_summary"] =
                json!({"bytes": outcome.output.len(), "dropped_bytes": outcome.dropped_bytes});
        }
    }
    body
}

/// Looks at the length first: the JSON of a text is up to six times as long.
fn fits(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && json!(text).to_string().len() <= TEXT_BYTES_MAX
}

fn lost(failure: Failure, wish: &Wish) -> Failure {
    let said = failure.for_people();
    let said = anstream::adapter::strip_str(&said).to_string();
    let said = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    Failure::advised(
        format!("the command was run, but its outcome could not be recorded: {said}"),
        format!(
            "keep the output above; do not run it again; once its lease is over, look at it \
             with: recibo explain {} {}",
            wish.run, wish.call
        ),
    )
    .with_exit_code(exit::NOT_RECORDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_goes_as_a_hash_and_an_error_without_output() {
        let grant = Grant {
            attempt: 1,
            lease_token: "t".into(),
            idempotency_key: "k".into(),
            last_moment_ms: 0,
        };
        let body_of = |status, output: &[u8]| {
            let error_class = (status != OutcomeStatus::Ok).then(|| "exit_3".to_owned());
            let class = Class { status, error_class };
            let dropped_bytes = if output.is_empty() { 7 } else { 0 };
            body(&grant, &Outcome { class: &class, duration_ms: 5, output, dropped_bytes })
        };
        let whole = body_of(OutcomeStatus::Ok, b"hi\n");
        assert!(whole["output"] == "hi\n" && whole.get("output_summary").is_none());
        let cut = body_of(OutcomeStatus::Ok, b"");
        assert_eq!(cut["output_summary"], json!({"bytes": 0, "dropped_bytes": 7}));
        // A control character takes six bytes of JSON.
        for long in ["x".repeat(TEXT_BYTES_MAX), "\u{1}".repeat(TEXT_BYTES_MAX / 6 + 1)] {
            let body = body_of(OutcomeStatus::Ok, long.as_bytes());
            assert!(body.get("output").is_none());
            assert_eq!(body["output_hash"], OutputHash::of_text(&long).to_string());
        }
        // Two results that are no text are two results.
        let binary = |bytes: &[u8]| body_of(OutcomeStatus::Ok, bytes)["output_hash"].clone();
        assert!(binary(b"a\xff").is_string() && binary(b"a\xff") != binary(b"a\xfe"));
        let failed = body_of(OutcomeStatus::Unknown, b"hi");
        assert!(failed.get("output").is_none() && failed["error_class"] == "exit_3");
    }
}
