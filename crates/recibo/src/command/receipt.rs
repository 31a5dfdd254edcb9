//! `recibo receipt verify`: is this token a receipt of this ledger, and of what?

use std::fmt::Display;
use std::path::{Path, PathBuf};

use recibo_adapter::input;
use recibo_api::verify::{Level, Verdict, VerifyAnswer};
use recibo_core::hash::OutputHash;
use serde_json::json;

use super::{Done, source};
use crate::exec::exit;
use crate::failure::Failure;
use crate::layout::{self, Width};
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;
use crate::{duration, paint, words};

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
    /// The token, or the receipt line that holds it; - reads it from stdin
    token: String,
    /// The arguments that the call is said to have had: JSON text, else taken as a string; -
    /// reads stdin
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// The result that the call is said to have given, as a text: compared byte for byte,
    /// without the receipt line; - reads stdin
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// The result, as a JSON value: spaces and the order of members do not matter; a JSON string
    /// counts as the text in it; - reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "output_file")]
    output_json: Option<PathBuf>,
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
    let target = &args.common.target;
    let ask = async |ledger: &Ledger| ledger.call(Request::verify(body)).await;
    let answer = Ledger::with(target, Purpose::Read, ask).await?;
    let verified: VerifyAnswer = answer.read()?;
    let is_good = matches!(verified.verdict.0, Verdict::Valid | Verdict::Recorded);
    let mut done = match args.common.json {
        true => Done::document(&answer),
        false => Done::said(in_words(&verified, Width::of_stdout())),
    };
    done.exit_code = if is_good { exit::OK } else { exit::FAILED };
    Ok(done)
}

/// Hashes go instead of the texts: they say as much, and the texts stay here.
fn body(args: &VerifyArgs) -> Result<String, Failure> {
    let token = Path::new(&args.token);
    let files = [&args.input_file, &args.output_file, &args.output_json];
    let files = files.into_iter().flatten().map(PathBuf::as_path);
    if files.chain([token]).filter(|file| source::is_stdin(file)).count() > 1 {
        return Err(Failure::usage("stdin can be read once: only one `-` is possible"));
    }
    let line = match source::is_stdin(token) {
        true => source::text(token)?,
        false => args.token.clone(),
    };
    let line = line.trim();
    let token = line.strip_prefix("[receipt: ").and_then(|rest| rest.strip_suffix(']'));
    let mut body = json!({"token": token.unwrap_or(line)});
    let names = [("run_id", &args.run), ("tool_call_id", &args.call), ("tool", &args.tool)];
    for (name, value) in names {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let not_hashed = |file: &Path, error: &dyn Display| {
        Failure::said(format!("{}: {error}", source::name(file)))
    };
    if let Some(file) = &args.input_file {
        let hash = input::hash(source::text(file)?.trim_end());
        body["input_hash"] = json!(hash.map_err(|error| not_hashed(file, &error))?.to_string());
    }
    if let Some(file) = &args.output_file {
        body["output_hash"] = json!(OutputHash::of_bytes(&source::bytes(file)?).to_string());
    }
    if let Some(file) = &args.output_json {
        let hash = OutputHash::of_json(&source::bytes(file)?);
        body["output_hash"] = json!(hash.map_err(|error| not_hashed(file, &error))?.to_string());
    }
    Ok(body.to_string())
}

fn in_words(answer: &VerifyAnswer, width: Width) -> String {
    let (word, meaning) = match (answer.verdict.0, answer.level.map(|level| level.0)) {
        (Verdict::Valid, _) => (
            paint::good("valid"),
            "the key that signed it still lives, and the signature is right".to_owned(),
        ),
        (Verdict::Recorded, Some(Level::Log)) => (
            paint::good("recorded"),
            "the key that signed it is gone; the ledger holds this token, under a signed \
             checkpoint"
                .to_owned(),
        ),
        (Verdict::Recorded, _) => (
            paint::good("recorded"),
            "the key that signed it is gone; the ledger holds this token, and that is the proof"
                .to_owned(),
        ),
        (Verdict::Mismatch, _) => (
            paint::bad("mismatch"),
            format!("the ledger holds this token, but not with this {}", names(&answer.mismatches)),
        ),
        (Verdict::Forged, _) => (
            paint::bad("forged"),
            "well formed, but the ledger has never given it out in this namespace".to_owned(),
        ),
        (Verdict::Malformed, _) => {
            (paint::bad("malformed"), "this text is no receipt token".to_owned())
        }
    };
    let mut rows = Vec::new();
    if let Some(record) = &answer.record {
        let took = record.duration_ms.map(|ms| format!(" in {}", duration::in_words(ms)));
        rows.extend([
            ("tool", record.tool.clone()),
            ("run", record.run_id.clone()),
            ("call", format!("{}, attempt {}", record.tool_call_id, record.attempt)),
            ("ended", format!("{}{}", record.status.0.as_str(), took.unwrap_or_default())),
            ("started", record.started_at.0.to_string()),
        ]);
    }
    if !answer.unchecked.is_empty() {
        let names = names(&answer.unchecked);
        rows.push(("not compared", format!("{names}, since a sweep has removed its hash")));
    }
    if let Some(level) = answer.level {
        let meaning = match level.0 {
            Level::Signature => "proved by the scope key, which signed it and still lives",
            Level::Log => "proved by a signed checkpoint of the ledger's log",
            Level::Recorded => "the ledger says so, and nothing else confirms it",
        };
        rows.push(("level", format!("{} ({meaning})", level.0.as_str())));
    }
    let meaning = words::Reader::default().told(&format!("{word}: {meaning}"));
    format!("{}{}", layout::prose("", &meaning, width), layout::facts("  ", &rows, width))
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
            let text = paint::plain(&in_words(&answer, Width::fixed(60)));
            assert!(text.starts_with(verdict.as_str()), "{text}");
        }
    }
}
