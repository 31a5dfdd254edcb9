//! One write transaction: look up, decide with pure code, append. What is decided for one
//! draft is seen by the next, since lookups read the transaction's own writes.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use recibo_core::call::Call;
use recibo_core::decision::Moment;
use recibo_core::effect::{Policy, TwinScope};
use recibo_core::event::Body;
use recibo_core::hash::sha256;
use recibo_core::id::{CallRef, Namespace, RunId, ScopeId};
use recibo_core::lease::LeaseSecret;
use recibo_core::plan::{Place, Plan};
use recibo_core::receipt::IdempotencyKey;
use recibo_core::status::CallState;
use recibo_core::time::Time;
use recibo_core::tree::Frontier;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::api_key::ApiKeys;
use crate::codec::{
    AttemptRow, ClockMark, Head, NamespaceRow, OpenCallRow, StoredEvent, StoredOwner, TipRow,
};
use crate::error::StorageError;
use crate::hash_index::{HashIndex, Key, Kind};
use crate::keyring::Keyring;
use crate::lookup::{Found, Fresh, Lookup, twin_digest};
use crate::policies::Policies;
use crate::seal::seal;
use crate::tables::{self, EARLY_CALLS, OpenKey, RunKey, TableKey};

/// Random bytes for salts, keys and ids.
pub type Entropy = Box<dyn FnMut(&mut [u8]) + Send>;

/// What the writer keeps between batches. If a commit fails it is wrong, and the writer stops.
pub(crate) struct WriterState {
    pub(crate) head: Head,
    pub(crate) frontier: Frontier,
    pub(crate) hash_index: HashIndex,
    pub(crate) namespaces: HashMap<Namespace, NamespaceState>,
    /// Their names by number.
    pub(crate) namespace_names: Vec<Namespace>,
    /// Ends of the leases of open attempts, with the first seq of their call and the number of
    /// its namespace.
    pub(crate) leases: BTreeSet<(Time, u64, u32)>,
    pub(crate) runs: LiveRuns,
    pub(crate) keyring: Keyring,
    pub(crate) api_keys: ApiKeys,
    pub(crate) policies: Policies,
    pub(crate) lease_secret: LeaseSecret,
    pub(crate) entropy: Entropy,
}

/// The runs that were written to lately: live ones are asked for again and again. What is kept of
/// one follows what is committed; a batch that fails ends the writer.
#[derive(Default)]
pub(crate) struct LiveRuns(HashMap<(u32, RunId), LiveRun>);

struct LiveRun {
    no: u64,
    /// Its calls, counted up to [`EARLY_CALLS`]; not known before the first new one.
    calls: Option<usize>,
}

impl LiveRuns {
    /// About 100 bytes each.
    const MAX: usize = 8192;

    fn get(&mut self, namespace_no: u32, run_id: &RunId) -> Option<&mut LiveRun> {
        // The clone shares the text.
        self.0.get_mut(&(namespace_no, run_id.clone()))
    }

    fn put(&mut self, namespace_no: u32, run_id: RunId, run: LiveRun) {
        if self.0.len() >= Self::MAX {
            self.0.clear();
        }
        self.0.insert((namespace_no, run_id), run);
    }
}

/// A namespace's row, and its policy in force.
pub(crate) struct NamespaceState {
    pub(crate) row: NamespaceRow,
    pub(crate) policy: Arc<Policy>,
    pub(crate) is_changed: bool,
}

type Bytes<'t> = Table<'t, &'static [u8], &'static [u8]>;
type Seqs<'t> = Table<'t, u64, &'static [u8]>;

pub(crate) struct Tables<'t> {
    pub(crate) events: Seqs<'t>,
    pub(crate) nodes: Bytes<'t>,
    pub(crate) namespaces: Bytes<'t>,
    pub(crate) run_ids: Bytes<'t>,
    pub(crate) runs: Bytes<'t>,
    pub(crate) open_calls: Bytes<'t>,
    pub(crate) wide_twins: Bytes<'t>,
    pub(crate) operation_keys: Bytes<'t>,
    pub(crate) scopes: Bytes<'t>,
    pub(crate) api_keys: Bytes<'t>,
}

impl<'t> Tables<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction) -> Result<Self, StorageError> {
        Ok(Self {
            events: txn.open_table(tables::EVENTS)?,
            nodes: txn.open_table(tables::NODES)?,
            namespaces: txn.open_table(tables::NAMESPACES)?,
            run_ids: txn.open_table(tables::RUN_IDS)?,
            runs: txn.open_table(tables::RUNS)?,
            open_calls: txn.open_table(tables::OPEN_CALLS)?,
            wide_twins: txn.open_table(tables::WIDE_TWINS)?,
            operation_keys: txn.open_table(tables::OPERATION_KEYS)?,
            scopes: txn.open_table(tables::SCOPES)?,
            api_keys: txn.open_table(tables::API_KEYS)?,
        })
    }
}

/// One transaction under way.
pub(crate) struct Batch<'t, 's> {
    pub(crate) tables: Tables<'t>,
    pub(crate) state: &'s mut WriterState,
    pub(crate) moment: Moment,
    /// Number of the first event of this batch.
    from: u64,
    /// Its events. They are written at the end, all at once: their lines and hashes can be
    /// made side by side, and their keys ascend.
    appended: Vec<StoredEvent>,
    changed_namespaces: Vec<Namespace>,
    /// Scopes that this batch closes: for it they are closed now, for readers once it is durable.
    pub(crate) closing: Vec<ScopeId>,
}

impl<'t, 's> Batch<'t, 's> {
    pub(crate) fn begin(tables: Tables<'t>, state: &'s mut WriterState, moment: Moment) -> Self {
        let from = state.head.size;
        let (appended, changed_namespaces, closing) = Default::default();
        Self { tables, state, moment, from, appended, changed_namespaces, closing }
    }

    pub(crate) fn lookup(&self) -> Lookup<'_, Bytes<'t>, Seqs<'t>> {
        let Tables { run_ids, runs, events, wide_twins, .. } = &self.tables;
        let fresh = Fresh { from: self.from, events: &self.appended };
        Lookup { run_ids, runs, events, wide_twins, fresh }
    }

    pub(crate) fn now(&self) -> Time {
        self.moment.now
    }

    pub(crate) fn place(&self) -> Place {
        Place { seq: self.state.head.size, moment: self.moment }
    }

    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.state.entropy)(&mut bytes);
        bytes
    }

    /// The namespace's state; a new namespace gets a number, and its row with its first event.
    pub(crate) fn namespace(&mut self, namespace: &Namespace) -> &mut NamespaceState {
        let (head, names) = (&mut self.state.head, &mut self.state.namespace_names);
        self.state.namespaces.entry(namespace.clone()).or_insert_with(|| {
            let no = head.next_namespace_no;
            head.next_namespace_no += 1;
            names.push(namespace.clone());
            NamespaceState {
                row: NamespaceRow { no, next_nseq: 0, policy_seq: None },
                policy: Arc::default(),
                is_changed: false,
            }
        })
    }

    /// The number of a namespace that has one.
    pub(crate) fn namespace_no(&self, namespace: &Namespace) -> Option<u32> {
        self.state.namespaces.get(namespace).map(|state| state.row.no)
    }

    pub(crate) fn policy(&self, namespace: &Namespace) -> Arc<Policy> {
        self.state.namespaces.get(namespace).map(|state| state.policy.clone()).unwrap_or_default()
    }

    pub(crate) fn find(
        &mut self,
        namespace: &Namespace,
        call: &CallRef,
    ) -> Result<Option<Found>, StorageError> {
        let Some(namespace_no) = self.namespace_no(namespace) else { return Ok(None) };
        match self.known_run(namespace_no, &call.run_id)? {
            Some(run_no) => self.lookup().call_in(run_no, call.tool_call_id.as_str()),
            None => Ok(None),
        }
    }

    /// Appends one event and gives its number.
    pub(crate) fn append(&mut self, namespace: &Namespace, before: Option<u64>, body: Body) -> u64 {
        let of_namespace = self.namespace(namespace);
        let (nseq, namespace_no) = (of_namespace.row.next_nseq, of_namespace.row.no);
        of_namespace.row.next_nseq += 1;
        if !std::mem::replace(&mut of_namespace.is_changed, true) {
            self.changed_namespaces.push(namespace.clone());
        }
        self.append_owned(Some(StoredOwner { namespace_no, nseq }), before, body)
    }

    /// Appends an event of the whole ledger.
    pub(crate) fn append_for_all(&mut self, body: Body) -> u64 {
        self.append_owned(None, None, body)
    }

    fn append_owned(&mut self, owner: Option<StoredOwner>, before: Option<u64>, body: Body) -> u64 {
        let seq = self.state.head.size;
        assert!(seq < tables::NUMBER_MAX, "no disk holds so many events");
        let at = self.now();
        let salt = self.random();
        self.appended.push(StoredEvent { at, owner, before, salt, body });
        self.state.head.size += 1;
        self.state.head.last_at_ms = at.ms();
        seq
    }

    /// Appends what a plan holds and writes the rows of its call.
    pub(crate) fn carry_out(
        &mut self,
        namespace: &Namespace,
        found: Option<&Found>,
        plan: Plan,
    ) -> Result<(), StorageError> {
        let Some(call) = plan.call else { return Ok(()) };
        let mut before = found.map(|found| found.known.call.tip.version);
        let target = plan.bodies.first().and_then(|body| body.call()).map(|(call, _)| call.clone());
        let target = target.ok_or(StorageError::Inconsistent("a plan without a call"))?;
        let run_no = match found {
            Some(found) => found.run_no,
            None => {
                let facts = plan.bodies.iter().find_map(Body::facts);
                let facts = facts.ok_or(StorageError::Inconsistent("a call without a start"))?;
                self.enter(namespace, &target, facts, call.tip.first_seq)?
            }
        };
        for body in plan.bodies {
            before = Some(self.append(namespace, before, body));
        }
        self.write_call(namespace, run_no, &target, found, &call)
    }

    /// Enters a new call into the indexes.
    fn enter(
        &mut self,
        namespace: &Namespace,
        call: &CallRef,
        facts: &recibo_core::event::Facts,
        first_seq: u64,
    ) -> Result<u64, StorageError> {
        let namespace_no = self.namespace(namespace).row.no;
        let run_no = self.run_no(namespace_no, call)?;
        let digest = twin_digest(&facts.tool, facts.twin_hash());
        let order = RunKey::order(run_no, first_seq);
        if self.count_call(namespace_no, &call.run_id, run_no)? {
            self.tables.runs.insert(order.as_slice(), digest.as_slice())?;
        } else {
            self.tables.runs.insert(order.as_slice(), &[][..])?;
            let twin = RunKey::twin(run_no, &digest, first_seq);
            self.tables.runs.insert(twin.as_slice(), &[][..])?;
        }
        if facts.twin_scope == TwinScope::Namespace {
            let key = tables::wide_twin(namespace_no, &digest, first_seq);
            self.tables.wide_twins.insert(key.as_slice(), run_no.to_be_bytes().as_slice())?;
        }
        self.state.hash_index.insert(idempotency_entry(namespace, call), first_seq);
        if let Some(key) = &facts.operation_key {
            let key = tables::under(namespace_no, key.as_str());
            self.tables
                .operation_keys
                .insert(key.as_slice(), first_seq.to_be_bytes().as_slice())?;
        }
        Ok(run_no)
    }

    fn run_no(&mut self, namespace_no: u32, call: &CallRef) -> Result<u64, StorageError> {
        if let Some(run_no) = self.known_run(namespace_no, &call.run_id)? {
            return Ok(run_no);
        }
        let run_no = self.state.head.next_run_no;
        self.state.head.next_run_no += 1;
        let key = tables::under(namespace_no, call.run_id.as_str());
        self.tables.run_ids.insert(key.as_slice(), run_no.to_be_bytes().as_slice())?;
        let run = LiveRun { no: run_no, calls: Some(0) };
        self.state.runs.put(namespace_no, call.run_id.clone(), run);
        Ok(run_no)
    }

    /// Counts a new call of a run; says whether it is one of the early ones.
    fn count_call(
        &mut self,
        namespace_no: u32,
        run_id: &RunId,
        run_no: u64,
    ) -> Result<bool, StorageError> {
        let known = self.state.runs.get(namespace_no, run_id).and_then(|run| run.calls);
        let calls = match known {
            Some(calls) => calls,
            None => self.lookup().early_calls(run_no)?,
        };
        let is_early = calls < EARLY_CALLS;
        if let Some(run) = self.state.runs.get(namespace_no, run_id) {
            run.calls = Some(calls + usize::from(is_early));
        }
        Ok(is_early)
    }

    /// The number of a run that has one.
    pub(crate) fn known_run(
        &mut self,
        namespace_no: u32,
        run_id: &RunId,
    ) -> Result<Option<u64>, StorageError> {
        if let Some(run) = self.state.runs.get(namespace_no, run_id) {
            return Ok(Some(run.no));
        }
        let run_no = self.lookup().run_no(namespace_no, run_id)?;
        if let Some(no) = run_no {
            self.state.runs.put(namespace_no, run_id.clone(), LiveRun { no, calls: None });
        }
        Ok(run_no)
    }

    pub(crate) fn write_call(
        &mut self,
        namespace: &Namespace,
        run_no: u64,
        target: &CallRef,
        found: Option<&Found>,
        call: &Call,
    ) -> Result<(), StorageError> {
        let id = target.tool_call_id.as_str();
        let tip = &call.tip;
        let newest_before = found.map(|found| found.known.call.tip.newest.number);
        for attempt in call.older.values() {
            if newest_before == Some(attempt.number) {
                let origin = origin(&self.lookup().event(attempt.started_seq)?.body);
                let key = RunKey::origin(run_no, id, origin, attempt.number);
                self.tables.runs.insert(key.as_slice(), &[][..])?;
            }
            let key = RunKey::attempt(run_no, id, attempt.number);
            let row = AttemptRow::encode(attempt, tip);
            self.tables.runs.insert(key.as_slice(), row.as_slice())?;
        }
        let key = RunKey::call(run_no, id);
        self.tables.runs.insert(key.as_slice(), TipRow::encode(tip).as_slice())?;
        let namespace_no = self.namespace(namespace).row.no;
        self.track_lease(namespace_no, found.map(|found| &found.known.call), call);
        self.track_open(namespace, run_no, target, found, call)
    }

    fn track_lease(&mut self, namespace_no: u32, before: Option<&Call>, after: &Call) {
        let open_end = |call: &Call| {
            let newest = &call.tip.newest;
            newest.lease_expires_at().filter(|_| newest.is_open())
        };
        let (before, after_end) = (before.and_then(open_end), open_end(after));
        if before == after_end {
            return;
        }
        if let Some(end) = before {
            self.state.leases.remove(&(end, after.tip.first_seq, namespace_no));
        }
        if let Some(end) = after_end {
            self.state.leases.insert((end, after.tip.first_seq, namespace_no));
        }
    }

    /// Keeps the calls that are open or unknown listed.
    fn track_open(
        &mut self,
        namespace: &Namespace,
        run_no: u64,
        target: &CallRef,
        found: Option<&Found>,
        call: &Call,
    ) -> Result<(), StorageError> {
        let before = found.and_then(|found| Listed::of(&found.known.call, self.now()));
        let after = Listed::of(call, self.now());
        if before == after {
            return Ok(());
        }
        let first_seq = call.tip.first_seq;
        let namespace_no = self.namespace(namespace).row.no;
        if let Some(before) = before {
            self.tables.open_calls.remove(before.key(namespace_no, first_seq).as_slice())?;
        }
        if let Some(after) = after {
            let row = OpenCallRow {
                namespace_no,
                run_no,
                tool_call_id: target.tool_call_id.as_str().to_owned(),
                lease_end_ms: after.lease_end_ms(),
            };
            let key = after.key(namespace_no, first_seq);
            self.tables.open_calls.insert(key.as_slice(), row.encode().as_slice())?;
        }
        Ok(())
    }

    /// Writes the events, and what every commit writes: the head with the time, the namespaces
    /// that changed, and a share of the index's upkeep. Gives the scopes whose keys are to be
    /// wiped once the commit is durable.
    pub(crate) fn finish(
        mut self,
        txn: &WriteTransaction,
        mark: ClockMark,
    ) -> Result<Vec<ScopeId>, StorageError> {
        self.state.head.mark = Some(mark);
        self.write_events()?;
        for name in &self.changed_namespaces {
            let Some(namespace) = self.state.namespaces.get_mut(name) else { continue };
            namespace.is_changed = false;
            let row = namespace.row.encode();
            self.tables.namespaces.insert(name.as_str().as_bytes(), row.as_slice())?;
        }
        self.state.hash_index.maintain(txn, self.state.head.size)?;
        self.state.head.frontier = self.state.frontier.nodes().to_vec();
        let mut meta = txn.open_table(tables::META)?;
        meta.insert(tables::HEAD_KEY, self.state.head.encode().as_slice())?;
        Ok(self.closing)
    }

    fn write_events(&mut self) -> Result<(), StorageError> {
        // At the end of the table, without going down the tree each time. A cursor overwrites
        // nothing: a number that is taken is an error.
        let mut end = self.tables.events.upper_bound_mut(Bound::<u64>::Unbounded)?;
        let mut seq = self.from;
        for part in seal(self.from, &self.appended, &self.state.namespace_names) {
            for (leaf, bytes) in part.events() {
                end.insert_before(seq, bytes)?;
                let mut nodes = Vec::new();
                self.state.frontier.push(leaf, |level, index, hash| {
                    nodes.push((tables::node(level, index), hash));
                });
                for (key, hash) in nodes {
                    self.tables.nodes.insert(key.as_slice(), hash.as_slice())?;
                }
                seq += 1;
            }
        }
        end.close()?;
        Ok(())
    }

    /// The call whose first event this is.
    pub(crate) fn call_of(&self, first_seq: u64) -> Result<Option<CallRef>, StorageError> {
        let event = self.lookup().event(first_seq)?;
        Ok(event.body.call().map(|(call, _)| call.clone()))
    }

    /// The call that holds an operation key.
    pub(crate) fn holder_of(
        &self,
        namespace: &Namespace,
        key: &recibo_core::id::OperationKey,
    ) -> Result<Option<CallRef>, StorageError> {
        let Some(no) = self.namespace_no(namespace) else { return Ok(None) };
        let key = tables::under(no, key.as_str());
        let first_seq = match self.tables.operation_keys.get(key.as_slice())? {
            Some(value) => crate::lookup::number(value.value())?,
            None => return Ok(None),
        };
        self.call_of(first_seq)
    }
}

/// How a call is listed among the open and unknown ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// Its newest attempt is open until then.
    Open(Time),
    /// It is unknown, and its newest attempt is over.
    Unknown,
}

impl Listed {
    fn of(call: &Call, now: Time) -> Option<Self> {
        let newest = &call.tip.newest;
        match newest.lease.map(|lease| lease.expires_at).filter(|_| newest.is_open()) {
            Some(end) => Some(Self::Open(end)),
            None => (call.tip.state(now) == CallState::Unknown).then_some(Self::Unknown),
        }
    }

    fn key(self, namespace_no: u32, first_seq: u64) -> TableKey {
        match self {
            Self::Open(_) => OpenKey::open(namespace_no, first_seq),
            Self::Unknown => OpenKey::unknown(namespace_no, first_seq),
        }
    }

    fn lease_end_ms(self) -> Option<u64> {
        match self {
            Self::Open(end) => Some(end.ms()),
            Self::Unknown => None,
        }
    }
}

/// What the hash index keeps of a new call. A start enters the same again, from the events.
pub(crate) fn idempotency_entry(namespace: &Namespace, call: &CallRef) -> Key {
    let key = IdempotencyKey::of(namespace, call);
    Key::new(Kind::IdempotencyKey, key.as_bytes())
}

/// A filter value for the claim or the one-shot that opened an attempt.
pub(crate) fn origin(opening: &Body) -> u64 {
    match opening {
        Body::Started(e) => claim_origin(e.claim_id.as_str()),
        Body::Recorded(e) => shot_origin(e.started_at, e.outcome.duration_ms),
        _ => 0,
    }
}

pub(crate) fn claim_origin(claim_id: &str) -> u64 {
    u64::from_be_bytes(first_eight(sha256(&[b"claim", claim_id.as_bytes()])))
}

pub(crate) fn shot_origin(started_at: Time, duration_ms: u64) -> u64 {
    let (start, duration) = (started_at.ms().to_be_bytes(), duration_ms.to_be_bytes());
    u64::from_be_bytes(first_eight(sha256(&[b"shot", &start, &duration])))
}

fn first_eight(hash: [u8; 32]) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    first
}
