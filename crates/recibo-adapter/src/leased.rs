//! An attempt that was granted, and its lease, which may be renewed.

use std::time::Duration;

use recibo_api::answer::Twin;
use recibo_core::effect::{Effect, IsError};
use recibo_core::id::CallRef;
use tokio::sync::watch;

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
    pub(crate) effect: Effect,
    pub(crate) is_error: Option<IsError>,
    /// When the claim was sent.
    pub(crate) asked_at_ms: u64,
    /// How long a lease the claim asked for.
    pub(crate) lease_asked_ms: u64,
    lease: watch::Sender<Lease>,
}

/// A lease as this side sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Before the request: the lease is over for this side first.
    pub(crate) asked_at_ms: u64,
    /// What was left of it then.
    pub(crate) left_ms: u64,
}

/// Two answers about the same end differ by the time that they took.
const MOVED_MS_MIN: u64 = 100;

impl Lease {
    fn end_ms(self) -> u64 {
        self.asked_at_ms.saturating_add(self.left_ms)
    }

    pub(crate) fn last_moment_ms(self) -> u64 {
        last_moment_ms(self.asked_at_ms, self.left_ms)
    }

    /// When it should be renewed.
    pub(crate) fn half_ms(self) -> u64 {
        self.asked_at_ms.saturating_add(self.left_ms / 2)
    }
}

/// The end of a lease, which moves with each renewal.
pub struct LeaseEnd(watch::Receiver<Lease>);

impl LeaseEnd {
    /// The moment, by [`now_ms`], after which nothing may be sent any more.
    pub fn last_moment_ms(&self) -> u64 {
        self.0.borrow().last_moment_ms()
    }

    /// Waits for a renewal that was not waited for yet. Never returns once the grant is gone.
    pub async fn moved(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
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
            effect: granted.effect,
            is_error: granted.is_error,
            asked_at_ms,
            lease_asked_ms,
            lease: watch::Sender::new(Lease { asked_at_ms, left_ms: granted.lease_ms }),
        }
    }

    pub(crate) fn lease(&self) -> Lease {
        *self.lease.borrow()
    }

    /// Takes a renewed lease if its end has moved. One whose end stays, at a key window for
    /// instance, is not taken: the less is left of it, the smaller would its margin be.
    pub(crate) fn take_lease(&self, renewed: Lease) {
        self.lease.send_if_modified(|lease| {
            let is_later = renewed.end_ms() >= lease.end_ms().saturating_add(MOVED_MS_MIN);
            if is_later {
                *lease = renewed;
            }
            is_later
        });
    }

    pub(crate) fn lease_end(&self) -> LeaseEnd {
        LeaseEnd(self.lease.subscribe())
    }

    pub(crate) fn since_asked(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.asked_at_ms))
    }
}
