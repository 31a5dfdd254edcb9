//! The knobs of an adapter.

use crate::ledger::Ledger;
use crate::scope::ScopeSpec;

/// The knobs of an adapter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether calls are claimed and recorded at all. Without, tools still run under their
    /// contracts: their time, what may be seen.
    pub enabled: bool,
    /// Whether [`crate::Turn::respond`] appends the block of receipts.
    pub show_in_response: bool,
    /// Whether [`crate::Adapter::system_prompt`] has a paragraph.
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
