//! A turn of the model: its ids, its scope, and what it keeps in memory until it ends.

use std::collections::HashMap;
use std::fmt::Write;
use std::future::Future;
use std::sync::{Arc, Mutex};

use recibo_api::answer::{OutcomeAnswer, Record};
use recibo_core::hash::{OutputHash, hex, sha256};
use recibo_core::id::ToolCallId;
use uuid::Uuid;

use crate::adapter::Adapter;
use crate::block;
use crate::contract::ToolContract;
use crate::error::LedgerError;
use crate::run::{self, ToolResult};
use crate::scope::Scope;
use crate::tool::{Attempt, ToolCall, ToolError, ToolOutput};

/// A turn of the model. Clones share its scope and its receipts: a sub-agent that runs inside
/// the turn takes one.
#[derive(Clone)]
pub struct Turn(Arc<Inner>);

struct Inner {
    adapter: Adapter,
    name: String,
    scope: Scope,
    kept: Mutex<Kept>,
}

/// Results and receipts of the turn, in memory only.
#[derive(Default)]
struct Kept {
    /// The text of each success, before its receipt line.
    results: HashMap<String, String>,
    receipts: Vec<Receipt>,
    /// The first event of each call that is known, which is the ledger's order.
    first_seqs: HashMap<String, u64>,
}

struct Receipt {
    tool_call_id: String,
    attempt: u32,
    tool: String,
    token: String,
}

impl Turn {
    pub(crate) fn new(adapter: Adapter, name: String) -> Self {
        let scope = adapter.ledger().scope(adapter.settings().scope.clone());
        Self(Arc::new(Inner { adapter, name, scope, kept: Mutex::default() }))
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
        run::call(self, contract, call, tool).await
    }

    /// What the user reads: the model's text, with the block of this turn's receipts in place of
    /// any that the model has printed. Without the knob, or without receipts, the text as it is.
    pub fn respond(&self, text: &str) -> String {
        let settings = self.0.adapter.settings();
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
        let mut kept = self.kept();
        let Kept { receipts, first_seqs, .. } = &mut *kept;
        receipts.sort_by_key(|receipt| {
            (first_seqs.get(&receipt.tool_call_id).copied(), receipt.attempt)
        });
        block::block(receipts.iter().map(|receipt| (&*receipt.tool, &*receipt.token)))
    }

    /// The signing scope.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// Closes the scope: the turn's receipts verify as `recorded` from now on.
    ///
    /// # Errors
    /// If the ledger cannot be reached; then the scope's time ends it.
    pub async fn close(&self) -> Result<(), LedgerError> {
        self.0.scope.close().await
    }

    pub(crate) fn adapter(&self) -> &Adapter {
        &self.0.adapter
    }

    /// The call's id: the turn before the provider's own, since providers use some again. What
    /// an id cannot hold is escaped; what is too long is hashed.
    pub(crate) fn call_id(&self, provider_call_id: Option<&str>) -> String {
        let Some(provider_id) = provider_call_id else { return Uuid::now_v7().to_string() };
        let plain = format!("{}:{provider_id}", self.0.name);
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

    /// Keeps what an outcome has brought; `text` is the result of a success.
    pub(crate) fn keep(&self, answer: &OutcomeAnswer, text: Option<&str>) {
        let record = &answer.record;
        let id = &record.tool_call_id;
        let mut kept = self.kept();
        let first = kept.first_seqs.entry(id.clone()).or_insert(record.seq.started);
        *first = (*first).min(record.seq.started);
        if let Some(text) = text {
            kept.results.insert(id.clone(), text.to_owned());
        }
        if let (Some(token), false) = (&record.token, answer.replayed) {
            kept.receipts.push(Receipt {
                tool_call_id: id.clone(),
                attempt: record.attempt,
                tool: record.tool.clone(),
                token: token.clone(),
            });
        }
    }

    /// The result of an earlier success of this turn, if it is the one that the record is about.
    pub(crate) fn kept_result(&self, record: &Record) -> Option<String> {
        let kept = self.kept();
        let text = kept.results.get(&record.tool_call_id)?;
        let hash = OutputHash::of_text(text).to_string();
        (record.output_hash.as_deref() == Some(&hash)).then(|| text.clone())
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.kept.lock().expect("no holder panics")
    }
}
