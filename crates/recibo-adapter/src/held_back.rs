//! Calls that another one holds back, since it does the same: what the model is told, and what
//! may settle it.

use std::time::Duration;

use recibo_api::answer::{DecisionAnswer, Record, Twin};
use recibo_core::status::{DecisionKind, Reason};

use crate::context::Context;
use crate::contract::ToolContract;
use crate::ledger::Ledger;
use crate::result::{self, ToolResult};
use crate::status::{self, Settled};
use crate::told::ToldSuccesses;
use crate::words;

/// The twin that holds a call back, if one does.
pub(crate) fn twin_of(advice: &DecisionAnswer) -> Option<&Twin> {
    let is_held_back =
        matches!(advice.reason.0, Reason::TwinUnknown | Reason::TwinInFlight | Reason::TwinOkLate);
    advice.twin.as_ref().filter(|_| is_held_back)
}

/// Asks the outside service what became of the twin, where that can settle it.
pub(crate) async fn settle(context: &Context, contract: &ToolContract, twin: &Twin) -> Settled {
    if contract.status_hook.is_none() {
        return Settled::NotAsked;
    }
    let run = &context.run;
    match look(&run.ledger, run.told.run_of(twin), twin).await {
        Some(known) if known.decision.0 == DecisionKind::CheckStatus => {
            status::settle(context, contract, &known).await
        }
        _ => Settled::NotAsked,
    }
}

/// What the model is told.
pub(crate) async fn told(context: &Context, advice: &DecisionAnswer) -> Option<ToolResult> {
    let run = &context.run;
    let result_of = |record: &Record| context.kept.result(record);
    let words = words_on_twin(&run.ledger, &run.told, advice, result_of).await?;
    if let Some((run_id, tool_call_id)) = &words.success {
        run.told.note(run_id, tool_call_id);
    }
    Some(result::not_run(advice, words.text))
}

/// What a model is told of a twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwinWords {
    /// The text.
    pub text: String,
    /// The late success that the text tells of: run and call. [`ToldSuccesses::note`] it when the
    /// model has the text: from then on that success holds nothing back.
    pub success: Option<(String, String)>,
}

/// What a model is told of a call that another one holds back, since it does the same: which one
/// it is, what is known of it, and who can settle it; a success with its result where `result_of` has
/// it. `None` if none holds the call back.
pub async fn words_on_twin(
    ledger: &Ledger,
    told: &ToldSuccesses,
    advice: &DecisionAnswer,
    result_of: impl FnOnce(&Record) -> Option<String>,
) -> Option<TwinWords> {
    let twin = twin_of(advice)?;
    let run_id = told.run_of(twin);
    // An answer to a wait has the twin's record at hand, the ledger's own has none.
    let is_of_twin = |record: &Record| record.tool_call_id == twin.tool_call_id;
    let record = match advice.record.clone().filter(is_of_twin) {
        Some(record) => Some(record),
        None => look(ledger, run_id, twin).await.and_then(|known| known.record),
    };
    let name = words::call_name(told.run_id(), run_id, &twin.tool_call_id);
    let is_success = advice.reason.0 == Reason::TwinOkLate;
    let success = is_success.then(|| (run_id.to_owned(), twin.tool_call_id.clone()));
    let text = match advice.reason.0 {
        Reason::TwinUnknown => {
            let since = record.as_ref().and_then(since);
            words::twin_unknown(&name, run_id, twin, since.as_deref())
        }
        Reason::TwinInFlight => words::twin_in_flight(&name),
        _ => {
            let result = record.as_ref().and_then(result_of);
            let line = record.and_then(|record| record.token).map(|t| result::line_of(&t));
            words::twin_ok(&name, result.as_deref(), line.as_deref())
        }
    };
    Some(TwinWords { text, success })
}

/// The twin's own decision. Without one the text says less.
async fn look(ledger: &Ledger, run_id: &str, twin: &Twin) -> Option<DecisionAnswer> {
    ledger.decision(run_id, &twin.tool_call_id, Duration::ZERO).await.ok()
}

/// Since when nobody knows: the outcome, else the end of the lease.
fn since(record: &Record) -> Option<String> {
    let moment = record.finished_at.or(record.lease_expires_at)?;
    Some(moment.0.to_string())
}
