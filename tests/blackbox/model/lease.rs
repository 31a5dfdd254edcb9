//! Leases: renewal, and *Ledger time* over starts of the service.

use super::Ledger;
use super::call::{Call, CallKey, Event};

/// A lease that may have lived when the service ended.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// Place of the call in the ledger's list.
    pub call: usize,
    pub attempt: u32,
    /// Where it ended before the start.
    pub end: u64,
    /// How much life restarts may still add to it.
    addable_ms: u64,
    /// Where its key window ends, if it was granted inside.
    window_end: Option<u64>,
    /// Nobody can measure that window any more.
    is_void: bool,
}

impl Survivor {
    /// Whether `seen` may be its end after a start at `now`, if the ledger's last known time was
    /// `last`.
    pub fn may_end(&self, seen: u64, now: u64, last: u64) -> bool {
        let Some(left_ms) = self.end.checked_sub(last).filter(|ms| *ms > 0) else {
            // It was over then.
            return seen == self.end;
        };
        // Up to its old end it would have lived anyhow, and before the start nobody held it.
        let most = self.end.max(now) + self.addable_ms;
        let free = (now + left_ms).min(most).max(self.end);
        let inside = self.window_end.map_or(free, |window| window.min(free)).max(self.end);
        // What becomes of a lease inside a window that counts as over is not said.
        let ends = if self.is_void { vec![inside, free] } else { vec![inside] };
        ends.into_iter().any(|end| seen == end || (end <= now && seen <= now))
    }
}

impl Ledger {
    /// What becomes of a renewal: the ends that the lease may have then, or the refusal.
    pub fn judge_renewal(
        &self,
        key: &CallKey,
        number: u32,
        lease_token: &str,
        lease_ms: u64,
    ) -> Result<Vec<u64>, (u16, &'static str)> {
        let call = self.call(key).ok_or((404, "call_not_found"))?;
        let fold = self.fold(call);
        let attempt = fold.attempt(number).ok_or((404, "attempt_not_found"))?;
        let lease = attempt.lease.as_ref().filter(|lease| lease.token == lease_token);
        let lease = lease.ok_or((403, "lease_token_wrong"))?;
        if !attempt.is_live(self.now) {
            return Err((409, "lease_over"));
        }
        // "never earlier than before, never past a key window"
        let ends = self.lease_ends(call, lease_ms);
        Ok(ends.into_iter().map(|end| end.max(lease.end)).collect())
    }

    /// Where a lease that is given now may end: "no later than" the key window, while there is
    /// one left. Of a window that counts as over since nobody can measure it, a service may also
    /// keep to the end that it had.
    pub fn lease_ends(&self, call: &Call, lease_ms: u64) -> Vec<u64> {
        let full = self.now + lease_ms;
        let window_end = call.window_end().filter(|end| *end > self.now);
        match window_end.map(|end| end.min(full)) {
            Some(inside) if self.is_void(call) => vec![full, inside],
            Some(inside) => vec![inside],
            None => vec![full],
        }
    }

    /// Books a renewal, which is an event only where it moves the end of the lease.
    pub fn renewed(&mut self, key: &CallKey, attempt: u32, lease_end: u64) -> bool {
        let index = self.find(key).expect("a known call");
        let fold = self.fold(&self.calls[index]);
        let lease = fold.attempt(attempt).and_then(|attempt| attempt.lease.as_ref());
        let moves = lease.is_some_and(|lease| lease.end < lease_end);
        if moves {
            self.append(index, Event::Renewed { at: self.now, attempt, lease_end });
        }
        moves
    }

    /// Every read of a call shows its leases: those that are over now stay over.
    pub fn read(&mut self, index: usize) {
        let fold = self.fold(&self.calls[index]);
        for attempt in fold.attempts {
            let Some(lease) = &attempt.lease else { continue };
            if !lease.is_over && lease.end <= self.now && attempt.outcomes.is_empty() {
                self.calls[index].events.push(Event::ReadAsOver { attempt: attempt.number });
            }
        }
    }

    /// The leases that may have lived at the last event or mark of the ledger. "Restarts together
    /// add to a lease at most the `lease_ms` last granted"; "a keyed lease ends no later than" its
    /// window, if it was granted inside.
    pub fn survivors(&self) -> Vec<Survivor> {
        let mut survivors = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            for attempt in self.fold(call).attempts {
                let open = attempt.outcomes.is_empty() && attempt.settled.is_none();
                let Some(lease) = attempt.lease.filter(|lease| open && !lease.is_over) else {
                    continue;
                };
                if lease.end > self.last_write {
                    survivors.push(Survivor {
                        call: index,
                        attempt: attempt.number,
                        end: lease.end,
                        addable_ms: lease.granted_ms.saturating_sub(lease.added_ms),
                        window_end: call.window_end().filter(|end| lease.granted_end <= *end),
                        is_void: self.is_void(call),
                    });
                }
            }
        }
        survivors
    }

    /// A start on another boot at ledger time `now`; the wall clock is known to lie behind the
    /// last event or not.
    pub fn started_anew(&mut self, now: u64, is_behind: bool) {
        self.now = now;
        self.last_write = now;
        if is_behind {
            self.windows_void_until = Some(now);
        }
    }

    /// What a start made of a lease: its end, and whether it was over before.
    pub fn survived(&mut self, survivor: &Survivor, end: u64, is_over: bool) {
        let (attempt, began) = (survivor.attempt, self.now);
        let event = Event::Restarted { attempt, began, lease_end: end, is_over };
        self.calls[survivor.call].events.push(event);
    }
}
