//! The machine's clocks. In debug builds a file can stand in for them, so that a test of the
//! binary can let time pass and boot the machine anew; release builds lack that way.

use recibo_core::hash::sha256;

use super::Clock;

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_ms(&self) -> u64 {
        #[cfg(debug_assertions)]
        if let Some(stand_in) = stand_in::read() {
            return stand_in.wall_ms;
        }
        #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn boot_ms(&self) -> u64 {
        #[cfg(debug_assertions)]
        if let Some(stand_in) = stand_in::read() {
            return stand_in.boot_ms;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let id = rustix::time::ClockId::Monotonic;
        let now = rustix::time::clock_gettime(id);
        let (s, ns) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        s * 1000 + ns / 1_000_000
    }

    /// The kernel's boot id and the time namespace: another namespace has another boot-time
    /// clock, so it counts as another boot.
    fn boot_id(&self) -> Option<[u8; 16]> {
        #[cfg(debug_assertions)]
        if let Some(stand_in) = stand_in::read() {
            return Some(digest(&[stand_in.boot_id.as_bytes()]));
        }
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        // A kernel without time namespaces has no such link.
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        Some(digest(&[&boot, namespace.as_os_str().as_encoded_bytes()]))
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&sha256(parts)[..16]);
    id
}

/// `RECIBO_TEST_CLOCK` names a file of three words: boot id, boot-time clock and wall clock, both
/// in milliseconds. It is read at each look, so a test replaces it by renaming.
#[cfg(debug_assertions)]
mod stand_in {
    pub(super) struct StandIn {
        pub(super) boot_id: String,
        pub(super) boot_ms: u64,
        pub(super) wall_ms: u64,
    }

    /// # Panics
    /// If the file does not hold a clock: a test that goes on with the machine's clocks would
    /// test nothing.
    pub(super) fn read() -> Option<StandIn> {
        let path = std::env::var_os("RECIBO_TEST_CLOCK")?;
        let text = std::fs::read_to_string(path).expect("the test clock is readable");
        let mut words = text.split_whitespace();
        let boot_id = words.next().expect("the test clock has a boot id").to_owned();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (boot_ms, wall_ms) = (number(), number());
        Some(StandIn {
            boot_id,
            boot_ms: boot_ms.expect("the test clock has a boot time"),
            wall_ms: wall_ms.expect("the test clock has a wall time"),
        })
    }
}
