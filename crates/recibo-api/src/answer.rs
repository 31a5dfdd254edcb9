//! What answers look like: member order, names and nulls are the contract's. Each type is
//! made from values of the core, and can be read back by clients, which ignore members that
//! they do not know and do without members that an older service does not write.

mod call;
mod decision;
mod manage;
mod record;
#[cfg(test)]
pub(crate) mod tests;

pub use call::{
    BatchAnswer, BatchResult, ByState, Call, CallAnswer, Page, ResolutionEntry, RunSummary, Terms,
};
pub use decision::{ClaimAnswer, Decided, DecisionAnswer, Granted, Lease, RenewalAnswer, Twin};
pub use manage::{
    ApiKeyCreated, ApiKeyEntry, ApiKeyList, Bounds, ConfigAnswer, Limits, ScopeAnswer, ScopeState,
    StatusAnswer,
};
pub use record::{
    CheckEntry, NoTokenReason, NoTokenReasonWord, OutcomeAnswer, OutcomeEntry, Record, RecordSeq,
    Swept,
};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Reads one part of a flattened answer from its text. serde's own flattening copies values
/// into a form that cannot hold raw JSON.
fn part<T: DeserializeOwned>(text: &RawValue) -> Result<T, serde_json::Error> {
    serde_json::from_str(text.get())
}
