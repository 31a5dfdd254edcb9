//! What can go wrong in the store. One enum per operation.

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
}

/// Why a store could not be opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file open.
    #[error("another process has this ledger open")]
    InUse,
    /// A file of a newer format, or no ledger.
    #[error(transparent)]
    Migration(#[from] recibo_migrations::MigrationError),
    /// The lease secret is missing although the ledger is not new, or is not 32 bytes.
    #[error(
        "the lease secret {path} is missing or damaged: put it back from your backup; without \
         it the leases of open attempts could not be recognized"
    )]
    LeaseSecret {
        /// Where it should be.
        path: std::path::PathBuf,
    },
    /// The folder or a file in it could not be made or read.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file could not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
