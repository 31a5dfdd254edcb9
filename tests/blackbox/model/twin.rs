//! Section 2, *Twins*.

use super::Ledger;
use super::call::{Call, CallKey, Terms};
use super::claim::ClaimAsk;
use super::decide::Retry;
use super::fold::Fold;
use super::words::{State, Status};

/// What a claim says of its twins.
#[derive(Clone, Debug)]
pub struct TwinAsk {
    /// `twins: "stop"`.
    pub stop: bool,
    pub window_ms: u64,
    /// As they are sent.
    pub knows: Vec<String>,
}

/// A claim is held back.
#[derive(Clone, Debug)]
pub struct Hold {
    pub kind: &'static str,
    pub reason: &'static str,
    /// The twin that decided: its place in the ledger's list.
    pub twin: usize,
    pub retry: Retry,
}

impl Ledger {
    /// The twins of a call, oldest first, as places in the ledger's list.
    fn twins(&self, key: &CallKey, tool: &str, twin_hash: &str) -> Vec<usize> {
        let across = self.rule(tool).is_some_and(|rule| rule.across_runs);
        let is_twin = |call: &Call| {
            call.key != *key
                && (across || call.key.run == key.run)
                && call.tool == tool
                && call.twin_hash == twin_hash
        };
        let all = self.calls.iter().enumerate();
        all.filter(|(_, call)| is_twin(call)).map(|(index, _)| index).collect()
    }

    /// The twin that an answer names: "unknown, then in_flight, then ok; the newest of equals".
    pub fn shown_twin(&self, key: &CallKey, tool: &str, twin_hash: &str) -> Option<usize> {
        let rank = |index: usize| {
            let state = self.fold(&self.calls[index]).state(self.now);
            match state {
                State::Unknown => Some(3),
                State::InFlight => Some(2),
                State::Ok => Some(1),
                _ => None,
            }
        };
        let twins = self.twins(key, tool, twin_hash);
        let ranked = twins.into_iter().filter_map(|index| Some((rank(index)?, index)));
        ranked.max().map(|(_, index)| index)
    }

    /// Whether a claim that would be granted is held back, and by which twin.
    pub fn held_by_twins(&self, ask: &ClaimAsk, terms: &Terms) -> Option<Hold> {
        if !ask.twins.stop || terms.effect.is_repeatable() {
            return None;
        }
        let twins = self.twins(&ask.key, &ask.tool, &ask.twin_hash);
        // Order: stop, then wait, then reuse; of equals the newest twin.
        let newest = |judge: &dyn Fn(&Call, &Fold) -> bool| {
            let is_it = |index: &&usize| {
                let call = &self.calls[**index];
                judge(call, &self.fold(call))
            };
            twins.iter().rev().find(is_it).copied()
        };
        let window_ms = ask.twins.window_ms;
        if let Some(twin) = newest(&|_, fold| self.is_feared(fold, window_ms)) {
            let hold = Hold { kind: "stop", reason: "twin_unknown", twin, retry: Retry::None };
            return Some(hold);
        }
        if let Some(twin) = newest(&|_, fold| fold.state(self.now) == State::InFlight) {
            let retry = self.until_lease_end(&self.fold(&self.calls[twin]));
            return Some(Hold { kind: "wait", reason: "twin_in_flight", twin, retry });
        }
        let is_late = |call: &Call, fold: &Fold| self.is_late_ok(ask, call, fold);
        let twin = newest(&is_late)?;
        Some(Hold { kind: "reuse", reason: "twin_ok_late", twin, retry: Retry::None })
    }

    /// "a twin that is `unknown` or has `conflict`, younger than `twin_window_ms`".
    fn is_feared(&self, fold: &Fold, window_ms: u64) -> bool {
        if fold.state(self.now) != State::Unknown && !fold.conflict {
            return false;
        }
        if !fold.conflict && self.is_answered(fold) {
            return false;
        }
        // Its age counts from the latest of its last event other than `lease_expired` and its
        // lease ends, also of those leases that an outcome ended before.
        let leases = fold.attempts.iter().filter_map(|attempt| attempt.lease.as_ref());
        let from = leases.map(|lease| lease.end).max().unwrap_or(0).max(fold.last_event_at);
        self.now.saturating_sub(from) < window_ms
    }

    /// "every unsettled attempt ended `unknown` with `answered: true`".
    fn is_answered(&self, fold: &Fold) -> bool {
        let mut unsettled = fold.attempts.iter().filter(|attempt| attempt.is_unsettled(self.now));
        unsettled.all(|attempt| {
            let last = attempt.outcomes.last();
            last.is_some_and(|(_, _, last)| last.status == Status::Unknown && last.answered)
        })
    }

    /// "a twin that became `ok` within that window by a `late` outcome, a status check or a
    /// resolution, unless `knows` names it".
    fn is_late_ok(&self, ask: &ClaimAsk, twin: &Call, fold: &Fold) -> bool {
        let Some((at, by)) = fold.became_ok else { return false };
        let full = format!("{}/{}", twin.key.run, twin.key.id);
        let is_here = twin.key.run == ask.key.run;
        let is_known = |entry: &String| *entry == full || (is_here && *entry == twin.key.id);
        fold.state(self.now) == State::Ok
            && by != "outcome"
            && self.now - at < ask.twins.window_ms
            && !ask.twins.knows.iter().any(is_known)
    }
}
