//! What there is in a data folder. Looks, and changes nothing.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use recibo_core::hash::sha256;
use redb::{Database, ReadableDatabase, ReadableTableMetadata};
use zeroize::Zeroizing;

use super::mark::{LedgerId, Mark};
use super::{ADMIN_KEY_FILE, LEASE_SECRET_FILE, LEDGER_FILE, LEDGER_ID_FILE, is_there, overlaid};
use crate::error::{OpenError, StorageError};
use crate::tables;

/// Memory for pages while a file is only looked at.
const CACHE_BYTES: usize = 1 << 20;

/// The parts of a ledger.
pub(super) struct Parts {
    pub(super) mark: MarkPart,
    pub(super) ledger: LedgerPart,
    pub(super) lease_key: LeaseKey,
    pub(super) has_admin_key: bool,
}

/// `ledger.json`.
#[derive(Clone, Copy)]
pub(super) enum MarkPart {
    Missing,
    Damaged,
    Held(Mark),
}

/// `ledger.redb`.
#[derive(Clone, Copy)]
pub(super) enum LedgerPart {
    Missing,
    Empty,
    Held(Identity),
}

/// What a ledger file says of itself.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    /// `None` before format 2.
    pub(super) ledger_id: Option<LedgerId>,
    /// Fingerprint of the lease secret; `None` before format 2.
    pub(super) lease_key_id: Option<[u8; 32]>,
    /// It holds no event and no API key: nothing was ever answered from it.
    pub(super) is_blank: bool,
}

/// `lease.key`.
pub(super) enum LeaseKey {
    Missing,
    Empty,
    /// Not 32 bytes.
    Damaged,
    /// Somebody else's.
    Denied(std::io::Error),
    Held(Zeroizing<[u8; 32]>),
}

impl Parts {
    pub(super) fn read(folder: &Path) -> Result<Self, OpenError> {
        Ok(Self {
            mark: read_mark(&folder.join(LEDGER_ID_FILE))?,
            lease_key: read_lease_key(folder)?,
            has_admin_key: is_there(&folder.join(ADMIN_KEY_FILE))?,
            ledger: read_ledger(&folder.join(LEDGER_FILE))?,
        })
    }
}

impl LedgerPart {
    pub(super) fn id(&self) -> Option<LedgerId> {
        match self {
            Self::Held(identity) => identity.ledger_id,
            Self::Missing | Self::Empty => None,
        }
    }
}

impl LeaseKey {
    /// The secret, or why there is none.
    pub(super) fn held(self, folder: &Path) -> Result<Zeroizing<[u8; 32]>, OpenError> {
        let (part, folder) = (LEASE_SECRET_FILE, folder.to_owned());
        match self {
            Self::Held(key) => Ok(key),
            Self::Denied(source) => Err(OpenError::Io { path: folder.join(part), source }),
            Self::Missing => Err(OpenError::PartMissing { part, folder, beside: LEDGER_FILE }),
            Self::Empty => Err(OpenError::PartDamaged { part, folder, how: "is empty" }),
            Self::Damaged => Err(OpenError::PartDamaged { part, folder, how: "is not 32 bytes" }),
        }
    }
}

/// What the ledger file keeps of the lease secret. The secret has 256 random bits, so this tells
/// nothing of it.
pub(super) fn lease_key_id(key: &[u8; 32]) -> [u8; 32] {
    sha256(&[b"recibo-lease-key-id-v1", key])
}

fn read_mark(path: &Path) -> Result<MarkPart, OpenError> {
    match fs::read(path) {
        Ok(text) => Ok(Mark::parse(&text).map_or(MarkPart::Damaged, MarkPart::Held)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(MarkPart::Missing),
        Err(error) => Err(OpenError::io(path, error)),
    }
}

pub(super) fn read_lease_key(folder: &Path) -> Result<LeaseKey, OpenError> {
    let path = folder.join(LEASE_SECRET_FILE);
    let mut bytes = Zeroizing::new([0; 33]);
    let mut len = 0;
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => match error.kind() {
            ErrorKind::NotFound => return Ok(LeaseKey::Missing),
            ErrorKind::PermissionDenied => return Ok(LeaseKey::Denied(error)),
            _ => return Err(OpenError::io(&path, error)),
        },
    };
    while len < bytes.len() {
        match file.read(&mut bytes[len..]).map_err(|source| OpenError::io(&path, source))? {
            0 => break,
            more => len += more,
        }
    }
    let mut key = Zeroizing::new([0; 32]);
    match len {
        0 => Ok(LeaseKey::Empty),
        32 => {
            key.copy_from_slice(&bytes[..32]);
            Ok(LeaseKey::Held(key))
        }
        _ => Ok(LeaseKey::Damaged),
    }
}

fn read_ledger(path: &Path) -> Result<LedgerPart, OpenError> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() == 0 => return Ok(LedgerPart::Empty),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(LedgerPart::Missing),
        Err(error) => return Err(OpenError::io(path, error)),
    }
    let mut engine = Database::builder();
    engine.set_cache_size(CACHE_BYTES);
    Ok(LedgerPart::Held(identity(&overlaid(path, &engine)?)?))
}

fn identity(db: &Database) -> Result<Identity, OpenError> {
    if recibo_migrations::format_of(db)? == 0 {
        return Ok(Identity { ledger_id: None, lease_key_id: None, is_blank: true });
    }
    let read = || -> Result<Identity, StorageError> {
        let txn = db.begin_read()?;
        let meta = txn.open_table(tables::META)?;
        let damaged = |what| move || StorageError::Inconsistent(what);
        let ledger_id = match meta.get(tables::LEDGER_ID_KEY)? {
            None => None,
            Some(bytes) => Some(
                LedgerId::from_bytes(bytes.value())
                    .ok_or_else(damaged("the ledger's id is not 16 bytes"))?,
            ),
        };
        let lease_key_id = match meta.get(tables::LEASE_KEY_ID_KEY)? {
            None => None,
            Some(bytes) => Some(
                bytes
                    .value()
                    .try_into()
                    .map_err(|_| damaged("the id of the lease secret is not 32 bytes")())?,
            ),
        };
        let is_blank = txn.open_table(tables::EVENTS)?.is_empty()?
            && txn.open_table(tables::API_KEYS)?.is_empty()?;
        Ok(Identity { ledger_id, lease_key_id, is_blank })
    };
    Ok(read()?)
}
