//! Permission to run one attempt. It is reported, or it reports itself when it is dropped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use recibo_api::answer::{OutcomeAnswer, Twin};
use recibo_core::effect::{Effect, IsError};
use recibo_core::status::OutcomeStatus;
use tokio::runtime::Handle;

use crate::error::LedgerError;
use crate::lease::now_ms;
use crate::leased::{LeaseEnd, LeasedAttempt};
use crate::outcome::Outcome;
use crate::renew::{self, RENEW_FOR_MAX};
use crate::report;

/// Permission to run one attempt. Who holds it sends nothing after [`Grant::last_moment_ms`] and
/// ends with [`Grant::finish`].
///
/// Dropped unfinished, it reports `unknown` with the error class `dropped` in the background of
/// the runtime that it is dropped in. Where there is none, nothing is reported, and the end of
/// the lease makes the attempt `unknown`.
pub struct Grant {
    leased: Arc<LeasedAttempt>,
    is_reported: bool,
}

impl Grant {
    pub(crate) fn new(leased: LeasedAttempt) -> Self {
        Self { leased: Arc::new(leased), is_reported: false }
    }

    /// The run.
    pub fn run_id(&self) -> &str {
        self.leased.call.run_id.as_str()
    }

    /// The call.
    pub fn tool_call_id(&self) -> &str {
        self.leased.call.tool_call_id.as_str()
    }

    /// The tool.
    pub fn tool(&self) -> &str {
        &self.leased.tool
    }

    /// The attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.leased.attempt
    }

    /// What the tool does to the world, as the call's first attempt froze it.
    pub fn effect(&self) -> Effect {
        self.leased.effect
    }

    /// What the policy says of an error that the tool itself answers; `None` counts as
    /// [`IsError::Unknown`].
    pub fn is_error(&self) -> Option<IsError> {
        self.leased.is_error
    }

    /// Names the effect to the outside service: the same for every attempt.
    pub fn idempotency_key(&self) -> &str {
        &self.leased.idempotency_key
    }

    /// The other call that does the same and matters most. Advice only.
    pub fn twin(&self) -> Option<&Twin> {
        self.leased.twin.as_ref()
    }

    /// Whether the answer to the claim came only after it was sent again.
    pub fn replayed(&self) -> bool {
        self.leased.replayed
    }

    /// The moment, by [`crate::now_ms`], after which nothing may be sent any more. It moves with
    /// each renewal of the lease.
    pub fn last_moment_ms(&self) -> u64 {
        self.leased.lease().last_moment_ms()
    }

    /// The same, for whoever has to hear of each renewal.
    pub fn lease_end(&self) -> LeaseEnd {
        self.leased.lease_end()
    }

    /// What is left until then.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.last_moment_ms().saturating_sub(now_ms()))
    }

    /// Whether something may be sent. Ask right before.
    pub fn may_send(&self) -> bool {
        !self.left().is_zero()
    }

    /// How long ago the claim was sent.
    pub fn since_asked(&self) -> Duration {
        self.leased.since_asked()
    }

    /// Renews the lease, once: it ends after `lease` from now on (1 s to 24 h), but never earlier
    /// than before, and never beyond a key window.
    ///
    /// # Errors
    /// `lease_over` where it is too late; then nothing may be sent after
    /// [`Grant::last_moment_ms`].
    pub async fn renew(&self, lease: Duration) -> Result<(), LedgerError> {
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        renew::once(&self.leased, lease_ms).await
    }

    /// Renews the lease whenever half of it is over, each time for as long as the claim asked
    /// for, while this future is polled: beside the tool, for instance in a `select!`. It ends
    /// once the lease lasts for `at_most` since the claim (24 h at most), or when it could not be
    /// renewed; then the tool may go on until [`Grant::last_moment_ms`].
    pub fn keep_renewed(&self, at_most: Duration) -> impl Future<Output = ()> + Send + use<> {
        let at_most = at_most.min(RENEW_FOR_MAX);
        let at_most_ms = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
        let until_ms = self.leased.asked_at_ms.saturating_add(at_most_ms);
        renew::keep(self.leased.clone(), until_ms)
    }

    /// Renews the lease as far as a tool needs it that ends at this moment.
    pub(crate) async fn renewed_until(&self, end_ms: u64) {
        renew::keep(self.leased.clone(), end_ms).await;
    }

    /// Reports how the attempt ended, again and again while no answer comes. If this future is
    /// dropped, the report goes on in the background.
    ///
    /// # Errors
    /// If it could not be recorded: keep what is known of the result, and do not run the call
    /// again before the ledger says so.
    pub async fn finish(mut self, outcome: Outcome) -> Result<OutcomeAnswer, LedgerError> {
        self.report(outcome).await
    }

    /// The same, and keeps the grant: after `timeout` or `unknown` a late answer may still come,
    /// and the first definite outcome is taken.
    ///
    /// # Errors
    /// As [`Grant::finish`].
    pub async fn report(&mut self, outcome: Outcome) -> Result<OutcomeAnswer, LedgerError> {
        self.is_reported = true;
        let leased = self.leased.clone();
        let running = leased.scope.ledger().background.begin();
        let reported = tokio::spawn(async move {
            let result = report::send(&leased, outcome).await;
            drop(running);
            result
        });
        reported.await.unwrap_or_else(|_| Err(LedgerError::internal()))
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.is_reported {
            return;
        }
        let leased = self.leased.clone();
        let (run_id, tool_call_id) =
            (leased.call.run_id.as_str(), leased.call.tool_call_id.as_str());
        tracing::warn!(run_id, tool_call_id, attempt = leased.attempt, "a grant was dropped");
        let Ok(runtime) = Handle::try_current() else { return };
        let running = leased.scope.ledger().background.begin();
        runtime.spawn(async move {
            let outcome = Outcome::failed(OutcomeStatus::Unknown, leased.since_asked(), "dropped");
            // If this fails, the end of the lease makes it `unknown` all the same.
            let _ = report::send(&leased, outcome).await;
            drop(running);
        });
    }
}

/// Without the lease token: who has it can report outcomes.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("run_id", &self.run_id())
            .field("tool_call_id", &self.tool_call_id())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
