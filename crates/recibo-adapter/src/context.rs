//! What a call has around it: the run and its knobs, the scope that signs, and what is kept in
//! memory. Calls get this, and know neither the adapter nor the turn that they are made in.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use recibo_api::answer::Twin;
use recibo_core::limits;

use crate::kept::Kept;
use crate::ledger::Ledger;
use crate::scope::Scope;
use crate::settings::Settings;

/// A run, shared by all its turns.
pub(crate) struct Run {
    pub(crate) ledger: Ledger,
    pub(crate) settings: Settings,
    pub(crate) run_id: String,
    unreceipted: AtomicU64,
    told: Mutex<VecDeque<String>>,
}

/// What a call has around it.
pub(crate) struct Context {
    pub(crate) run: std::sync::Arc<Run>,
    pub(crate) scope: Scope,
    pub(crate) kept: Kept,
}

impl Run {
    pub(crate) fn new(ledger: Ledger, settings: Settings, run_id: String) -> Self {
        let told = Mutex::default();
        Self { ledger, settings, run_id, unreceipted: AtomicU64::new(0), told }
    }

    /// How many calls have run without the ledger.
    pub(crate) fn unreceipted(&self) -> u64 {
        self.unreceipted.load(Ordering::Relaxed)
    }

    pub(crate) fn count_unreceipted(&self) {
        self.unreceipted.fetch_add(1, Ordering::Relaxed);
    }

    /// The model is told now that this call has succeeded: from here on it holds nothing back.
    pub(crate) fn note_told(&self, run_id: &str, tool_call_id: &str) {
        let entry = match run_id == self.run_id {
            true => tool_call_id.to_owned(),
            false => format!("{run_id}/{tool_call_id}"),
        };
        let mut told = self.told.lock().expect("no holder panics");
        told.retain(|known| *known != entry);
        told.push_back(entry);
        // One that was forgotten is told once more, which costs a turn and no effect.
        if told.len() > limits::KNOWS_MAX {
            told.pop_front();
        }
    }

    /// The same of a twin.
    pub(crate) fn note_twin_told(&self, twin: &Twin) {
        self.note_told(self.run_of(twin), &twin.tool_call_id);
    }

    /// Calls that the model knows to have succeeded.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().expect("no holder panics").iter().cloned().collect()
    }

    /// A twin's run; services of before twins had runs name none.
    pub(crate) fn run_of<'a>(&'a self, twin: &'a Twin) -> &'a str {
        if twin.run_id.is_empty() { &self.run_id } else { &twin.run_id }
    }
}

#[cfg(test)]
mod tests {
    use recibo_core::id::Namespace;

    use super::*;

    #[test]
    fn the_newest_successes_that_were_told_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path(), Namespace::parse("default").unwrap()).unwrap();
        let run = Run::new(ledger, Settings::default(), "r".into());
        run.note_told("r", "t:0");
        run.note_told("other", "t:0");
        run.note_told("r", "t:0");
        assert_eq!(run.told(), ["other/t:0", "t:0"]);
        for i in 0..limits::KNOWS_MAX {
            run.note_told("r", &format!("c{i}"));
        }
        let told = run.told();
        assert_eq!((told.len(), told[0].as_str()), (limits::KNOWS_MAX, "c0"));
    }
}
