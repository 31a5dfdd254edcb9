//! A ledger of one call, in memory, made of nothing but the pure rules. Scripts drive it.
//!
//! A script is words separated by `;`:
//!
//! | word | what it does |
//! |---|---|
//! | `claim` | claims with a fresh claim id |
//! | `claim=ID` | claims with this claim id |
//! | `ok`, `timeout`, `retryable_error`, `terminal_error`, `unknown` | reports an outcome of the newest attempt |
//! | `STATUS@N` | reports an outcome of attempt N |
//! | `shot=STATUS` | records a one-shot |
//! | `check=ANSWER`, `check=ANSWER@N`, `check=ANSWER@N-MS` | a status check of an attempt, made MS ago |
//! | `resolve=STATE` | an operator's word |
//! | `resolve=STATE!last`, `resolve=STATE!SEQ` | one that corrects the last one, or another event |
//! | `renew=MS` | renews the lease of the newest attempt |
//! | `restart+MS` | another boot: the ledger was last seen now, and begins MS later |
//! | `+MS` | lets time pass |
//! | `expire` | the background job |

use recibo_core::call::{self, Call};
use recibo_core::decision::{Decision, Moment, decide};
use recibo_core::effect::{Effect, Policy, Rule, StatedTerms, Terms, TwinScope};
use recibo_core::event::{Body, Event, Facts, Outcome, Owner, Restarted};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{
    CallRef, ClaimId, ErrorClass, Labels, Namespace, RunId, ScopeId, ToolCallId, ToolName,
};
use recibo_core::plan::{
    self, Check, Claim, ClaimKnown, ClaimedAs, KnownCall, OneShot, Place, Plan, RecordKnown,
    Refusal, Renewal, Report, ReportKnown, Resolution, ScopeKnown, Signer, TwinRule,
};
use recibo_core::receipt::ScopeKey;
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs};
use recibo_core::time::Time;

/// Lease of every claim.
pub const LEASE_MS: u64 = 1000;
/// Ledger time of the first event.
pub const START: Time = Time::from_ms(1_800_000_000_000);

/// One call and its events.
pub struct Pure {
    /// Everything appended so far.
    pub events: Vec<Event>,
    /// Ledger time.
    pub now: Time,
    /// Key windows opened up to here are over.
    pub void_until: Option<Time>,
    terms: Terms,
    key: ScopeKey,
    claims: Vec<(String, u32)>,
    next_claim: u32,
}

/// What a step answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A grant.
    Granted {
        /// The attempt.
        attempt: u32,
        /// Given before.
        replayed: bool,
    },
    /// Advice.
    Advice(Decision),
    /// Taken, and whether nothing new was said.
    Taken {
        /// Nothing new.
        replayed: bool,
    },
    /// Refused.
    Refused(Refusal),
    /// Nothing to say.
    Nothing,
}

impl Pure {
    /// An empty ledger whose policy gives the tool these terms.
    pub fn new(terms: Terms) -> Self {
        Self {
            events: Vec::new(),
            now: START,
            void_until: None,
            terms,
            key: ScopeKey::new(&mut [7; 32]),
            claims: Vec::new(),
            next_claim: 0,
        }
    }

    /// An effect with numbers that never matter, unless a test sets them.
    pub fn of(effect: Effect) -> Self {
        let (key_window_ms, settle_ms) = (Some(1_000_000), Some(100));
        Self::new(Terms { key_window_ms, settle_ms, ..Terms::of(effect) })
    }

    /// The call as its events make it.
    pub fn call(&self) -> Option<Call> {
        call::fold(&self.events)
    }

    /// What the table says now.
    pub fn decision(&self) -> Decision {
        let call = self.call();
        decide(call.as_ref().map(|call| (&call.tip, &self.terms)), &self.moment())
    }

    /// `state decision reason`, with `!` if the call is in conflict.
    pub fn summary(&self) -> String {
        let decision = self.decision();
        let conflict = self.call().is_some_and(|call| call.tip.conflict);
        format!(
            "{} {} {}{}",
            decision.state.as_str(),
            decision.kind.as_str(),
            decision.reason.as_str(),
            if conflict { " !" } else { "" }
        )
    }

    /// What every attempt reads as, in order.
    pub fn statuses(&self) -> String {
        let Some(call) = self.call() else { return String::new() };
        let attempts = call.older.values().chain([&call.tip.newest]);
        attempts.map(|a| a.status(self.now).as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Runs a script and gives the answer of its last word.
    pub fn run(&mut self, script: &str) -> Answer {
        let words = script.split(';').map(str::trim).filter(|word| !word.is_empty());
        words.fold(Answer::Nothing, |_, word| self.step(word))
    }

    /// Runs one word. A refusal must append nothing, which is checked here for every test.
    pub fn step(&mut self, word: &str) -> Answer {
        let before = self.events.len();
        let answer = self.word(word);
        let appended = self.events.len() - before;
        if matches!(answer, Answer::Refused(_) | Answer::Advice(_)) {
            assert_eq!(appended, 0, "{word}: a refusal appends nothing");
        }
        if matches!(
            answer,
            Answer::Granted { replayed: true, .. } | Answer::Taken { replayed: true }
        ) {
            assert_eq!(appended, 0, "{word}: a replay appends nothing");
        }
        answer
    }

    fn word(&mut self, word: &str) -> Answer {
        if let Some(ms) = word.strip_prefix("restart+") {
            self.restart(ms.parse().expect("a number"));
            return Answer::Nothing;
        }
        if let Some(ms) = word.strip_prefix('+') {
            self.now = self.now.plus_ms(ms.parse().expect("a number"));
            return Answer::Nothing;
        }
        let (name, argument) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "claim" => self.claim(argument),
            "shot" => self.shot(argument),
            "check" => self.check(argument),
            "resolve" => self.resolve(argument),
            "renew" => self.renew(argument.parse().expect("a number")),
            "expire" => {
                let known = self.known();
                let plan = known.and_then(|known| plan::expire(&self.place(), &target(), &known));
                self.take(plan.unwrap_or_default());
                Answer::Nothing
            }
            _ => self.report(word),
        }
    }

    fn claim(&mut self, id: &str) -> Answer {
        self.next_claim += 1;
        let fresh = format!("claim-{}", self.next_claim);
        let claim_id = if id.is_empty() { fresh.as_str() } else { id };
        let claim = Claim {
            call: target(),
            claim_id: ClaimId::parse(claim_id).expect("an id"),
            scope_id: scope(),
            tool: ToolName::parse("tool").expect("a name"),
            input_hash: InputHash::of_canonical("{}"),
            terms: StatedTerms::default(),
            lease_ms: LEASE_MS,
            attempt: None,
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            redacted: false,
            twins: TwinRule::advise(),
        };
        let known = self.known();
        let scope_id = scope();
        let claimed =
            self.claims.iter().rev().find(|(id, _)| id == claim_id).map(|(_, attempt)| *attempt);
        let claimed = plan::claim(
            &self.place(),
            &claim,
            &ClaimKnown {
                policy: &self.policy(),
                call: known.as_ref(),
                claimed,
                holder: None,
                scope: ScopeKnown::Open(Signer { scope_id: &scope_id, key: &self.key }),
                twins: &[],
            },
        );
        match claimed {
            Err(refusal) => Answer::Refused(refusal),
            Ok(claimed) => {
                self.take(claimed.plan);
                match claimed.answer {
                    ClaimedAs::Advice(decision) => Answer::Advice(decision),
                    ClaimedAs::Granted { attempt, replayed, .. } => {
                        if !replayed {
                            self.claims.push((claim_id.to_owned(), attempt));
                        }
                        Answer::Granted { attempt, replayed }
                    }
                }
            }
        }
    }

    fn report(&mut self, word: &str) -> Answer {
        let (status, attempt) = self.at_attempt(word);
        let report = Report { call: target(), attempt, outcome: outcome(status) };
        let known = self.known();
        let said: Vec<Outcome> = self
            .events
            .iter()
            .filter(|event| event.body.call().is_some_and(|(_, number)| number == attempt))
            .filter_map(|event| event.body.outcome().cloned())
            .collect();
        let scope_id = scope();
        let reported = plan::report(
            &self.place(),
            &namespace(),
            &report,
            &ReportKnown {
                call: known.as_ref(),
                lease_token_is_right: true,
                outcomes: &said,
                signer: Some(Signer { scope_id: &scope_id, key: &self.key }),
            },
        );
        match reported {
            Err(refusal) => Answer::Refused(refusal),
            Ok(reported) => {
                self.take(reported.plan);
                Answer::Taken { replayed: reported.replayed }
            }
        }
    }

    fn shot(&mut self, status: &str) -> Answer {
        let shot = OneShot {
            call: target(),
            attempt: None,
            scope_id: scope(),
            tool: ToolName::parse("tool").expect("a name"),
            input_hash: InputHash::of_canonical("{}"),
            terms: StatedTerms::default(),
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            started_at: self.now,
            outcome: outcome(status),
            twin_hash: None,
        };
        let known = self.known();
        let same = self.events.iter().find_map(|event| match &event.body {
            Body::Recorded(e) if shot.is_same_as(e) => Some(e.attempt),
            _ => None,
        });
        let scope_id = scope();
        let recording = plan::record(
            &self.place(),
            &namespace(),
            &shot,
            &RecordKnown {
                policy: &self.policy(),
                call: known.as_ref(),
                same,
                holder: None,
                scope: ScopeKnown::Open(Signer { scope_id: &scope_id, key: &self.key }),
            },
        );
        match recording {
            Err(refusal) => Answer::Refused(refusal),
            Ok(recording) => {
                self.take(recording.plan);
                Answer::Taken { replayed: recording.replayed }
            }
        }
    }

    fn check(&mut self, argument: &str) -> Answer {
        let (what, age_ms) = argument.split_once('-').unwrap_or((argument, "0"));
        let (answer, attempt) = self.at_attempt(what);
        let check = Check {
            call: target(),
            attempt,
            answer: CheckAnswer::parse(answer).expect("an answer"),
            source: "test".into(),
            age_ms: age_ms.parse().expect("a number"),
            provider_ref: None,
            redacted: false,
        };
        match plan::check(&self.place(), &check, self.known().as_ref()) {
            Err(refusal) => Answer::Refused(refusal),
            Ok(checked) => {
                self.take(checked.plan);
                Answer::Taken { replayed: false }
            }
        }
    }

    fn resolve(&mut self, state: &str) -> Answer {
        let (state, corrects) = match state.split_once("!") {
            Some((state, "last")) => {
                let newest = self.call().and_then(|call| call.tip.resolutions.newest_seq);
                (state, newest)
            }
            Some((state, seq)) => (state, Some(seq.parse().expect("a number"))),
            None => (state, None),
        };
        let resolution = Resolution {
            call: target(),
            state: ResolvedAs::parse(state).expect("a state"),
            reason: "test".into(),
            redacted: false,
            by: "local".into(),
            corrects,
        };
        match plan::resolve(&self.place(), &resolution, self.known().as_ref(), true) {
            Err(refusal) => Answer::Refused(refusal),
            Ok(plan) => {
                self.take(plan);
                Answer::Taken { replayed: false }
            }
        }
    }

    fn renew(&mut self, lease_ms: u64) -> Answer {
        let attempt = self.call().map_or(1, |call| call.tip.attempts());
        let renewal = Renewal { call: target(), attempt, lease_ms };
        match plan::renew(&self.place(), &renewal, self.known().as_ref(), true) {
            Err(refusal) => Answer::Refused(refusal),
            Ok(renewed) => {
                self.take(renewed.plan);
                Answer::Taken { replayed: false }
            }
        }
    }

    fn restart(&mut self, ms: u64) {
        let restarted = Restarted { last_at: self.now, key_windows_void: false };
        self.now = self.now.plus_ms(ms);
        let (seq, body) = (self.events.len() as u64, Body::Restarted(restarted));
        self.events.push(Event { seq, at: self.now, owner: None, salt: [0; 16], body });
    }

    fn at_attempt<'a>(&self, word: &'a str) -> (&'a str, u32) {
        match word.split_once('@') {
            Some((name, number)) => (name, number.parse().expect("a number")),
            None => (word, self.call().map_or(1, |call| call.tip.attempts())),
        }
    }

    fn known(&self) -> Option<KnownCall> {
        let facts = Facts {
            tool: ToolName::parse("tool").expect("a name"),
            input_hash: InputHash::of_canonical("{}"),
            terms: self.terms,
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            redacted: false,
            twin_hash: None,
            twin_scope: TwinScope::Run,
        };
        self.call().map(|call| KnownCall { facts, call })
    }

    /// Appends a plan, and checks that the call which the plan foretold is the one that folding
    /// all events gives.
    fn take(&mut self, plan: Plan) {
        for body in plan.bodies {
            let seq = self.events.len() as u64;
            let owner = Some(Owner { namespace: namespace(), nseq: seq });
            self.events.push(Event { seq, at: self.now, owner, salt: [0; 16], body });
        }
        if let Some(call) = plan.call {
            assert_eq!(Some(call), self.call(), "the plan and the fold agree");
        }
    }

    fn place(&self) -> Place {
        Place { seq: self.events.len() as u64, moment: self.moment() }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, key_windows_void_until: self.void_until }
    }

    fn policy(&self) -> Policy {
        Policy { rules: vec![Rule::new("*", self.terms)] }
    }
}

fn outcome(status: &str) -> Outcome {
    let status = OutcomeStatus::parse(status).unwrap_or_else(|| panic!("{status} is no status"));
    let is_ok = status == OutcomeStatus::Ok;
    Outcome {
        status,
        duration_ms: 5,
        output_hash: is_ok.then(|| OutputHash::of_text("done")),
        output_summary: None,
        error_class: (!is_ok).then(|| ErrorClass::parse("test").expect("a class")),
        provider_ref: None,
        message_id: None,
        redacted: false,
        answered: false,
    }
}

fn namespace() -> Namespace {
    Namespace::parse("default").expect("a name")
}

fn scope() -> ScopeId {
    ScopeId::parse("sc_1").expect("an id")
}

fn target() -> CallRef {
    CallRef {
        run_id: RunId::parse("run").expect("an id"),
        tool_call_id: ToolCallId::parse("call").expect("an id"),
    }
}
