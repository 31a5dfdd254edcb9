//! The data folder: which parts a ledger has, and how it is begun, found, and kept from being
//! begun anew where one of its parts is gone.
//!
//! Every ledger has an id. It stands in `ledger.json` and in the ledger file, which also holds a
//! fingerprint of the lease secret. So parts that do not belong together are noticed, and so is a
//! part that is missing: a ledger that has forgotten its calls would permit each of them again.
//!
//! | step of the first start | what there is after it |
//! |---|---|
//! | 1 | `ledger.json`, `complete: false` |
//! | 2 | `lease.key` |
//! | 3 | `ledger.redb`, with its format, the id and the fingerprint |
//! | 4 | `ledger.json`, `complete: true` |
//!
//! Each step is one rename. Nothing is answered before the last one, so a first start that died
//! is completed by the next.

mod archive;
mod judge;
mod mark;
mod parts;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use recibo_core::lease::LeaseSecret;
use redb::backends::FileBackend;
use redb::{Builder, Database};

use crate::batch::Entropy;
use crate::error::{OpenError, StorageError};
use crate::overlay::Overlay;
use crate::small_file::{fresh_name, put_in_place, remove_if_there, write_private};
use crate::{tables, writer};

pub use crate::small_file::{create_private, make_folder};
pub use archive::archive;
use judge::{Verdict, judge};
use mark::{LedgerId, Mark};
use parts::{LeaseKey, Parts, lease_key_id};

/// The ledger file.
pub const LEDGER_FILE: &str = "ledger.redb";
/// The secret that lease tokens are derived from, mode 0600.
pub const LEASE_SECRET_FILE: &str = "lease.key";
/// The ledger's id, and whether its first start was completed.
pub const LEDGER_ID_FILE: &str = "ledger.json";
/// The admin's API key, where the binary made one.
pub const ADMIN_KEY_FILE: &str = "admin.key";
/// Where the service of the folder can be reached, while one runs.
pub const SERVICE_FILE: &str = "service.json";
/// The socket of that service, where its path is not too long and the file system has sockets.
pub const SOCKET_FILE: &str = "service.sock";
/// Locked by whoever starts or ends that service.
pub const TURN_FILE: &str = "service.lock";
/// The log of a service that was started on demand.
pub const LOG_FILE: &str = "service.log";

/// What an open folder gives.
pub(crate) struct Opened {
    pub(crate) db: Database,
    pub(crate) lease_secret: LeaseSecret,
}

/// Opens a folder's ledger for writing; begins or completes it where nothing was ever answered.
pub(crate) fn open(
    folder: &Path,
    engine: &Builder,
    entropy: &mut Entropy,
) -> Result<Opened, OpenError> {
    make_folder(folder).map_err(|source| OpenError::io(folder, source))?;
    let _turn = take_turn(folder)?;
    let parts = Parts::read(folder)?;
    let mut older = None;
    match judge(folder, &parts)? {
        Verdict::Whole => {}
        Verdict::New(id) => {
            let id = id.unwrap_or_else(|| LedgerId::draw(entropy));
            found(folder, &parts, id, engine, entropy, Step::Complete)?;
        }
        Verdict::Older(id) => {
            let id = id.unwrap_or_else(|| LedgerId::draw(entropy));
            Mark { ledger_id: id, complete: false, older: true }.write(folder)?;
            older = Some(id);
        }
    }
    let key = parts::read_lease_key(folder)?.held(folder)?;
    let db = open_file(&folder.join(LEDGER_FILE), engine)?;
    recibo_migrations::run(&db)?;
    if let Some(id) = older {
        put_identity(&db, id, &lease_key_id(&key))?;
        Mark { ledger_id: id, complete: true, older: false }.write(folder)?;
    }
    Ok(Opened { db, lease_secret: secret(key) })
}

/// Opens a folder's ledger without writing to it: repair and migration happen in memory.
pub(crate) fn open_read_only(folder: &Path, engine: &Builder) -> Result<Opened, OpenError> {
    let parts = Parts::read(folder)?;
    if let Verdict::New(_) = judge(folder, &parts)? {
        return Err(OpenError::NoLedger { folder: folder.to_owned() });
    }
    let db = overlaid(&folder.join(LEDGER_FILE), engine)?;
    recibo_migrations::run(&db)?;
    let key = match parts.lease_key {
        LeaseKey::Held(key) => key,
        // Nothing is granted and no outcome is taken, so no lease token is ever compared.
        _ => zeroize::Zeroizing::new([0; 32]),
    };
    Ok(Opened { db, lease_secret: secret(key) })
}

/// Whether a folder holds any part of a ledger.
///
/// # Errors
/// The folder cannot be looked into. That is another answer than no.
pub fn has_ledger(folder: &Path) -> Result<bool, OpenError> {
    for part in [LEDGER_FILE, LEASE_SECRET_FILE, LEDGER_ID_FILE, ADMIN_KEY_FILE] {
        if is_there(&folder.join(part))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_there(path: &Path) -> Result<bool, OpenError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(OpenError::io(path, error)),
    }
}

/// Whose turn it is to judge a folder and to change what it finds: one process at a time. The turn
/// ends with the value.
fn take_turn(folder: &Path) -> Result<File, OpenError> {
    let io = |source| OpenError::io(folder, source);
    let turn = File::open(folder).map_err(io)?;
    match turn.lock() {
        // A file system without locks: two first starts at once are its owner's to avoid.
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(io(error)),
        _ => Ok(turn),
    }
}

fn open_file(path: &Path, engine: &Builder) -> Result<Database, OpenError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|source| OpenError::io(path, source))?;
    Ok(engine.create_with_backend(FileBackend::new(file)?)?)
}

fn overlaid(path: &Path, engine: &Builder) -> Result<Database, OpenError> {
    Ok(engine.create_with_backend(Overlay::open(path)?)?)
}

fn secret(mut key: zeroize::Zeroizing<[u8; 32]>) -> LeaseSecret {
    LeaseSecret::new(&mut key)
}

/// The steps of a first start, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begun,
    LeaseKey,
    Ledger,
    Complete,
}

impl Step {
    const ALL: [Self; 4] = [Self::Begun, Self::LeaseKey, Self::Ledger, Self::Complete];
}

/// Begins a ledger, or goes on where an earlier first start has died. Tests let it die after
/// any step.
fn found(
    folder: &Path,
    parts: &Parts,
    id: LedgerId,
    engine: &Builder,
    entropy: &mut Entropy,
    last: Step,
) -> Result<(), OpenError> {
    for step in Step::ALL {
        match step {
            Step::Begun => Mark { ledger_id: id, complete: false, older: false }.write(folder)?,
            Step::LeaseKey => see_to_lease_key(folder, entropy)?,
            Step::Ledger if parts.ledger.id() == Some(id) => {}
            Step::Ledger => make_ledger(folder, id, engine)?,
            Step::Complete => Mark { ledger_id: id, complete: true, older: false }.write(folder)?,
        }
        if step == last {
            break;
        }
    }
    Ok(())
}

fn see_to_lease_key(folder: &Path, entropy: &mut Entropy) -> Result<(), OpenError> {
    match parts::read_lease_key(folder)? {
        LeaseKey::Held(_) => return Ok(()),
        denied @ LeaseKey::Denied(_) => return denied.held(folder).map(drop),
        LeaseKey::Missing | LeaseKey::Empty | LeaseKey::Damaged => {}
    }
    let mut key = zeroize::Zeroizing::new([0; 32]);
    entropy(&mut *key);
    let path = folder.join(LEASE_SECRET_FILE);
    write_private(&path, &*key).map_err(|source| OpenError::io(&path, source))
}

/// Makes the ledger file under another name first: the engine's own first writes are no single
/// step, and a file that died in them is no ledger.
fn make_ledger(folder: &Path, id: LedgerId, engine: &Builder) -> Result<(), OpenError> {
    let path = folder.join(LEDGER_FILE);
    let fresh = fresh_name(&path);
    let io = |source| OpenError::io(&path, source);
    let key = parts::read_lease_key(folder)?.held(folder)?;
    remove_if_there(&fresh).map_err(io)?;
    let file = create_private(&fresh).map_err(io)?;
    let whole = file.try_clone().map_err(io)?;
    let db = engine.create_with_backend(FileBackend::new(file)?)?;
    recibo_migrations::run(&db)?;
    put_identity(&db, id, &lease_key_id(&key))?;
    db.close()?;
    whole.sync_all().and_then(|()| put_in_place(&fresh, &path)).map_err(io)
}

fn put_identity(db: &Database, id: LedgerId, lease_key_id: &[u8; 32]) -> Result<(), StorageError> {
    let txn = writer::begin(db)?;
    {
        let mut meta = txn.open_table(tables::META)?;
        meta.insert(tables::LEDGER_ID_KEY, id.as_bytes().as_slice())?;
        meta.insert(tables::LEASE_KEY_ID_KEY, lease_key_id.as_slice())?;
    }
    Ok(txn.commit()?)
}
