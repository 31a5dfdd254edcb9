//! Stored bytes. The only module that knows bincode.
//!
//! Every value begins with a version byte. Fields are written in order and without names, so
//! a change of any struct here is a new version of that value. What an earlier version wrote is
//! read beside it, or a step in `migrations/` rewrites it.

mod event;
mod index;
mod rows;
mod tip;

pub(crate) use event::{
    StoredEvent, StoredOwner, decode_event, decode_if_first, encode_event, leaf_of, namespace_of,
};
pub(crate) use index::{IndexRow, MergeRow, RunRow};
pub(crate) use rows::{ApiKeyRow, ClockMark, Head, NamespaceRow, OpenCallRow, ScopeRow};
pub(crate) use tip::{AttemptRow, ReadAttempt, ReadTip, TipRow};

use bincode::config::Configuration;
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use bincode::{BorrowDecode, Encode};

/// Version byte of values as the first store format had them.
const VERSION: u8 = 1;
/// Version byte of values that the second store format changed: the head, events with new
/// members, and the rows of calls and attempts.
const VERSION_2: u8 = 2;
const CONFIG: Configuration = bincode::config::standard();

/// A value that does not decode: the file is damaged, or another program wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored {what} does not decode: the ledger file is damaged")]
pub struct CodecError {
    /// What was to be read.
    pub what: &'static str,
}

struct Append<'a>(&'a mut Vec<u8>);

impl Writer for Append<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn append<T: Encode>(bytes: &mut Vec<u8>, value: &T) {
    // Only types with collections of unknown length, and failing writers, can fail to encode.
    bincode::encode_into_writer(value, Append(bytes), CONFIG).expect("memory takes all bytes");
}

fn put<T: Encode>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    bytes.push(VERSION);
    append(&mut bytes, value);
    bytes
}

fn take<'a, T: BorrowDecode<'a, ()>>(bytes: &'a [u8], what: &'static str) -> Result<T, CodecError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => take_rest(rest, what),
        _ => Err(CodecError { what }),
    }
}

fn take_rest<'a, T: BorrowDecode<'a, ()>>(
    bytes: &'a [u8],
    what: &'static str,
) -> Result<T, CodecError> {
    match bincode::borrow_decode_from_slice(bytes, CONFIG) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        _ => Err(CodecError { what }),
    }
}

/// The pair of functions that every row has.
macro_rules! row {
    ($name:ident, $what:literal) => {
        impl $name {
            pub(crate) fn encode(&self) -> Vec<u8> {
                super::put(self)
            }

            pub(crate) fn decode(bytes: &[u8]) -> Result<Self, super::CodecError> {
                super::take(bytes, $what)
            }
        }
    };
}
use row;
