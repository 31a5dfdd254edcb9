//! The handle that callers hold: it puts writes into the queue and opens snapshots.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use recibo_core::effect::Policy;
use recibo_core::id::{Namespace, ScopeId};
use recibo_core::plan::{Check, Claim, OneShot, Refusal, Renewal, Report, Resolution};
use recibo_core::time::Time;
use redb::Database;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::answer::{CheckedAnswer, ClaimAnswer, OpenedScope, RecordAnswer, RenewedAnswer};
use crate::api_key::{ApiKeyDraft, ApiKeyInfo, ApiKeys, Revoked};
use crate::batch::WriterState;
use crate::clock::LedgerClock;
use crate::command::{Command, Reply, WriteOp};
use crate::error::{ReadOnlyCause, StorageError, WriteError};
use crate::hash_index::Readers;
use crate::keyring::Keyring;
use crate::open::Access;
use crate::policies::Policies;
use crate::snapshot::{ScopeState, ScopeView, Snapshot};
use crate::writer::{Shared, Writer};

/// An open ledger. Clones share it; it closes when [`Store::close`] is called or the last
/// clone is dropped.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    db: Arc<Database>,
    clock: LedgerClock,
    keyring: Keyring,
    hash_index: Readers,
    api_keys: ApiKeys,
    policies: Policies,
    queue: mpsc::Sender<Command>,
    room: Arc<Semaphore>,
    queue_len_max: usize,
    access: Access,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A write under way: await it, or wait for it.
pub struct Pending<T>(State<T>);

enum State<T> {
    Waiting(oneshot::Receiver<Result<T, WriteError>>),
    Refused(Option<WriteError>),
}

impl<T> Pending<T> {
    /// Blocks until the write is durable or refused. Not for async code.
    pub fn wait(self) -> Result<T, WriteError> {
        match self.0 {
            State::Waiting(receiver) => {
                receiver.blocking_recv().unwrap_or(Err(WriteError::Stopped))
            }
            State::Refused(error) => Err(error.unwrap_or(WriteError::Stopped)),
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, WriteError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Waiting(receiver) => {
                Pin::new(receiver).poll(context).map(|got| got.unwrap_or(Err(WriteError::Stopped)))
            }
            State::Refused(error) => Poll::Ready(Err(error.take().unwrap_or(WriteError::Stopped))),
        }
    }
}

// A receiver may be moved while it is polled.
impl<T> Unpin for Pending<T> {}

impl Store {
    pub(crate) fn start(
        db: Database,
        state: WriterState,
        clock: LedgerClock,
        queue_len_max: usize,
        access: Access,
    ) -> Self {
        let db = Arc::new(db);
        // One more: closing needs no room.
        let (sender, queue) = mpsc::channel(queue_len_max + 1);
        let room = Arc::new(Semaphore::new(queue_len_max));
        let shared = Arc::new(Shared::default());
        shared.size.store(state.head.size, Ordering::SeqCst);
        shared.note_leases(&state);
        let (keyring, api_keys) = (state.keyring.clone(), state.api_keys.clone());
        let policies = state.policies.clone();
        let hash_index = state.hash_index.readers();
        let writer = Writer {
            db: db.clone(),
            state,
            clock: clock.clone(),
            queue,
            shared: shared.clone(),
            closed: Vec::new(),
        };
        let thread = (access == Access::Write).then(|| {
            std::thread::Builder::new()
                .name("recibo-writer".into())
                .spawn(move || writer.run())
                .expect("the system can start one thread")
        });
        let thread = Mutex::new(thread);
        let queue = sender;
        Self(Arc::new(Inner {
            db,
            clock,
            keyring,
            hash_index,
            api_keys,
            policies,
            queue,
            room,
            queue_len_max,
            access,
            shared,
            thread,
        }))
    }

    /// Ledger time.
    pub fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// The first end of a lease that is not durable: should the machine boot anew after it, the
    /// next start would take that lease for one that lives.
    /// `None` also where nothing can be made durable: on this boot, what is over is over for
    /// every later reader too.
    pub(crate) fn unmarked_lease_end(&self) -> Option<Time> {
        let end_ms = self.0.shared.unmarked_lease_end_ms.load(Ordering::SeqCst);
        let is_one = end_ms != u64::MAX && self.read_only_cause().is_none();
        is_one.then(|| Time::from_ms(end_ms))
    }

    /// Makes durable how late it is.
    pub(crate) fn mark(&self) -> Pending<()> {
        self.ask(&no_namespace(), |reply| WriteOp::Mark { reply })
    }

    /// A consistent view of what is durable now. Reads block: in async code, open and use
    /// snapshots on a blocking thread. Where a lease may be shown as over, take
    /// [`Store::settled`].
    pub fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.snapshot_before(None)
    }

    /// The same as of a time before `end`, where the newest commit is not later.
    pub(crate) fn snapshot_before(&self, end: Option<Time>) -> Result<Snapshot, StorageError> {
        let inner = &self.0;
        let end = end.unwrap_or(Time::from_ms(u64::MAX));
        let reading = inner.shared.latest.get(self.size(), &inner.db, &inner.hash_index)?;
        Ok(Snapshot::new(reading, inner.keyring.clone(), &inner.clock, end))
    }

    /// Number of durable events.
    pub fn size(&self) -> u64 {
        self.0.shared.size.load(Ordering::SeqCst)
    }

    /// Why it is open for reading only, if it is.
    pub fn read_only_cause(&self) -> Option<ReadOnlyCause> {
        match self.0.access {
            Access::Write => None,
            Access::ReadOnly(cause) => Some(cause),
        }
    }

    /// Whether the store has not stopped. One that is open for reading only serves no writes
    /// from the start, and does not stop.
    pub fn is_serving(&self) -> bool {
        !self.0.shared.stopped.load(Ordering::SeqCst)
    }

    /// Whether the wall clock lay more than a day ahead of the last event when the store was
    /// opened: either nothing happened for so long, or the clock is wrong.
    pub fn clock_is_ahead(&self) -> bool {
        self.0.clock.is_ahead
    }

    /// Whether the writer stopped because of a failure.
    pub fn has_failed(&self) -> bool {
        self.0.shared.failed.load(Ordering::SeqCst)
    }

    /// Returns once the writer serves no more.
    pub async fn ended(&self) {
        let ended = self.0.shared.ended.notified();
        notified_or(ended, || !self.is_serving()).await;
    }

    /// Returns after the next commit, or at once if there are more than `size` events already.
    pub async fn committed_beyond(&self, size: u64) {
        let committed = self.0.shared.committed.notified();
        notified_or(committed, || self.size() > size || !self.is_serving()).await;
    }

    /// Opens a scope: makes a signing key that lives in memory for at most `ttl_ms`.
    pub fn open_scope(
        &self,
        namespace: &Namespace,
        label: Option<String>,
        ttl_ms: u64,
    ) -> Pending<OpenedScope> {
        self.ask(namespace, |reply| WriteOp::OpenScope { label, ttl_ms, reply })
    }

    /// Closes a scope and wipes its key; `false` if the namespace has no such scope.
    pub fn close_scope(&self, namespace: &Namespace, scope_id: &ScopeId) -> Pending<bool> {
        let scope_id = scope_id.clone();
        self.ask(namespace, |reply| WriteOp::CloseScope { scope_id, reply })
    }

    /// Claims an attempt.
    pub fn claim(&self, namespace: &Namespace, claim: Claim) -> Pending<ClaimAnswer> {
        self.ask(namespace, |reply| WriteOp::Claim { claim: Box::new(claim), reply })
    }

    /// Reports the outcome of a granted attempt. `scope_id` may name a living scope to sign
    /// with if the attempt's own is gone.
    pub fn report(
        &self,
        namespace: &Namespace,
        report: Report,
        lease_token: String,
        scope_id: Option<ScopeId>,
    ) -> Pending<RecordAnswer> {
        let report = Box::new(report);
        self.ask(namespace, |reply| WriteOp::Report { report, lease_token, scope_id, reply })
    }

    /// Renews the lease of a granted attempt.
    pub fn renew(
        &self,
        namespace: &Namespace,
        renewal: Renewal,
        lease_token: String,
    ) -> Pending<RenewedAnswer> {
        let renewal = Box::new(renewal);
        self.ask(namespace, |reply| WriteOp::Renew { renewal, lease_token, reply })
    }

    /// Records finished attempts, each on its own, in one write.
    pub fn record(
        &self,
        namespace: &Namespace,
        shots: Vec<OneShot>,
    ) -> Pending<Vec<Result<RecordAnswer, Refusal>>> {
        let writes = shots.len();
        self.ask_for(namespace, writes, |reply| WriteOp::Record { shots, reply })
    }

    /// Stores what the outside service said of an attempt.
    pub fn check(&self, namespace: &Namespace, check: Check) -> Pending<CheckedAnswer> {
        self.ask(namespace, |reply| WriteOp::Check { check: Box::new(check), reply })
    }

    /// Stores an operator's word on a call. `etag` is an `If-Match` value.
    pub fn resolve(
        &self,
        namespace: &Namespace,
        resolution: Resolution,
        etag: String,
    ) -> Pending<()> {
        let resolution = Box::new(resolution);
        self.ask(namespace, |reply| WriteOp::Resolve { resolution, etag, reply })
    }

    /// Replaces the effect policy of a namespace; answers the number of the event.
    pub fn set_policy(&self, namespace: &Namespace, policy: Policy) -> Pending<u64> {
        self.ask(namespace, |reply| WriteOp::SetPolicy { policy, reply })
    }

    /// Creates an API key from its draft (see [`crate::api_key::make`]).
    pub fn create_api_key(&self, draft: ApiKeyDraft) -> Pending<ApiKeyInfo> {
        let namespace = draft.namespace.clone();
        self.ask(&namespace, |reply| WriteOp::CreateApiKey { draft, reply })
    }

    /// Revokes an API key, unless it is the last one that is good for ever in a role: without
    /// it nobody could make another.
    pub fn revoke_api_key(
        &self,
        namespace: &Namespace,
        id: &str,
        kept_role: &'static str,
    ) -> Pending<Revoked> {
        let id = id.to_owned();
        self.ask(namespace, |reply| WriteOp::RevokeApiKey { id, kept_role, reply })
    }

    /// What is known of a scope. Blocks for a read or two.
    pub fn scope(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
    ) -> Result<Option<ScopeView>, StorageError> {
        let view = self.snapshot()?.scope(namespace, scope_id)?;
        match view {
            // It may have been closed between the view and the look at the keys.
            Some(ScopeView { state: ScopeState::Gone, .. }) => {
                self.snapshot()?.scope(namespace, scope_id)
            }
            view => Ok(view),
        }
    }

    /// Appends what time alone has caused: ends of leases and of scopes. Call it about once a
    /// second; nothing that is answered depends on when.
    pub fn tick(&self, namespace: &Namespace) -> Pending<()> {
        self.ask(namespace, |reply| WriteOp::Tick { reply })
    }

    /// The effect policy of a namespace in force.
    pub fn policy(&self, namespace: &Namespace) -> Arc<Policy> {
        self.0.policies.get(namespace)
    }

    /// The API key that this text is, if it is good now.
    pub fn authenticate(&self, api_key: &str) -> Option<Arc<ApiKeyInfo>> {
        self.0.api_keys.authenticate(api_key, self.now())
    }

    pub(crate) fn api_keys_in_memory(&self) -> &ApiKeys {
        &self.0.api_keys
    }

    /// All API keys, oldest first.
    pub fn api_keys(&self) -> Vec<ApiKeyInfo> {
        self.0.api_keys.list()
    }

    /// Whether no API key was ever created.
    pub fn has_no_api_keys(&self) -> bool {
        self.0.api_keys.is_empty()
    }

    /// Serves what is in the queue, then stops the writer and waits for it. Blocks.
    pub fn close(&self) {
        // An error means that the writer is gone already.
        let command = Command { namespace: no_namespace(), op: WriteOp::Close, room: None };
        let _ = self.0.queue.blocking_send(command);
        let thread = self.0.thread.lock().expect("no holder panics").take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn ask<T>(&self, namespace: &Namespace, op: impl FnOnce(Reply<T>) -> WriteOp) -> Pending<T> {
        self.ask_for(namespace, 1, op)
    }

    /// Asks for so many writes at once. The room is counted in writes, not in requests: what
    /// waits must not fill the memory.
    fn ask_for<T>(
        &self,
        namespace: &Namespace,
        writes: usize,
        op: impl FnOnce(Reply<T>) -> WriteOp,
    ) -> Pending<T> {
        if let Access::ReadOnly(cause) = self.0.access {
            return Pending(State::Refused(Some(WriteError::ReadOnly(cause))));
        }
        let writes = u32::try_from(writes.clamp(1, self.0.queue_len_max)).unwrap_or(u32::MAX);
        let Ok(room) = self.0.room.clone().try_acquire_many_owned(writes) else {
            return Pending(State::Refused(Some(WriteError::QueueFull)));
        };
        let (reply, receiver) = oneshot::channel();
        let command = Command { namespace: namespace.clone(), op: op(reply), room: Some(room) };
        match self.0.queue.try_send(command) {
            Ok(()) => Pending(State::Waiting(receiver)),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Pending(State::Refused(Some(WriteError::QueueFull)))
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Pending(State::Refused(Some(WriteError::Stopped)))
            }
        }
    }
}

/// Waits for a notification unless the condition holds already. The waiter is registered
/// before the condition is looked at, so that nothing in between is missed.
async fn notified_or(notified: tokio::sync::futures::Notified<'_>, holds: impl Fn() -> bool) {
    let mut notified = std::pin::pin!(notified);
    notified.as_mut().enable();
    if !holds() {
        notified.await;
    }
}

fn no_namespace() -> Namespace {
    Namespace::parse("default").expect("a good name")
}
