//! How long an attempt may run. The clock goes on while the machine sleeps, and it is read
//! before the claim is sent, so that this side always believes the lease to be over first.

use recibo_store::{Clock, SystemClock};

/// Time kept between the last moment and the end of the lease, for a kill to work.
const MARGIN_MS_MAX: u64 = 2_000;

/// Milliseconds since the machine started.
pub fn now_ms() -> u64 {
    SystemClock.boot_ms()
}

/// The moment, by [`now_ms`], after which nothing may be sent for a lease of which `left_ms` were
/// left when it was asked for at `asked_at_ms`.
pub fn last_moment_ms(asked_at_ms: u64, left_ms: u64) -> u64 {
    asked_at_ms.saturating_add(left_ms - (left_ms / 5).min(MARGIN_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_kept_before_the_end_of_the_lease() {
        assert_eq!(last_moment_ms(100, 1_000), 900);
        assert_eq!(last_moment_ms(100, 60_000), 58_100);
        assert_eq!(last_moment_ms(100, 0), 100);
    }
}
