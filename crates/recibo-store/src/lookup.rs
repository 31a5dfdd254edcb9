//! Point reads, shared by the writer (inside its transaction) and by snapshots.

mod story;
mod twins;

use recibo_core::call::{Attempt, Call, Tip};
use recibo_core::id::{CallRef, Namespace, RunId};
use recibo_core::plan::KnownCall;
use recibo_core::receipt::IdempotencyKey;
use recibo_core::record::{Record, RecordEvents};
use recibo_core::time::Time;
use redb::ReadableTable;

use crate::codec::{AttemptRow, ReadAttempt, ReadTip, StoredEvent, TipRow, decode_event};
use crate::error::StorageError;
use crate::tables::{EARLY_CALLS, RunKey, under};

pub(crate) use twins::{Alike, twin_digest};

pub(crate) trait ByBytes: ReadableTable<&'static [u8], &'static [u8]> {}
impl<T: ReadableTable<&'static [u8], &'static [u8]>> ByBytes for T {}
pub(crate) trait BySeq: ReadableTable<u64, &'static [u8]> {}
impl<T: ReadableTable<u64, &'static [u8]>> BySeq for T {}

/// The tables that point reads need.
pub(crate) struct Lookup<'a, B: ByBytes, N: BySeq> {
    pub(crate) run_ids: &'a B,
    pub(crate) runs: &'a B,
    pub(crate) events: &'a N,
    pub(crate) wide_twins: &'a B,
    pub(crate) fresh: Fresh<'a>,
}

/// The newest events, which a batch has appended and not written yet.
#[derive(Clone, Copy)]
pub(crate) struct Fresh<'a> {
    /// Number of the first.
    pub(crate) from: u64,
    pub(crate) events: &'a [StoredEvent],
}

impl Fresh<'_> {
    pub(crate) const NONE: Self = Self { from: u64::MAX, events: &[] };

    fn get(&self, seq: u64) -> Option<&StoredEvent> {
        let index = seq.checked_sub(self.from)?;
        self.events.get(usize::try_from(index).ok()?)
    }
}

/// Where a call's rows are, and the call.
pub(crate) struct Found {
    pub(crate) run_no: u64,
    pub(crate) known: KnownCall,
    /// The call's first event.
    pub(crate) first: StoredEvent,
}

impl<B: ByBytes, N: BySeq> Lookup<'_, B, N> {
    pub(crate) fn run_no(
        &self,
        namespace_no: u32,
        run_id: &RunId,
    ) -> Result<Option<u64>, StorageError> {
        let key = under(namespace_no, run_id.as_str());
        let value = self.run_ids.get(key.as_slice())?;
        value.map(|value| number(value.value())).transpose()
    }

    pub(crate) fn tip(&self, run_no: u64, tool_call_id: &str) -> Result<Option<Tip>, StorageError> {
        let key = RunKey::call(run_no, tool_call_id);
        match self.runs.get(key.as_slice())? {
            Some(value) => self.read_tip(value.value()).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the row of a call; one of the first version is folded again from the events.
    pub(crate) fn read_tip(&self, row: &[u8]) -> Result<Tip, StorageError> {
        match TipRow::decode(row)? {
            ReadTip::Tip(tip) => Ok(*tip),
            ReadTip::LastEvent(seq) => Ok(self.folded(seq)?.tip),
        }
    }

    pub(crate) fn event(&self, seq: u64) -> Result<StoredEvent, StorageError> {
        if let Some(event) = self.fresh.get(seq) {
            return Ok(event.clone());
        }
        let value = self.events.get(seq)?;
        let value = value.ok_or(StorageError::Inconsistent("an event is missing"))?;
        Ok(decode_event(value.value())?)
    }

    /// A call with its newest attempt at hand.
    pub(crate) fn call(
        &self,
        namespace_no: u32,
        call: &CallRef,
    ) -> Result<Option<Found>, StorageError> {
        match self.run_no(namespace_no, &call.run_id)? {
            Some(run_no) => self.call_in(run_no, call.tool_call_id.as_str()),
            None => Ok(None),
        }
    }

    pub(crate) fn call_in(
        &self,
        run_no: u64,
        tool_call_id: &str,
    ) -> Result<Option<Found>, StorageError> {
        let Some(tip) = self.tip(run_no, tool_call_id)? else { return Ok(None) };
        let first = self.event(tip.first_seq)?;
        Self::found(run_no, tip, first).map(Some)
    }

    /// A call by its first event.
    pub(crate) fn call_from(&self, run_no: u64, first_seq: u64) -> Result<Found, StorageError> {
        let first = self.event(first_seq)?;
        let (call, _) =
            first.body.call().ok_or(StorageError::Inconsistent("a call opens oddly"))?;
        let tip = self.tip(run_no, call.tool_call_id.as_str())?;
        let tip = tip.ok_or(StorageError::Inconsistent("a call is missing"))?;
        Self::found(run_no, tip, first)
    }

    fn found(run_no: u64, tip: Tip, first: StoredEvent) -> Result<Found, StorageError> {
        let facts = first.body.facts().ok_or(StorageError::Inconsistent("a call opens oddly"))?;
        let known = KnownCall {
            facts: facts.clone(),
            call: Call { tip, older: std::collections::BTreeMap::new() },
        };
        Ok(Found { run_no, known, first })
    }

    /// Attempts before the newest that may have been opened by this claim or one-shot.
    pub(crate) fn opened_by(
        &self,
        run_no: u64,
        tool_call_id: &str,
        origin: u64,
    ) -> Result<Vec<u32>, StorageError> {
        let from = RunKey::origin(run_no, tool_call_id, origin, 0);
        let to = RunKey::origin(run_no, tool_call_id, origin, u32::MAX);
        let mut numbers = Vec::new();
        for row in self.runs.range(from.as_slice()..=to.as_slice())? {
            let (key, _) = row?;
            let number = RunKey::number_of(key.value());
            numbers.push(number.ok_or(StorageError::Inconsistent("an origin key is short"))?);
        }
        Ok(numbers)
    }

    /// How many calls a run has, counted up to [`EARLY_CALLS`].
    pub(crate) fn early_calls(&self, run_no: u64) -> Result<usize, StorageError> {
        let (from, to) = (RunKey::order(run_no, 0), RunKey::order(run_no, u64::MAX));
        let mut calls = 0;
        for row in self.runs.range(from.as_slice()..=to.as_slice())?.take(EARLY_CALLS) {
            row?;
            calls += 1;
        }
        Ok(calls)
    }

    /// One attempt before the newest.
    pub(crate) fn older(
        &self,
        run_no: u64,
        tool_call_id: &str,
        tip: &Tip,
        number: u32,
    ) -> Result<Option<Attempt>, StorageError> {
        let key = RunKey::attempt(run_no, tool_call_id, number);
        let Some(value) = self.runs.get(key.as_slice())? else { return Ok(None) };
        match AttemptRow::decode(value.value(), tip)? {
            ReadAttempt::Attempt(attempt) => Ok(Some(attempt)),
            ReadAttempt::First => Ok(self.folded(tip.version)?.older.remove(&number)),
        }
    }

    /// All attempts before the newest, in order.
    pub(crate) fn all_older(
        &self,
        run_no: u64,
        tool_call_id: &str,
        tip: &Tip,
    ) -> Result<Vec<Attempt>, StorageError> {
        if tip.attempts() == 1 {
            return Ok(Vec::new());
        }
        let from = RunKey::attempt(run_no, tool_call_id, 0);
        let to = RunKey::attempt(run_no, tool_call_id, tip.attempts());
        let mut attempts = Vec::new();
        for row in self.runs.range(from.as_slice()..to.as_slice())? {
            let (_, value) = row?;
            match AttemptRow::decode(value.value(), tip)? {
                ReadAttempt::Attempt(attempt) => attempts.push(attempt),
                ReadAttempt::First => {
                    return Ok(self.folded(tip.version)?.older.into_values().collect());
                }
            }
        }
        Ok(attempts)
    }

    /// One attempt, wherever it is kept.
    pub(crate) fn attempt(
        &self,
        run_no: u64,
        tool_call_id: &str,
        tip: &Tip,
        number: u32,
    ) -> Result<Option<Attempt>, StorageError> {
        if number == tip.newest.number {
            return Ok(Some(tip.newest.clone()));
        }
        self.older(run_no, tool_call_id, tip, number)
    }

    /// The attempt that a decision rests on: the successful one, else the newest.
    pub(crate) fn deciding(
        &self,
        run_no: u64,
        tool_call_id: &str,
        tip: &Tip,
    ) -> Result<Attempt, StorageError> {
        let number = tip.ok_attempt.unwrap_or(tip.newest.number);
        self.attempt(run_no, tool_call_id, tip, number)?
            .ok_or(StorageError::Inconsistent("an attempt is missing"))
    }

    /// The record of an attempt of a call, from its events. The first event is at hand.
    pub(crate) fn record_of(
        &self,
        namespace: &Namespace,
        found: &Found,
        attempt: &Attempt,
        now: Time,
    ) -> Result<Record, StorageError> {
        let tip = &found.known.call.tip;
        let recorded_at = tip.recorded_at;
        let later;
        let opening = if attempt.started_seq == tip.first_seq {
            &found.first
        } else {
            later = self.event(attempt.started_seq)?;
            &later
        };
        let mut outcomes = Vec::with_capacity(attempt.outcomes.len());
        for mark in &attempt.outcomes {
            // A one-shot is its own outcome.
            let is_opening = mark.seq == attempt.started_seq;
            outcomes.push(if is_opening {
                opening.body.clone()
            } else {
                self.event(mark.seq)?.body
            });
        }
        let settling = attempt.settled.map(|settled| self.event(settled.seq)).transpose()?;
        let events = RecordEvents {
            opening: (opening.at, &opening.body),
            outcomes: &outcomes,
            settling: settling.as_ref().map(|event| &event.body),
            checks: self.checks(attempt)?,
        };
        build_record(namespace, recorded_at, attempt, events, now)
    }
}

pub(crate) fn build_record(
    namespace: &Namespace,
    recorded_at: Time,
    attempt: &Attempt,
    events: RecordEvents<'_>,
    now: Time,
) -> Result<Record, StorageError> {
    let opening = events.opening.1;
    let (call, _) = opening.call().ok_or(StorageError::Inconsistent("an attempt opens oddly"))?;
    if opening.facts().is_none() {
        return Err(StorageError::Inconsistent("an attempt opens oddly"));
    }
    let key = IdempotencyKey::of(namespace, call);
    Ok(Record::build(key, recorded_at, attempt, events, now))
}

pub(crate) fn number(bytes: &[u8]) -> Result<u64, StorageError> {
    let bytes =
        bytes.try_into().map_err(|_| StorageError::Inconsistent("a number is no number"))?;
    Ok(u64::from_be_bytes(bytes))
}
