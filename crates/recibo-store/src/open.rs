//! Opening a store: the file and its format, the lease secret, the state of the writer, and
//! what a restart does to leases and key windows.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use recibo_core::event::Restarted;
use recibo_core::id::Namespace;
use recibo_core::lease::LeaseSecret;
use recibo_core::time::Time;
use recibo_core::tree::Frontier;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend};
use zeroize::Zeroize;

use crate::api_key::ApiKeys;
use crate::batch::{
    Batch, Entropy, LiveRuns, NamespaceState, Tables, WriterState, idempotency_entry,
};
use crate::clock::{Clock, LedgerClock};
use crate::codec::{ApiKeyRow, Head, NamespaceRow, OpenCallRow, decode_event, decode_if_first};
use crate::error::{OpenError, StorageError};
use crate::hash_index::{HashIndex, Key};
use crate::keyring::Keyring;
use crate::policies::Policies;
use crate::store::Store;
use crate::tables::{self, OpenKey};
use crate::writer;

/// The ledger file in its folder.
pub const LEDGER_FILE: &str = "ledger.redb";
/// The secret that lease tokens are derived from, in the same folder, mode 0600.
pub const LEASE_SECRET_FILE: &str = "lease.key";

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
    /// Opens the ledger in a folder, which is made if it is missing.
    pub fn open(
        folder: &Path,
        config: Config,
        clock: Arc<dyn Clock>,
        mut entropy: Entropy,
    ) -> Result<Self, OpenError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        fs::create_dir_all(folder).map_err(io(folder))?;
        let file = folder.join(LEDGER_FILE);
        let is_new = !file.exists();
        if is_new {
            make_private(&file).map_err(io(&file))?;
        }
        let db = engine(config).create(&file).map_err(database_error)?;
        recibo_migrations::run(&db)?;
        let secret =
            lease_secret(&folder.join(LEASE_SECRET_FILE), is_new || is_empty(&db)?, &mut entropy)?;
        sync_folder(folder).map_err(io(folder))?;
        start(db, config, clock, entropy, secret)
    }

    /// Opens a ledger on any disk, with the lease secret given. For tests that break disks.
    pub fn on_disk(
        disk: impl StorageBackend,
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
        mut lease_secret: [u8; 32],
    ) -> Result<Self, OpenError> {
        let db = engine(config).create_with_backend(disk).map_err(database_error)?;
        recibo_migrations::run(&db)?;
        start(db, config, clock, entropy, LeaseSecret::new(&mut lease_secret))
    }
}

fn engine(config: Config) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(config.cache_bytes);
    builder
}

fn database_error(error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse,
        other => OpenError::Storage(other.into()),
    }
}

/// Makes the names of new files durable, not only their bytes.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

fn is_empty(db: &Database) -> Result<bool, StorageError> {
    let txn = db.begin_read()?;
    let head = txn.open_table(tables::META)?.get(tables::HEAD_KEY)?.is_none();
    Ok(head)
}

/// Reads the lease secret; makes one only for a new ledger. Another secret would take every
/// open attempt's right to report from it.
fn lease_secret(
    path: &Path,
    is_new: bool,
    entropy: &mut Entropy,
) -> Result<LeaseSecret, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let broken = || OpenError::LeaseSecret { path: path.to_owned() };
    let mut bytes = [0; 32];
    match fs::File::open(path) {
        Ok(mut file) => {
            file.read_exact(&mut bytes).map_err(|_| broken())?;
            if file.read(&mut [0; 1]).map_err(io)? != 0 {
                return Err(broken());
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound && is_new => {
            entropy(&mut bytes);
            write_secret(path, &bytes).map_err(io)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(broken()),
        Err(error) => return Err(io(error)),
    }
    let secret = LeaseSecret::new(&mut bytes);
    bytes.zeroize();
    Ok(secret)
}

fn write_secret(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = make_private(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a file that only its owner can read.
fn make_private(path: &Path) -> std::io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn start(
    db: Database,
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Entropy,
    lease_secret: LeaseSecret,
) -> Result<Store, OpenError> {
    let keyring = Keyring::default();
    let mut state = read_state(&db, keyring, lease_secret, entropy)?;
    let (clock, restarted) = LedgerClock::start(clock, &state.head);
    if let Some(restarted) = restarted {
        restart(&db, &mut state, &clock, restarted)?;
    }
    Ok(Store::start(db, state, clock, config.queue_len_max))
}

/// Takes note of a start on another boot of the machine.
fn restart(
    db: &Database,
    state: &mut WriterState,
    clock: &LedgerClock,
    restarted: Restarted,
) -> Result<(), StorageError> {
    let (now, mark) = clock.look();
    let txn = writer::begin(db)?;
    let moment = writer::moment(state, now);
    let mut batch = Batch::begin(Tables::open(&txn)?, state, moment);
    batch.restart(restarted)?;
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
