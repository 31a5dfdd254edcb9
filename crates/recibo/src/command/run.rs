//! `recibo run`: every call of a run, and every attempt at it.

use recibo_api::answer::{Page, RunSummary};

use super::{Done, now, verdict};
use crate::cli::Common;
use crate::failure::Failure;
use crate::ledger::{Ledger, Purpose, Request, find};
use crate::timeline::{self, Shown};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Args {
    /// The run
    run: String,
    #[command(flatten)]
    pub common: Common,
}

/// Shows a run. With `--json`, its summary.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let ledger = find(&args.common.target, Purpose::Read).await?;
    let result = show(&ledger, &args).await;
    ledger.close().await;
    result
}

async fn show(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let summary = ledger.call(Request::get(&["runs", &args.run])).await?;
    if args.common.json {
        return Ok(Done::document(&summary));
    }
    let mut shown = Vec::new();
    let mut page_token: Option<String> = None;
    loop {
        let request = Request::get(&["runs", &args.run, "calls"])
            .with("page_size", "500")
            .with_some("page_token", page_token.as_deref());
        let page: Page = ledger.call(request).await?.read()?;
        for call in page.calls {
            shown.push(Shown { verdict: verdict(ledger, &call).await?, call });
        }
        page_token = page.next_page_token;
        if page_token.is_none() {
            break;
        }
    }
    Ok(Done::said(timeline::of_run(&summary.read::<RunSummary>()?, &shown, now())))
}
