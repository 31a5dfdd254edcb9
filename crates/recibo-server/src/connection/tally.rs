//! What happens at limits, counted, and logged once a second: an attack must not fill the log.

use std::sync::atomic::{AtomicU64, Ordering};

/// What happens at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// A new connection was refused, since all others have a request in flight.
    Refused,
    /// A connection without a request in flight was closed to make room for a new one.
    MadeRoom,
    /// A head did not arrive in time.
    SlowHead,
    /// A body did not go on arriving.
    SlowBody,
    /// A client did not take its answer.
    SlowReader,
    /// A head was not well formed, or too large.
    BadHead,
    /// A request that would wait for a decision was refused.
    LongPollRefused,
    /// A listing that would be sent whole was refused.
    StreamRefused,
}

const KINDS: usize = Told::StreamRefused as usize + 1;

/// Counts of one service since the last line of its log.
#[derive(Debug, Default)]
pub(crate) struct Tally([AtomicU64; KINDS]);

impl Tally {
    pub(crate) fn add(&self, told: Told) {
        self.0[told as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Writes one line if anything happened since the last one.
    pub(crate) fn log(&self) {
        let counts: [u64; KINDS] =
            std::array::from_fn(|kind| self.0[kind].swap(0, Ordering::Relaxed));
        if counts.iter().all(|count| *count == 0) {
            return;
        }
        let count = |told: Told| counts[told as usize];
        tracing::warn!(
            refused = count(Told::Refused),
            closed_for_others = count(Told::MadeRoom),
            slow_heads = count(Told::SlowHead),
            slow_bodies = count(Told::SlowBody),
            slow_readers = count(Told::SlowReader),
            bad_heads = count(Told::BadHead),
            long_polls_refused = count(Told::LongPollRefused),
            streams_refused = count(Told::StreamRefused),
            "clients at their limits"
        );
    }
}
