//! Answers one request inside a batch: what must be known is looked up, the rules of the core
//! decide, and what they decide is appended.

use recibo_core::call::Attempt;
use recibo_core::decision::decide;
use recibo_core::effect::Policy;
use recibo_core::event::{Body, Outcome, ScopeOpened};
use recibo_core::id::{CallRef, Namespace, OperationKey, ScopeId};
use recibo_core::plan::{
    self, Check, Claim, ClaimKnown, ClaimedAs, Holder, OneShot, RecordKnown, Refusal, Report,
    ReportKnown, Resolution, ScopeKnown,
};
use recibo_core::receipt::{IdempotencyKey, ScopeKey};
use recibo_core::record::Record;
use recibo_core::status::{CallState, DecisionKind, ScopeEnd};
use redb::ReadableTable;
use zeroize::Zeroizing;

use crate::answer::{CheckedAnswer, ClaimAnswer, OpenedScope, RecordAnswer, Twin};
use crate::api_key::{ApiKeyDraft, ApiKeyInfo, Revoked};
use crate::batch::{Batch, claim_origin, shot_origin};
use crate::codec::{ApiKeyRow, ScopeRow, StoredEvent};
use crate::error::StorageError;
use crate::etag;
use crate::keyring::LiveScope;
use crate::lookup::{Found, build_record};
use crate::scope_id;
use crate::tables::OpenKey;

type Served<T> = Result<Result<T, Refusal>, StorageError>;

/// Ends of leases, and of scopes, that one tick appends.
const TICK_MAX: usize = 1024;

impl Batch<'_, '_> {
    pub(crate) fn open_scope(
        &mut self,
        namespace: &Namespace,
        label: Option<String>,
        ttl_ms: u64,
    ) -> Result<OpenedScope, StorageError> {
        let now = self.now();
        let scope_id = scope_id::make(now, self.random());
        let expires_at = now.plus_ms(ttl_ms);
        let opened = ScopeOpened { scope_id: scope_id.clone(), label: label.clone(), expires_at };
        let seq = self.append(namespace, None, Body::ScopeOpened(opened));
        let row = ScopeRow {
            namespace_no: self.namespace(namespace).row.no,
            opened_seq: seq,
            closed_seq: None,
        };
        self.tables.scopes.insert(scope_id.as_str().as_bytes(), row.encode().as_slice())?;
        let mut key = Zeroizing::new([0; 32]);
        (self.state.entropy)(&mut *key);
        self.state.keyring.insert(LiveScope {
            scope_id: scope_id.clone(),
            namespace: namespace.clone(),
            expires_at,
            key: ScopeKey::new(&mut key),
        });
        Ok(OpenedScope { scope_id, label, opened_at: now, expires_at })
    }

    /// Wipes a scope's key. Closing again, or closing what an earlier process opened and took
    /// with it, appends nothing. Answers whether the namespace has such a scope.
    pub(crate) fn close_scope(
        &mut self,
        namespace: &Namespace,
        scope_id: &ScopeId,
        end: ScopeEnd,
    ) -> Result<bool, StorageError> {
        let Some(mut row) = self.scope_row(namespace, scope_id)? else { return Ok(false) };
        if self.state.keyring.remove(scope_id) {
            let body = Body::ScopeClosed { scope_id: scope_id.clone(), end };
            row.closed_seq = Some(self.append(namespace, None, body));
            self.tables.scopes.insert(scope_id.as_str().as_bytes(), row.encode().as_slice())?;
        }
        Ok(true)
    }

    fn scope_row(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
    ) -> Result<Option<ScopeRow>, StorageError> {
        let row = match self.tables.scopes.get(scope_id.as_str().as_bytes())? {
            Some(value) => ScopeRow::decode(value.value())?,
            None => return Ok(None),
        };
        Ok(Some(row).filter(|row| self.namespace_no(namespace) == Some(row.namespace_no)))
    }

    fn scope_known<'k>(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
        live: Option<&'k LiveScope>,
    ) -> Result<ScopeKnown<'k>, StorageError> {
        Ok(match live {
            Some(live) => ScopeKnown::Open(live.signer()),
            None if self.scope_row(namespace, scope_id)?.is_some() => ScopeKnown::Gone,
            None => ScopeKnown::Absent,
        })
    }

    pub(crate) fn claim(&mut self, namespace: &Namespace, claim: &Claim) -> Served<ClaimAnswer> {
        let found = self.find(namespace, &claim.call)?;
        let policy = self.policy(namespace);
        let holder = self.holder(namespace, &claim.call, claim.operation_key.as_ref(), &found)?;
        let claimed = match &found {
            Some(found) => self.claimed(found, claim)?,
            None => None,
        };
        let live = self.state.keyring.get(namespace, &claim.scope_id, self.now());
        let scope = self.scope_known(namespace, &claim.scope_id, live.as_deref())?;
        let known = ClaimKnown {
            policy: &policy,
            call: found.as_ref().map(|found| &found.known),
            claimed,
            holder: holder.as_ref(),
            scope,
        };
        let decided = match plan::claim(&self.place(), claim, &known) {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let twin = self.twin(namespace, claim, found.as_ref())?;
        self.carry_out(namespace, found.as_ref(), decided.plan)?;
        Ok(Ok(self.claim_answer(namespace, claim, decided.answer, twin, found.as_ref())?))
    }

    fn claim_answer(
        &self,
        namespace: &Namespace,
        claim: &Claim,
        claimed: ClaimedAs,
        twin: Option<Twin>,
        found: Option<&Found>,
    ) -> Result<ClaimAnswer, StorageError> {
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

    /// The newest other call of the run that does the same.
    fn twin(
        &mut self,
        namespace: &Namespace,
        claim: &Claim,
        found: Option<&Found>,
    ) -> Result<Option<Twin>, StorageError> {
        let run_no = match (found, self.namespace_no(namespace)) {
            (Some(found), _) => Some(found.run_no),
            (None, Some(no)) => self.known_run(no, &claim.call.run_id)?,
            (None, None) => None,
        };
        match run_no {
            Some(run_no) => {
                self.lookup().twin(run_no, &claim.call, &claim.tool, &claim.input_hash, self.now())
            }
            None => Ok(None),
        }
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
            Some(found) => self.bring_up(found, report.attempt)?,
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
        let keyring = &self.state.keyring;
        let now = self.now();
        let live = opening_scope
            .and_then(|scope| keyring.get(namespace, scope, now))
            .or_else(|| named_scope.and_then(|scope| keyring.get(namespace, scope, now)));
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
        let settling = settling.as_ref().map(|event| &event.body);
        let (opening, recorded_at) = ((opening.at, &opening.body), after.tip.recorded_at);
        let record =
            build_record(namespace, recorded_at, attempt, opening, &outcomes, settling, now)?;
        self.carry_out(namespace, Some(&found), reported.plan)?;
        Ok(Ok(RecordAnswer { record: Box::new(record), replayed: reported.replayed }))
    }

    /// Puts an attempt at hand, and gives it.
    fn bring_up(&self, found: &mut Found, number: u32) -> Result<Option<Attempt>, StorageError> {
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
        let live = self.state.keyring.get(namespace, &shot.scope_id, now);
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
                let outcomes = std::slice::from_ref(body);
                let attempt = &after.tip.newest;
                build_record(
                    namespace,
                    after.tip.recorded_at,
                    attempt,
                    (now, body),
                    outcomes,
                    None,
                    now,
                )?
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
            self.bring_up(found, check.attempt)?;
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
            // A resolution settles every unsettled attempt, so these must be at hand.
            let id = id_of(found)?.to_owned();
            let tip = &found.known.call.tip;
            if tip.unsettled_older > 0 {
                let older = self.lookup().all_older(found.run_no, &id, tip)?;
                let unsettled = older.into_iter().filter(|a| a.is_unsettled(now));
                found.known.call.older = unsettled.map(|a| (a.number, a)).collect();
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

    pub(crate) fn set_policy(&mut self, namespace: &Namespace, policy: Policy) -> u64 {
        let body = Body::PolicySet { policy: policy.clone() };
        let seq = self.append(namespace, None, body);
        let state = self.namespace(namespace);
        state.row.policy_seq = Some(seq);
        state.policy = std::sync::Arc::new(policy);
        seq
    }

    pub(crate) fn create_api_key(
        &mut self,
        draft: ApiKeyDraft,
    ) -> Result<ApiKeyInfo, StorageError> {
        let now = self.now();
        let row = ApiKeyRow {
            roles: draft.roles.clone(),
            namespace: draft.namespace.as_str().to_owned(),
            digest: draft.digest,
            created_ms: now.ms(),
            expires_ms: draft.expires_ms.map(|ms| now.plus_ms(ms).ms()),
            revoked_ms: None,
        };
        self.tables.api_keys.insert(draft.id.as_bytes(), row.encode().as_slice())?;
        let info = ApiKeyInfo {
            id: draft.id.clone(),
            roles: draft.roles,
            namespace: draft.namespace,
            created_at: now,
            expires_at: row.expires_ms.map(recibo_core::time::Time::from_ms),
            revoked_at: None,
        };
        self.state.api_keys.put(draft.id, row);
        Ok(info)
    }

    pub(crate) fn revoke_api_key(
        &mut self,
        id: &str,
        kept_role: &str,
    ) -> Result<Revoked, StorageError> {
        let Some(mut row) = self.state.api_keys.row(id) else { return Ok(Revoked::NotKnown) };
        if self.state.api_keys.is_last(id, kept_role) {
            return Ok(Revoked::LastOfRole);
        }
        if row.revoked_ms.is_none() {
            row.revoked_ms = Some(self.now().ms());
            self.tables.api_keys.insert(id.as_bytes(), row.encode().as_slice())?;
            self.state.api_keys.put(id.to_owned(), row);
        }
        Ok(Revoked::Yes)
    }

    /// Appends what time alone has caused: ends of leases and of scopes. No more at once than
    /// a batch holds; nothing answered depends on it, and the next tick goes on.
    pub(crate) fn tick(&mut self) -> Result<(), StorageError> {
        let now = self.now();
        for (namespace, scope_id) in self.state.keyring.due(now).into_iter().take(TICK_MAX) {
            self.close_scope(&namespace, &scope_id, ScopeEnd::Expired)?;
        }
        for _ in 0..TICK_MAX {
            let Some(&(end, first_seq)) = self.state.leases.first() else { break };
            if end > now {
                break;
            }
            self.state.leases.remove(&(end, first_seq));
            self.expire(first_seq)?;
        }
        Ok(())
    }

    fn expire(&mut self, first_seq: u64) -> Result<(), StorageError> {
        let Some((namespace, found)) = self.open_call(first_seq)? else { return Ok(()) };
        let call = call_ref(&found)?.clone();
        if let Some(plan) = plan::expire(&self.place(), &call, &found.known) {
            self.carry_out(&namespace, Some(&found), plan)?;
        }
        Ok(())
    }

    /// Gives the leases that lived at the last event their remaining time again.
    pub(crate) fn extend_leases(
        &mut self,
        last_event_at: recibo_core::time::Time,
    ) -> Result<(), StorageError> {
        let open: Vec<u64> = self.state.leases.iter().map(|(_, first_seq)| *first_seq).collect();
        for first_seq in open {
            let Some((namespace, found)) = self.open_call(first_seq)? else { continue };
            let call = call_ref(&found)?.clone();
            if let Some(plan) = plan::extend(&self.place(), &call, &found.known, last_event_at) {
                self.carry_out(&namespace, Some(&found), plan)?;
            }
        }
        Ok(())
    }

    fn open_call(&self, first_seq: u64) -> Result<Option<(Namespace, Found)>, StorageError> {
        let row = match self.tables.open_calls.get(OpenKey::open(first_seq).as_slice())? {
            Some(value) => crate::codec::OpenCallRow::decode(value.value())?,
            None => return Ok(None),
        };
        let names = &self.state.namespace_names;
        let namespace = names
            .get(row.namespace_no as usize)
            .ok_or(StorageError::Inconsistent("a namespace number without a name"))?;
        let found = self.lookup().call_in(row.run_no, &row.tool_call_id)?;
        Ok(found.map(|found| (namespace.clone(), found)))
    }
}

fn call_ref(found: &Found) -> Result<&CallRef, StorageError> {
    let call = found.first.body.call().map(|(call, _)| call);
    call.ok_or(StorageError::Inconsistent("a call opens oddly"))
}

fn id_of(found: &Found) -> Result<&str, StorageError> {
    Ok(call_ref(found)?.tool_call_id.as_str())
}
