//! The adapter of one run: its knobs, and what it counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use crate::ledger::Ledger;
use crate::scope::ScopeSpec;
use crate::turn::Turn;
use crate::words;

/// The knobs of an adapter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether calls are claimed and recorded at all. Without, tools still run under their
    /// contracts: their time, what may be seen.
    pub enabled: bool,
    /// Whether [`Turn::respond`] appends the block of receipts.
    pub show_in_response: bool,
    /// Whether [`Adapter::system_prompt`] has a paragraph.
    pub inject_system_prompt: bool,
    /// Whether a tool runs although the ledger cannot be reached. Such a call leaves no receipt
    /// and may repeat an effect; each is counted and logged.
    pub fail_open: bool,
    /// The run; made here when not given.
    pub run_id: Option<String>,
    /// What the scopes of turns are opened with.
    pub scope: ScopeSpec,
    /// The same ledger through an API key that may report status checks (role `reconciler`).
    /// Without it they are reported with the adapter's own, which over HTTP is forbidden for the
    /// role `adapter`.
    pub reconciler: Option<Ledger>,
}

impl Default for Settings {
    /// Enabled, fails closed, shows and injects nothing.
    fn default() -> Self {
        Self {
            enabled: true,
            show_in_response: false,
            inject_system_prompt: false,
            fail_open: false,
            run_id: None,
            scope: ScopeSpec::default(),
            reconciler: None,
        }
    }
}

/// Wraps the tools of one run. Clones share it.
#[derive(Clone)]
pub struct Adapter(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    settings: Settings,
    run_id: String,
    unreceipted: AtomicU64,
}

impl Adapter {
    /// An adapter over a ledger.
    pub fn new(ledger: Ledger, mut settings: Settings) -> Self {
        let made = || format!("run_{}", Uuid::now_v7());
        let run_id = settings.run_id.take().unwrap_or_else(made);
        Self(Arc::new(Inner { ledger, settings, run_id, unreceipted: AtomicU64::new(0) }))
    }

    /// The run.
    pub fn run_id(&self) -> &str {
        &self.0.run_id
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// A turn of the model, with a scope of its own. Its name goes before provider ids: the same
    /// turn, resumed after a crash, takes the same name, any other turn another one.
    pub fn turn(&self, name: impl Into<String>) -> Turn {
        Turn::new(self.clone(), name.into())
    }

    /// The paragraph for the system prompt, if the knob is on.
    pub fn system_prompt(&self) -> Option<&'static str> {
        let settings = &self.0.settings;
        (settings.enabled && settings.inject_system_prompt).then_some(words::SYSTEM_PROMPT)
    }

    /// How many calls have run without the ledger since it could not be reached.
    pub fn unreceipted_calls(&self) -> u64 {
        self.0.unreceipted.load(Ordering::Relaxed)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn count_unreceipted(&self) {
        self.0.unreceipted.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter")
            .field("run_id", &self.0.run_id)
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}
