//! The adapter of one run.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::context::Run;
use crate::ledger::Ledger;
use crate::settings::Settings;
use crate::turn::Turn;
use crate::words;

/// Wraps the tools of one run. Clones share it.
#[derive(Clone)]
pub struct Adapter(Arc<Run>);

impl Adapter {
    /// An adapter over a ledger.
    pub fn new(ledger: Ledger, mut settings: Settings) -> Self {
        let made = || format!("run_{}", Uuid::now_v7());
        let run_id = settings.run_id.take().unwrap_or_else(made);
        Self(Arc::new(Run::new(ledger, settings, run_id)))
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
        Turn::new(self.0.clone(), name.into())
    }

    /// The paragraph for the system prompt, if the knob is on.
    pub fn system_prompt(&self) -> Option<&'static str> {
        let settings = &self.0.settings;
        (settings.enabled && settings.inject_system_prompt).then_some(words::SYSTEM_PROMPT)
    }

    /// How many calls have run without the ledger since it could not be reached.
    pub fn unreceipted_calls(&self) -> u64 {
        self.0.unreceipted()
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
