//! Who is connected. At the limit, of the connections with no request in flight the one longest
//! in that state is closed; if all have one, the new connection is refused.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{oneshot, watch};

use super::tally::{Tally, Told};
use crate::limits::ConnectionLimits;

/// A peer as it is counted: an IPv4 address, the /64 network that one IPv6 host has, or a process of
/// this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    V4(u32),
    V6(u64),
    /// By its process id; 0 where the system does not tell.
    Process(u32),
}

impl Peer {
    /// The process at the other end of a connection.
    pub(crate) fn process(pid: Option<i32>) -> Self {
        Self::Process(pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default())
    }
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        let network = |v6: Ipv6Addr| Self::V6((u128::from(v6) >> 64) as u64);
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4.into()),
            IpAddr::V6(v6) => network(v6),
        }
    }
}

/// All connections of a service.
pub(crate) struct Connections {
    limits: ConnectionLimits,
    state: Mutex<State>,
    /// How many tasks serve one, those included that were told to end.
    served: watch::Sender<usize>,
    pub(crate) tally: Arc<Tally>,
}

#[derive(Default)]
struct State {
    /// Numbers connections, and the moments at which they begin to wait.
    next: u64,
    entries: HashMap<u64, Entry>,
    /// Those with no request in flight, the one that waits longest first.
    waiting: BTreeMap<u64, (u64, Peer)>,
    per_peer: HashMap<Peer, usize>,
}

/// A connection that was not told to end.
struct Entry {
    peer: Peer,
    /// Its place in `waiting`; `None` while a request is in flight.
    waits_since: Option<u64>,
    /// Dropped to close the connection.
    _open: oneshot::Sender<Infallible>,
    /// Ends once the connection's task has.
    gone: oneshot::Receiver<Infallible>,
}

/// What the task of a connection holds.
pub(crate) struct Ticket {
    pub(super) link: Arc<Link>,
    /// Ends once the connection is to be closed.
    pub(super) closed: oneshot::Receiver<Infallible>,
    pub(super) _gone: Gone,
}

/// Tells that the task of a connection has ended.
pub(super) struct Gone {
    link: Arc<Link>,
    _gone: oneshot::Sender<Infallible>,
}

/// Whether a new connection is served.
pub(crate) enum Admission {
    /// It is. If another one makes room for it, this ends once that one is gone.
    Granted(Ticket, Option<oneshot::Receiver<Infallible>>),
    /// All others have a request in flight.
    Refused,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits, tally: Arc<Tally>) -> Arc<Self> {
        let (served, _) = watch::channel(0);
        Arc::new(Self { limits, state: Mutex::default(), served, tally })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Takes a new connection in, if there is room or some can be made.
    pub(crate) fn admit(self: &Arc<Self>, peer: Peer) -> Admission {
        let mut state = self.state();
        let of_peer = state.per_peer.get(&peer).copied().unwrap_or_default();
        let victim = if of_peer >= self.limits.per_address {
            Some(state.longest_waiting(Some(peer)))
        } else if state.entries.len() >= self.limits.connections {
            Some(state.longest_waiting(None))
        } else {
            None
        };
        let gone = match victim {
            Some(None) => {
                self.tally.add(Told::Refused);
                return Admission::Refused;
            }
            Some(Some(id)) => {
                self.tally.add(Told::MadeRoom);
                state.remove(id)
            }
            None => None,
        };
        Admission::Granted(self.enter(&mut state, peer), gone)
    }

    fn enter(self: &Arc<Self>, state: &mut State, peer: Peer) -> Ticket {
        let (open, closed) = oneshot::channel();
        let (gone_sender, gone) = oneshot::channel();
        let id = state.number();
        let entry = Entry { peer, waits_since: None, _open: open, gone };
        state.entries.insert(id, entry);
        *state.per_peer.entry(peer).or_default() += 1;
        state.wait(id);
        self.served.send_modify(|served| *served += 1);
        let link = Arc::new(Link { id, peer, phase: AtomicU8::new(WAITING), all: self.clone() });
        Ticket { link: link.clone(), closed, _gone: Gone { link, _gone: gone_sender } }
    }

    /// Closes the connection that waits longest, if one does: no descriptor is left.
    pub(crate) fn make_room(&self) {
        let mut state = self.state();
        if let Some(id) = state.longest_waiting(None) {
            self.tally.add(Told::MadeRoom);
            state.remove(id);
        }
    }

    /// Closes what has no request in flight.
    pub(crate) fn close_waiting(&self) {
        let mut state = self.state();
        while let Some(id) = state.longest_waiting(None) {
            state.remove(id);
        }
    }

    /// Closes everything, answered or not.
    pub(crate) fn close_all(&self) {
        let mut state = self.state();
        state.waiting.clear();
        state.per_peer.clear();
        state.entries.clear();
    }

    /// Who is connected, each once, in no order.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        self.state().per_peer.keys().copied().collect()
    }

    /// Changes with each connection that is taken in or has ended: how many are served.
    pub(crate) fn served(&self) -> watch::Receiver<usize> {
        self.served.subscribe()
    }

    /// Waits until no connection is served.
    pub(crate) async fn all_gone(&self) {
        // The sender lives in this value.
        let _ = self.served.subscribe().wait_for(|served| *served == 0).await;
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Of all connections, or of those of one peer.
    fn longest_waiting(&self, of: Option<Peer>) -> Option<u64> {
        let mut waiting = self.waiting.values();
        waiting.find(|(_, peer)| of.is_none_or(|of| of == *peer)).map(|(id, _)| *id)
    }

    /// Notes that a connection has no request in flight from now on.
    fn wait(&mut self, id: u64) {
        let since = self.number();
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.waits_since = Some(since);
            self.waiting.insert(since, (id, entry.peer));
        }
    }

    /// Closes a connection. Answers what ends once it is gone; `None` if it was closed before.
    fn remove(&mut self, id: u64) -> Option<oneshot::Receiver<Infallible>> {
        let entry = self.entries.remove(&id)?;
        if let Some(since) = entry.waits_since {
            self.waiting.remove(&since);
        }
        if let Some(count) = self.per_peer.get_mut(&entry.peer) {
            *count -= 1;
            if *count == 0 {
                self.per_peer.remove(&entry.peer);
            }
        }
        Some(entry.gone)
    }
}

/// No request is in flight.
const WAITING: u8 = 0;
/// The service has the request, or its answer is being made.
const ANSWERING: u8 = 1;
/// The answer is made; some of it may still have to be sent.
const SENDING: u8 = 2;

/// One connection as its requests and its stream see it. Only its own task changes it.
pub(super) struct Link {
    id: u64,
    peer: Peer,
    phase: AtomicU8,
    all: Arc<Connections>,
}

impl Link {
    /// Who is at the other end.
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether a process of this machine is, by the socket of the folder.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.peer, Peer::Process(_))
    }

    /// Whether no request is in flight.
    pub(super) fn is_waiting(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == WAITING
    }

    /// A request has come; whether it may be served.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.all.state();
        let Some(entry) = state.entries.get_mut(&self.id) else { return false };
        if let Some(since) = entry.waits_since.take() {
            state.waiting.remove(&since);
        }
        self.phase.store(ANSWERING, Ordering::Relaxed);
        true
    }

    /// The answer is made.
    pub(super) fn answered(&self) {
        self.phase.store(SENDING, Ordering::Relaxed);
    }

    /// All bytes so far are sent; whether an answer has ended with them.
    pub(super) fn sent(&self) -> bool {
        if self.phase.load(Ordering::Relaxed) != SENDING {
            return false;
        }
        self.phase.store(WAITING, Ordering::Relaxed);
        self.all.state().wait(self.id);
        true
    }

    pub(super) fn tell(&self, told: Told) {
        self.all.tally.add(told);
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.link.all.state().remove(self.link.id);
        self.link.all.served.send_modify(|served| *served -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections: usize, per_address: usize) -> Arc<Connections> {
        let limits = ConnectionLimits { connections, per_address, ..ConnectionLimits::default() };
        Connections::new(limits, Arc::default())
    }

    fn admit(all: &Arc<Connections>, address: &str) -> Option<Ticket> {
        match all.admit(address.parse::<IpAddr>().unwrap().into()) {
            Admission::Granted(ticket, _) => Some(ticket),
            Admission::Refused => None,
        }
    }

    fn is_closed(ticket: &mut Ticket) -> bool {
        matches!(ticket.closed.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }

    #[test]
    fn at_the_limit_the_one_that_waits_longest_makes_room() {
        let all = connections(3, 3);
        let mut a = admit(&all, "10.0.0.1").unwrap();
        let mut b = admit(&all, "10.0.0.2").unwrap();
        let mut c = admit(&all, "10.0.0.3").unwrap();
        // The oldest has a request in flight, and the next one waits again since a moment ago.
        assert!(a.link.begin() && b.link.begin());
        b.link.answered();
        assert!(b.link.sent());
        let mut d = admit(&all, "10.0.0.4").unwrap();
        assert_eq!([&mut a, &mut b, &mut c, &mut d].map(is_closed), [false, false, true, false]);
        // Whoever was closed begins nothing more.
        assert!(!c.link.begin());
        assert!(b.link.begin() && d.link.begin());
        assert!(admit(&all, "10.0.0.5").is_none());
        drop(a);
        assert!(admit(&all, "10.0.0.5").is_some());
    }

    #[test]
    fn an_answer_that_is_not_sent_yet_is_a_request_in_flight() {
        let all = connections(1, 1);
        let a = admit(&all, "10.0.0.1").unwrap();
        assert!(a.link.begin() && !a.link.sent());
        a.link.answered();
        assert!(admit(&all, "10.0.0.2").is_none());
        assert!(a.link.sent() && !a.link.sent());
        assert!(admit(&all, "10.0.0.2").is_some());
    }

    #[test]
    fn an_address_makes_room_for_itself_alone() {
        let all = connections(9, 2);
        let mut other = admit(&all, "10.0.0.9").unwrap();
        for pair in [
            ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"],
            ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::"],
        ] {
            let mut first = admit(&all, pair[0]).unwrap();
            let second = admit(&all, pair[1]).unwrap();
            let third = admit(&all, pair[2]).unwrap();
            assert!(is_closed(&mut first) && !is_closed(&mut other), "{pair:?}");
            assert!(second.link.begin() && third.link.begin());
            assert!(admit(&all, pair[0]).is_none(), "{pair:?}");
        }
        assert!(admit(&all, "2001:db8:0:1::1").is_some());
    }

    #[test]
    fn a_stop_closes_what_waits_and_then_the_rest() {
        let all = connections(3, 3);
        let (mut a, mut b) = (admit(&all, "::1").unwrap(), admit(&all, "::1").unwrap());
        assert!(a.link.begin());
        all.close_waiting();
        assert!(!is_closed(&mut a) && is_closed(&mut b));
        assert_eq!(*all.served.borrow(), 2);
        all.close_all();
        assert!(is_closed(&mut a));
        drop((a, b));
        assert_eq!(*all.served.borrow(), 0);
    }
}
