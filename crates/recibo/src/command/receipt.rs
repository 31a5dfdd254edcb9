//! `recibo receipt verify`: is this token a receipt of this ledger, and of what?

use std::path::{Path, PathBuf};

use recibo_adapter::input;
use recibo_api::verify::{Level, Verdict, VerifyAnswer};
use recibo_core::hash::OutputHash;
use serde_json::json;

use super::Done;
use crate::cli::Common;
use crate::exec::exit;
use crate::failure::Failure;
use crate::ledger::{Purpose, Request, find};
use crate::{duration, paint};

/// Arguments of `receipt`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Verify a token; exit code 0 if it is valid or recorded, else 1
    Verify(VerifyArgs),
}

#[derive(clap::Args)]
struct VerifyArgs {
    /// The token, or the receipt line that holds it
    token: String,
    /// The arguments that the call is said to have had: JSON text, else taken as a string
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// The result that the call is said to have given, to the byte, without the receipt line
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// The run that it is said to be of
    #[arg(long)]
    run: Option<String>,
    /// The call that it is said to be of
    #[arg(long)]
    call: Option<String>,
    /// The tool that is said to have run
    #[arg(long)]
    tool: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Args {
    /// What all commands take.
    pub fn common(&self) -> &Common {
        let Action::Verify(args) = &self.action;
        &args.common
    }
}

/// Verifies a token.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let Action::Verify(args) = args.action;
    // Read first: a mistyped file name needs no ledger.
    let body = body(&args)?;
    let ledger = find(&args.common.target, Purpose::Read).await?;
    let result = ledger.call(Request::verify(body)).await;
    ledger.close().await;
    let answer = result?;
    let verified: VerifyAnswer = answer.read()?;
    let is_good = matches!(verified.verdict.0, Verdict::Valid | Verdict::Recorded);
    let mut done = match args.common.json {
        true => Done::document(&answer),
        false => Done::said(in_words(&verified)),
    };
    done.exit_code = if is_good { exit::OK } else { exit::FAILED };
    Ok(done)
}

/// Hashes go instead of the texts: they say as much, and the texts stay here.
fn body(args: &VerifyArgs) -> Result<String, Failure> {
    let line = args.token.trim();
    let token = line.strip_prefix("[receipt: ").and_then(|rest| rest.strip_suffix(']'));
    let mut body = json!({"token": token.unwrap_or(line)});
    let names = [("run_id", &args.run), ("tool_call_id", &args.call), ("tool", &args.tool)];
    for (name, value) in names {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    if let Some(file) = &args.input_file {
        let arguments = String::from_utf8(bytes(file)?)
            .map_err(|_| Failure::said(format!("{}: is not UTF-8", file.display())))?;
        let hash = input::hash(arguments.trim_end())
            .map_err(|error| Failure::said(format!("{}: {error}", file.display())))?;
        body["input_hash"] = json!(hash.to_string());
    }
    if let Some(file) = &args.output_file {
        body["output_hash"] = json!(OutputHash::of_bytes(&bytes(file)?).to_string());
    }
    Ok(body.to_string())
}

fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::said(format!("cannot read {}: {error}", file.display())))
}

fn in_words(answer: &VerifyAnswer) -> String {
    let mut text = match (answer.verdict.0, answer.level.map(|level| level.0)) {
        (Verdict::Valid, _) => format!(
            "{}: the key that signed it still lives, and the signature is right\n",
            paint::good("valid")
        ),
        (Verdict::Recorded, Some(Level::Log)) => format!(
            "{}: the key that signed it is gone; the ledger holds this token, under a signed \
             checkpoint\n",
            paint::good("recorded")
        ),
        (Verdict::Recorded, _) => format!(
            "{}: the key that signed it is gone; the ledger holds this token, and that is the \
             proof\n",
            paint::good("recorded")
        ),
        (Verdict::Mismatch, _) => format!(
            "{}: the ledger holds this token, but not with this {}\n",
            paint::bad("mismatch"),
            names(&answer.mismatches)
        ),
        (Verdict::Forged, _) => format!(
            "{}: well formed, but the ledger has never given it out in this namespace\n",
            paint::bad("forged")
        ),
        (Verdict::Malformed, _) => {
            format!("{}: this text is no receipt token\n", paint::bad("malformed"))
        }
    };
    if !answer.unchecked.is_empty() {
        let names = names(&answer.unchecked);
        text.push_str(&format!("  not compared, since a sweep left nothing: {names}\n"));
    }
    if let Some(record) = &answer.record {
        let took = record.duration_ms.map(|ms| format!(" in {}", duration::in_words(ms)));
        text.push_str(&format!(
            "  {} of run {}, call {}, attempt {}: {}{}, started {}\n",
            record.tool,
            record.run_id,
            record.tool_call_id,
            record.attempt,
            record.status.0.as_str(),
            took.unwrap_or_default(),
            record.started_at.0,
        ));
    }
    if let Some(level) = answer.level {
        text.push_str(&format!("  level: {}\n", level.0.as_str()));
    }
    text
}

/// What differs, in the words of the options: people gave files, not hashes.
fn names(members: &[String]) -> String {
    let words: Vec<_> = members.iter().map(|name| name.trim_end_matches("_hash")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_words() {
        for verdict in Verdict::ALL {
            let answer: VerifyAnswer = serde_json::from_value(json!({
                "verdict": verdict.as_str(), "level": null, "mismatches": ["output"],
                "unchecked": [], "record": null,
            }))
            .unwrap();
            let text = paint::plain(&in_words(&answer));
            assert!(text.starts_with(verdict.as_str()), "{text}");
        }
    }
}
