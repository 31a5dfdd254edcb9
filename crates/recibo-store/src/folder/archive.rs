//! Putting a ledger aside, whole or in parts, so that another one can begin in its folder.

use std::fs::{self, File};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::{
    ADMIN_KEY_FILE, LEASE_SECRET_FILE, LEDGER_FILE, LEDGER_ID_FILE, SERVICE_FILE, is_there,
    take_turn,
};
use crate::error::OpenError;
use crate::small_file::{make_folder, sync_folder};

/// In the order in which they go: the id last. Whatever is left by a crash in between is refused
/// by name, and can be put aside again.
const PARTS: [&str; 5] =
    [SERVICE_FILE, ADMIN_KEY_FILE, LEASE_SECRET_FILE, LEDGER_FILE, LEDGER_ID_FILE];

/// Moves everything that belongs to a ledger into a folder of this name in its folder, and gives
/// the place; `None` where there was nothing. Whether the parts fit together does not matter.
///
/// # Errors
/// [`OpenError::InUse`] while a process has the ledger open. Nothing was moved then.
pub fn archive(folder: &Path, name: &str) -> Result<Option<PathBuf>, OpenError> {
    if !is_there(folder)? {
        return Ok(None);
    }
    let _turn = take_turn(folder)?;
    let mut parts = Vec::new();
    for part in PARTS {
        if is_there(&folder.join(part))? {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let _nobody = nobody_has(&folder.join(LEDGER_FILE))?;
    let aside = folder.join(name);
    let io = |source| OpenError::io(&aside, source);
    make_folder(&aside).map_err(io)?;
    for part in parts {
        let to = aside.join(part);
        fs::rename(folder.join(part), &to).map_err(|source| OpenError::io(&to, source))?;
    }
    sync_folder(&aside).and_then(|()| sync_folder(folder)).map_err(io)?;
    Ok(Some(aside))
}

/// Makes sure that no process writes to a ledger file, whatever the file holds. None can begin to
/// while the value lives.
fn nobody_has(path: &Path) -> Result<Option<FileBackend>, OpenError> {
    if !is_there(path)? {
        return Ok(None);
    }
    let file = File::open(path).map_err(|source| OpenError::io(path, source))?;
    let file = FileBackend::new(file)?;
    match file.try_lock_shared_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(false) => Err(OpenError::InUse),
        // An error means that the file system has no locks.
        Ok(true) | Err(_) => Ok(Some(file)),
    }
}
