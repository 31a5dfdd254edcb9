//! `recibo calls`: what there is, a line per call.

use recibo_api::answer::Page;
use recibo_core::status::CallState;

use super::Done;
use crate::failure::Failure;
use crate::layout::Width;
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;
use crate::timeline::list;

/// Arguments of `calls`.
#[derive(clap::Args)]
pub struct Args {
    /// Only calls in this state
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<CallState>,
    /// How many calls at most
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=500))]
    page_size: u32,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

fn state(text: &str) -> Result<CallState, String> {
    CallState::parse(text).filter(|state| *state != CallState::Absent).ok_or_else(|| {
        "one of in_flight, unknown, retryable, ok, terminal, abandoned is needed".to_owned()
    })
}

/// Lists a page of calls.
pub async fn run(args: Args) -> Result<Done, Failure> {
    Ledger::with(&args.common.target, Purpose::Read, async |ledger| show(ledger, &args).await).await
}

async fn show(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let request = Request::get(&["calls"])
        .with("page_size", &args.page_size.to_string())
        .with_some("state", args.state.map(CallState::as_str))
        .with_some("page_token", args.page_token.as_deref());
    let answer = ledger.call(request).await?;
    if args.common.json {
        return Ok(Done::document(&answer));
    }
    let page: Page = answer.read()?;
    let mut text = match page.calls.is_empty() {
        true => "no calls\n".to_owned(),
        false => list::of_calls(&page.calls, Width::of_stdout()),
    };
    if let Some(token) = page.next_page_token {
        text.push_str(&format!("\nthere are more: --page-token {token}\n"));
    }
    Ok(Done::said(text))
}
