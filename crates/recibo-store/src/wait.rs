//! Waiting: for the end of a lease to be durable, and for a decision that is not `wait`.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use recibo_core::id::{CallRef, Namespace};
use recibo_core::status::DecisionKind;
use tokio::time::{Instant, sleep, sleep_until};

use crate::error::{StorageError, WriteError};
use crate::snapshot::{DecisionView, Snapshot};
use crate::store::Store;

/// Longest pause between two looks at a call while others are written. Every commit wakes
/// everybody who waits; looking each time would cost one read per waiter and commit.
const PAUSE_MAX: Duration = Duration::from_millis(100);

impl Store {
    /// A view in which every lease that is over is over durably: what is read as over stays over,
    /// whatever happens to the machine. Writes that are under way are waited for.
    pub async fn settled(&self) -> Result<Snapshot, StorageError> {
        let now = self.now();
        while self.unmarked_lease_end().is_some_and(|end| end <= now) {
            match self.mark().await {
                Ok(()) => {}
                Err(WriteError::QueueFull) => sleep(Duration::from_millis(1)).await,
                // The ledger stops: such a lease is shown as it was before its end.
                Err(_) => break,
            }
        }
        // Another lease may have ended meanwhile. To wait again and again would have no end.
        self.snapshot_before(self.unmarked_lease_end())
    }

    /// The decision once it is not `wait`, or as it is when the time is over, when `stop` is done,
    /// or when writes are served no more. Needs a runtime with time.
    ///
    /// It is read on the spot: that touches a dozen pages, nearly always in memory. Where one is
    /// not, the thread is held up by a read of the disk; to hand each look to another thread and
    /// back was measured at a third of the look-up.
    pub async fn decided(
        &self,
        namespace: &Namespace,
        call: &CallRef,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<DecisionView, StorageError> {
        let deadline = Instant::now() + wait;
        let (mut stop, mut is_stopped) = (pin!(stop), false);
        let mut pause = Duration::from_millis(1);
        loop {
            // Before the look, so that no commit in between is missed.
            let size = self.size();
            let view = self.settled().await?.decision(namespace, call)?;
            let is_over = is_stopped || Instant::now() >= deadline;
            if view.decision.kind != DecisionKind::Wait || is_over || !self.is_serving() {
                return Ok(view);
            }
            let lease_left =
                Duration::from_millis(view.decision.retry_after_ms.unwrap_or(0).max(1));
            tokio::select! {
                () = async {
                    self.committed_beyond(size).await;
                    sleep(pause).await;
                } => pause = (pause * 2).min(PAUSE_MAX),
                () = sleep(lease_left) => {}
                () = sleep_until(deadline) => {}
                () = &mut stop => is_stopped = true,
            }
        }
    }
}
