//! The tool that the demo calls: it leaves an effect that can be counted, and answers, late or
//! never.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use crate::command::Done;
use crate::failure::Failure;

/// The subcommand.
pub const NAME: &str = "demo-tool";
/// What it says once its effect has taken place.
pub const TAKEN_EFFECT: &str = "taken effect";

/// Arguments of the tool.
#[derive(clap::Args)]
pub struct Args {
    /// Append a line to this file: the side effect
    #[arg(long)]
    effect: Option<PathBuf>,
    /// What to answer
    #[arg(long, default_value = "")]
    answer: String,
    /// Say when the effect has taken place, and answer only when stdin ends
    #[arg(long)]
    hold: bool,
    /// Break off with this exit code instead of an answer
    #[arg(long)]
    break_off: Option<u8>,
}

/// Takes effect, and answers.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let failed = |error: std::io::Error| Failure::said(format!("the tool failed: {error}"));
    if let Some(path) = &args.effect {
        let key = std::env::var("RECIBO_IDEMPOTENCY_KEY").unwrap_or_default();
        let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        // One write, so that two tools never mix their lines.
        file.write_all(format!("effect {key}\n").as_bytes()).map_err(failed)?;
    }
    if let Some(exit_code) = args.break_off {
        return Ok(Done { text: String::new(), exit_code });
    }
    if args.hold {
        println!("{TAKEN_EFFECT}");
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map_err(failed)?;
    }
    Ok(Done::said(args.answer))
}
