//! Opening a store: the state of the writer, and what a restart does to leases and key windows.
//! Where its file and its secret come from is the folder's to know.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use recibo_core::event::Restarted;
use recibo_core::id::Namespace;
use recibo_core::lease::LeaseSecret;
use recibo_core::time::Time;
use recibo_core::tree::Frontier;
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend};

use crate::api_key::ApiKeys;
use crate::batch::{
    Batch, Entropy, LiveRuns, NamespaceState, Tables, WriterState, idempotency_entry,
};
use crate::clock::{Clock, LedgerClock};
use crate::codec::{ApiKeyRow, Head, NamespaceRow, OpenCallRow, decode_event, decode_if_first};
use crate::error::{OpenError, ReadOnlyCause, StorageError};
use crate::folder::{self, Opened};
use crate::hash_index::{HashIndex, Key};
use crate::keyring::Keyring;
use crate::policies::Policies;
use crate::store::Store;
use crate::tables::{self, OpenKey};
use crate::writer;

/// Knobs of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Memory for pages of the file, in bytes.
    pub cache_bytes: usize,
    /// Writes that may wait; more are refused at once.
    pub queue_len_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { cache_bytes: 128 << 20, queue_len_max: 8192 }
    }
}

impl Store {
    /// Opens the ledger in a folder, which is made if it is missing. A ledger is begun where
    /// nothing was ever answered, and nowhere else.
    pub fn open(
        folder: &Path,
        config: Config,
        clock: Arc<dyn Clock>,
        mut entropy: Entropy,
    ) -> Result<Self, OpenError> {
        let Opened { db, lease_secret } = folder::open(folder, &engine(config), &mut entropy)?;
        start(db, config, clock, entropy, lease_secret, Access::Write)
    }

    /// Opens the ledger in a folder for reading: the folder is not written to, not even where the
    /// last process was killed, and several can at once. Writes are refused with this cause.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while another process has it open for writing, and
    /// [`OpenError::NoLedger`] where there is none.
    pub fn open_read_only(
        folder: &Path,
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
        cause: ReadOnlyCause,
    ) -> Result<Self, OpenError> {
        let Opened { db, lease_secret } = folder::open_read_only(folder, &engine(config))?;
        start(db, config, clock, entropy, lease_secret, Access::ReadOnly(cause))
    }

    /// Opens a ledger on any disk, with the lease secret given. For tests that break disks.
    pub fn on_disk(
        disk: impl StorageBackend,
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
        mut lease_secret: [u8; 32],
    ) -> Result<Self, OpenError> {
        let db = engine(config).create_with_backend(disk)?;
        recibo_migrations::run(&db)?;
        let lease_secret = LeaseSecret::new(&mut lease_secret);
        start(db, config, clock, entropy, lease_secret, Access::Write)
    }
}

fn engine(config: Config) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(config.cache_bytes);
    builder
}

/// What an open store may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    /// What the start of a store changes is not kept, and nothing is written later.
    ReadOnly(ReadOnlyCause),
}

fn start(
    db: Database,
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Entropy,
    lease_secret: LeaseSecret,
    access: Access,
) -> Result<Store, OpenError> {
    let keyring = Keyring::default();
    let mut state = read_state(&db, keyring, lease_secret, entropy)?;
    let (clock, restarted) = LedgerClock::start(clock, &state.head);
    if let Some(restarted) = restarted {
        restart(&db, &mut state, &clock, restarted, access)?;
    }
    Ok(Store::start(db, state, clock, config.queue_len_max, access))
}

/// Takes note of a start on another boot of the machine. Where nothing is kept, nothing is
/// appended either, and nobody knows how much of the leases remains.
fn restart(
    db: &Database,
    state: &mut WriterState,
    clock: &LedgerClock,
    restarted: Restarted,
    access: Access,
) -> Result<(), StorageError> {
    let (now, mark) = clock.look();
    let txn = writer::begin(db)?;
    let moment = writer::moment(state, now);
    let mut batch = Batch::begin(Tables::open(&txn)?, state, moment);
    match access {
        Access::Write => batch.restart(restarted)?,
        Access::ReadOnly(_) => batch.forget_lease_ends(&restarted)?,
    }
    batch.finish(&txn, mark)?;
    txn.commit()?;
    Ok(())
}

fn read_state(
    db: &Database,
    keyring: Keyring,
    lease_secret: LeaseSecret,
    entropy: Entropy,
) -> Result<WriterState, StorageError> {
    let txn = db.begin_read()?;
    let head = match txn.open_table(tables::META)?.get(tables::HEAD_KEY)? {
        Some(value) => Head::decode(value.value())?,
        None => Head::default(),
    };
    let frontier = Frontier::from_parts(head.size, head.frontier.clone())
        .map_err(|_| StorageError::Inconsistent("the frontier does not fit the size"))?;
    let events = txn.open_table(tables::EVENTS)?;
    let (mut namespaces, policies) = (HashMap::new(), Policies::default());
    for entry in txn.open_table(tables::NAMESPACES)?.iter()? {
        let (key, value) = entry?;
        let name = std::str::from_utf8(key.value()).ok().and_then(|t| Namespace::parse(t).ok());
        let name = name.ok_or(StorageError::Inconsistent("a namespace is no name"))?;
        let row = NamespaceRow::decode(value.value())?;
        let policy = match row.policy_seq {
            None => Arc::default(),
            Some(seq) => {
                let value = events.get(seq)?;
                let value = value.ok_or(StorageError::Inconsistent("an event is missing"))?;
                match decode_event(value.value())?.body {
                    recibo_core::event::Body::PolicySet { policy } => Arc::new(policy),
                    _ => return Err(StorageError::Inconsistent("a policy is no policy")),
                }
            }
        };
        policies.set(name.clone(), policy.clone());
        namespaces.insert(name, NamespaceState { row, policy, is_changed: false });
    }
    let mut namespace_names: Vec<Namespace> = namespaces.keys().cloned().collect();
    namespace_names.sort_by_key(|name| namespaces[name].row.no);
    let api_keys = ApiKeys::default();
    for entry in txn.open_table(tables::API_KEYS)?.iter()? {
        let (key, value) = entry?;
        let id = String::from_utf8_lossy(key.value()).into_owned();
        api_keys.put(id, ApiKeyRow::decode(value.value())?);
    }
    let leases = read_leases(&txn)?;
    let rows = txn.open_table(tables::HASH_INDEX)?;
    let hash_index =
        HashIndex::open(&rows, head.size, |from| lost_entries(&events, from, &namespace_names))?;
    Ok(WriterState {
        head,
        frontier,
        hash_index,
        namespaces,
        namespace_names,
        leases,
        runs: LiveRuns::default(),
        keyring,
        api_keys,
        policies,
        lease_secret,
        entropy,
    })
}

/// What the hash index had only in memory.
fn lost_entries(
    events: &impl ReadableTable<u64, &'static [u8]>,
    from: u64,
    names: &[Namespace],
) -> Result<Vec<(Key, u64)>, StorageError> {
    let mut entries = Vec::new();
    for entry in events.range(from..)? {
        let (seq, value) = entry?;
        let Some(event) = decode_if_first(value.value())? else { continue };
        let Some((call, _)) = event.body.call() else { continue };
        let name = event.owner.and_then(|owner| names.get(owner.namespace_no as usize));
        let name = name.ok_or(StorageError::Inconsistent("an event is of no namespace"))?;
        entries.push((idempotency_entry(name, call), seq.value()));
    }
    Ok(entries)
}

fn read_leases(txn: &redb::ReadTransaction) -> Result<BTreeSet<(Time, u64, u32)>, StorageError> {
    let mut leases = BTreeSet::new();
    let (from, to) = (OpenKey::open(0, 0), OpenKey::open(u32::MAX, u64::MAX));
    let table = txn.open_table(tables::OPEN_CALLS)?;
    for entry in table.range(from.as_slice()..=to.as_slice())? {
        let (key, value) = entry?;
        let first_seq = OpenKey::first_seq_of(key.value());
        let row = OpenCallRow::decode(value.value())?;
        let (Some(first_seq), Some(end_ms)) = (first_seq, row.lease_end_ms) else {
            return Err(StorageError::Inconsistent("an open call has no lease"));
        };
        leases.insert((Time::from_ms(end_ms), first_seq, row.namespace_no));
    }
    Ok(leases)
}
