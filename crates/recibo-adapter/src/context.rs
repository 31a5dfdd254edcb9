//! What a call has around it: the run and its knobs, the scope that signs, and what is kept in
//! memory. Calls get this, and know neither the adapter nor the turn that they are made in.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::kept::Kept;
use crate::ledger::Ledger;
use crate::scope::Scope;
use crate::settings::Settings;
use crate::told::ToldSuccesses;

/// A run, shared by all its turns.
pub(crate) struct Run {
    pub(crate) ledger: Ledger,
    pub(crate) settings: Settings,
    pub(crate) run_id: String,
    pub(crate) told: ToldSuccesses,
    unreceipted: AtomicU64,
}

/// What a call has around it.
pub(crate) struct Context {
    pub(crate) run: std::sync::Arc<Run>,
    pub(crate) scope: Scope,
    pub(crate) kept: Kept,
}

impl Run {
    pub(crate) fn new(ledger: Ledger, settings: Settings, run_id: String) -> Self {
        let told = ToldSuccesses::new(run_id.clone());
        Self { ledger, settings, run_id, told, unreceipted: AtomicU64::new(0) }
    }

    /// How many calls have run without the ledger.
    pub(crate) fn unreceipted(&self) -> u64 {
        self.unreceipted.load(Ordering::Relaxed)
    }

    pub(crate) fn count_unreceipted(&self) {
        self.unreceipted.fetch_add(1, Ordering::Relaxed);
    }
}
