//! The one writer: takes what is in the queue, serves it in one transaction, commits, and only
//! then answers.
//!
//! If a commit fails, whether it happened is not known. The writer then answers nothing more
//! and stops; the next start reads what is true.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use recibo_core::decision::Moment;
use recibo_core::id::ScopeId;
use recibo_core::plan::Refusal;
use recibo_core::time::Time;
use redb::Database;
use tokio::sync::mpsc;

use crate::answer::RecordAnswer;
use crate::batch::{Batch, Tables, WriterState};
use crate::clock::LedgerClock;
use crate::command::{Command, Reply, WriteOp};
use crate::error::{StorageError, WriteError};
use crate::snapshot::Latest;

/// Drafts in one transaction at most. Throughput is flat above this, and a batch is how long
/// the first one in it waits.
const BATCH_DRAFTS_MAX: usize = 1024;

/// What others may know of the writer.
#[derive(Default)]
pub(crate) struct Shared {
    /// Set once the writer serves no more.
    pub(crate) stopped: AtomicBool,
    /// Set if it stopped because of a failure.
    pub(crate) failed: AtomicBool,
    /// Number of committed events.
    pub(crate) size: AtomicU64,
    /// The first end of a lease that lies after the newest durable clock mark, in milliseconds:
    /// who reads later than that may show a lease as over which the next start would not.
    pub(crate) unmarked_lease_end_ms: AtomicU64,
    /// What the newest commit looks like to readers.
    pub(crate) latest: Latest,
    /// Wakes those who wait for a call to change.
    pub(crate) committed: tokio::sync::Notify,
    /// Wakes those who wait for the writer's end.
    pub(crate) ended: tokio::sync::Notify,
}

impl Shared {
    /// Takes note of the leases as the newest commit leaves them.
    pub(crate) fn note_leases(&self, state: &WriterState) {
        let marked_ms = state.head.mark.map_or(0, |mark| mark.at_ms);
        let unmarked = state.leases.range((Time::from_ms(marked_ms.saturating_add(1)), 0, 0)..);
        let end_ms = unmarked.map(|(end, ..)| end.ms()).next();
        self.unmarked_lease_end_ms.store(end_ms.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Remembers a failure before anybody is told, so that who is told finds it so: whoever
    /// waits is told by the drop of a reply, which comes with the error.
    fn note<T>(&self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        if result.is_err() {
            self.failed.store(true, Ordering::SeqCst);
            self.stopped.store(true, Ordering::SeqCst);
        }
        result
    }
}

/// An answer that waits for the commit.
type Pending = Box<dyn FnOnce(bool) + Send>;

pub(crate) struct Writer {
    pub(crate) db: Arc<Database>,
    pub(crate) state: WriterState,
    pub(crate) clock: LedgerClock,
    pub(crate) queue: mpsc::Receiver<Command>,
    pub(crate) shared: Arc<Shared>,
    /// Scopes that the newest batch closed; their keys are wiped once it is durable.
    pub(crate) closed: Vec<ScopeId>,
}

impl Writer {
    /// Serves until the store is closed or a commit fails.
    pub(crate) fn run(mut self) {
        let _end = End(self.shared.clone());
        let mut closing = false;
        while !closing {
            let Some(first) = self.queue.blocking_recv() else { break };
            let mut commands = vec![first];
            let mut drafts = weight(&commands[0]);
            while drafts < BATCH_DRAFTS_MAX
                && let Ok(command) = self.queue.try_recv()
            {
                drafts += weight(&command);
                commands.push(command);
            }
            closing = commands.iter().any(|command| matches!(command.op, WriteOp::Close));
            if let Err(error) = self.batch(commands) {
                tracing::error!(error = &error as &dyn std::error::Error, "the ledger stops");
                closing = true;
            }
        }
        // What still waits is dropped: its callers learn that the ledger has stopped.
    }

    fn batch(&mut self, commands: Vec<Command>) -> Result<(), StorageError> {
        let mut pending: Vec<Pending> = Vec::with_capacity(commands.len());
        let committed = self.commit(commands, &mut pending);
        let committed = self.shared.note(committed);
        let is_durable = committed.is_ok();
        if is_durable {
            self.shared.size.store(self.state.head.size, Ordering::SeqCst);
            self.shared.latest.forget();
            self.shared.note_leases(&self.state);
            // Not before: who reads in between finds the scope open, or finds it closed.
            for scope_id in std::mem::take(&mut self.closed) {
                self.state.keyring.remove(&scope_id);
            }
        }
        // From here on the batch counts.
        for answer in pending {
            answer(is_durable);
        }
        self.shared.committed.notify_waiters();
        committed
    }

    fn commit(
        &mut self,
        commands: Vec<Command>,
        pending: &mut Vec<Pending>,
    ) -> Result<(), StorageError> {
        let (now, mark) = self.clock.look();
        let moment = moment(&self.state, now);
        let size_before = self.state.head.size;
        let txn = self.shared.note(begin(&self.db))?;
        let tables = self.shared.note(Tables::open(&txn))?;
        let mut batch = Batch::begin(tables, &mut self.state, moment);
        let mut is_changed = false;
        for Command { namespace, op, room: _room } in commands {
            is_changed |= changes_without_event(&op, &batch);
            serve(&mut batch, &self.shared, &namespace, op, pending)?;
        }
        is_changed |= batch.state.head.size != size_before;
        // An answer of this batch may show a lease as over: then it is over durably.
        let unmarked_ms = self.shared.unmarked_lease_end_ms.load(Ordering::SeqCst);
        is_changed |= unmarked_ms <= now.ms();
        if !is_changed {
            // Refusals and replays only: there is nothing to make durable.
            drop(batch);
            txn.abort()?;
            return Ok(());
        }
        let closed = batch.finish(&txn, mark)?;
        txn.commit()?;
        self.closed = closed;
        Ok(())
    }
}

/// Whether a request changes something that no event says.
fn changes_without_event(op: &WriteOp, batch: &Batch<'_, '_>) -> bool {
    match op {
        WriteOp::CreateApiKey { .. } | WriteOp::RevokeApiKey { .. } | WriteOp::Mark { .. } => true,
        // A start on another boot counts from the last mark, so there is one a second while
        // that can matter.
        WriteOp::Tick { .. } => !batch.state.leases.is_empty(),
        _ => false,
    }
}

/// Tells everybody that the writer is gone, also if it panicked.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.committed.notify_waiters();
        self.0.ended.notify_waiters();
    }
}

/// A write transaction that is durable, and whose commit no crafted value can forge.
pub(crate) fn begin(db: &Database) -> Result<redb::WriteTransaction, StorageError> {
    let mut txn = db.begin_write()?;
    txn.set_durability(redb::Durability::Immediate)?;
    txn.set_two_phase_commit(true);
    txn.set_quick_repair(true);
    Ok(txn)
}

pub(crate) fn moment(state: &WriterState, now: Time) -> Moment {
    let void = state.head.key_windows_void_until_ms;
    Moment { now, key_windows_void_until: (void > 0).then(|| Time::from_ms(void)) }
}

fn weight(command: &Command) -> usize {
    match &command.op {
        WriteOp::Record { shots, .. } => shots.len(),
        _ => 1,
    }
}

fn serve(
    batch: &mut Batch<'_, '_>,
    shared: &Shared,
    namespace: &recibo_core::id::Namespace,
    op: WriteOp,
    pending: &mut Vec<Pending>,
) -> Result<(), StorageError> {
    let refused = WriteError::Refused;
    match op {
        WriteOp::OpenScope { label, ttl_ms, reply } => {
            let opened = shared.note(batch.open_scope(namespace, label, ttl_ms))?;
            later(pending, reply, opened.map_err(refused));
        }
        WriteOp::CloseScope { scope_id, reply } => {
            let end = recibo_core::status::ScopeEnd::Closed;
            let closed = shared.note(batch.close_scope(namespace, &scope_id, end))?;
            later(pending, reply, Ok(closed));
        }
        WriteOp::Claim { claim, reply } => {
            let answer = shared.note(batch.claim(namespace, &claim))?;
            later(pending, reply, answer.map_err(refused));
        }
        WriteOp::Report { report, lease_token, scope_id, reply } => {
            let answer =
                shared.note(batch.report(namespace, &report, &lease_token, scope_id.as_ref()))?;
            note_receipts(pending, [&answer]);
            later(pending, reply, answer.map_err(refused));
        }
        WriteOp::Renew { renewal, lease_token, reply } => {
            let answer = shared.note(batch.renew(namespace, &renewal, &lease_token))?;
            later(pending, reply, answer.map_err(refused));
        }
        WriteOp::Record { shots, reply } => {
            let mut answers = Vec::with_capacity(shots.len());
            for shot in &shots {
                answers.push(shared.note(batch.record(namespace, shot))?);
            }
            note_receipts(pending, &answers);
            later(pending, reply, Ok(answers));
        }
        WriteOp::Check { check, reply } => {
            let answer = shared.note(batch.check(namespace, &check))?;
            later(pending, reply, answer.map_err(refused));
        }
        WriteOp::Resolve { resolution, etag, reply } => {
            let answer = shared.note(batch.resolve(namespace, &resolution, &etag))?;
            later(pending, reply, answer.map_err(refused));
        }
        WriteOp::SetPolicy { policy, reply } => {
            let policy = Arc::new(policy);
            let seq = batch.set_policy(namespace, policy.clone());
            let (policies, name) = (batch.state.policies.clone(), namespace.clone());
            pending.push(Box::new(move |is_durable| {
                if is_durable {
                    policies.set(name, policy);
                }
            }));
            later(pending, reply, Ok(seq));
        }
        WriteOp::CreateApiKey { draft, reply } => {
            let info = shared.note(batch.create_api_key(draft))?;
            later(pending, reply, Ok(info));
        }
        WriteOp::RevokeApiKey { id, kept_role, reply } => {
            let revoked = shared.note(batch.revoke_api_key(&id, kept_role))?;
            later(pending, reply, Ok(revoked));
        }
        WriteOp::Tick { reply } => {
            shared.note(batch.tick())?;
            later(pending, reply, Ok(()));
        }
        WriteOp::Mark { reply } => later(pending, reply, Ok(())),
        WriteOp::Close => {}
    }
    Ok(())
}

/// The log line that every receipt has, at debug level: once it is durable, not before.
fn note_receipts<'a>(
    pending: &mut Vec<Pending>,
    answers: impl IntoIterator<Item = &'a Result<RecordAnswer, Refusal>>,
) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let new = answers.into_iter().filter_map(|answer| answer.as_ref().ok());
    for answer in new.filter(|answer| !answer.replayed) {
        if let Some(token) = answer.record.token {
            let tool = answer.record.tool.clone();
            pending.push(Box::new(move |is_durable| {
                if is_durable {
                    tracing::debug!(tool = tool.as_str(), receipt = %token, "receipt generated");
                }
            }));
        }
    }
}

/// Answers once the commit is known to be durable. If it is not, the reply is dropped, and the
/// caller learns that the ledger has stopped.
fn later<T: Send + 'static>(
    pending: &mut Vec<Pending>,
    reply: Reply<T>,
    answer: Result<T, WriteError>,
) {
    pending.push(Box::new(move |is_durable| {
        if is_durable {
            // A caller that has gone away needs no answer.
            let _ = reply.send(answer);
        }
    }));
}
