//! `recibo init`: a ledger in a folder, and a new one in place of a ledger that is lost.

use std::path::{Path, PathBuf};

use recibo_store::folder::{self, has_ledger};
use serde_json::json;

use super::{Done, now};
use crate::data::{self, Knobs};
use crate::failure::Failure;
use crate::paint;
use crate::service;

/// Arguments of `init`.
#[derive(clap::Args)]
pub struct Args {
    /// The data folder; made if it is missing
    #[arg(long, value_name = "DIR", env = "RECIBO_DATA", default_value = "./recibo-data")]
    data: PathBuf,
    /// Move the ledger that is there, or what is left of it, into DIR/archive-TIME and begin a new
    /// one, which knows no call
    #[arg(long)]
    fresh: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What the new ledger does not know.
const LOST: &str = "\
the new ledger has forgotten what the old one knew:
  - its events: calls, attempts and receipts; old receipts can no longer be looked up or verified
  - open attempts: who runs one now cannot report how it ends
  - what was sent: a retry of an old call is answered as if it were the first
  - its API keys, policies and scopes
";

/// Makes a ledger.
pub async fn run(args: Args) -> Result<Done, Failure> {
    // A service that was started on demand ends, and none is started meanwhile.
    let _turn = match args.fresh && has_ledger(&args.data).is_ok_and(|has| has) {
        true => service::take_over(&args.data).await?,
        false => None,
    };
    let made = tokio::task::spawn_blocking(move || make(&args)).await;
    made.map_err(|error| Failure::said(error.to_string()))?
}

fn make(args: &Args) -> Result<Done, Failure> {
    let failure = |error| data::open_failure(&args.data, error);
    let archive = match args.fresh {
        true => folder::archive(&args.data, &archive_name()).map_err(failure)?,
        false if has_ledger(&args.data).map_err(failure)? => return Err(taken(&args.data)),
        false => None,
    };
    data::open(&args.data, Knobs::default())?.close();
    if args.json {
        let document = json!({"data": args.data, "archive": archive});
        return Ok(Done::said(format!("{document}\n")));
    }
    let mut text = String::new();
    if let Some(archive) = archive {
        text.push_str(&format!("the old ledger is in {}\n{LOST}", archive.display()));
    }
    text.push_str(&format!("{}: a new ledger in {}\n", paint::good("made"), args.data.display()));
    Ok(Done::said(text))
}

fn taken(folder: &Path) -> Failure {
    let name = folder.display();
    Failure::advised(
        format!("there is a ledger, or a part of one, in {name}"),
        format!(
            "use it; or `recibo init --fresh --data {name}` puts it aside and begins a new one, \
             which has forgotten every call"
        ),
    )
}

/// A colon is no character for a file name everywhere.
fn archive_name() -> String {
    format!("archive-{}", now().to_string().replace(':', ""))
}
