//! Reads: a consistent view of the ledger at one moment. It never meets the writer.
//!
//! Keep snapshots short: while one lives, the space that it sees cannot be used again.

mod pages;
mod reading;

use std::sync::Arc;

use recibo_core::decision::{Decision, Moment};
use recibo_core::effect::{Policy, Terms};
use recibo_core::event::{Body, Event, Facts, Owner};
use recibo_core::id::{CallRef, Namespace, OperationKey, RunId, ScopeId};
use recibo_core::plan::{self, Twin};
use recibo_core::receipt::{IdempotencyKey, Token};
use recibo_core::record::Record;
use recibo_core::status::{CallState, ResolvedAs, ScopeEnd};
use recibo_core::time::Time;
use recibo_core::tree::{Frontier, Hash};
use redb::ReadableTable;

pub(crate) use reading::Latest;

pub use pages::{CallFilter, CallPage, ReceiptLine, ReceiptPage, RunSummary};

use crate::clock::LedgerClock;
use crate::codec::{NamespaceRow, ScopeRow, StoredEvent, decode_event, leaf_of, namespace_of};
use crate::error::StorageError;
use crate::etag;
use crate::hash_index::{Key, Kind};
use crate::keyring::Keyring;
use crate::lookup::{Alike, Found, Fresh, Lookup, number};
use crate::tables;
use reading::{Bytes, Reading, Seqs};

/// A view of the ledger at one moment.
pub struct Snapshot {
    reading: Arc<Reading>,
    keyring: Keyring,
    moment: Moment,
}

/// A whole call.
#[derive(Clone, Debug)]
pub struct CallView {
    /// The call.
    pub call: CallRef,
    /// As its first attempt froze it.
    pub facts: Facts,
    /// Its state now.
    pub state: CallState,
    /// Whether its evidence contradicts itself.
    pub conflict: bool,
    /// Names the effect to the outside service.
    pub idempotency_key: IdempotencyKey,
    /// Number of its last event.
    pub version: u64,
    /// Changes with every event, and when a lease ends.
    pub etag: String,
    /// All attempts, in order.
    pub records: Vec<Record>,
    /// What the table says now.
    pub decision: Decision,
    /// Where the key window of a keyed call ends.
    pub key_window_ends_at: Option<Time>,
    /// Its resolutions, in order, the newest [`recibo_core::limits::CHECKS_SHOWN_MAX`].
    pub resolutions: Vec<ResolutionMark>,
}

/// An operator's word on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolutionMark {
    /// As what.
    pub state: ResolvedAs,
    /// In the operator's words, masked.
    pub reason: String,
    /// Ledger time.
    pub at: Time,
    /// Id of the API key that said so; `None` in ledgers that did not keep it.
    pub by: Option<String>,
    /// Its event.
    pub seq: u64,
    /// The resolution that it corrects.
    pub corrects: Option<u64>,
}

impl CallView {
    /// Number of the call's first event, which is its place in ledger order.
    pub fn first_seq(&self) -> u64 {
        self.records.first().map_or(self.version, |first| first.started_seq)
    }
}

/// What the table says of a call, and what it rests on.
#[derive(Clone, Debug)]
pub struct DecisionView {
    /// What the table says.
    pub decision: Decision,
    /// Names the effect to the outside service.
    pub idempotency_key: IdempotencyKey,
    /// Frozen by the first attempt; `None` for an absent call.
    pub terms: Option<Terms>,
    /// Where the key window of a keyed call ends.
    pub key_window_ends_at: Option<Time>,
    /// The attempt that decides; `None` for an absent call.
    pub record: Option<Box<Record>>,
    /// Where the call stands; `None` for an absent call.
    pub etag: Option<String>,
    /// The other call that does the same and matters most; `None` for an absent call, of which
    /// nobody knows what it does.
    pub twin: Option<Twin>,
}

/// Whether a scope's key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeState {
    /// It lives.
    Open,
    /// It was wiped: the scope was closed, or its time was over.
    Closed,
    /// It went with the process that made it.
    Gone,
}

/// What is known of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeView {
    /// Its id.
    pub scope_id: ScopeId,
    /// Whether its key lives.
    pub state: ScopeState,
    /// The caller's name for it, masked.
    pub label: Option<String>,
    /// When it was opened.
    pub opened_at: Time,
    /// When its key would have been wiped at the latest.
    pub expires_at: Time,
    /// When it was closed.
    pub closed_at: Option<Time>,
}

/// What became of recomputing a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The key lives and the receipt is the record's.
    Good,
    /// The key lives and the receipt is not the record's.
    Bad,
    /// The key is gone.
    KeyGone,
}

/// Size and root of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// Number of events.
    pub size: u64,
    /// Root hash over all of them.
    pub root: Hash,
}

impl Snapshot {
    pub(crate) fn new(
        reading: Arc<Reading>,
        keyring: Keyring,
        clock: &LedgerClock,
        before: Time,
    ) -> Self {
        // Read after the transaction began, so that no event of the snapshot is later.
        let committed_ms = reading.head.mark.map_or(reading.head.last_at_ms, |mark| mark.at_ms);
        let latest = Time::from_ms(before.ms().saturating_sub(1).max(committed_ms));
        let now = clock.now().min(latest);
        let void = reading.head.key_windows_void_until_ms;
        let moment =
            Moment { now, key_windows_void_until: (void > 0).then(|| Time::from_ms(void)) };
        Self { reading, keyring, moment }
    }

    /// Ledger time of this snapshot.
    pub fn now(&self) -> Time {
        self.moment.now
    }

    /// Size and root of the log.
    pub fn log_head(&self) -> Result<LogHead, StorageError> {
        let frontier =
            Frontier::from_parts(self.reading.head.size, self.reading.head.frontier.clone())
                .map_err(|_| StorageError::Inconsistent("the frontier does not fit the size"))?;
        Ok(LogHead { size: self.reading.head.size, root: frontier.root() })
    }

    fn lookup(&self) -> Lookup<'_, Bytes, Seqs> {
        Lookup {
            run_ids: &self.reading.run_ids,
            runs: &self.reading.runs,
            events: &self.reading.events,
            wide_twins: &self.reading.wide_twins,
            fresh: Fresh::NONE,
        }
    }

    fn namespace(&self, namespace: &Namespace) -> Result<Option<NamespaceRow>, StorageError> {
        let value = self.reading.namespaces.get(namespace.as_str().as_bytes())?;
        Ok(value.map(|value| NamespaceRow::decode(value.value())).transpose()?)
    }

    fn find(&self, namespace: &Namespace, call: &CallRef) -> Result<Option<Found>, StorageError> {
        match self.namespace(namespace)? {
            Some(row) => self.lookup().call(row.no, call),
            None => Ok(None),
        }
    }

    /// A whole call.
    pub fn call(
        &self,
        namespace: &Namespace,
        call: &CallRef,
    ) -> Result<Option<CallView>, StorageError> {
        self.find(namespace, call)?.map(|found| self.view(namespace, found)).transpose()
    }

    fn view(&self, namespace: &Namespace, found: Found) -> Result<CallView, StorageError> {
        let lookup = self.lookup();
        let (call, _) =
            found.first.body.call().ok_or(StorageError::Inconsistent("a call opens oddly"))?;
        let tip = &found.known.call.tip;
        let older = lookup.all_older(found.run_no, call.tool_call_id.as_str(), tip)?;
        let attempts = older.iter().chain([&tip.newest]);
        let records: Vec<Record> = attempts
            .map(|attempt| lookup.record_of(namespace, &found, attempt, self.now()))
            .collect::<Result<_, _>>()?;
        Ok(CallView {
            call: call.clone(),
            state: tip.state(self.now()),
            conflict: tip.conflict,
            idempotency_key: IdempotencyKey::of(namespace, call),
            version: tip.version,
            etag: etag::of(tip, self.now()),
            decision: found.known.decision(&self.moment),
            key_window_ends_at: tip.key_window_end(),
            resolutions: lookup.resolutions(&tip.resolutions)?,
            facts: found.known.facts.clone(),
            records,
        })
    }

    /// One attempt. `None` if there is no such call; `Some(None)` if it has no such attempt.
    pub fn attempt(
        &self,
        namespace: &Namespace,
        call: &CallRef,
        number: u32,
    ) -> Result<Option<Option<Record>>, StorageError> {
        let Some(found) = self.find(namespace, call)? else { return Ok(None) };
        let tip = &found.known.call.tip;
        let attempt =
            self.lookup().attempt(found.run_no, call.tool_call_id.as_str(), tip, number)?;
        let record =
            attempt.map(|attempt| self.lookup().record_of(namespace, &found, &attempt, self.now()));
        Ok(Some(record.transpose()?))
    }

    /// What the table says of a call; also of one that is not known. Costs the same however
    /// many attempts the call has.
    pub fn decision(
        &self,
        namespace: &Namespace,
        call: &CallRef,
    ) -> Result<DecisionView, StorageError> {
        let idempotency_key = IdempotencyKey::of(namespace, call);
        let Some(found) = self.find(namespace, call)? else {
            let decision = recibo_core::decision::decide(None, &self.moment);
            return Ok(DecisionView {
                decision,
                idempotency_key,
                terms: None,
                key_window_ends_at: None,
                record: None,
                etag: None,
                twin: None,
            });
        };
        let tip = &found.known.call.tip;
        let lookup = self.lookup();
        let attempt = lookup.deciding(found.run_no, call.tool_call_id.as_str(), tip)?;
        let facts = &found.known.facts;
        let namespace_no = found.first.owner.map(|owner| owner.namespace_no);
        let twins = lookup.twins(&Alike {
            of: call,
            tool: &facts.tool,
            twin_hash: facts.twin_hash(),
            scope: facts.twin_scope,
            namespace_no: namespace_no
                .ok_or(StorageError::Inconsistent("an event is of no namespace"))?,
            run_no: Some(found.run_no),
        })?;
        Ok(DecisionView {
            terms: Some(facts.terms),
            key_window_ends_at: tip.key_window_end(),
            decision: found.known.decision(&self.moment),
            idempotency_key,
            record: Some(Box::new(lookup.record_of(namespace, &found, &attempt, self.now())?)),
            etag: Some(etag::of(tip, self.now())),
            twin: plan::telling(&twins, self.now()),
        })
    }

    /// The call that an idempotency key or an operation key names.
    pub fn call_by_key(
        &self,
        namespace: &Namespace,
        key: &str,
    ) -> Result<Option<CallRef>, StorageError> {
        let first_seq = if let Ok(key) = key.parse::<IdempotencyKey>() {
            return self.call_by_idempotency_key(namespace, &key);
        } else if let Ok(key) = OperationKey::parse(key) {
            let Some(row) = self.namespace(namespace)? else { return Ok(None) };
            let table = self.reading.txn.open_table(tables::OPERATION_KEYS)?;
            let key = tables::under(row.no, key.as_str());
            table.get(key.as_slice())?.map(|value| number(value.value())).transpose()?
        } else {
            None
        };
        let Some(first_seq) = first_seq else { return Ok(None) };
        let first = self.lookup().event(first_seq)?;
        let is_own = self
            .namespace(namespace)?
            .is_some_and(|row| first.owner.is_some_and(|owner| owner.namespace_no == row.no));
        Ok(first.body.call().filter(|_| is_own).map(|(call, _)| call.clone()))
    }

    fn call_by_idempotency_key(
        &self,
        namespace: &Namespace,
        key: &IdempotencyKey,
    ) -> Result<Option<CallRef>, StorageError> {
        let rows = self.reading.txn.open_table(tables::HASH_INDEX)?;
        let prefix = Key::new(Kind::IdempotencyKey, key.as_bytes());
        self.reading.hash_index.find_map(&rows, prefix, |first_seq| {
            // The index may be ahead of this snapshot.
            let Some(value) = self.reading.events.get(first_seq)? else { return Ok(None) };
            let event = decode_event(value.value())?;
            // The namespace is part of the key, so an equal key is the caller's own.
            let call = event.body.call().map(|(call, _)| call);
            Ok(call.filter(|call| IdempotencyKey::of(namespace, call) == *key).cloned())
        })
    }

    /// The record that holds a receipt. Receipts are found through their second: events stand
    /// in the order of their time, so those of one second are a range.
    pub fn receipt(
        &self,
        namespace: &Namespace,
        token: &Token,
    ) -> Result<Option<Record>, StorageError> {
        let Some(row) = self.namespace(namespace)? else { return Ok(None) };
        let Some(second_ms) = token.epoch.checked_mul(1000) else { return Ok(None) };
        let first = self.first_at_or_after(Time::from_ms(second_ms))?;
        for entry in self.reading.events.range(first..)? {
            let (_, value) = entry?;
            let (namespace_no, at) = namespace_of(value.value())?;
            if at.epoch_s() != token.epoch {
                break;
            }
            // Reading the digest's bytes first spares decoding every event of a busy second.
            let holds = value.value().windows(32).any(|bytes| bytes == token.digest);
            if namespace_no != row.no || !holds {
                continue;
            }
            let event = decode_event(value.value())?;
            if event.body.token() == Some(token)
                && let Some((call, attempt)) = event.body.call()
                && let Some(Some(record)) = self.attempt(namespace, call, attempt)?
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The first event at or after a time, by binary search.
    fn first_at_or_after(&self, time: Time) -> Result<u64, StorageError> {
        let (mut low, mut high) = (0, self.reading.head.size);
        while low < high {
            let middle = low + (high - low) / 2;
            let value = self.reading.events.get(middle)?;
            let value = value.ok_or(StorageError::Inconsistent("an event is missing"))?;
            if namespace_of(value.value())?.1 < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Recomputes a record's receipt, if its key lives.
    pub fn check_signature(&self, namespace: &Namespace, record: &Record) -> SignatureCheck {
        let (Some(token), Some(output_hash)) = (&record.token, &record.output_hash) else {
            return SignatureCheck::KeyGone;
        };
        let Some(scope) = self.keyring.get(namespace, &record.scope_id, self.now()) else {
            return SignatureCheck::KeyGone;
        };
        let fields = recibo_core::receipt::SignedFields {
            tool: record.tool.as_str(),
            input_hash: &record.input_hash,
            output_hash,
            timestamp: token.epoch,
            namespace: namespace.as_str(),
            run_id: record.call.run_id.as_str(),
            tool_call_id: record.call.tool_call_id.as_str(),
            attempt: record.attempt,
            scope_id: record.scope_id.as_str(),
        };
        if scope.key.verify(token, &fields) { SignatureCheck::Good } else { SignatureCheck::Bad }
    }

    /// What is known of a scope.
    pub fn scope(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
    ) -> Result<Option<ScopeView>, StorageError> {
        let Some(own) = self.namespace(namespace)? else { return Ok(None) };
        let table = self.reading.txn.open_table(tables::SCOPES)?;
        let row = match table.get(scope_id.as_str().as_bytes())? {
            Some(value) => ScopeRow::decode(value.value())?,
            None => return Ok(None),
        };
        if row.namespace_no != own.no {
            return Ok(None);
        }
        let opened = self.lookup().event(row.opened_seq)?;
        let closed = row.closed_seq.map(|seq| self.lookup().event(seq)).transpose()?;
        let Body::ScopeOpened(scope) = opened.body else {
            return Err(StorageError::Inconsistent("a scope opens oddly"));
        };
        let (state, closed_at) = self.scope_state(namespace, &scope, closed.as_ref());
        Ok(Some(ScopeView {
            scope_id: scope_id.clone(),
            state,
            label: scope.label,
            opened_at: opened.at,
            expires_at: scope.expires_at,
            closed_at,
        }))
    }

    /// A scope whose time is over reads as closed even if no event says so yet.
    fn scope_state(
        &self,
        namespace: &Namespace,
        scope: &recibo_core::event::ScopeOpened,
        closed: Option<&StoredEvent>,
    ) -> (ScopeState, Option<Time>) {
        match closed {
            Some(event) => {
                let expired =
                    matches!(event.body, Body::ScopeClosed { end: ScopeEnd::Expired, .. });
                (ScopeState::Closed, Some(if expired { scope.expires_at } else { event.at }))
            }
            None if self.keyring.get(namespace, &scope.scope_id, self.now()).is_some() => {
                (ScopeState::Open, None)
            }
            None if scope.expires_at <= self.now() => (ScopeState::Closed, Some(scope.expires_at)),
            None => (ScopeState::Gone, None),
        }
    }

    /// The effect policy in force, and the event that set it.
    pub fn policy(&self, namespace: &Namespace) -> Result<(Policy, Option<u64>), StorageError> {
        let seq = self.namespace(namespace)?.and_then(|row| row.policy_seq);
        match seq {
            None => Ok((Policy::default(), None)),
            Some(seq) => match self.lookup().event(seq)?.body {
                Body::PolicySet { policy } => Ok((policy, Some(seq))),
                _ => Err(StorageError::Inconsistent("a policy is no policy")),
            },
        }
    }

    /// The events of a call, oldest first, at most `limit` of the newest ones.
    pub fn story(
        &self,
        namespace: &Namespace,
        call: &CallRef,
        limit: usize,
    ) -> Result<Vec<Event>, StorageError> {
        let Some(found) = self.find(namespace, call)? else { return Ok(Vec::new()) };
        let mut next = Some(found.known.call.tip.version);
        let mut events = Vec::new();
        while let Some(seq) = next.filter(|_| events.len() < limit) {
            let stored = self.lookup().event(seq)?;
            next = stored.before;
            events.push(event_of(seq, Some(namespace.clone()), stored));
        }
        events.reverse();
        Ok(events)
    }

    /// One event and its leaf hash, of whatever namespace, for checks of the file.
    pub fn event(&self, seq: u64) -> Result<Option<(Event, Hash)>, StorageError> {
        let Some(value) = self.reading.events.get(seq)? else { return Ok(None) };
        let leaf = leaf_of(value.value())?;
        let stored = decode_event(value.value())?;
        let namespace = stored.owner.map(|owner| self.name_of(owner.namespace_no)).transpose()?;
        Ok(Some((event_of(seq, namespace, stored), leaf)))
    }

    /// The name of a namespace by its number. Reads all of them.
    fn name_of(&self, namespace_no: u32) -> Result<Namespace, StorageError> {
        for entry in self.reading.namespaces.iter()? {
            let (key, value) = entry?;
            if NamespaceRow::decode(value.value())?.no == namespace_no {
                let name = std::str::from_utf8(key.value()).ok();
                let name = name.and_then(|text| Namespace::parse(text).ok());
                return name.ok_or(StorageError::Inconsistent("a namespace is no name"));
            }
        }
        Err(StorageError::Inconsistent("a namespace number without a name"))
    }
}

fn event_of(seq: u64, namespace: Option<Namespace>, stored: StoredEvent) -> Event {
    let owner = namespace.zip(stored.owner);
    Event {
        seq,
        at: stored.at,
        owner: owner.map(|(namespace, owner)| Owner { namespace, nseq: owner.nseq }),
        salt: stored.salt,
        body: stored.body,
    }
}

/// Used by the pages.
pub(crate) fn run_of(
    snapshot: &Snapshot,
    namespace: &Namespace,
    run_id: &RunId,
) -> Result<Option<u64>, StorageError> {
    match snapshot.namespace(namespace)? {
        Some(row) => snapshot.lookup().run_no(row.no, run_id),
        None => Ok(None),
    }
}
