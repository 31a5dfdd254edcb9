//! What can go wrong in the store. One enum per operation.

use std::io;
use std::path::{Path, PathBuf};

use recibo_core::plan::Refusal;

use crate::codec::CodecError;

/// The file could not be read, or does not hold what it should.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The storage engine failed.
    #[error("the ledger file could not be read or written")]
    Engine(#[from] Box<redb::Error>),
    /// A value does not decode.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// Two tables contradict each other.
    #[error("the ledger file contradicts itself: {0}")]
    Inconsistent(&'static str),
}

/// Turns any engine error into ours.
macro_rules! from_engine {
    ($($error:ty),+) => {
        $(impl From<$error> for StorageError {
            fn from(error: $error) -> Self {
                Self::Engine(Box::new(error.into()))
            }
        })+
    };
}
from_engine!(
    redb::Error,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError,
    redb::DatabaseError,
    redb::SetDurabilityError
);

impl From<redb::CursorError> for StorageError {
    fn from(error: redb::CursorError) -> Self {
        match error {
            // The transaction is given up with this, so what stood there still does.
            redb::CursorError::UnorderedKey => Self::Inconsistent("an event would be overwritten"),
            other => Self::Engine(Box::new(other.into())),
        }
    }
}

/// Why a write did not happen, or is not known to have happened.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The rules refuse it. Nothing was appended.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// Too many writes wait already. Nothing was appended.
    #[error("too many writes wait already")]
    QueueFull,
    /// The ledger has stopped: a commit failed or the store was closed. Whether this write
    /// happened is not known; the next start reads what is true.
    #[error("the ledger has stopped; whether this write happened is not known")]
    Stopped,
    /// The ledger is open for reading only. Nothing was appended.
    #[error("the ledger is open for reading only: {0}")]
    ReadOnly(ReadOnlyCause),
}

/// Why a ledger is open for reading only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadOnlyCause {
    /// Whoever opened it only wanted to read.
    #[error("it was opened for reading only")]
    Asked,
    /// The user may not write to the folder.
    #[error("its folder or files may not be written by this user")]
    Denied,
    /// The file system is mounted so.
    #[error("its disk is read-only")]
    ReadOnlyDisk,
    /// There is no room for another event.
    #[error("its disk is full")]
    Full,
}

impl ReadOnlyCause {
    /// What keeps a ledger from being written, if this is such an error.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Some(Self::Denied),
            io::ErrorKind::ReadOnlyFilesystem => Some(Self::ReadOnlyDisk),
            // The last one is what a limit on file sizes gives.
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Some(Self::Full),
            _ => None,
        }
    }
}

/// Why a store could not be opened. No part of the ledger was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file open.
    #[error("another process has this ledger open")]
    InUse,
    /// A file of a newer format, or no ledger.
    #[error(transparent)]
    Migration(#[from] recibo_migrations::MigrationError),
    /// Nothing can be read where there is no ledger.
    #[error("there is no ledger in {folder}")]
    NoLedger {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A part of the ledger is missing. Without it the ledger would have forgotten something.
    #[error(
        "{part} is missing in {folder} although {beside} is there: put it back from a backup of \
         the folder"
    )]
    PartMissing {
        /// The file that is missing.
        part: &'static str,
        /// Where it should be.
        folder: PathBuf,
        /// The file that shows that there was one.
        beside: &'static str,
    },
    /// A part of the ledger is empty or no such part.
    #[error("{part} in {folder} {how}: put it back from a backup of the folder")]
    PartDamaged {
        /// The file.
        part: &'static str,
        /// Where it is.
        folder: PathBuf,
        /// What is wrong with it.
        how: &'static str,
    },
    /// A part of another ledger, or of another time of this one.
    #[error(
        "{part} in {folder} does not belong to the files beside it: put all files back from one \
         backup of the folder"
    )]
    PartForeign {
        /// The file.
        part: &'static str,
        /// Where it is.
        folder: PathBuf,
    },
    /// The folder or a file in it could not be made or read.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file could not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl OpenError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// What keeps the ledger from being written, if it is that. It may still be readable.
    pub fn read_only_cause(&self) -> Option<ReadOnlyCause> {
        let engine = match self {
            Self::Io { source, .. } => return ReadOnlyCause::of(source),
            Self::Storage(StorageError::Engine(error)) => error,
            Self::Migration(recibo_migrations::MigrationError::Storage(error)) => error,
            _ => return None,
        };
        match &**engine {
            redb::Error::Io(error) => ReadOnlyCause::of(error),
            _ => None,
        }
    }
}

impl From<redb::DatabaseError> for OpenError {
    fn from(error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            other => Self::Storage(other.into()),
        }
    }
}
