//! Stored events: version byte, leaf hash, then the event without what its place says already.
//!
//! An event of version 2 is one of version 1 followed by the members that version 1 has no place
//! for. What needs none of them is stored as version 1 still: most events do not.

mod read;
mod stored;
mod write;

use bincode::{BorrowDecode, Decode, Encode};
use recibo_core::event::Body;
use recibo_core::time::Time;
use recibo_core::tree::Hash;

use read::from_stored;
use stored::{Added, StoredBody};
use write::{added, to_stored};

use super::{CONFIG, CodecError, VERSION, VERSION_2, append};

const WHAT: &str = "event";
const BROKEN: CodecError = CodecError { what: WHAT };
/// Version byte and leaf hash.
const PREFIX_LEN: usize = 1 + 32;

/// The namespace number of events of the whole ledger.
const OF_THE_LEDGER: u32 = u32::MAX;

/// An event as stored: its number is the key, its namespace a number.
#[derive(Clone)]
pub(crate) struct StoredEvent {
    pub(crate) at: Time,
    /// `None` for an event of the whole ledger.
    pub(crate) owner: Option<StoredOwner>,
    /// The event of the same call before this one, so that a call's story can be walked.
    pub(crate) before: Option<u64>,
    pub(crate) salt: [u8; 16],
    pub(crate) body: Body,
}

/// Whose an event is, and its place among the events of that namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredOwner {
    pub(crate) namespace_no: u32,
    pub(crate) nseq: u64,
}

#[derive(Encode, BorrowDecode)]
struct Frame<'a> {
    namespace_no: u32,
    nseq: u64,
    at_ms: u64,
    before: Option<u64>,
    salt: [u8; 16],
    body: StoredBody<'a>,
}

/// Appends the bytes of an event. The second of a token is the second of its event, so only the digest
/// is kept.
pub(crate) fn encode_event(bytes: &mut Vec<u8>, leaf: &Hash, event: &StoredEvent) {
    let added = added(&event.body);
    let is_first_version = added == Added::default();
    bytes.push(if is_first_version { VERSION } else { VERSION_2 });
    bytes.extend_from_slice(leaf);
    let owner = event.owner.unwrap_or(StoredOwner { namespace_no: OF_THE_LEDGER, nseq: 0 });
    let frame = Frame {
        namespace_no: owner.namespace_no,
        nseq: owner.nseq,
        at_ms: event.at.ms(),
        before: event.before,
        salt: event.salt,
        body: to_stored(&event.body),
    };
    append(bytes, &frame);
    if !is_first_version {
        append(bytes, &added);
    }
}

/// Reads the bytes of an event.
pub(crate) fn decode_event(bytes: &[u8]) -> Result<StoredEvent, CodecError> {
    leaf_of(bytes)?;
    let rest = &bytes[PREFIX_LEN..];
    let (frame, used): (Frame<'_>, usize) =
        bincode::borrow_decode_from_slice(rest, CONFIG).map_err(|_| BROKEN)?;
    let rest = &rest[used..];
    let (added, used): (Added<'_>, usize) = match bytes[0] {
        VERSION => (Added::default(), 0),
        _ => bincode::borrow_decode_from_slice(rest, CONFIG).map_err(|_| BROKEN)?,
    };
    if used != rest.len() {
        return Err(BROKEN);
    }
    let at = Time::from_ms(frame.at_ms);
    Ok(StoredEvent {
        at,
        owner: (frame.namespace_no != OF_THE_LEDGER)
            .then_some(StoredOwner { namespace_no: frame.namespace_no, nseq: frame.nseq }),
        before: frame.before,
        salt: frame.salt,
        body: from_stored(frame.body, added, at).ok_or(BROKEN)?,
    })
}

/// The leaf hash of a stored event.
pub(crate) fn leaf_of(bytes: &[u8]) -> Result<Hash, CodecError> {
    match bytes {
        [VERSION | VERSION_2, rest @ ..] => rest.first_chunk::<32>().copied().ok_or(BROKEN),
        _ => Err(BROKEN),
    }
}

/// Namespace number and time of a stored event, without reading the rest: for searches. The
/// number of an event of the whole ledger is that of no namespace.
pub(crate) fn namespace_of(bytes: &[u8]) -> Result<(u32, Time), CodecError> {
    #[derive(Decode)]
    struct Start {
        namespace_no: u32,
        _nseq: u64,
        at_ms: u64,
    }
    leaf_of(bytes)?;
    let (start, _): (Start, usize) =
        bincode::decode_from_slice(&bytes[PREFIX_LEN..], CONFIG).map_err(|_| BROKEN)?;
    Ok((start.namespace_no, Time::from_ms(start.at_ms)))
}

/// An event that follows none of its own call, or nothing: without reading the rest of others.
pub(crate) fn decode_if_first(bytes: &[u8]) -> Result<Option<StoredEvent>, CodecError> {
    #[derive(Decode)]
    struct Start {
        _namespace_no: u32,
        _nseq: u64,
        _at_ms: u64,
        before: Option<u64>,
    }
    leaf_of(bytes)?;
    let (start, _): (Start, usize) =
        bincode::decode_from_slice(&bytes[PREFIX_LEN..], CONFIG).map_err(|_| BROKEN)?;
    if start.before.is_some() { Ok(None) } else { decode_event(bytes).map(Some) }
}

/// Words are stored by their place in the list of the contract; the lists only ever grow at
/// their end.
pub(in crate::codec) fn index_of<T: PartialEq>(all: &[T], word: &T) -> u8 {
    let index = all.iter().position(|other| other == word).expect("every word is in its list");
    u8::try_from(index).expect("lists are short")
}

pub(in crate::codec) fn at_index<T: Copy>(all: &[T], index: u8) -> Option<T> {
    all.get(usize::from(index)).copied()
}
