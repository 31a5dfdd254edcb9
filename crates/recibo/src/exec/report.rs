//! What is recorded of a command, and what becomes of one that cannot be.

use std::time::Duration;

use recibo_adapter::{LedgerError, Outcome, Output};
use recibo_core::hash::OutputHash;
use recibo_core::status::OutcomeStatus;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::child::Ran;
use super::classify::Class;
use super::exit;
use crate::failure::Failure;

/// The outcome of a command: with its output if it succeeded.
pub fn outcome(class: &Class, ran: &Ran) -> Outcome {
    let duration = Duration::from_millis(ran.duration_ms);
    if let Some(error_class) = &class.error_class {
        return Outcome::failed(class.status, duration, error_class);
    }
    debug_assert_eq!(class.status, OutcomeStatus::Ok);
    let bytes = &ran.output.bytes;
    // A result is text, a command may write any bytes.
    let output = match std::str::from_utf8(bytes) {
        Ok(text) => Output::Text(text.to_owned()),
        Err(_) => Output::Hash(OutputHash::of_bytes(bytes)),
    };
    let mut outcome = Outcome::ok(duration, output);
    if ran.output.dropped_bytes > 0 {
        let summary = json!({"bytes": bytes.len(), "dropped_bytes": ran.output.dropped_bytes});
        outcome.summary = to_raw_value(&summary).ok();
    }
    outcome
}

/// An outcome that could not be recorded.
pub fn lost(error: LedgerError, run: &str, call: &str) -> Failure {
    let said = Failure::from(error).for_people();
    let said = anstream::adapter::strip_str(&said).to_string();
    let said = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    Failure::advised(
        format!("the command was run, but its outcome could not be recorded: {said}"),
        format!(
            "keep the output above; do not run it again; once its lease is over, look at it \
             with: recibo explain {run} {call}"
        ),
    )
    .with_exit_code(exit::NOT_RECORDED)
}

#[cfg(test)]
mod tests {
    use super::super::child::{self, End};
    use super::*;

    #[test]
    fn a_success_has_its_output_and_says_what_was_dropped() {
        let of = |status, error_class: Option<&str>, bytes: &[u8], dropped_bytes| {
            let class = Class { status, error_class: error_class.map(str::to_owned) };
            let output = child::Output { bytes: bytes.to_vec(), dropped_bytes };
            outcome(
                &class,
                &Ran {
                    end: End::Exited(0),
                    output,
                    duration_ms: 5,
                    left_behind: None,
                    stream: None,
                },
            )
        };
        let whole = of(OutcomeStatus::Ok, None, b"hi\n", 0);
        assert!(whole.summary.is_none() && whole.duration == Duration::from_millis(5));
        assert!(matches!(whole.output, Some(Output::Text(text)) if text == "hi\n"));
        let cut = of(OutcomeStatus::Ok, None, b"", 7).summary.expect("a summary");
        assert_eq!(cut.get(), r#"{"bytes":0,"dropped_bytes":7}"#);
        // Two results that are no text are two results.
        let hash = |bytes| of(OutcomeStatus::Ok, None, bytes, 0).output.expect("it").hash();
        assert_ne!(hash(b"a\xff"), hash(b"a\xfe"));
        let failed = of(OutcomeStatus::Unknown, Some("exit_3"), b"hi", 0);
        assert!(failed.output.is_none() && failed.error_class.as_deref() == Some("exit_3"));
    }
}
