//! The calls under way, by the ids of the requests that concern them.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::message::Id;

/// What happens to a call after it was sent.
pub enum Event {
    /// The server has answered.
    Answer(Answer),
    /// The host does not want it any more.
    Cancelled,
    /// The server is gone; no answer will come.
    Gone,
}

/// An answer of the server.
pub struct Answer {
    /// The message; empty if it is no text.
    pub text: String,
    /// When it came.
    pub at_ms: u64,
    /// Whether it answers the call itself, not a later question about it.
    pub is_first: bool,
    /// What the host is to get.
    pub reply: oneshot::Sender<Reply>,
}

/// What the host is to get of an answer.
#[derive(Debug)]
pub enum Reply {
    /// The answer as it came.
    AsItCame,
    /// This one.
    Changed(String),
    /// Nothing: it has an answer already.
    Nothing,
}

/// Where events of a call go.
pub type Events = UnboundedSender<Event>;

/// A call that goes on with another request: tool, input hash and state.
pub type Input = (String, String, Option<String>);

/// What becomes of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// It goes to the server.
    Send,
    /// The call was not sent and will not be: neither will this.
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The ledger was asked.
    Claiming,
    /// The host has cancelled it meanwhile.
    Cancelled,
    /// The server has it.
    Sent,
}

struct Open {
    phase: Phase,
    is_first: bool,
    events: Events,
}

/// The calls under way.
#[derive(Default)]
pub struct Calls(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    open: HashMap<Id, Open>,
    tasks: HashMap<String, Events>,
    inputs: HashMap<Input, Events>,
    lists: HashSet<Id>,
    is_server_gone: bool,
}

impl Calls {
    /// A new call. `false` if its id is taken.
    pub fn begin(&self, id: &Id, events: Events) -> bool {
        let mut inner = self.lock();
        if inner.open.contains_key(id) {
            return false;
        }
        let open = Open { phase: Phase::Claiming, is_first: true, events };
        inner.open.insert(id.clone(), open);
        true
    }

    /// Another request about a call, which needs no permission.
    pub fn continue_with(&self, id: &Id, events: Events) {
        let mut inner = self.lock();
        if inner.is_server_gone {
            let _ = events.send(Event::Gone);
            return;
        }
        inner.open.insert(id.clone(), Open { phase: Phase::Sent, is_first: false, events });
    }

    /// The call is about to be sent. `false` if it was cancelled, or nobody is there to take it.
    pub fn send(&self, id: &Id) -> bool {
        let mut inner = self.lock();
        let is_server_gone = inner.is_server_gone;
        match inner.open.get_mut(id) {
            Some(open) if open.phase == Phase::Claiming && !is_server_gone => {
                open.phase = Phase::Sent;
                true
            }
            _ => false,
        }
    }

    /// It was not sent and will not be.
    pub fn forget(&self, id: &Id) {
        self.lock().open.remove(id);
    }

    /// The host cancels a request.
    pub fn cancel(&self, id: &Id) -> Cancel {
        match self.lock().open.get_mut(id) {
            Some(open) if open.phase == Phase::Sent => {
                // Who listens no more has its answer.
                let _ = open.events.send(Event::Cancelled);
                Cancel::Send
            }
            Some(open) => {
                open.phase = Phase::Cancelled;
                Cancel::Drop
            }
            None => Cancel::Send,
        }
    }

    /// The request with this id is answered: who is to hear of it, and whether it was the call's
    /// first request.
    pub fn answered(&self, id: &Id) -> Option<(Events, bool)> {
        let mut inner = self.lock();
        // The server cannot answer what it did not get.
        inner.open.get(id).filter(|open| open.phase == Phase::Sent)?;
        inner.open.remove(id).map(|open| (open.events, open.is_first))
    }

    /// The call goes on as a task.
    pub fn park_task(&self, task: String, events: Events) {
        let mut inner = self.lock();
        if inner.is_server_gone {
            let _ = events.send(Event::Gone);
            return;
        }
        inner.tasks.insert(task, events);
    }

    /// The call goes on when the host brings what it was asked for.
    pub fn park_input(&self, input: Input, events: Events) {
        let mut inner = self.lock();
        if inner.is_server_gone {
            let _ = events.send(Event::Gone);
            return;
        }
        inner.inputs.insert(input, events);
    }

    /// Who is to hear of a task.
    pub fn task(&self, task: &str) -> Option<Events> {
        self.lock().tasks.get(task).cloned()
    }

    /// Who is to hear of a call that is brought what it waits for.
    pub fn take_input(&self, input: &Input) -> Option<Events> {
        self.lock().inputs.remove(input)
    }

    /// A call is over: nothing leads to it any more.
    pub fn end(&self, events: &Events) {
        let mut inner = self.lock();
        inner.tasks.retain(|_, other| !other.same_channel(events));
        inner.inputs.retain(|_, other| !other.same_channel(events));
        inner.open.retain(|_, open| !open.events.same_channel(events));
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.open.is_empty() && inner.tasks.is_empty() && inner.inputs.is_empty()
    }

    /// The host lists the tools.
    pub fn list(&self, id: &Id) {
        self.lock().lists.insert(id.clone());
    }

    /// Whether this answers such a request.
    pub fn is_list(&self, id: &Id) -> bool {
        self.lock().lists.remove(id)
    }

    /// The server is gone.
    pub fn server_gone(&self) {
        let gone = Inner { is_server_gone: true, ..Inner::default() };
        let inner = std::mem::replace(&mut *self.lock(), gone);
        let open = inner.open.into_values().map(|open| open.events);
        for events in open.chain(inner.tasks.into_values()).chain(inner.inputs.into_values()) {
            let _ = events.send(Event::Gone);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("no holder panics")
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn a_cancel_before_the_call_is_sent_stops_both() {
        let (calls, id) = (Calls::default(), Id::read("1"));
        let (events, mut heard) = unbounded_channel();
        assert!(calls.begin(&id, events.clone()));
        assert!(!calls.begin(&id, events));
        assert!(calls.answered(&id).is_none());
        assert_eq!(calls.cancel(&id), Cancel::Drop);
        assert!(!calls.send(&id));
        assert!(heard.try_recv().is_err());
    }

    #[test]
    fn a_cancel_of_a_sent_call_is_heard_and_its_answer_still_finds_it() {
        let (calls, id) = (Calls::default(), Id::read("1"));
        let (events, mut heard) = unbounded_channel();
        assert!(calls.begin(&id, events) && calls.send(&id));
        assert_eq!(calls.cancel(&id), Cancel::Send);
        assert!(matches!(heard.try_recv(), Ok(Event::Cancelled)));
        assert!(matches!(calls.answered(&id), Some((_, true))));
        assert!(calls.answered(&id).is_none());
        assert_eq!(calls.cancel(&Id::read("2")), Cancel::Send);
    }
}
