//! The embedded store of the ledger: one redb file, one writer thread, snapshots for readers.
//!
//! Knows nothing of HTTP, and of JSON nothing but `ledger.json`. Every write is answered only after it is
//! durable; every refusal has appended nothing.
#![forbid(unsafe_code)]

mod answer;
pub mod api_key;
mod batch;
mod clock;
mod codec;
mod command;
mod error;
pub mod etag;
pub mod folder;
mod hash_index;
mod keyring;
mod lookup;
mod open;
mod overlay;
mod policies;
mod scope_id;
mod seal;
mod serve;
mod small_file;
mod snapshot;
mod store;
mod tables;
mod wait;
mod writer;

pub use answer::{CheckedAnswer, ClaimAnswer, OpenedScope, RecordAnswer, RenewedAnswer};
pub use batch::Entropy;
pub use clock::{Clock, ManualClock, SystemClock};
pub use codec::CodecError;
pub use error::{OpenError, ReadOnlyCause, StorageError, WriteError};
pub use folder::{LEASE_SECRET_FILE, LEDGER_FILE};
pub use open::Config;
pub use small_file::write_private;
pub use snapshot::{
    CallFilter, CallPage, CallView, DecisionView, LogHead, ReceiptLine, ReceiptPage,
    ResolutionMark, RunSummary, ScopeState, ScopeView, SignatureCheck, Snapshot,
};
pub use store::{Pending, Store};
