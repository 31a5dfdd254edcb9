//! How long the command may run. The clock goes on while the machine sleeps, and it was read
//! before the claim was sent, so that this side always believes the lease to be over first.

use recibo_core::limits;
use recibo_store::{Clock, SystemClock};

use crate::failure::Failure;

/// Lease where neither a lease nor a timeout is named.
const LEASE_MS_DEFAULT: u64 = 300_000;
/// What a lease has beyond the timeout: for the claim, the start, the kill and the report.
const LEASE_MS_BEYOND_TIMEOUT: u64 = 15_000;
/// Time kept between the end of the command and the end of the lease, for the kill to work.
const MARGIN_MS_MAX: u64 = 2_000;

/// Milliseconds since the machine started.
pub fn now_ms() -> u64 {
    SystemClock.boot_ms()
}

/// The lease to ask for.
pub fn wanted_ms(lease_ms: Option<u64>, timeout_ms: Option<u64>) -> Result<u64, Failure> {
    let bounds = limits::LEASE_MS_MIN..=limits::LEASE_MS_MAX;
    match (lease_ms, timeout_ms) {
        (_, Some(0)) => Err(Failure::usage("a timeout of nothing leaves no time to run")),
        (Some(ms), _) if bounds.contains(&ms) => Ok(ms),
        (Some(_), _) => Err(Failure::usage("--lease must be from 1s to 24h")),
        (None, Some(timeout)) => match timeout.saturating_add(LEASE_MS_BEYOND_TIMEOUT) {
            ms if bounds.contains(&ms) => Ok(ms),
            _ => Err(Failure::usage("--timeout must be shorter than the longest lease, 24h")),
        },
        (None, None) => Ok(LEASE_MS_DEFAULT),
    }
}

/// When the command must be over, for a lease of which `left_ms` were left when it was asked
/// for at `asked_at_ms`.
pub fn last_moment_ms(asked_at_ms: u64, left_ms: u64) -> u64 {
    asked_at_ms + left_ms - (left_ms / 5).min(MARGIN_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_the_timeout_and_a_margin() {
        assert_eq!(wanted_ms(None, None).unwrap(), 300_000);
        assert_eq!(wanted_ms(None, Some(5_000)).unwrap(), 20_000);
        assert_eq!(wanted_ms(Some(1_000), Some(5_000)).unwrap(), 1_000);
        for (lease_ms, timeout_ms) in
            [(Some(999), None), (Some(86_400_001), None), (None, Some(0)), (None, Some(86_400_000))]
        {
            assert!(wanted_ms(lease_ms, timeout_ms).is_err(), "{lease_ms:?} {timeout_ms:?}");
        }
        assert_eq!(last_moment_ms(100, 1_000), 900);
        assert_eq!(last_moment_ms(100, 60_000), 58_100);
        assert_eq!(last_moment_ms(100, 0), 100);
    }
}
