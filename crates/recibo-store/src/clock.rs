//! The only clock that decides anything: ledger time. It never steps back and advances with the
//! boot-time clock.
//!
//! A start on the boot that the ledger was last seen on goes on as if it had never stopped. A
//! start on another boot begins at the wall clock or where the ledger was last seen, whichever
//! is later. After the start the wall clock is not looked at again.

mod system;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recibo_core::event::Restarted;
use recibo_core::time::Time;

use crate::codec::{ClockMark, Head};

pub use system::SystemClock;

/// Where time comes from. Tests bring their own.
pub trait Clock: Send + Sync {
    /// Wall clock, in milliseconds since 1970.
    fn wall_ms(&self) -> u64;
    /// A clock that never steps back and goes on while the machine sleeps, in milliseconds
    /// from a point that is fixed as long as the machine runs.
    fn boot_ms(&self) -> u64;
    /// Names the boot that [`Clock::boot_ms`] counts from; `None` where the system does not say,
    /// and then every start is one on another boot.
    fn boot_id(&self) -> Option<[u8; 16]>;
}

/// A clock that a test moves by hand.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    boot_ms: AtomicU64,
    boots: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at this wall time.
    pub fn at(wall_ms: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self { wall_ms: AtomicU64::new(wall_ms), boot_ms: zero(), boots: zero() }
    }

    /// Boots the machine anew: the boot-time clock begins at 0 again.
    pub fn reboot(&self) {
        self.boot(self.boots.load(Ordering::SeqCst) + 1);
    }

    /// The same, and gives this boot a number; a new clock is on boot 0.
    pub fn boot(&self, number: u64) {
        self.boots.store(number, Ordering::SeqCst);
        self.boot_ms.store(0, Ordering::SeqCst);
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

    fn boot_id(&self) -> Option<[u8; 16]> {
        Some(u128::from(self.boots.load(Ordering::SeqCst)).to_be_bytes())
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
    boot_id: Option<[u8; 16]>,
    boot_ms_at_start: u64,
    /// Whether the start lies more than a day after the last event.
    pub(crate) is_ahead: bool,
}

impl LedgerClock {
    /// Starts, and says what a start on another boot means for leases and key windows; `None`
    /// on the same boot, and for a ledger without events.
    pub(crate) fn start(clock: Arc<dyn Clock>, head: &Head) -> (Self, Option<Restarted>) {
        let (boot_id, boot_ms) = (clock.boot_id(), clock.boot_ms());
        let wall = Time::from_ms(clock.wall_ms());
        let last_event_at = (head.size > 0).then(|| Time::from_ms(head.last_at_ms));
        let started = |start, is_ahead| Self {
            clock: clock.clone(),
            start,
            boot_id,
            boot_ms_at_start: boot_ms,
            is_ahead,
        };
        let same_boot = head.mark.filter(|mark| {
            mark.boot_id.is_some() && mark.boot_id == boot_id && mark.boot_ms <= boot_ms
        });
        if let Some(mark) = same_boot {
            let start = Time::from_ms(mark.at_ms).plus_ms(boot_ms - mark.boot_ms);
            return (started(start, false), None);
        }
        let mark_at = head.mark.map(|mark| Time::from_ms(mark.at_ms));
        let Some(last_at) = last_event_at.max(mark_at) else {
            return (started(wall, false), None);
        };
        let is_ahead = last_event_at.is_some_and(|last| wall.ms_since(last) > AHEAD_MS);
        let restarted = last_event_at
            .map(|last_event_at| Restarted { last_at, key_windows_void: wall < last_event_at });
        (started(last_at.max(wall), is_ahead), restarted)
    }

    pub(crate) fn now(&self) -> Time {
        self.look().0
    }

    /// Ledger time, and the same moment as it is kept for the next start.
    pub(crate) fn look(&self) -> (Time, ClockMark) {
        let boot_ms = self.clock.boot_ms();
        let now = self.start.plus_ms(boot_ms.saturating_sub(self.boot_ms_at_start));
        (now, ClockMark { at_ms: now.ms(), boot_id: self.boot_id, boot_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL_MS: u64 = 1_800_000_000_000;

    fn head(at_ms: u64, boot: u8, boot_ms: u64) -> Head {
        let mark = ClockMark { at_ms, boot_id: Some(id(boot)), boot_ms };
        Head { size: 1, last_at_ms: at_ms - 10, mark: Some(mark), ..Head::default() }
    }

    fn id(boot: u8) -> [u8; 16] {
        u128::from(boot).to_be_bytes()
    }

    fn clock(wall_ms: u64, boots: u8, boot_ms: u64) -> Arc<ManualClock> {
        let clock = ManualClock::at(wall_ms - boot_ms);
        clock.boot(u64::from(boots));
        clock.advance_ms(boot_ms);
        Arc::new(clock)
    }

    #[test]
    fn a_start_continues_on_the_same_boot_and_restarts_on_another() {
        let seen = head(WALL_MS, 0, 5_000);
        let restarted = |last_ms, key_windows_void| {
            Some(Restarted { last_at: Time::from_ms(last_ms), key_windows_void })
        };
        let cases = [
            // The same boot: the wall clock does not matter.
            (clock(WALL_MS + 700, 0, 5_700), WALL_MS + 700, None),
            (clock(WALL_MS - 90_000_000, 0, 5_700), WALL_MS + 700, None),
            // The same boot id, but its clock went back.
            (clock(WALL_MS + 700, 0, 4_000), WALL_MS + 700, restarted(WALL_MS, false)),
            // Another boot.
            (clock(WALL_MS + 700, 1, 9_000), WALL_MS + 700, restarted(WALL_MS, false)),
            (clock(WALL_MS - 5, 1, 100), WALL_MS, restarted(WALL_MS, false)),
            (clock(WALL_MS - 11, 1, 100), WALL_MS, restarted(WALL_MS, true)),
        ];
        for (index, (clock, start_ms, restarted)) in cases.into_iter().enumerate() {
            let (ledger, found) = LedgerClock::start(clock, &seen);
            assert_eq!((ledger.now().ms(), found), (start_ms, restarted), "case {index}");
        }
    }

    #[test]
    fn a_ledger_without_events_starts_at_the_wall_clock() {
        let (ledger, restarted) = LedgerClock::start(clock(WALL_MS, 0, 1), &Head::default());
        assert_eq!((ledger.now().ms(), restarted), (WALL_MS, None));
    }

    #[test]
    fn a_file_without_a_mark_was_seen_on_another_boot() {
        let seen = Head { mark: None, ..head(WALL_MS, 0, 5_000) };
        let (_, restarted) = LedgerClock::start(clock(WALL_MS + 1, 0, 6_000), &seen);
        assert_eq!(restarted.map(|r| r.last_at.ms()), Some(WALL_MS - 10));
    }
}
