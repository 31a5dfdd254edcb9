//! Wraps the tools of an agent, so that every call leaves a receipt: claim, run, measure,
//! classify, record.
//!
//! Two levels. The low one is [`Ledger`], [`Scope`], [`Grant`]: one attempt, asked for and
//! reported, over HTTP or on a store of this process. It knows nothing of what a tool is. The
//! high one is [`Adapter`], [`Turn`], [`ToolContract`]: it runs a tool, obeys the ledger, and gives
//! what the model may be told.
//!
//! What it never does: send without a grant (unless told to fail open), send after the lease is
//! nearly over, take an ambiguous end for a failure, or leave an attempt open.
//!
//! Everything here needs a Tokio runtime with time and, over HTTP, IO.
#![forbid(unsafe_code)]

mod adapter;
mod background;
mod block;
mod claim;
mod context;
mod contract;
mod embedded;
mod error;
mod grant;
mod held_back;
mod http;
pub mod input;
mod kept;
mod lease;
mod leased;
mod ledger;
mod outcome;
mod renew;
mod reply;
mod report;
mod result;
mod retry;
mod run;
mod scope;
mod seen;
mod settings;
mod status;
mod told;
mod tool;
mod turn;
mod words;

pub use adapter::Adapter;
pub use claim::{CallSpec, Permission};
pub use contract::{Shown, StatusQuestion, ToolContract};
pub use error::LedgerError;
pub use grant::Grant;
pub use held_back::{TwinWords, words_on_twin};
pub use lease::{last_moment_ms, now_ms};
pub use leased::LeaseEnd;
pub use ledger::{Finding, Ledger};
pub use outcome::{Outcome, Output};
pub use recibo_api::answer::{DecisionAnswer, NoTokenReason, OutcomeAnswer, Record, Twin};
pub use recibo_api::client::Service;
pub use recibo_core::effect::{Effect, IsError};
pub use recibo_core::id::Namespace;
pub use recibo_core::plan::OnTwin;
pub use recibo_core::status::{CheckAnswer, DecisionKind, OutcomeStatus, Reason};
pub use renew::RENEW_FOR_MAX;
pub use reply::Checked;
pub use result::{Ended, ToolResult};
pub use retry::RetryPolicy;
pub use scope::{Scope, ScopeSpec};
pub use settings::Settings;
pub use told::ToldSuccesses;
pub use tool::{Attempt, ToolCall, ToolError, ToolOutput};
pub use turn::Turn;

/// The example of the README runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
