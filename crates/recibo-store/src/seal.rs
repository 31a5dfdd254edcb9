//! What appended events become on disk: each is rendered as its line, the line is hashed to
//! the leaf of the log, and leaf and event are encoded. Pure work on what is already decided,
//! so large batches do it on two threads.

use std::thread::Builder;

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
    seal_beside(Builder::new(), from, events, names)
}

/// The second half goes to another thread. A machine that has none to give costs time, not the
/// ledger: then both halves are sealed here.
fn seal_beside(
    thread: Builder,
    from: u64,
    events: &[StoredEvent],
    names: &[Namespace],
) -> Vec<Sealed> {
    if events.len() < SPLIT_MIN {
        return vec![seal_part(from, events, names)];
    }
    let (first, second) = events.split_at(events.len() / 2);
    std::thread::scope(|threads| {
        let seal_second = || seal_part(from + first.len() as u64, second, names);
        let started = thread.spawn_scoped(threads, seal_second);
        let first = seal_part(from, first, names);
        let second = match started {
            Ok(started) => started.join().expect("a panic there is a panic here"),
            Err(_) => seal_second(),
        };
        vec![first, second]
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

#[cfg(test)]
mod tests {
    use recibo_core::event::Body;
    use recibo_core::time::Time;

    use super::*;
    use crate::codec::StoredOwner;

    #[test]
    fn a_thread_that_cannot_be_started_changes_nothing_but_the_time() {
        let event = |nseq| StoredEvent {
            at: Time::from_ms(1_800_000_000_000),
            owner: Some(StoredOwner { namespace_no: 0, nseq }),
            before: None,
            salt: [7; 16],
            body: Body::PolicySet { policy: Default::default() },
        };
        let events: Vec<_> = (0..SPLIT_MIN as u64 + 1).map(event).collect();
        let names = [Namespace::parse("default").unwrap()];
        let bytes = |sealed: Vec<Sealed>| {
            let all = sealed.iter().flat_map(Sealed::events);
            all.map(|(leaf, bytes)| (leaf, bytes.to_vec())).collect::<Vec<_>>()
        };
        // No machine has memory for such a stack.
        let impossible = || Builder::new().stack_size(1 << 60);
        assert!(impossible().spawn(|| ()).is_err());
        let inline = bytes(seal_beside(impossible(), 5, &events, &names));
        assert_eq!(inline.len(), events.len());
        assert!(inline == bytes(seal(5, &events, &names)));
    }
}
