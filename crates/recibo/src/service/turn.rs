//! Whose turn it is to start the service on a folder or to end it: one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use recibo_store::folder::TURN_FILE;
use tokio::time::{Instant, sleep, timeout_at};

use super::{END_PATIENCE, LOOK_EVERY};
use crate::data;
use crate::failure::Failure;

/// The turn. It ends with the value, and with the process that has it.
#[derive(Debug)]
pub struct Turn {
    _locked: File,
}

impl Turn {
    /// Takes the turn; `None` while another process has it.
    pub fn try_take(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(TURN_FILE);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _locked: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            // A file system without locks: two starts at once are its owner's to avoid.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                Ok(Some(Self { _locked: file }))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Waits for the turn.
pub async fn wait_for_turn(folder: &Path) -> Result<Turn, Failure> {
    let deadline = Instant::now() + END_PATIENCE;
    let taken = timeout_at(deadline, async {
        loop {
            match Turn::try_take(folder) {
                Ok(Some(turn)) => return Ok(turn),
                Ok(None) => sleep(LOOK_EVERY).await,
                Err(error) => return Err(cannot_lock(folder, &error)),
            }
        }
    });
    taken.await.unwrap_or_else(|_| Err(kept(folder)))
}

pub(super) fn cannot_lock(folder: &Path, error: &Error) -> Failure {
    data::cannot("lock", &folder.join(TURN_FILE), error)
}

/// Nobody has a turn for so long, unless it is stopped or hangs.
pub(super) fn kept(folder: &Path) -> Failure {
    let path = folder.join(TURN_FILE);
    Failure::advised(
        format!("another process starts or ends the service on {}, and does not get done", {
            folder.display()
        }),
        format!("see which one it is (`fuser {}`) and end it", path.display()),
    )
}
