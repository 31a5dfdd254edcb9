//! `recibo unknown`: the operator's queue. Calls that nobody knows the outcome of, in ledger
//! order, so that the oldest comes first and nothing is skipped.

use recibo_api::answer::{DecisionAnswer, Page};

use super::{Done, decision, view};
use crate::failure::Failure;
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;
use crate::timeline::list;

/// Arguments of `unknown`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
}

/// Lists all unknown calls; with `--json`, the first page of up to 500.
pub async fn run(args: Args) -> Result<Done, Failure> {
    Ledger::with(&args.common.target, Purpose::Read, async |ledger| {
        show(ledger, &args.common).await
    })
    .await
}

async fn show(ledger: &Ledger, common: &Common) -> Result<Done, Failure> {
    let mut entries = Vec::new();
    let mut page_token: Option<String> = None;
    loop {
        let request = Request::get(&["calls"])
            .with("state", "unknown")
            .with("page_size", "500")
            .with_some("page_token", page_token.as_deref());
        let answer = ledger.call(request).await?;
        if common.json {
            return Ok(Done::document(&answer));
        }
        let page: Page = answer.read()?;
        for call in page.calls {
            let answer = decision(ledger, &call.run_id, &call.tool_call_id).await?;
            entries.push((call, answer.read::<DecisionAnswer>()?));
        }
        page_token = page.next_page_token;
        if page_token.is_none() {
            break;
        }
    }
    if entries.is_empty() {
        return Ok(Done::said("nothing is unknown\n".to_owned()));
    }
    Ok(Done::said(list::of_unknown(&entries, view(&common.target))))
}
