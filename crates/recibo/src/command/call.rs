//! `recibo call`: one call and every attempt at it.

use recibo_api::answer::Call;

use super::{Done, now, verdict};
use crate::cli::Common;
use crate::failure::Failure;
use crate::ledger::{Ledger, Purpose, Request, find};
use crate::timeline::{self, Shown};

/// Arguments of `call`.
#[derive(clap::Args)]
pub struct Args {
    /// The run
    run: String,
    /// The call
    call: String,
    #[command(flatten)]
    pub common: Common,
}

/// Shows a call.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let ledger = find(&args.common.target, Purpose::Read).await?;
    let result = show(&ledger, &args).await;
    ledger.close().await;
    result
}

async fn show(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let answer = ledger.call(Request::get(&["runs", &args.run, "calls", &args.call])).await?;
    if args.common.json {
        return Ok(Done::document(&answer));
    }
    let call: Call = answer.read()?;
    let shown = Shown { verdict: verdict(ledger, &call).await?, call };
    Ok(Done::said(timeline::of_call(&shown, now())))
}
