//! What a turn keeps in memory until it ends: results and receipts.

use std::collections::HashMap;
use std::sync::Mutex;

use recibo_api::answer::{OutcomeAnswer, Record};
use recibo_core::hash::OutputHash;

use crate::block;

/// Results and receipts of a turn, in memory only.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Inner>);

#[derive(Default)]
struct Inner {
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

impl Kept {
    /// Keeps what an outcome has brought; `text` is the result of a success.
    pub(crate) fn keep(&self, answer: &OutcomeAnswer, text: Option<&str>) {
        let record = &answer.record;
        let id = &record.tool_call_id;
        let mut kept = self.lock();
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
    pub(crate) fn result(&self, record: &Record) -> Option<String> {
        let kept = self.lock();
        let text = kept.results.get(&record.tool_call_id)?;
        let hash = OutputHash::of_text(text).to_string();
        (record.output_hash.as_deref() == Some(&hash)).then(|| text.clone())
    }

    /// The block of the receipts, in the ledger's order; `None` without any.
    pub(crate) fn receipts_block(&self) -> Option<String> {
        let mut kept = self.lock();
        let Inner { receipts, first_seqs, .. } = &mut *kept;
        receipts.sort_by_key(|receipt| {
            (first_seqs.get(&receipt.tool_call_id).copied(), receipt.attempt)
        });
        block::block(receipts.iter().map(|receipt| (&*receipt.tool, &*receipt.token)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("no holder panics")
    }
}
