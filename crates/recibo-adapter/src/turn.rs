//! A turn of the model: its ids, its scope, and what it keeps in memory until it ends.

use std::fmt::Write;
use std::future::Future;
use std::sync::Arc;

use recibo_core::hash::{hex, sha256};
use recibo_core::id::ToolCallId;
use uuid::Uuid;

use crate::block;
use crate::context::{Context, Run};
use crate::contract::ToolContract;
use crate::error::LedgerError;
use crate::kept::Kept;
use crate::result::ToolResult;
use crate::run;
use crate::scope::Scope;
use crate::tool::{Attempt, ToolCall, ToolError, ToolOutput};

/// A turn of the model. Clones share its scope and its receipts: a sub-agent that runs inside
/// the turn takes one.
#[derive(Clone)]
pub struct Turn {
    name: Arc<str>,
    context: Arc<Context>,
}

impl Turn {
    pub(crate) fn new(run: Arc<Run>, name: String) -> Self {
        let scope = run.ledger.scope(run.settings.scope.clone());
        let context = Context { run, scope, kept: Kept::default() };
        Self { name: name.into(), context: Arc::new(context) }
    }

    /// Runs a tool as a call of this turn, and gives what the model may be told of it: the result
    /// and its receipt line, or in plain words what is known.
    ///
    /// `tool` is called once per attempt, and only with the ledger's permission. If this future
    /// is dropped while the tool runs, so is the tool's, and the attempt is recorded as
    /// `unknown`. One that is out of time is dropped too and recorded as `timeout`, unless the
    /// contract takes late answers.
    pub async fn call<F, Fut>(&self, contract: &ToolContract, call: ToolCall, tool: F) -> ToolResult
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let id = self.call_id(call.provider_call_id.as_deref());
        run::call(&self.context, contract, call, id, tool).await
    }

    /// What the user reads: the model's text, with the block of this turn's receipts in place of
    /// any that the model has printed. Without the knob, or without receipts, the text as it is.
    pub fn respond(&self, text: &str) -> String {
        let settings = &self.context.run.settings;
        if !(settings.enabled && settings.show_in_response) {
            return text.to_owned();
        }
        match self.receipts_block() {
            Some(block) => block::append(text, &block),
            None => text.to_owned(),
        }
    }

    /// The block of this turn's receipts, in the ledger's order; `None` without any.
    pub fn receipts_block(&self) -> Option<String> {
        self.context.kept.receipts_block()
    }

    /// The signing scope.
    pub fn scope(&self) -> &Scope {
        &self.context.scope
    }

    /// Closes the scope: the turn's receipts verify as `recorded` from now on.
    ///
    /// # Errors
    /// If the ledger cannot be reached; then the scope's time ends it.
    pub async fn close(&self) -> Result<(), LedgerError> {
        self.context.scope.close().await
    }

    fn call_id(&self, provider_call_id: Option<&str>) -> String {
        match provider_call_id {
            Some(provider_id) => call_id(&self.name, provider_id),
            None => Uuid::now_v7().to_string(),
        }
    }
}

/// A call's id: the turn before the provider's own, since providers use some again. What an id
/// cannot hold is escaped; what is too long is hashed. The map is in `api/ids.md`.
fn call_id(turn: &str, provider_id: &str) -> String {
    let plain = format!("{turn}:{provider_id}");
    if ToolCallId::parse(&plain).is_ok() {
        return plain;
    }
    let mut id = String::with_capacity(plain.len());
    for byte in plain.bytes() {
        match byte {
            0x21..=0x7e if byte != b'/' && byte != b'%' => id.push(char::from(byte)),
            _ => write!(id, "%{byte:02X}").expect("a string takes all text"),
        }
    }
    match ToolCallId::parse(&id) {
        Ok(_) => id,
        Err(_) => format!("h:{}", hex(&sha256(&[plain.as_bytes()]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m14_the_map_is_the_one_that_is_written_down() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/ids.md");
        let text = std::fs::read_to_string(path).unwrap();
        let from_provider = text.split("## From").nth(1).unwrap();
        let mut rows = 0;
        for line in from_provider.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('`').collect();
            let [_, turn, between, id, _, call, _] = cells[..] else { panic!("{line}") };
            let times: Option<usize> =
                between.split_whitespace().find_map(|word| word.replace(',', "").parse().ok());
            assert_eq!(call_id(turn, &id.repeat(times.unwrap_or(1))), call, "{line}");
            rows += 1;
        }
        assert_eq!(rows, 5);
    }
}
