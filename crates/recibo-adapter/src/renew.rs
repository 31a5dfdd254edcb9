//! Renewing leases, for tools of unknown length.

use std::sync::Arc;
use std::time::Duration;

use recibo_api::request::RenewalRequest;
use recibo_core::limits;
use tokio::time::{sleep, timeout};

use crate::error::LedgerError;
use crate::lease::now_ms;
use crate::leased::{Lease, LeasedAttempt};

/// How long the lease of one attempt is renewed at most, counted from its claim: a day, as the
/// longest lease. What runs longer is stuck, and somebody should learn of it.
pub const RENEW_FOR_MAX: Duration = Duration::from_millis(limits::LEASE_MS_MAX);

/// The clock is looked at this often: a machine may have slept.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Asks once for a lease of this length from now on.
pub(crate) async fn once(leased: &LeasedAttempt, lease_ms: u64) -> Result<(), LedgerError> {
    let request = RenewalRequest { lease_token: leased.lease_token.clone(), lease_ms };
    let asked_at_ms = now_ms();
    let left_ms = leased.scope.ledger().renew(&leased.call, leased.attempt, request).await?;
    leased.take_lease(Lease { asked_at_ms, left_ms });
    Ok(())
}

/// Renews the lease whenever half of it is over, until it lasts to `until_ms`, or as long as
/// permitted. Returns when there is nothing more to renew, or no way to: the lease at hand is
/// what counts, in any case.
pub(crate) async fn keep(leased: Arc<LeasedAttempt>, until_ms: u64) {
    let over_at_ms = leased.asked_at_ms.saturating_add(limits::LEASE_MS_MAX);
    let ledger = leased.scope.ledger();
    let mut pause = ledger.retry_policy.pause;
    loop {
        let lease = leased.lease();
        if lease.last_moment_ms() >= until_ms {
            return;
        }
        wait_until(lease.half_ms()).await;
        let now = now_ms();
        let wanted_ms = leased.lease_asked_ms.min(over_at_ms.saturating_sub(now));
        let left = Duration::from_millis(lease.last_moment_ms().saturating_sub(now));
        if wanted_ms < limits::LEASE_MS_MIN || left.is_zero() {
            return;
        }
        // A request that hangs must not keep the next one from being sent.
        match timeout(left, once(&leased, wanted_ms)).await {
            Ok(Ok(())) if leased.lease() == lease => return,
            Ok(Ok(())) => pause = ledger.retry_policy.pause,
            Ok(Err(error)) if error.is_transient() => {
                sleep(pause.min(left)).await;
                pause = pause.saturating_mul(2);
                ledger.find_again().await;
            }
            Ok(Err(error)) => {
                let (run_id, tool_call_id) = (&leased.call.run_id, &leased.call.tool_call_id);
                tracing::warn!(%error, %run_id, %tool_call_id, "a lease could not be renewed");
                return;
            }
            Err(_) => return,
        }
    }
}

async fn wait_until(moment_ms: u64) {
    loop {
        let left = Duration::from_millis(moment_ms.saturating_sub(now_ms()));
        if left.is_zero() {
            return;
        }
        sleep(left.min(LOOK_EVERY)).await;
    }
}
