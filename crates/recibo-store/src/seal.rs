//! What appended events become on disk: each is rendered as its line, the line is hashed to
//! the leaf of the log, and leaf and event are encoded. Pure work on what is already decided,
//! so large batches do it on two threads.

use recibo_core::id::Namespace;
use recibo_core::limits::LINE_BYTES_MAX;
use recibo_core::line::{self, Header};
use recibo_core::tree::{Hash, leaf_hash};

use crate::codec::{StoredEvent, encode_event};

/// From here on a second thread pays: starting it costs about as much as sealing 20 events.
const SPLIT_MIN: usize = 128;

/// Stored bytes of events in a row.
pub(crate) struct Sealed {
    bytes: Vec<u8>,
    /// Each leaf, and where its event's bytes end.
    leaves: Vec<(Hash, usize)>,
}

impl Sealed {
    /// Each leaf with its event's bytes.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Hash, &[u8])> {
        let mut start = 0;
        self.leaves.iter().map(move |(leaf, end)| {
            let bytes = &self.bytes[start..*end];
            start = *end;
            (*leaf, bytes)
        })
    }
}

/// Seals events whose numbers begin with `from`. `names` are the namespaces by number.
pub(crate) fn seal(from: u64, events: &[StoredEvent], names: &[Namespace]) -> Vec<Sealed> {
    if events.len() < SPLIT_MIN {
        return vec![seal_part(from, events, names)];
    }
    let (first, second) = events.split_at(events.len() / 2);
    std::thread::scope(|threads| {
        let second = threads.spawn(|| seal_part(from + first.len() as u64, second, names));
        let first = seal_part(from, first, names);
        vec![first, second.join().expect("a panic there is a panic here")]
    })
}

fn seal_part(from: u64, events: &[StoredEvent], names: &[Namespace]) -> Sealed {
    let mut sealed = Sealed {
        bytes: Vec::with_capacity(events.len() * 320),
        leaves: Vec::with_capacity(events.len()),
    };
    let mut text = String::with_capacity(1024);
    for (seq, event) in (from..).zip(events) {
        let header = Header {
            seq,
            at: event.at,
            owner: event
                .owner
                .map(|owner| (names[owner.namespace_no as usize].as_str(), owner.nseq)),
            salt: &event.salt,
        };
        text.clear();
        line::render_to(&mut text, &header, &event.body);
        assert!(text.len() <= LINE_BYTES_MAX, "every member has a limit, so a line has one");
        let leaf = leaf_hash(text.as_bytes());
        encode_event(&mut sealed.bytes, &leaf, event);
        sealed.leaves.push((leaf, sealed.bytes.len()));
    }
    sealed
}
