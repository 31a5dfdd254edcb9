//! `recibo run`: every call of a run, and every attempt at it.

use std::collections::BTreeMap;

use recibo_api::answer::{Call, RunSummary};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Done, verdict, view};
use crate::failure::Failure;
use crate::ledger::{Answer, Ledger, Purpose, Request};
use crate::target::Common;
use crate::timeline::{self, Shown};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Args {
    /// The run
    run: String,
    #[command(flatten)]
    pub common: Common,
}

/// Shows a run. With `--json`, its summary with all its calls as `call_list`.
pub async fn run(args: Args) -> Result<Done, Failure> {
    Ledger::with(&args.common.target, Purpose::Read, async |ledger| show(ledger, &args).await).await
}

async fn show(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let summary = ledger.call(Request::get(&["runs", &args.run])).await?;
    let mut calls: Vec<Box<RawValue>> = Vec::new();
    let mut page_token: Option<String> = None;
    loop {
        let request = Request::get(&["runs", &args.run, "calls"])
            .with("page_size", "500")
            .with_some("page_token", page_token.as_deref());
        let page: RawPage = ledger.call(request).await?.read()?;
        calls.extend(page.calls);
        page_token = page.next_page_token;
        if page_token.is_none() {
            break;
        }
    }
    if args.common.json {
        return document(&summary, &calls);
    }
    let mut shown = Vec::new();
    for call in calls {
        let call: Call = read(&call)?;
        shown.push(Shown { verdict: verdict(ledger, &call).await?, call });
    }
    let view = view(&args.common.target);
    Ok(Done::said(timeline::of_run(&summary.read::<RunSummary>()?, &shown, view)))
}

/// A page whose calls stay as the service wrote them: no member is lost, no number rounded.
#[derive(Deserialize)]
struct RawPage {
    calls: Vec<Box<RawValue>>,
    next_page_token: Option<String>,
}

/// The summary, and with it the calls. Its own `calls` is their number.
fn document(summary: &Answer, calls: &[Box<RawValue>]) -> Result<Done, Failure> {
    let mut members: BTreeMap<String, Box<RawValue>> = summary.read()?;
    members.insert("call_list".to_owned(), to_raw_value(calls).map_err(unreadable)?);
    let text = serde_json::to_string(&members).map_err(unreadable)?;
    Ok(Done::said(format!("{text}\n")))
}

fn read(call: &RawValue) -> Result<Call, Failure> {
    serde_json::from_str(call.get()).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::said(format!("the ledger's answer cannot be read: {error}"))
}
