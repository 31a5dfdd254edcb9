//! How long the command may run: the lease to ask for.

use recibo_core::limits;

use crate::failure::Failure;

/// Lease where neither a lease nor a timeout is named.
const LEASE_MS_DEFAULT: u64 = 300_000;
/// What a lease has beyond the timeout: for the claim, the start, the kill and the report.
const LEASE_MS_BEYOND_TIMEOUT: u64 = 15_000;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_the_timeout() {
        assert_eq!(wanted_ms(None, None).unwrap(), 300_000);
        assert_eq!(wanted_ms(None, Some(5_000)).unwrap(), 20_000);
        assert_eq!(wanted_ms(Some(1_000), Some(5_000)).unwrap(), 1_000);
        for (lease_ms, timeout_ms) in
            [(Some(999), None), (Some(86_400_001), None), (None, Some(0)), (None, Some(86_400_000))]
        {
            assert!(wanted_ms(lease_ms, timeout_ms).is_err(), "{lease_ms:?} {timeout_ms:?}");
        }
    }
}
