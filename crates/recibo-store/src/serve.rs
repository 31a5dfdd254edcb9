//! Answers one request inside a batch: what must be known is looked up, the rules of the core
//! decide, and what they decide is appended.

use recibo_core::call::{self, Attempt, Call};
use recibo_core::decision::decide;
use recibo_core::effect::Policy;
use recibo_core::event::{Body, Outcome, Restarted, ScopeOpened};
use recibo_core::id::{CallRef, Namespace, OperationKey, ScopeId};
use recibo_core::limits::SCOPES_LIVE_MAX;
use recibo_core::plan::{
    self, Check, Claim, ClaimKnown, Claimed, ClaimedAs, Holder, OneShot, RecordKnown, Refusal,
    Renewal, Report, ReportKnown, Resolution, ScopeKnown, TwinKnown,
};
use recibo_core::receipt::{IdempotencyKey, ScopeKey};
use recibo_core::record::{Record, RecordEvents};
use recibo_core::status::{CallState, DecisionKind, ScopeEnd};
use recibo_core::time::Time;
use redb::ReadableTable;
use std::sync::Arc;
use zeroize::Zeroizing;

use crate::answer::{CheckedAnswer, ClaimAnswer, OpenedScope, RecordAnswer, RenewedAnswer};
use crate::api_key::{ApiKeyDraft, ApiKeyInfo, Revoked};
use crate::batch::{Batch, claim_origin, shot_origin};
use crate::codec::{ApiKeyRow, ScopeRow, StoredEvent};
use crate::error::StorageError;
use crate::etag;
use crate::keyring::LiveScope;
use crate::lookup::{Alike, Found, build_record};
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
    ) -> Served<OpenedScope> {
        let now = self.now();
        if self.state.keyring.live_of(namespace) >= SCOPES_LIVE_MAX {
            return Ok(Err(Refusal::ScopeLimit { max: SCOPES_LIVE_MAX }));
        }
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
        Ok(Ok(OpenedScope { scope_id, label, opened_at: now, expires_at }))
    }

    /// Closes a scope; its key is wiped once that is durable. Closing again, or closing what an
    /// earlier process opened and took with it, appends nothing. Answers whether the namespace
    /// has such a scope.
    pub(crate) fn close_scope(
        &mut self,
        namespace: &Namespace,
        scope_id: &ScopeId,
        end: ScopeEnd,
    ) -> Result<bool, StorageError> {
        let Some(mut row) = self.scope_row(namespace, scope_id)? else { return Ok(false) };
        if self.state.keyring.holds(scope_id) && !self.closing.contains(scope_id) {
            self.closing.push(scope_id.clone());
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

    /// The key of a scope that lives, as this batch sees it.
    fn live_scope(&self, namespace: &Namespace, scope_id: &ScopeId) -> Option<Arc<LiveScope>> {
        let live = self.state.keyring.get(namespace, scope_id, self.now());
        live.filter(|_| !self.closing.contains(scope_id))
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

    pub(crate) fn set_policy(&mut self, namespace: &Namespace, policy: Arc<Policy>) -> u64 {
        let body = Body::PolicySet { policy: Policy::clone(&policy) };
        let seq = self.append(namespace, None, body);
        let state = self.namespace(namespace);
        state.row.policy_seq = Some(seq);
        state.policy = policy;
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
        for (namespace, scope_id) in self.state.keyring.due(now, TICK_MAX) {
            self.close_scope(&namespace, &scope_id, ScopeEnd::Expired)?;
        }
        for _ in 0..TICK_MAX {
            let Some(&lease) = self.state.leases.first() else { break };
            let (end, first_seq, namespace_no) = lease;
            if end > now {
                break;
            }
            self.state.leases.remove(&lease);
            self.expire(namespace_no, first_seq)?;
        }
        Ok(())
    }

    fn expire(&mut self, namespace_no: u32, first_seq: u64) -> Result<(), StorageError> {
        let Some((namespace, found)) = self.open_call(namespace_no, first_seq)? else {
            return Ok(());
        };
        let call = call_ref(&found)?.clone();
        if let Some(plan) = plan::expire(&self.place(), &call, &found.known) {
            self.carry_out(&namespace, Some(&found), plan)?;
        }
        Ok(())
    }

    /// Takes note of a start on another boot: one event, which gives the leases that lived when
    /// the ledger was last seen the time that remained then.
    pub(crate) fn restart(&mut self, restarted: Restarted) -> Result<(), StorageError> {
        if restarted.key_windows_void {
            self.state.head.key_windows_void_until_ms = restarted.last_at.ms();
        }
        let body = Body::Restarted(restarted);
        let (seq, now) = (self.append_for_all(body.clone()), self.now());
        self.change_open_calls(|call| call::apply(call, seq, now, &body))
    }

    /// The same where nothing is appended: leases that lived then live on, and nobody knows
    /// until when.
    pub(crate) fn forget_lease_ends(&mut self, restarted: &Restarted) -> Result<(), StorageError> {
        if restarted.key_windows_void {
            self.state.head.key_windows_void_until_ms = restarted.last_at.ms();
        }
        self.change_open_calls(|call| {
            let lease = call.as_mut().and_then(|call| call.tip.newest.lease.as_mut());
            if let Some(lease) = lease.filter(|lease| lease.expires_at > restarted.last_at) {
                lease.expires_at = Time::MAX;
            }
        })
    }

    fn change_open_calls(
        &mut self,
        change: impl Fn(&mut Option<Call>),
    ) -> Result<(), StorageError> {
        let open: Vec<_> = self.state.leases.iter().copied().collect();
        for (_, first_seq, namespace_no) in open {
            let Some((namespace, found)) = self.open_call(namespace_no, first_seq)? else {
                continue;
            };
            let mut after = Some(found.known.call.clone());
            change(&mut after);
            if let Some(after) = after.filter(|after| *after != found.known.call) {
                let target = call_ref(&found)?.clone();
                self.write_call(&namespace, found.run_no, &target, Some(&found), &after)?;
            }
        }
        Ok(())
    }

    fn open_call(
        &self,
        namespace_no: u32,
        first_seq: u64,
    ) -> Result<Option<(Namespace, Found)>, StorageError> {
        let key = OpenKey::open(namespace_no, first_seq);
        let row = match self.tables.open_calls.get(key.as_slice())? {
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
