//! `recibo explain`: one page in plain words about one call.

use recibo_api::Code;
use recibo_api::answer::{Call, DecisionAnswer};

use super::{Done, decision, view};
use crate::explain;
use crate::failure::Failure;
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;

/// Arguments of `explain`.
#[derive(clap::Args)]
pub struct Args {
    /// The run
    run: String,
    /// The call
    call: String,
    #[command(flatten)]
    pub common: Common,
}

/// Explains a call; with `--json`, the decision with the record that decides.
pub async fn run(args: Args) -> Result<Done, Failure> {
    Ledger::with(&args.common.target, Purpose::Read, async |ledger| show(ledger, &args).await).await
}

async fn show(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let answer = decision(ledger, &args.run, &args.call).await?;
    if args.common.json {
        return Ok(Done::document(&answer));
    }
    let request = Request::get(&["runs", &args.run, "calls", &args.call]);
    let call: Option<Call> = match ledger.call(request).await {
        Ok(answer) => Some(answer.read()?),
        // An absent call is explained too: the name may be mistyped, or nothing was tried.
        Err(failure) if matches!(failure.code(), Some(Code::CallNotFound | Code::RunNotFound)) => {
            None
        }
        Err(failure) => return Err(failure),
    };
    let decision: DecisionAnswer = answer.read()?;
    Ok(Done::said(explain::page(call.as_ref(), &decision, view(&args.common.target))))
}
