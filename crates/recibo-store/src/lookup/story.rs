//! What is found by going from event to event of a call, the newest first: each names the one
//! before it.

use recibo_core::call::{self, Attempt, Call, Listed};
use recibo_core::event::Body;
use recibo_core::limits::CHECKS_SHOWN_MAX;
use recibo_core::record::CheckMark;

use super::{ByBytes, BySeq, Lookup};
use crate::codec::StoredEvent;
use crate::error::StorageError;
use crate::snapshot::ResolutionMark;

impl<B: ByBytes, N: BySeq> Lookup<'_, B, N> {
    /// A call folded from its events, of which the last is named. Rows of the first version lack
    /// what later rules need; no restart has changed such a call, since that rewrites its row.
    pub(super) fn folded(&self, last_seq: u64) -> Result<Call, StorageError> {
        let mut events = Vec::new();
        let mut next = Some(last_seq);
        while let Some(seq) = next {
            let event = self.event(seq)?;
            // A chain that does not go back would have no end.
            if event.before.is_some_and(|before| before >= seq) {
                return Err(StorageError::Inconsistent("an event names a later one before it"));
            }
            next = event.before;
            events.push((seq, event));
        }
        let mut call = None;
        for (seq, event) in events.iter().rev() {
            if call.is_none() && event.body.facts().is_none() {
                return Err(StorageError::Inconsistent("a call opens oddly"));
            }
            call::apply(&mut call, *seq, event.at, &event.body);
        }
        call.ok_or(StorageError::Inconsistent("a call without events"))
    }

    /// The status checks of an attempt, in order, the newest [`CHECKS_SHOWN_MAX`].
    pub(crate) fn checks(&self, attempt: &Attempt) -> Result<Vec<CheckMark>, StorageError> {
        self.listed(&attempt.checks, |seq, event| match &event.body {
            Body::StatusChecked(e) if e.attempt == attempt.number => Some(CheckMark {
                answer: e.answer,
                source: e.source.clone(),
                at: event.at,
                seq,
                counted: e.settles,
            }),
            _ => None,
        })
    }

    /// The resolutions of a call, in order, the newest [`CHECKS_SHOWN_MAX`].
    pub(crate) fn resolutions(&self, list: &Listed) -> Result<Vec<ResolutionMark>, StorageError> {
        self.listed(list, |seq, event| match &event.body {
            Body::Resolved(e) => Some(ResolutionMark {
                state: e.state,
                reason: e.reason.clone(),
                at: event.at,
                by: e.by.clone(),
                seq,
                corrects: e.corrects,
            }),
            _ => None,
        })
    }

    fn listed<T>(
        &self,
        list: &Listed,
        read: impl Fn(u64, &StoredEvent) -> Option<T>,
    ) -> Result<Vec<T>, StorageError> {
        let wanted = (list.count as usize).min(CHECKS_SHOWN_MAX);
        let mut found = Vec::with_capacity(wanted);
        let mut next = list.newest_seq;
        while let Some(seq) = next.filter(|_| found.len() < wanted) {
            let event = self.event(seq)?;
            found.extend(read(seq, &event));
            next = event.before.filter(|before| *before < seq);
        }
        found.reverse();
        Ok(found)
    }
}
