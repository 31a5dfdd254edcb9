//! An attempt that was granted, and its lease, which may be renewed.

use std::sync::Mutex;
use std::time::Duration;

use recibo_api::answer::Twin;
use recibo_core::id::CallRef;

use crate::lease::{last_moment_ms, now_ms};
use crate::reply::Granted;
use crate::scope::Scope;

/// What is known of a granted attempt. Whoever runs it, reports it or renews its lease shares
/// this.
pub(crate) struct LeasedAttempt {
    pub(crate) scope: Scope,
    pub(crate) call: CallRef,
    pub(crate) tool: String,
    /// The scope that was claimed in.
    pub(crate) scope_id: String,
    pub(crate) attempt: u32,
    pub(crate) lease_token: String,
    pub(crate) idempotency_key: String,
    pub(crate) replayed: bool,
    pub(crate) twin: Option<Twin>,
    /// When the claim was sent.
    pub(crate) asked_at_ms: u64,
    /// How long a lease the claim asked for.
    pub(crate) lease_asked_ms: u64,
    lease: Mutex<Lease>,
}

/// A lease as this side sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Before the request: the lease is over for this side first.
    pub(crate) asked_at_ms: u64,
    /// What was left of it then.
    pub(crate) left_ms: u64,
}

impl Lease {
    pub(crate) fn last_moment_ms(self) -> u64 {
        last_moment_ms(self.asked_at_ms, self.left_ms)
    }

    /// When it should be renewed.
    pub(crate) fn half_ms(self) -> u64 {
        self.asked_at_ms.saturating_add(self.left_ms / 2)
    }
}

impl LeasedAttempt {
    pub(crate) fn new(
        scope: Scope,
        call: CallRef,
        tool: &str,
        scope_id: String,
        granted: Granted,
        asked_at_ms: u64,
        lease_asked_ms: u64,
    ) -> Self {
        Self {
            scope,
            call,
            tool: tool.to_owned(),
            scope_id,
            attempt: granted.attempt,
            lease_token: granted.lease_token,
            idempotency_key: granted.idempotency_key,
            replayed: granted.replayed,
            twin: granted.twin,
            asked_at_ms,
            lease_asked_ms,
            lease: Mutex::new(Lease { asked_at_ms, left_ms: granted.lease_ms }),
        }
    }

    pub(crate) fn lease(&self) -> Lease {
        *self.lease.lock().expect("no holder panics")
    }

    /// Takes a renewed lease, unless it ends earlier than the one at hand.
    pub(crate) fn take_lease(&self, renewed: Lease) {
        let mut lease = self.lease.lock().expect("no holder panics");
        if renewed.last_moment_ms() > lease.last_moment_ms() {
            *lease = renewed;
        }
    }

    pub(crate) fn since_asked(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.asked_at_ms))
    }
}
