//! `recibo resolve`: an operator's word on a call.

use recibo_api::answer::CallAnswer;
use recibo_core::status::ResolvedAs;
use serde_json::json;

use super::{Done, view};
use crate::failure::Failure;
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;
use crate::timeline::{self, Shown, Verdict};

/// Arguments of `resolve`.
#[derive(clap::Args)]
pub struct Args {
    /// The run
    run: String,
    /// The call
    call: String,
    /// What became of it: ok (it took effect), retryable (it did not, and may be tried again),
    /// terminal (it did not, and must not be tried again), abandoned (nobody will find out)
    #[arg(long = "as", value_name = "STATE", value_parser = resolved_as)]
    state: ResolvedAs,
    /// How you know; kept in the ledger for ever, credentials masked
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Only if the call is still the version that you have seen: the ETag of a call
    /// [default: the version at this moment]
    #[arg(long, value_name = "ETAG")]
    if_match: Option<String>,
    /// The resolution that was wrong: its event, as `recibo call` shows it. Only where the state
    /// rests on that word alone; evidence is never overruled
    #[arg(long, value_name = "SEQ")]
    corrects: Option<u64>,
    #[command(flatten)]
    pub common: Common,
}

fn resolved_as(text: &str) -> Result<ResolvedAs, String> {
    ResolvedAs::parse(text)
        .ok_or_else(|| "one of ok, retryable, terminal, abandoned is needed".to_owned())
}

/// Resolves a call.
pub async fn run(args: Args) -> Result<Done, Failure> {
    Ledger::with(&args.common.target, Purpose::Change, async |ledger| resolve(ledger, &args).await)
        .await
}

async fn resolve(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    let path = ["runs", &args.run, "calls", &args.call];
    let tag =
        match &args.if_match {
            Some(tag) => quoted(tag),
            None => ledger.call(Request::get(&path)).await?.etag.ok_or_else(|| {
                Failure::said("the ledger did not say which version the call has")
            })?,
        };
    let mut body = json!({"state": args.state.as_str(), "reason": args.reason});
    if let Some(seq) = args.corrects {
        body["corrects"] = seq.into();
    }
    let path = [&path[..], &["resolution"]].concat();
    let answer = ledger.call(Request::post(&path, &body).if_match(tag)).await?;
    if args.common.json {
        return Ok(Done::document(&answer));
    }
    let CallAnswer { call, decision, reason, retry_after_ms } = answer.read()?;
    let verdict = Verdict { decision: decision.0, reason: reason.0, retry_after_ms };
    let text = timeline::of_call(&Shown { call, verdict }, view(&args.common.target));
    Ok(Done::said(format!("resolved as {}\n\n{text}", args.state.as_str())))
}

/// People leave the quotes out; `*` stands for any version.
fn quoted(tag: &str) -> String {
    if tag == "*" || tag.starts_with('"') || tag.starts_with("W/") {
        tag.to_owned()
    } else {
        format!("\"{tag}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_get_the_quotes_that_people_leave_out() {
        for (given, sent) in
            [("17", "\"17\""), ("17-expired", "\"17-expired\""), ("\"17\"", "\"17\""), ("*", "*")]
        {
            assert_eq!(quoted(given), sent);
        }
    }
}
