//! The ledger as a list of events in memory. What is known is found by looking through the
//! list, and the rules of the core decide; no index, no row, no cache that could be wrong.

use recibo_core::call::{self, Attempt, Call};
use recibo_core::decision::Moment;
use recibo_core::effect::{Policy, TwinScope};
use recibo_core::event::{Body, Event, Outcome, Owner, Restarted, ScopeOpened};
use recibo_core::id::{CallRef, Namespace, OperationKey, ScopeId};
use recibo_core::lease::LeaseSecret;
use recibo_core::plan::{
    self, Claim, ClaimKnown, ClaimedAs, Holder, KnownCall, OneShot, Place, Plan, RecordKnown,
    Refusal, Renewal, Report, ReportKnown, ScopeKnown, Signer, TwinKnown,
};
use recibo_core::receipt::{IdempotencyKey, ScopeKey};
use recibo_core::record::{CheckMark, Record, RecordEvents};
use recibo_core::status::{CallState, ScopeEnd};
use recibo_core::time::Time;
use recibo_store::{ClaimAnswer, RecordAnswer, RenewedAnswer};

/// The whole ledger.
pub struct Book {
    /// Everything appended so far. Salts are what the store drew.
    pub events: Vec<Event>,
    /// Ledger time.
    pub now: Time,
    /// Key windows opened up to here are over.
    pub void_until: Option<Time>,
    /// When the ledger was last seen: ledger time of the newest durable write.
    pub seen: Option<Time>,
    secret: LeaseSecret,
    live: Vec<LiveScope>,
}

struct LiveScope {
    namespace: Namespace,
    scope_id: ScopeId,
    expires_at: Time,
    key: ScopeKey,
}

impl Book {
    /// Without events.
    pub fn new(now: Time, mut secret: [u8; 32]) -> Self {
        let secret = LeaseSecret::new(&mut secret);
        let (events, live) = Default::default();
        Self { events, now, void_until: None, seen: None, secret, live }
    }

    /// The lease token of an attempt.
    pub fn token(&self, namespace: &Namespace, call: &CallRef, attempt: u32) -> String {
        self.secret.token(namespace, call, attempt)
    }

    /// The time, and what it means for key windows.
    pub fn moment(&self) -> Moment {
        Moment { now: self.now, key_windows_void_until: self.void_until }
    }

    pub(super) fn place(&self) -> Place {
        Place { seq: self.events.len() as u64, moment: self.moment() }
    }

    /// The events of a call, in order.
    pub fn story<'a>(
        &'a self,
        namespace: &'a Namespace,
        call: &'a CallRef,
    ) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| {
            is_of(event, namespace) && event.body.call().is_some_and(|(of, _)| of == call)
        })
    }

    /// The events that make a call what it is: its own, and restarts.
    fn making<'a>(
        &'a self,
        namespace: &'a Namespace,
        call: &'a CallRef,
    ) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| match event.body.call() {
            Some((of, _)) => is_of(event, namespace) && of == call,
            None => matches!(event.body, Body::Restarted(_)),
        })
    }

    /// A call with all its attempts.
    pub fn known(&self, namespace: &Namespace, call: &CallRef) -> Option<KnownCall> {
        let facts = self.story(namespace, call).find_map(|event| event.body.facts())?.clone();
        let call = call::fold(self.making(namespace, call))?;
        Some(KnownCall { facts, call })
    }

    /// All records of a call, in order.
    pub fn records(&self, namespace: &Namespace, call: &CallRef) -> Vec<Record> {
        let Some(known) = self.known(namespace, call) else { return Vec::new() };
        (1..=known.call.tip.attempts()).map(|n| self.record_of(namespace, call, n)).collect()
    }

    fn record_of(&self, namespace: &Namespace, call: &CallRef, number: u32) -> Record {
        let Call { tip, older } = self.known(namespace, call).expect("the call is known").call;
        let attempt: &Attempt = older.get(&number).unwrap_or(&tip.newest);
        let opening = &self.events[attempt.started_seq as usize];
        let outcomes: Vec<Body> = attempt
            .outcomes
            .iter()
            .map(|mark| self.events[mark.seq as usize].body.clone())
            .collect();
        let checks = self.story(namespace, call).filter_map(|event| match &event.body {
            Body::StatusChecked(e) if e.attempt == number => Some(CheckMark {
                answer: e.answer,
                source: e.source.clone(),
                at: event.at,
                seq: event.seq,
                counted: e.settles,
            }),
            _ => None,
        });
        let events = RecordEvents {
            opening: (opening.at, &opening.body),
            outcomes: &outcomes,
            settling: attempt.settled.map(|s| &self.events[s.seq as usize].body),
            checks: checks.collect(),
        };
        Record::build(key_of(namespace, call), tip.recorded_at, attempt, events, self.now)
    }

    fn policy(&self, namespace: &Namespace) -> Policy {
        let of_namespace = self.events.iter().rev().filter(|event| is_of(event, namespace));
        let mut policies = of_namespace.filter_map(|event| match &event.body {
            Body::PolicySet { policy } => Some(policy.clone()),
            _ => None,
        });
        policies.next().unwrap_or_default()
    }

    pub(super) fn append(&mut self, namespace: &Namespace, body: Body) {
        let nseq = self.events.iter().filter(|event| is_of(event, namespace)).count() as u64;
        self.append_owned(Some(Owner { namespace: namespace.clone(), nseq }), body);
    }

    fn append_owned(&mut self, owner: Option<Owner>, body: Body) {
        let (seq, at) = (self.events.len() as u64, self.now);
        self.events.push(Event { seq, at, owner, salt: [0; 16], body });
    }

    /// The ledger began on another boot.
    pub(super) fn append_restart(&mut self, restarted: Restarted) {
        self.append_owned(None, Body::Restarted(restarted));
    }

    pub(super) fn take(&mut self, namespace: &Namespace, call: &CallRef, plan: Plan) {
        let foretold = plan.call;
        for body in plan.bodies {
            self.append(namespace, body);
        }
        if foretold.is_some() {
            let folded = self.known(namespace, call).map(|known| known.call);
            assert_eq!(foretold, folded, "the plan and the fold agree");
        }
    }

    /// A scope was opened under this id, with this key.
    pub fn open_scope(&mut self, namespace: &Namespace, opened: ScopeOpened, mut key: [u8; 32]) {
        self.live.push(LiveScope {
            namespace: namespace.clone(),
            scope_id: opened.scope_id.clone(),
            expires_at: opened.expires_at,
            key: ScopeKey::new(&mut key),
        });
        self.append(namespace, Body::ScopeOpened(opened));
    }

    /// Closes a scope; whether there is one.
    pub fn close_scope(&mut self, namespace: &Namespace, id: &ScopeId, end: ScopeEnd) -> bool {
        let mut own = self.events.iter().filter(|event| is_of(event, namespace));
        let is_known =
            own.any(|event| matches!(&event.body, Body::ScopeOpened(e) if e.scope_id == *id));
        let live = self.live.len();
        if is_known {
            self.live.retain(|scope| scope.scope_id != *id);
        }
        // A key that went with an earlier process is not closed a second time.
        if self.live.len() < live {
            self.append(namespace, Body::ScopeClosed { scope_id: id.clone(), end });
        }
        is_known
    }

    /// Scopes whose time is over, and nobody has said so yet.
    pub(super) fn due_scopes(&self) -> Vec<(Namespace, ScopeId)> {
        let mut due: Vec<_> =
            self.live.iter().filter(|scope| scope.expires_at <= self.now).collect();
        due.sort_by_key(|scope| (scope.expires_at, scope.scope_id.clone()));
        due.iter().map(|scope| (scope.namespace.clone(), scope.scope_id.clone())).collect()
    }

    /// A scope of the namespace that lives.
    pub fn live_scope(&self, namespace: &Namespace) -> Option<ScopeId> {
        let mut own = self.live.iter().rev().filter(|scope| scope.namespace == *namespace);
        own.find(|scope| self.now < scope.expires_at).map(|scope| scope.scope_id.clone())
    }

    /// Forgets all keys, as a restart does.
    pub(super) fn forget_keys(&mut self) {
        self.live.clear();
    }

    fn signer(&self, namespace: &Namespace, id: &ScopeId) -> Option<Signer<'_>> {
        let is_it = |scope: &&LiveScope| {
            scope.scope_id == *id && scope.namespace == *namespace && self.now < scope.expires_at
        };
        let scope = self.live.iter().find(is_it)?;
        Some(Signer { scope_id: &scope.scope_id, key: &scope.key })
    }

    fn scope(&self, namespace: &Namespace, id: &ScopeId) -> ScopeKnown<'_> {
        let is_opened = |event: &Event| {
            let is_it = matches!(&event.body, Body::ScopeOpened(e) if e.scope_id == *id);
            is_of(event, namespace) && is_it
        };
        match self.signer(namespace, id) {
            Some(signer) => ScopeKnown::Open(signer),
            None if self.events.iter().any(is_opened) => ScopeKnown::Gone,
            None => ScopeKnown::Absent,
        }
    }

    fn holder(
        &self,
        namespace: &Namespace,
        call: &CallRef,
        key: Option<&OperationKey>,
    ) -> Option<Holder> {
        let holds = |event: &&Event| {
            let facts = event.body.facts().filter(|_| is_of(event, namespace));
            key.is_some() && facts.is_some_and(|facts| facts.operation_key.as_ref() == key)
        };
        let (holder, _) = self.events.iter().find(holds)?.body.call()?;
        let decision = self.known(namespace, holder)?.decision(&self.moment());
        (holder != call).then(|| Holder { call: holder.clone(), decision })
    }

    /// A claim.
    pub fn claim(&mut self, namespace: &Namespace, claim: &Claim) -> Result<ClaimAnswer, Refusal> {
        let target = &claim.call;
        let known = self.known(namespace, target);
        let claimed = self.story(namespace, target).find_map(|event| match &event.body {
            Body::Started(e) if e.claim_id == claim.claim_id => Some(e.attempt),
            _ => None,
        });
        let decided = plan::claim(
            &self.place(),
            claim,
            &ClaimKnown {
                policy: &self.policy(namespace),
                call: known.as_ref(),
                claimed,
                holder: self.holder(namespace, target, claim.operation_key.as_ref()).as_ref(),
                scope: self.scope(namespace, &claim.scope_id),
                twins: &self.twins(namespace, claim, known.as_ref()),
            },
        )?;
        self.take(namespace, target, decided.plan);
        let after = self.known(namespace, target).map(|known| known.call.tip);
        let mut answer = ClaimAnswer {
            claimed: decided.answer,
            terms: decided.terms,
            key_window_ends_at: after.and_then(|tip| tip.key_window_end()),
            call: target.clone(),
            state: CallState::InFlight,
            idempotency_key: key_of(namespace, target),
            input_hash: claim.input_hash,
            now: self.now,
            started_at: None,
            lease_token: None,
            twin: decided.twin,
            record: None,
        };
        match &answer.claimed {
            ClaimedAs::Granted { attempt, started_seq, .. } => {
                answer.started_at = Some(self.events[*started_seq as usize].at);
                answer.lease_token = Some(self.token(namespace, target, *attempt));
            }
            ClaimedAs::Advice(decision) => {
                answer.state = decision.state;
                let tip = known.map(|known| known.call.tip);
                let number = tip.map(|tip| tip.ok_attempt.unwrap_or(tip.newest.number));
                answer.record =
                    number.map(|number| Box::new(self.record_of(namespace, target, number)));
            }
        }
        Ok(answer)
    }

    /// Other calls that do the same, the newest first.
    fn twins(
        &self,
        namespace: &Namespace,
        claim: &Claim,
        known: Option<&KnownCall>,
    ) -> Vec<TwinKnown> {
        let policy = self.policy(namespace);
        let hash = known.map_or_else(
            || claim.twins.hash.unwrap_or(claim.input_hash),
            |known| *known.facts.twin_hash(),
        );
        let scope = known.map_or_else(
            || policy.rule(&claim.tool).map(|rule| rule.twin_scope).unwrap_or_default(),
            |known| known.facts.twin_scope,
        );
        let mut others: Vec<&CallRef> = Vec::new();
        for event in self.events.iter().filter(|event| is_of(event, namespace)) {
            if let Some((call, _)) = event.body.call()
                && *call != claim.call
                && !others.contains(&call)
            {
                others.push(call);
            }
        }
        let same = others.into_iter().rev().filter_map(|call| {
            let known = self.known(namespace, call)?;
            let is_of_run = call.run_id == claim.call.run_id;
            // A call of another run is found only if its own rule asked for that too.
            let is_wide =
                scope == TwinScope::Namespace && known.facts.twin_scope == TwinScope::Namespace;
            let is_same = known.facts.tool == claim.tool && *known.facts.twin_hash() == hash;
            (is_same && (is_of_run || is_wide))
                .then(|| TwinKnown { call: call.clone(), tip: known.call.tip })
        });
        same.collect()
    }

    /// A renewal.
    pub fn renew(
        &mut self,
        namespace: &Namespace,
        renewal: &Renewal,
        lease_token: &str,
    ) -> Result<RenewedAnswer, Refusal> {
        let target = &renewal.call;
        let known = self.known(namespace, target);
        let attempt = known.as_ref().and_then(|known| known.call.attempt(renewal.attempt));
        let is_right = attempt.is_some_and(|attempt| attempt.lease.is_some())
            && lease_token == self.token(namespace, target, renewal.attempt);
        let renewed = plan::renew(&self.place(), renewal, known.as_ref(), is_right)?;
        self.take(namespace, target, renewed.plan);
        Ok(RenewedAnswer {
            lease_token: lease_token.to_owned(),
            lease_expires_at: renewed.lease_expires_at,
            now: self.now,
        })
    }

    /// A reported outcome.
    pub fn report(
        &mut self,
        namespace: &Namespace,
        report: &Report,
        lease_token: &str,
        named: Option<&ScopeId>,
    ) -> Result<RecordAnswer, Refusal> {
        let target = &report.call;
        let known = self.known(namespace, target);
        let of_attempt = |event: &&Event| event.body.call().is_some_and(|c| c.1 == report.attempt);
        let said: Vec<Outcome> = self
            .story(namespace, target)
            .filter(of_attempt)
            .filter_map(|event| event.body.outcome().cloned())
            .collect();
        let opening = self.story(namespace, target).filter(of_attempt).find_map(|event| {
            if let Body::Started(e) = &event.body { Some(&e.scope_id) } else { None }
        });
        let right = self.token(namespace, target, report.attempt);
        let own = opening.and_then(|scope| self.signer(namespace, scope));
        let known = ReportKnown {
            call: known.as_ref(),
            lease_token_is_right: opening.is_some() && lease_token == right,
            outcomes: &said,
            signer: own.or_else(|| self.signer(namespace, named?)),
        };
        let reported = plan::report(&self.place(), namespace, report, &known)?;
        self.take(namespace, target, reported.plan);
        let record = Box::new(self.record_of(namespace, target, report.attempt));
        Ok(RecordAnswer { record, replayed: reported.replayed })
    }

    /// A one-shot.
    pub fn record(
        &mut self,
        namespace: &Namespace,
        shot: &OneShot,
    ) -> Result<RecordAnswer, Refusal> {
        let target = &shot.call;
        let recorded = self.story(namespace, target).filter_map(|event| match &event.body {
            Body::Recorded(e) if shot.attempt.is_none_or(|n| n == e.attempt) => Some(e),
            _ => None,
        });
        let same = recorded.filter(|e| shot.is_same_as(e)).map(|e| e.attempt).last();
        let recording = plan::record(
            &self.place(),
            namespace,
            shot,
            &RecordKnown {
                policy: &self.policy(namespace),
                call: self.known(namespace, target).as_ref(),
                same,
                holder: self.holder(namespace, target, shot.operation_key.as_ref()).as_ref(),
                scope: self.scope(namespace, &shot.scope_id),
            },
        )?;
        self.take(namespace, target, recording.plan);
        let record = Box::new(self.record_of(namespace, target, recording.attempt));
        Ok(RecordAnswer { record, replayed: recording.replayed })
    }
}

fn is_of(event: &Event, namespace: &Namespace) -> bool {
    event.owner.as_ref().is_some_and(|owner| owner.namespace == *namespace)
}

fn key_of(namespace: &Namespace, call: &CallRef) -> IdempotencyKey {
    IdempotencyKey::derive(namespace.as_str(), call.run_id.as_str(), call.tool_call_id.as_str())
}
