//! Answers one request inside a batch: what must be known is looked up, the rules of the core
//! decide, and what they decide is appended. Calls are here; the rest is below.

mod scopes;
mod settings;
mod time;

use recibo_core::call::Attempt;
use recibo_core::decision::decide;
use recibo_core::effect::Policy;
use recibo_core::event::{Body, Outcome};
use recibo_core::id::{CallRef, Namespace, OperationKey, ScopeId};
use recibo_core::plan::{
    self, Check, Claim, ClaimKnown, Claimed, ClaimedAs, Holder, OneShot, RecordKnown, Refusal,
    Renewal, Report, ReportKnown, Resolution, TwinKnown,
};
use recibo_core::receipt::IdempotencyKey;
use recibo_core::record::{Record, RecordEvents};
use recibo_core::status::{CallState, DecisionKind};
use recibo_core::time::Time;

use crate::answer::{CheckedAnswer, ClaimAnswer, RecordAnswer, RenewedAnswer};
use crate::batch::{Batch, claim_origin, shot_origin};
use crate::codec::StoredEvent;
use crate::error::StorageError;
use crate::etag;
use crate::lookup::{Alike, Found, build_record};

type Served<T> = Result<Result<T, Refusal>, StorageError>;

impl Batch<'_, '_> {
    pub(crate) fn claim(&mut self, namespace: &Namespace, claim: &Claim) -> Served<ClaimAnswer> {
        let found = self.find(namespace, &claim.call)?;
        let policy = self.policy(namespace);
        let holder = self.holder(namespace, &claim.call, claim.operation_key.as_ref(), &found)?;
        let claimed = match &found {
            Some(found) => self.claimed(found, claim)?,
            None => None,
        };
        let live = self.live_scope(namespace, &claim.scope_id);
        let scope = self.scope_known(namespace, &claim.scope_id, live.as_deref())?;
        let twins = self.twins(namespace, claim, found.as_ref())?;
        let known = ClaimKnown {
            policy: &policy,
            call: found.as_ref().map(|found| &found.known),
            claimed,
            holder: holder.as_ref(),
            scope,
            twins: &twins,
        };
        let mut decided = match plan::claim(&self.place(), claim, &known) {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let plan = std::mem::take(&mut decided.plan);
        let before = found.as_ref().map(|found| &found.known.call);
        let key_window_ends_at =
            plan.call.as_ref().or(before).and_then(|call| call.tip.key_window_end());
        self.carry_out(namespace, found.as_ref(), plan)?;
        let answer =
            self.claim_answer(namespace, claim, decided, key_window_ends_at, found.as_ref())?;
        Ok(Ok(answer))
    }

    fn claim_answer(
        &self,
        namespace: &Namespace,
        claim: &Claim,
        decided: Claimed,
        key_window_ends_at: Option<Time>,
        found: Option<&Found>,
    ) -> Result<ClaimAnswer, StorageError> {
        let Claimed { answer: claimed, terms, twin, .. } = decided;
        let now = self.now();
        let call = &claim.call;
        let (state, started_at, lease_token, record) = match &claimed {
            ClaimedAs::Granted { attempt, started_seq, replayed, .. } => {
                let started_at =
                    if *replayed { self.lookup().event(*started_seq)?.at } else { now };
                let token = self.state.lease_secret.token(namespace, call, *attempt);
                (CallState::InFlight, Some(started_at), Some(token), None)
            }
            ClaimedAs::Advice(decision) => {
                let record = match found {
                    Some(found) => Some(Box::new(self.deciding_record(namespace, found)?)),
                    None => None,
                };
                (decision.state, None, None, record)
            }
        };
        Ok(ClaimAnswer {
            claimed,
            state,
            terms,
            key_window_ends_at,
            idempotency_key: IdempotencyKey::of(namespace, call),
            input_hash: claim.input_hash,
            call: call.clone(),
            now,
            started_at,
            lease_token,
            twin,
            record,
        })
    }

    fn deciding_record(
        &self,
        namespace: &Namespace,
        found: &Found,
    ) -> Result<Record, StorageError> {
        let lookup = self.lookup();
        let tip = &found.known.call.tip;
        let attempt = lookup.deciding(found.run_no, id_of(found)?, tip)?;
        lookup.record_of(namespace, found, &attempt, self.now())
    }

    /// The attempt that a claim id got. Older attempts are searched only where the answer
    /// matters: where a grant would follow.
    fn claimed(&self, found: &Found, claim: &Claim) -> Result<Option<u32>, StorageError> {
        let tip = &found.known.call.tip;
        let lookup = self.lookup();
        let is_it = |body: &Body| matches!(body, Body::Started(e) if e.claim_id == claim.claim_id);
        if is_it(&lookup.event(tip.newest.started_seq)?.body) {
            return Ok(Some(tip.newest.number));
        }
        if decide(Some((tip, found.known.terms())), &self.moment).kind != DecisionKind::Proceed {
            return Ok(None);
        }
        let origin = claim_origin(claim.claim_id.as_str());
        for number in lookup.opened_by(found.run_no, id_of(found)?, origin)? {
            let attempt = lookup.older(found.run_no, id_of(found)?, tip, number)?;
            let attempt = attempt.ok_or(StorageError::Inconsistent("an attempt is missing"))?;
            if is_it(&lookup.event(attempt.started_seq)?.body) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Another call that holds the operation key, where a new call brings one.
    fn holder(
        &mut self,
        namespace: &Namespace,
        call: &CallRef,
        key: Option<&OperationKey>,
        found: &Option<Found>,
    ) -> Result<Option<Holder>, StorageError> {
        let (Some(key), None) = (key, found) else { return Ok(None) };
        let Some(holder) = self.holder_of(namespace, key)?.filter(|holder| holder != call) else {
            return Ok(None);
        };
        let known = self.find(namespace, &holder)?;
        let known = known.ok_or(StorageError::Inconsistent("a key without its call"))?.known;
        Ok(Some(Holder { decision: known.decision(&self.moment), call: holder }))
    }

    /// Other calls that do the same, the newest first.
    fn twins(
        &mut self,
        namespace: &Namespace,
        claim: &Claim,
        found: Option<&Found>,
    ) -> Result<Vec<TwinKnown>, StorageError> {
        let Some(namespace_no) = self.namespace_no(namespace) else { return Ok(Vec::new()) };
        let run_no = match found {
            Some(found) => Some(found.run_no),
            None => self.known_run(namespace_no, &claim.call.run_id)?,
        };
        let policy = self.policy(namespace);
        let (twin_hash, scope) = match found {
            Some(found) => (found.known.facts.twin_hash(), found.known.facts.twin_scope),
            None => (
                claim.twins.hash.as_ref().unwrap_or(&claim.input_hash),
                policy.rule(&claim.tool).map(|rule| rule.twin_scope).unwrap_or_default(),
            ),
        };
        self.lookup().twins(&Alike {
            of: &claim.call,
            tool: &claim.tool,
            twin_hash,
            scope,
            namespace_no,
            run_no,
        })
    }

    pub(crate) fn renew(
        &mut self,
        namespace: &Namespace,
        renewal: &Renewal,
        lease_token: &str,
    ) -> Served<RenewedAnswer> {
        let mut found = self.find(namespace, &renewal.call)?;
        let attempt = match &mut found {
            Some(found) => self.load_attempt(found, renewal.attempt)?,
            None => None,
        };
        let Renewal { call, attempt: number, .. } = renewal;
        let secret = &self.state.lease_secret;
        // A one-shot never had a lease, so no token is right for it.
        let is_right = attempt.is_some_and(|attempt| attempt.lease.is_some())
            && secret.is_right(lease_token, namespace, call, *number);
        let known = found.as_ref().map(|found| &found.known);
        let renewed = match plan::renew(&self.place(), renewal, known, is_right) {
            Ok(renewed) => renewed,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.carry_out(namespace, found.as_ref(), renewed.plan)?;
        Ok(Ok(RenewedAnswer {
            lease_token: lease_token.to_owned(),
            lease_expires_at: renewed.lease_expires_at,
            now: self.now(),
        }))
    }

    pub(crate) fn report(
        &mut self,
        namespace: &Namespace,
        report: &Report,
        lease_token: &str,
        named_scope: Option<&ScopeId>,
    ) -> Served<RecordAnswer> {
        let mut found = self.find(namespace, &report.call)?;
        let attempt = match &mut found {
            Some(found) => self.load_attempt(found, report.attempt)?,
            None => None,
        };
        let (opening, outcomes) = match (&attempt, &found) {
            (Some(attempt), Some(found)) => {
                (Some(self.opening(found, attempt)?), self.outcomes(attempt)?)
            }
            _ => (None, Vec::new()),
        };
        let said: Vec<Outcome> = outcomes.iter().filter_map(|b| b.outcome().cloned()).collect();
        // A one-shot never had a lease, so no token is right for it.
        let opening_scope = match opening.as_ref().map(|opening| &opening.body) {
            Some(Body::Started(e)) => Some(&e.scope_id),
            _ => None,
        };
        let lease_token_is_right = opening_scope.is_some()
            && self.state.lease_secret.is_right(
                lease_token,
                namespace,
                &report.call,
                report.attempt,
            );
        let now = self.now();
        let live = opening_scope
            .and_then(|scope| self.live_scope(namespace, scope))
            .or_else(|| named_scope.and_then(|scope| self.live_scope(namespace, scope)));
        let known = ReportKnown {
            call: found.as_ref().map(|found| &found.known),
            lease_token_is_right,
            outcomes: &said,
            signer: live.as_ref().map(|live| live.signer()),
        };
        let reported = match plan::report(&self.place(), namespace, report, &known) {
            Ok(reported) => reported,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (Some(found), Some(opening)) = (found, opening) else {
            return Err(StorageError::Inconsistent("an attempt without its call"));
        };
        let mut outcomes = outcomes;
        outcomes.extend(reported.plan.bodies.iter().filter(|b| b.outcome().is_some()).cloned());
        let after = reported.plan.call.as_ref().unwrap_or(&found.known.call);
        let attempt = after
            .attempt(report.attempt)
            .ok_or(StorageError::Inconsistent("an attempt is missing"))?;
        let lookup = self.lookup();
        let settling = attempt.settled.map(|settled| lookup.event(settled.seq)).transpose()?;
        let events = RecordEvents {
            opening: (opening.at, &opening.body),
            outcomes: &outcomes,
            settling: settling.as_ref().map(|event| &event.body),
            checks: lookup.checks(attempt)?,
        };
        let record = build_record(namespace, after.tip.recorded_at, attempt, events, now)?;
        self.carry_out(namespace, Some(&found), reported.plan)?;
        Ok(Ok(RecordAnswer { record: Box::new(record), replayed: reported.replayed }))
    }

    /// Puts an attempt at hand, and gives it.
    fn load_attempt(
        &self,
        found: &mut Found,
        number: u32,
    ) -> Result<Option<Attempt>, StorageError> {
        let id = id_of(found)?.to_owned();
        let call = &mut found.known.call;
        let attempt = self.lookup().attempt(found.run_no, &id, &call.tip, number)?;
        if let Some(attempt) = &attempt
            && number != call.tip.newest.number
        {
            call.older.insert(number, attempt.clone());
        }
        Ok(attempt)
    }

    /// The event that opened an attempt: for most, the call's first, which is at hand.
    fn opening(&self, found: &Found, attempt: &Attempt) -> Result<StoredEvent, StorageError> {
        if attempt.started_seq == found.known.call.tip.first_seq {
            return Ok(found.first.clone());
        }
        self.lookup().event(attempt.started_seq)
    }

    fn outcomes(&self, attempt: &Attempt) -> Result<Vec<Body>, StorageError> {
        let lookup = self.lookup();
        attempt.outcomes.iter().map(|mark| Ok(lookup.event(mark.seq)?.body)).collect()
    }

    pub(crate) fn record(&mut self, namespace: &Namespace, shot: &OneShot) -> Served<RecordAnswer> {
        let found = self.find(namespace, &shot.call)?;
        let policy: std::sync::Arc<Policy> = self.policy(namespace);
        let holder = self.holder(namespace, &shot.call, shot.operation_key.as_ref(), &found)?;
        let same = match &found {
            Some(found) => self.same_shot(found, shot)?,
            None => None,
        };
        let now = self.now();
        let live = self.live_scope(namespace, &shot.scope_id);
        let scope = self.scope_known(namespace, &shot.scope_id, live.as_deref())?;
        let known = RecordKnown {
            policy: &policy,
            call: found.as_ref().map(|found| &found.known),
            same,
            holder: holder.as_ref(),
            scope,
        };
        let recording = match plan::record(&self.place(), namespace, shot, &known) {
            Ok(recording) => recording,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let record = match (&recording.plan.call, &found) {
            (Some(after), _) => {
                let body = recording.plan.bodies.last().filter(|body| body.facts().is_some());
                let body = body.ok_or(StorageError::Inconsistent("a plan without its record"))?;
                let events = RecordEvents {
                    opening: (now, body),
                    outcomes: std::slice::from_ref(body),
                    settling: None,
                    checks: Vec::new(),
                };
                build_record(namespace, after.tip.recorded_at, &after.tip.newest, events, now)?
            }
            (None, Some(found)) => {
                let tip = &found.known.call.tip;
                let lookup = self.lookup();
                let attempt =
                    lookup.attempt(found.run_no, id_of(found)?, tip, recording.attempt)?;
                let attempt = attempt.ok_or(StorageError::Inconsistent("an attempt is missing"))?;
                lookup.record_of(namespace, found, &attempt, now)?
            }
            (None, None) => return Err(StorageError::Inconsistent("a replay without a call")),
        };
        self.carry_out(namespace, found.as_ref(), recording.plan)?;
        Ok(Ok(RecordAnswer { record: Box::new(record), replayed: recording.replayed }))
    }

    /// The one-shot of this call with the same content: the attempt that is named, or any.
    fn same_shot(&self, found: &Found, shot: &OneShot) -> Result<Option<u32>, StorageError> {
        let lookup = self.lookup();
        let (tip, id) = (&found.known.call.tip, id_of(found)?);
        let candidates = match shot.attempt {
            Some(number) => vec![number],
            None => {
                let origin = shot_origin(shot.started_at, shot.outcome.duration_ms);
                let mut numbers = lookup.opened_by(found.run_no, id, origin)?;
                numbers.push(tip.newest.number);
                numbers
            }
        };
        for number in candidates {
            let Some(attempt) = lookup.attempt(found.run_no, id, tip, number)? else { continue };
            let opening = lookup.event(attempt.started_seq)?.body;
            if matches!(&opening, Body::Recorded(recorded) if shot.is_same_as(recorded)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    pub(crate) fn check(&mut self, namespace: &Namespace, check: &Check) -> Served<CheckedAnswer> {
        let mut found = self.find(namespace, &check.call)?;
        if let Some(found) = &mut found {
            self.load_attempt(found, check.attempt)?;
        }
        let known = found.as_ref().map(|found| &found.known);
        let checked = match plan::check(&self.place(), check, known) {
            Ok(checked) => checked,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.carry_out(namespace, found.as_ref(), checked.plan)?;
        Ok(Ok(CheckedAnswer { retry_after_ms: checked.retry_after_ms }))
    }

    pub(crate) fn resolve(
        &mut self,
        namespace: &Namespace,
        resolution: &Resolution,
        given_etag: &str,
    ) -> Served<()> {
        let now = self.now();
        let mut found = self.find(namespace, &resolution.call)?;
        if let Some(found) = &mut found {
            // A resolution settles every unsettled attempt, and one that replaces another looks
            // at all of them, so these must be at hand.
            let id = id_of(found)?.to_owned();
            let tip = &found.known.call.tip;
            let replaces = resolution.corrects.is_some() || tip.rests_on.is_some();
            if tip.unsettled_older > 0 || replaces {
                let older = self.lookup().all_older(found.run_no, &id, tip)?;
                let touched = older.into_iter().filter(|a| replaces || a.is_unsettled(now));
                found.known.call.older = touched.map(|a| (a.number, a)).collect();
            }
        }
        let is_current = found
            .as_ref()
            .is_some_and(|found| etag::matches(given_etag, &found.known.call.tip, now));
        let known = found.as_ref().map(|found| &found.known);
        let plan = match plan::resolve(&self.place(), resolution, known, is_current) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.carry_out(namespace, found.as_ref(), plan)?;
        Ok(Ok(()))
    }
}

fn call_ref(found: &Found) -> Result<&CallRef, StorageError> {
    let call = found.first.body.call().map(|(call, _)| call);
    call.ok_or(StorageError::Inconsistent("a call opens oddly"))
}

fn id_of(found: &Found) -> Result<&str, StorageError> {
    Ok(call_ref(found)?.tool_call_id.as_str())
}
