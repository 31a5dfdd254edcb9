//! The only clock that decides anything: ledger time. It starts at the wall clock or at the
//! last event, whichever is later, and then advances with the boot-time monotonic clock. It
//! never steps back, and after the start the wall clock is not looked at again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recibo_core::time::Time;

/// Where time comes from. Tests bring their own.
pub trait Clock: Send + Sync {
    /// Wall clock, in milliseconds since 1970.
    fn wall_ms(&self) -> u64;
    /// A clock that never steps back and goes on while the machine sleeps, in milliseconds
    /// from any fixed point.
    fn boot_ms(&self) -> u64;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_ms(&self) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn boot_ms(&self) -> u64 {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let id = rustix::time::ClockId::Monotonic;
        let now = rustix::time::clock_gettime(id);
        let (s, ns) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        s * 1000 + ns / 1_000_000
    }
}

/// A clock that a test moves by hand.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    boot_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at this wall time.
    pub fn at(wall_ms: u64) -> Self {
        Self { wall_ms: AtomicU64::new(wall_ms), boot_ms: AtomicU64::new(0) }
    }

    /// Lets time pass on both clocks.
    pub fn advance_ms(&self, ms: u64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.boot_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the wall clock alone, as an administrator or a time server would.
    pub fn set_wall_ms(&self, ms: u64) {
        self.wall_ms.store(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn boot_ms(&self) -> u64 {
        self.boot_ms.load(Ordering::SeqCst)
    }
}

/// A start so far ahead of the last event is worth a look: either nothing happened for a day,
/// or the wall clock is wrong.
const AHEAD_MS: u64 = 24 * 3_600_000;

/// Ledger time, from one start of the store on.
#[derive(Clone)]
pub(crate) struct LedgerClock {
    clock: Arc<dyn Clock>,
    start: Time,
    boot_ms_at_start: u64,
    /// Whether the wall clock lay behind the last event at the start.
    pub(crate) is_behind: bool,
    /// Whether it lay more than a day ahead of it.
    pub(crate) is_ahead: bool,
}

impl LedgerClock {
    /// Starts at the wall clock or the last event, whichever is later.
    pub(crate) fn start(clock: Arc<dyn Clock>, last_event_at: Option<Time>) -> Self {
        let wall = Time::from_ms(clock.wall_ms());
        Self {
            start: last_event_at.map_or(wall, |last| last.max(wall)),
            boot_ms_at_start: clock.boot_ms(),
            is_behind: last_event_at.is_some_and(|last| wall < last),
            is_ahead: last_event_at.is_some_and(|last| wall.ms_since(last) > AHEAD_MS),
            clock,
        }
    }

    pub(crate) fn start_time(&self) -> Time {
        self.start
    }

    pub(crate) fn now(&self) -> Time {
        self.start.plus_ms(self.clock.boot_ms().saturating_sub(self.boot_ms_at_start))
    }
}
