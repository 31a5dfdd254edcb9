//! "Call state, folded in event order": attempts, state and conflict of one call.

use std::collections::BTreeSet;

use super::call::{Call, Event, Outcome};
use super::words::{Answer, Effect, Resolved, State, Status};

/// One attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub number: u32,
    pub started_at: u64,
    pub scope: String,
    /// `None`: a one-shot.
    pub lease: Option<Lease>,
    /// When each came, whether late, and what it says.
    pub outcomes: Vec<(u64, bool, Outcome)>,
    pub settled: Option<Settled>,
    pub checks: Vec<Checked>,
}

/// The lease of a granted attempt.
#[derive(Clone, Debug)]
pub struct Lease {
    pub token: String,
    pub claim_id: String,
    pub end: u64,
    /// What was granted last, by the claim or a renewal, and where that ended.
    pub granted_ms: u64,
    pub granted_end: u64,
    /// How long restarts have let it live since then.
    pub added_ms: u64,
    /// It is over whatever the clock says.
    pub is_over: bool,
}

/// What settled an attempt from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// `status_check` or `resolution`.
    pub by: &'static str,
    /// `None`: given up.
    pub status: Option<Status>,
    /// Of the resolution.
    pub seq: Option<u64>,
}

/// A status check as it is shown.
#[derive(Clone, Debug)]
pub struct Checked {
    pub at: u64,
    pub answer: Answer,
    pub source: String,
    pub counted: bool,
}

impl Attempt {
    /// The first definite outcome.
    pub fn definite(&self) -> Option<&(u64, bool, Outcome)> {
        self.outcomes.iter().find(|(_, _, outcome)| outcome.status.is_definite())
    }

    /// The outcome that the record shows.
    pub fn deciding(&self) -> Option<&(u64, bool, Outcome)> {
        self.definite().or(self.outcomes.last())
    }

    /// Open, with a lease that lives.
    pub fn is_live(&self, now: u64) -> bool {
        let lives = self.lease.as_ref().is_some_and(|lease| !lease.is_over && now < lease.end);
        lives && self.outcomes.is_empty() && self.settled.is_none()
    }

    /// What it reads as.
    pub fn status(&self, now: u64) -> Status {
        if let Some((_, _, outcome)) = self.definite() {
            return outcome.status;
        }
        if let Some(status) = self.settled.and_then(|settled| settled.status) {
            return status;
        }
        match self.outcomes.last() {
            Some((_, _, outcome)) => outcome.status,
            None if self.is_live(now) => Status::Started,
            None => Status::Unknown,
        }
    }

    /// It may have taken effect, and nobody has settled it.
    pub fn is_unsettled(&self, now: u64) -> bool {
        self.settled.is_none() && matches!(self.status(now), Status::Unknown | Status::Timeout)
    }

    /// "its reported outcome, else its lease end".
    pub fn ended_at(&self) -> Option<u64> {
        let reported = self.outcomes.first().map(|(at, _, _)| *at);
        reported.or(self.lease.as_ref().map(|lease| lease.end))
    }

    fn is_evidently_ok(&self) -> bool {
        self.definite().is_some_and(|(_, _, outcome)| outcome.status == Status::Ok)
    }

    fn settled_as(&self) -> Option<Status> {
        self.settled.and_then(|settled| settled.status)
    }
}

/// A call as its events make it.
#[derive(Clone, Debug)]
pub struct Fold {
    pub effect: Effect,
    pub attempts: Vec<Attempt>,
    pub conflict: bool,
    /// `ok` or `terminal` by evidence: never changes.
    pub fixed: Option<State>,
    /// Evidence decides only since a word settled the other attempts.
    pub is_fixed_by_word: bool,
    /// The operator's word that is in force, and its seq.
    pub resolved: Option<(Resolved, u64)>,
    /// Whether anything was recorded after that word.
    pub is_resolved_last: bool,
    /// When and by what the call became `ok`: `late`, `status_check`, `resolution` or `outcome`.
    pub became_ok: Option<(u64, &'static str)>,
    /// Ledger time of the last event of the call that is not the end of a lease.
    pub last_event_at: u64,
    counted_ok: BTreeSet<u32>,
}

impl Fold {
    /// Folds a call.
    pub fn of(call: &Call) -> Self {
        let mut fold = Self {
            effect: call.terms.effect,
            attempts: Vec::new(),
            conflict: false,
            fixed: None,
            is_fixed_by_word: false,
            resolved: None,
            is_resolved_last: false,
            became_ok: None,
            last_event_at: call.recorded_at,
            counted_ok: BTreeSet::new(),
        };
        for event in &call.events {
            fold.apply(event);
        }
        fold
    }

    /// The state at a ledger time: the first rule that holds.
    pub fn state(&self, now: u64) -> State {
        if let Some(state) = self.fixed {
            return state;
        }
        match self.resolved {
            Some((Resolved::Ok, _)) => return State::Ok,
            Some((Resolved::Terminal, _)) => return State::Terminal,
            _ => {}
        }
        let Some(newest) = self.attempts.last() else { return State::Absent };
        if self.attempts.iter().any(|attempt| attempt.is_live(now)) {
            return State::InFlight;
        }
        let unsettled = self.attempts.iter().any(|attempt| attempt.is_unsettled(now));
        if unsettled && !self.effect.is_repeatable() {
            return State::Unknown;
        }
        if matches!(self.resolved, Some((Resolved::Abandoned, _))) {
            return State::Abandoned;
        }
        match newest.status(now) {
            Status::Ok => State::Ok,
            Status::Started => State::InFlight,
            Status::Timeout | Status::Unknown => State::Unknown,
            Status::TerminalError => State::Terminal,
            Status::RetryableError => State::Retryable,
        }
    }

    /// An attempt by its number.
    pub fn attempt(&self, number: u32) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.number == number)
    }

    /// Whether an attempt has counted as `ok`.
    pub fn counts_as_ok(&self, number: u32) -> bool {
        self.counted_ok.contains(&number)
    }

    fn get(&mut self, number: u32) -> &mut Attempt {
        &mut self.attempts[number as usize - 1]
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Started { at, .. } | Event::Recorded { at, .. } => {
                self.open(event);
                self.happened(*at);
            }
            Event::Finished { at, attempt, late, outcome } => {
                self.outcome(*attempt, *at, *late, outcome);
                self.happened(*at);
            }
            Event::Checked { at, attempt, answer, source, counted } => {
                let check =
                    Checked { at: *at, answer: *answer, source: source.clone(), counted: *counted };
                self.get(*attempt).checks.push(check);
                if let (true, Some(status)) = (counted, answer.settles_as()) {
                    self.checked(*attempt, *at, status);
                }
                self.happened(*at);
            }
            Event::Resolved { at, state, corrects, seq, .. } => {
                let was_fixed = self.fixed.is_some();
                self.word(*at, *state, *corrects, *seq);
                self.happened(*at);
                self.is_fixed_by_word |= !was_fixed && self.fixed.is_some();
                self.is_resolved_last = true;
            }
            Event::Renewed { at, attempt, lease_end } => {
                let lease = self.get(*attempt).lease.as_mut().expect("a grant");
                lease.granted_ms = *lease_end - *at;
                lease.granted_end = *lease_end;
                lease.added_ms = 0;
                lease.end = *lease_end;
                self.last_event_at = *at;
            }
            Event::Restarted { attempt, began, lease_end, is_over } => {
                let lease = self.get(*attempt).lease.as_mut().expect("a grant");
                lease.added_ms += lease_end.saturating_sub(lease.end.max(*began));
                lease.end = *lease_end;
                lease.is_over |= *is_over;
            }
            Event::ReadAsOver { attempt } => {
                self.get(*attempt).lease.as_mut().expect("a grant").is_over = true;
            }
        }
    }

    /// After each event: "once `ok` or `terminal` by evidence it never changes".
    fn happened(&mut self, at: u64) {
        self.last_event_at = at;
        self.is_resolved_last = false;
        let by_word = matches!(self.resolved, Some((Resolved::Ok | Resolved::Terminal, _)));
        if !by_word && self.fixed.is_none() && self.state(at) == State::Terminal {
            self.fixed = Some(State::Terminal);
        }
    }

    fn open(&mut self, event: &Event) {
        let number = self.attempts.len() as u32 + 1;
        let mut attempt = Attempt {
            number,
            started_at: 0,
            scope: String::new(),
            lease: None,
            outcomes: Vec::new(),
            settled: None,
            checks: Vec::new(),
        };
        match event {
            Event::Started { at, claim_id, scope, lease_ms, lease_end, lease_token } => {
                attempt.started_at = *at;
                attempt.scope = scope.clone();
                attempt.lease = Some(Lease {
                    token: lease_token.clone(),
                    claim_id: claim_id.clone(),
                    end: *lease_end,
                    granted_ms: *lease_ms,
                    granted_end: *lease_end,
                    added_ms: 0,
                    is_over: false,
                });
                self.attempts.push(attempt);
            }
            Event::Recorded { at, started_at, scope, outcome } => {
                attempt.started_at = *started_at;
                attempt.scope = scope.clone();
                self.attempts.push(attempt);
                self.outcome(number, *at, false, outcome);
            }
            _ => unreachable!("only these open an attempt"),
        }
    }

    fn outcome(&mut self, number: u32, at: u64, late: bool, outcome: &Outcome) {
        let attempts = self.attempts.len();
        let attempt = self.get(number);
        let had_error = attempt.definite().is_some_and(|(_, _, o)| o.status.is_error());
        let no_effect = had_error || attempt.settled_as().is_some_and(Status::is_error);
        // An operator's `ok` is about the call: it contradicts an error only of an only attempt.
        let had_effect = attempt.settled.is_some_and(|settled| {
            settled.status == Some(Status::Ok) && (settled.by == "status_check" || attempts == 1)
        });
        attempt.outcomes.push((at, late, outcome.clone()));
        if outcome.status == Status::Ok {
            self.conflict |= no_effect;
            if !had_error {
                self.succeeded(number, at, if late { "late" } else { "outcome" });
            }
        } else if outcome.status.is_error() {
            self.conflict |= had_effect;
        }
    }

    /// Effect evidence "beats `retryable`, `unknown` and `abandoned`; against a call that was
    /// already `terminal` it changes nothing but sets `conflict`".
    fn succeeded(&mut self, number: u32, at: u64, by: &'static str) {
        self.counted_ok.insert(number);
        // Whether this attempt itself is counted does not matter: "`ok` evidence of the only
        // such attempt confirms it".
        self.conflict |= self.effect.is_once() && self.counted_ok.len() >= 2;
        let word = self.resolved.map(|(state, _)| state);
        if self.fixed == Some(State::Terminal)
            || (self.fixed.is_none() && word == Some(Resolved::Terminal))
        {
            self.conflict = true;
            return;
        }
        if self.fixed.is_none() && word != Some(Resolved::Ok) {
            self.became_ok = Some((at, by));
        }
        self.fixed = Some(State::Ok);
    }

    fn checked(&mut self, number: u32, at: u64, status: Status) {
        if status == Status::Ok {
            self.succeeded(number, at, "status_check");
        }
        let settled = Settled { by: "status_check", status: Some(status), seq: None };
        self.get(number).settled = Some(settled);
    }

    /// Opens what a word settled, or puts it under another one that says the same.
    fn take_back(&mut self, word: u64, by: Option<u64>) {
        for attempt in &mut self.attempts {
            let Some(settled) = attempt.settled.filter(|s| s.seq == Some(word)) else { continue };
            attempt.settled = by.map(|seq| Settled { seq: Some(seq), ..settled });
            if by.is_none() && !attempt.is_evidently_ok() {
                self.counted_ok.remove(&attempt.number);
            }
        }
    }

    fn word(&mut self, at: u64, state: Resolved, corrects: Option<u64>, seq: u64) {
        self.conflict = false;
        let was_ok = self.state(at) == State::Ok;
        // One that resolves a conflict takes the place of the word that the state rests on.
        let rests_on = self.resolved.filter(|_| self.fixed.is_none());
        let final_word = rests_on.filter(|(w, _)| matches!(w, Resolved::Ok | Resolved::Terminal));
        if let Some(replaced) = corrects.or(final_word.map(|(_, seq)| seq)) {
            let is_same = corrects.is_none() && final_word.is_some_and(|(word, _)| word == state);
            self.take_back(replaced, is_same.then_some(seq));
        }
        if self.fixed.is_none() {
            self.resolved = Some((state, seq));
            // Evidence "beats `retryable`, `unknown` and `abandoned`": what came against a word
            // decides once that word is replaced.
            let is_evident = self.attempts.iter().any(Attempt::is_evidently_ok);
            if is_evident && state != Resolved::Terminal {
                self.fixed = Some(State::Ok);
            }
        }
        let status = state.settles_as();
        for attempt in &mut self.attempts {
            if attempt.is_unsettled(at) {
                attempt.settled = Some(Settled { by: "resolution", status, seq: Some(seq) });
                if status == Some(Status::Ok) {
                    self.counted_ok.insert(attempt.number);
                }
            }
        }
        if !was_ok && self.state(at) == State::Ok {
            self.became_ok = Some((at, "resolution"));
        }
    }
}
