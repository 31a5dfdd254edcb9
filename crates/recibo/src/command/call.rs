//! `recibo call`: one call and every attempt at it.

use recibo_api::answer::Call;

use super::{Done, verdict, view};
use crate::failure::Failure;
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;
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
    Ledger::with(&args.common.target, Purpose::Read, async |ledger| show(ledger, &args).await).await
}

async fn show(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let answer = ledger.call(Request::get(&["runs", &args.run, "calls", &args.call])).await?;
    if args.common.json {
        return Ok(Done::document(&answer));
    }
    let call: Call = answer.read()?;
    let shown = Shown { verdict: verdict(ledger, &call).await?, call };
    Ok(Done::said(timeline::of_call(&shown, view(&args.common.target))))
}
