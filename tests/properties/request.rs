//! Puts the requests together that claim, report and record, sends each to both sides, and
//! compares the answers.

use std::fmt::Debug;

use recibo_core::effect::StatedTerms;
use recibo_core::event::{Outcome, ScopeOpened};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{ClaimId, ErrorClass, Labels, Namespace, OperationKey, ScopeId};
use recibo_core::plan::{
    Claim, ClaimedAs, Knows, OnTwin, OneShot, Refusal, Renewal, Report, TwinRule,
};
use recibo_core::status::{OutcomeStatus, Reason};
use recibo_core::time::Time;
use recibo_store::{WriteError, etag};

use super::drive::Drive;
use super::op::{self, CALLS, Etag, Said, Scope, Token, Told};

impl Drive {
    /// The attempt so many before the newest; the one after it for what lies far too far back.
    pub(super) fn attempt(&self, number: usize, back: u32) -> u32 {
        let newest = self.attempts(number);
        if back == u32::MAX { newest + 1 } else { newest.saturating_sub(back).max(1) }
    }

    fn attempts(&self, number: usize) -> u32 {
        let (namespace, call) = op::call(number);
        self.book.known(&namespace, &call).map_or(0, |known| known.call.tip.attempts())
    }

    fn expected(&self, number: usize, after_newest: Option<u32>) -> Option<u32> {
        after_newest.map(|distance| (self.attempts(number) + distance).max(1))
    }

    pub(super) fn scope(&mut self, namespace: &Namespace, which: Scope) -> ScopeId {
        let none = || ScopeId::parse("sc_none").expect("an id");
        match which {
            Scope::Live => self.book.live_scope(namespace).unwrap_or_else(|| {
                self.open_scope(namespace, 100_000);
                self.scopes.last().cloned().unwrap_or_else(none)
            }),
            Scope::Old => self.scopes.iter().rev().nth(1).cloned().unwrap_or_else(none),
            Scope::None => none(),
        }
    }

    pub(super) fn open_scope(&mut self, namespace: &Namespace, ttl_ms: u64) {
        let opened = self.store.open_scope(namespace, None, ttl_ms).wait().expect("it is served");
        assert_eq!(opened.opened_at, self.book.now);
        assert_eq!(opened.expires_at, self.book.now.plus_ms(ttl_ms));
        let key = self.drawn.lock().expect("no holder panics").last().cloned();
        let key = key.and_then(|key| key.try_into().ok()).expect("the key is drawn last");
        self.scopes.push(opened.scope_id.clone());
        let opened =
            ScopeOpened { scope_id: opened.scope_id, label: None, expires_at: opened.expires_at };
        self.book.open_scope(namespace, opened, key);
    }

    pub(super) fn claim(
        &mut self,
        number: usize,
        id: u8,
        lease_ms: u64,
        expected: Option<u32>,
        said: &Said,
    ) -> bool {
        let (namespace, call) = op::call(number);
        let scope_id = self.scope(&namespace, said.scope);
        let claim = Claim {
            call,
            claim_id: ClaimId::parse(&format!("c{id}")).expect("an id"),
            scope_id,
            tool: op::tool(),
            input_hash: input(said),
            terms: StatedTerms::of(said.effect),
            lease_ms,
            attempt: self.expected(number, expected),
            operation_key: operation_key(said),
            message_id: None,
            labels: Labels::default(),
            trace: None,
            redacted: false,
            twins: twins(said),
        };
        let advice = self.snapshot().decision(&namespace, &claim.call).expect("it can be read");
        let got = self.store.claim(&namespace, claim.clone()).wait();
        let expected = self.book.claim(&namespace, &claim);
        let changes_nothing = match expected.as_ref().map(|answer| &answer.claimed) {
            Ok(ClaimedAs::Granted { replayed: true, .. }) | Err(_) => true,
            Ok(ClaimedAs::Granted { decision, .. }) => {
                assert_eq!(*decision, advice.decision, "a grant is what was advised");
                false
            }
            Ok(ClaimedAs::Advice(decision)) => {
                // What is advised never judges twins.
                if !is_about_twins(decision.reason) {
                    assert_eq!(*decision, advice.decision, "a claim is answered as was advised");
                }
                true
            }
        };
        is_refused(got, expected);
        changes_nothing
    }

    pub(super) fn report(
        &mut self,
        number: usize,
        attempt: u32,
        told: &Told,
        token: Token,
        scope: Option<Scope>,
    ) -> bool {
        let (namespace, call) = op::call(number);
        let lease_token = self.lease_token(number, attempt, token);
        let report = Report { call, attempt, outcome: outcome(told) };
        let scope = scope.map(|scope| self.scope(&namespace, scope));
        let got = self
            .store
            .report(&namespace, report.clone(), lease_token.clone(), scope.clone())
            .wait();
        let expected = self.book.report(&namespace, &report, &lease_token, scope.as_ref());
        let replayed = expected.as_ref().is_ok_and(|answer| answer.replayed);
        is_refused(got, expected) || replayed
    }

    fn lease_token(&self, number: usize, attempt: u32, token: Token) -> String {
        let (namespace, call) = op::call(number);
        match token {
            Token::Right => self.book.token(&namespace, &call, attempt),
            Token::OfNext => self.book.token(&namespace, &call, attempt + 1),
            Token::OfOtherCall => {
                let (namespace, call) = op::call((number + 1) % CALLS);
                self.book.token(&namespace, &call, attempt)
            }
            Token::Empty => String::new(),
        }
    }

    pub(super) fn renew(&mut self, number: usize, back: u32, lease_ms: u64, token: Token) -> bool {
        let attempt = self.attempt(number, back);
        let (namespace, call) = op::call(number);
        let lease_token = self.lease_token(number, attempt, token);
        let renewal = Renewal { call, attempt, lease_ms };
        let events = self.book.events.len();
        let got = self.store.renew(&namespace, renewal.clone(), lease_token.clone()).wait();
        let expected = self.book.renew(&namespace, &renewal, &lease_token);
        is_refused(got, expected) || self.book.events.len() == events
    }

    /// The seq that a resolution corrects: that of the newest one, or of another event.
    pub(super) fn corrected(&self, number: usize, newest: Option<bool>) -> Option<u64> {
        let (namespace, call) = op::call(number);
        let tip = self.book.known(&namespace, &call).map(|known| known.call.tip);
        match newest {
            None => None,
            Some(true) => tip.and_then(|tip| tip.resolutions.newest_seq),
            Some(false) => Some(tip.map_or(0, |tip| tip.first_seq)),
        }
    }

    pub(super) fn shot(
        &mut self,
        number: usize,
        expected: Option<u32>,
        told: &Told,
        age_ms: u64,
        said: &Said,
    ) -> (Namespace, OneShot) {
        let (namespace, call) = op::call(number);
        let scope_id = self.scope(&namespace, said.scope);
        let shot = OneShot {
            call,
            attempt: self.expected(number, expected),
            scope_id,
            tool: op::tool(),
            input_hash: input(said),
            terms: StatedTerms::of(said.effect),
            operation_key: operation_key(said),
            message_id: None,
            labels: Labels::default(),
            trace: None,
            started_at: Time::from_ms(self.book.now.ms() - age_ms),
            outcome: outcome(told),
            twin_hash: twin_hash(said),
        };
        (namespace, shot)
    }

    pub(super) fn record(&mut self, namespace: &Namespace, shot: &OneShot) -> bool {
        let got = self.store.record(namespace, vec![shot.clone()]).wait();
        let got = got.expect("a batch is answered one by one").swap_remove(0);
        let expected = self.book.record(namespace, shot);
        let replayed = expected.as_ref().is_ok_and(|answer| answer.replayed);
        is_refused(got.map_err(WriteError::Refused), expected) || replayed
    }

    pub(super) fn etag(&self, number: usize, kind: Etag) -> String {
        let (namespace, call) = op::call(number);
        let Some(known) = self.book.known(&namespace, &call) else { return "\"0\"".to_owned() };
        let current = etag::of(&known.call.tip, self.book.now);
        match kind {
            Etag::Current => format!("\"{current}\""),
            Etag::Stale => format!("\"{}\"", known.call.tip.version.wrapping_sub(1)),
            Etag::OtherLease => match current.strip_suffix("-expired") {
                Some(version) => format!("\"{version}\""),
                None => format!("\"{current}-expired\""),
            },
            Etag::Star => "*".to_owned(),
        }
    }
}

fn input(said: &Said) -> InputHash {
    InputHash::of_canonical(if said.is_other_input { "[]" } else { "{}" })
}

fn operation_key(said: &Said) -> Option<OperationKey> {
    said.key.map(|key| OperationKey::parse(&format!("k{key}")).expect("a key"))
}

fn outcome(told: &Told) -> Outcome {
    let is_ok = told.status == OutcomeStatus::Ok;
    let text = format!("t{}", told.text);
    Outcome {
        status: told.status,
        duration_ms: 5,
        output_hash: is_ok.then(|| OutputHash::of_text(&text)),
        output_summary: None,
        error_class: (!is_ok).then(|| ErrorClass::parse(&text).expect("a class")),
        provider_ref: None,
        message_id: None,
        redacted: false,
        answered: told.answered,
    }
}

fn is_about_twins(reason: Reason) -> bool {
    matches!(reason, Reason::TwinUnknown | Reason::TwinInFlight | Reason::TwinOkLate)
}

fn twins(said: &Said) -> TwinRule {
    let knows = said.twins.knows.map(|number| {
        let (_, call) = op::call(number);
        Knows { run_id: Some(call.run_id), tool_call_id: call.tool_call_id }
    });
    TwinRule {
        on_twin: if said.twins.stop { OnTwin::Stop } else { OnTwin::Advise },
        window_ms: said.twins.window_ms,
        knows: knows.into_iter().collect(),
        hash: twin_hash(said),
    }
}

fn twin_hash(said: &Said) -> Option<InputHash> {
    said.twins.is_hashed.then(|| InputHash::of_canonical("1"))
}

/// Compares two answers; whether they are refusals.
pub(super) fn is_refused<T: Debug>(
    got: Result<T, WriteError>,
    expected: Result<T, Refusal>,
) -> bool {
    let is_refused = expected.is_err();
    let got = got.map_err(|error| match error {
        WriteError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    });
    // Answers have no equality of their own; they show all that they hold.
    assert_eq!(format!("{got:#?}"), format!("{expected:#?}"));
    is_refused
}
