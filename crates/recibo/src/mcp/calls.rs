//! What the host has asked and the server has not answered yet, by the ids of the requests. An
//! answer must never be taken for the answer to another request: a receipt would prove what did
//! not happen.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

use super::answer::Reading;
use super::message::{Id, string};
use super::reports::{Report, Reports};

/// Ids that are remembered after their answer. Real ids take a few bytes; a line bounds each.
const KNOWN_MAX: usize = 1 << 16;
/// Requests other than calls that may be without an answer, cancelled ones not counted.
const OTHERS_MAX: usize = 1 << 14;
/// Ids of such requests, cancelled ones too: their answers need not come, and may.
const OTHER_IDS_MAX: usize = 1 << 16;
/// Calls whose outcome is recorded as unknown and whose answer is still waited for.
const GIVEN_UP_MAX: usize = 1 << 10;
/// Calls that wait for what the server has asked the host for, and the host may never bring.
const INPUTS_MAX: usize = 1 << 10;

/// What happens to a call after it was sent.
pub enum Event {
    /// The server has answered.
    Answer(Answer),
    /// The host does not want it any more.
    Cancelled(Report),
    /// The host has brought what the server had asked for.
    Continued,
    /// No answer will come, for this reason.
    Gone(&'static str),
    /// Its outcome is recorded as unknown, and too many such calls are waited for.
    Forgotten,
}

/// An answer of the server.
pub struct Answer {
    /// The message; empty if it cannot be read.
    pub text: String,
    /// What it says.
    pub reading: Reading,
    /// When it came.
    pub at_ms: u64,
    /// What it answers.
    pub kind: Kind,
    /// What the host is to get.
    pub reply: oneshot::Sender<Reply>,
    /// Dropped once it is recorded.
    pub report: Report,
}

/// What an answer is an answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The call.
    Call,
    /// The call that was sent again with what the server had asked for.
    Continuation,
    /// `tasks/get`.
    TaskGet,
    /// `tasks/result`.
    TaskResult,
    /// Nothing: the server tells of the task by itself.
    TaskNotice,
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

/// Whether a call that has permission may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It may.
    Go,
    /// The host has cancelled it.
    Cancelled,
    /// Nobody is there to take it.
    Gone,
}

/// A request that is no call, as far as its answer concerns this proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// `initialize`.
    Initialize,
    /// `server/discover`, which begins a session since 2026-07-28.
    Discover,
    /// `tools/list`.
    List,
    /// Any other.
    Any,
}

/// Why a request may not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its id is another open request's.
    SameId,
    /// Too many are open.
    TooMany,
}

/// Whose answer an answer is.
pub enum Whose {
    /// A call's.
    Call(Events, Kind),
    /// Another request's.
    Other(Other),
    /// An answer came before, or the request was never sent.
    Nobody,
    /// Of a request that is not known: not this proxy's business.
    Stranger,
}

/// Names one use of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The client, from 1: each `initialize` after the first begins another one.
    pub client: u32,
    /// The numbering, from 1.
    pub round: u32,
    /// The use of the id within it, from 1.
    pub number: u32,
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
    kind: Kind,
    /// `None` once nobody follows the call.
    events: Option<Events>,
}

/// A request that is no call, without an answer.
struct Asked {
    other: Other,
    is_cancelled: bool,
}

/// A call that waits for input of the host.
struct Parked {
    events: Events,
    /// After this moment nothing may be sent for it.
    last_moment_ms: u64,
}

#[derive(Default)]
struct Known {
    uses: u32,
    is_answered: bool,
}

/// The requests under way.
#[derive(Default)]
pub struct Calls {
    inner: Mutex<Inner>,
    /// Changes whenever a call is cancelled that was not sent.
    cancelled: watch::Sender<()>,
    /// What is being told to the ledger of them.
    pub reports: Reports,
}

struct Inner {
    open: HashMap<Id, Open>,
    others: HashMap<Id, Vec<Asked>>,
    others_open: usize,
    tasks: HashMap<String, Events>,
    inputs: HashMap<Input, Parked>,
    given_up: VecDeque<Events>,
    known: HashMap<Id, Known>,
    round: u32,
    client: u32,
    is_initialized: bool,
    is_host_gone: bool,
    is_server_gone: bool,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            others: HashMap::new(),
            others_open: 0,
            tasks: HashMap::new(),
            inputs: HashMap::new(),
            given_up: VecDeque::new(),
            known: HashMap::new(),
            round: 1,
            client: 1,
            is_initialized: false,
            is_host_gone: false,
            is_server_gone: false,
        }
    }
}

impl Calls {
    /// A new call.
    pub fn begin(&self, id: &Id, events: Events) -> Result<Use, Taken> {
        let mut inner = self.lock();
        inner.check(id)?;
        let open = Open { phase: Phase::Claiming, kind: Kind::Call, events: Some(events) };
        inner.open.insert(id.clone(), open);
        let (client, round) = (inner.client, inner.round);
        let known = inner.know(id);
        known.uses = known.uses.saturating_add(1);
        let number = known.uses;
        Ok(Use { client, round, number })
    }

    /// Another request about a call, which needs no permission.
    pub fn continue_with(&self, id: &Id, events: Events, kind: Kind) -> Result<(), Taken> {
        let mut inner = self.lock();
        inner.check(id)?;
        if inner.is_server_gone {
            let _ = events.send(Event::Gone(inner.gone_class()));
            return Ok(());
        }
        inner.know(id);
        inner.open.insert(id.clone(), Open { phase: Phase::Sent, kind, events: Some(events) });
        Ok(())
    }

    /// The host sends a call again with what the server had asked for. `None` if no call waits
    /// for that, or its permission is over.
    pub fn bring_input(&self, id: &Id, input: &Input, at_ms: u64) -> Option<Result<(), Taken>> {
        let events = {
            let mut inner = self.lock();
            if inner.inputs.get(input)?.last_moment_ms <= at_ms {
                return None;
            }
            if let Err(taken) = inner.check(id) {
                return Some(Err(taken));
            }
            inner.inputs.remove(input)?.events
        };
        // If the follower has ended, the server's answer passes as it comes.
        let _ = events.send(Event::Continued);
        Some(self.continue_with(id, events, Kind::Continuation))
    }

    /// A request that is no call.
    pub fn request(&self, id: &Id, other: Other) -> Result<(), Taken> {
        let mut inner = self.lock();
        if inner.open.contains_key(id) {
            return Err(Taken::SameId);
        }
        if inner.others_open >= OTHERS_MAX || inner.others.len() >= OTHER_IDS_MAX {
            return Err(Taken::TooMany);
        }
        if other == Other::Initialize && std::mem::replace(&mut inner.is_initialized, true) {
            // Another client: its ids have nothing to do with those before.
            inner.client = inner.client.saturating_add(1);
            inner.next_round();
        }
        if let Some(known) = inner.known.get_mut(id) {
            known.is_answered = false;
        }
        inner.others.entry(id.clone()).or_default().push(Asked { other, is_cancelled: false });
        inner.others_open += 1;
        Ok(())
    }

    /// The call is about to be sent.
    pub fn send(&self, id: &Id) -> Sending {
        let mut inner = self.lock();
        if inner.is_server_gone {
            return Sending::Gone;
        }
        match inner.open.get_mut(id) {
            Some(open) if open.phase == Phase::Claiming => {
                open.phase = Phase::Sent;
                Sending::Go
            }
            _ => Sending::Cancelled,
        }
    }

    /// Whether the host still waits for a call that was not sent.
    pub fn is_wanted(&self, id: &Id) -> bool {
        let inner = self.lock();
        inner.is_server_gone || inner.open.get(id).is_some_and(|open| open.phase == Phase::Claiming)
    }

    /// Returns once the host has cancelled a call that was not sent.
    pub async fn unwanted(&self, id: &Id) {
        // The sender lives in this value.
        let _ = self.cancelled.subscribe().wait_for(|_| !self.is_wanted(id)).await;
    }

    /// It was not sent and will not be.
    pub fn forget(&self, id: &Id) {
        self.lock().open.remove(id);
    }

    /// The host cancels a request.
    pub fn cancel(&self, id: &Id) -> Cancel {
        let mut inner = self.lock();
        match inner.open.get_mut(id) {
            Some(open) if open.phase == Phase::Sent => {
                if let Some(events) = &open.events {
                    // If the follower has ended, the call is answered already.
                    let _ = events.send(Event::Cancelled(self.reports.begin()));
                }
                Cancel::Send
            }
            Some(open) => {
                open.phase = Phase::Cancelled;
                // Whoever is told looks into what is locked here.
                drop(inner);
                self.cancelled.send_replace(());
                Cancel::Drop
            }
            None => {
                inner.cancel_other(id);
                Cancel::Send
            }
        }
    }

    /// An answer with this id has come: whose is it?
    pub fn answered(&self, id: &Id) -> Whose {
        let mut inner = self.lock();
        if let Some(whose) = inner.take(id) {
            return whose;
        }
        if inner.known.get(id).is_some_and(|known| known.is_answered) {
            return Whose::Nobody;
        }
        // Some servers answer 1 with "1", or the reverse.
        let twin = other_type(id);
        twin.and_then(|twin| inner.take(&twin)).unwrap_or(Whose::Stranger)
    }

    /// The call goes on as a task.
    pub fn park_task(&self, task: String, events: Events) {
        let mut inner = self.lock();
        if inner.is_server_gone {
            let _ = events.send(Event::Gone(inner.gone_class()));
            return;
        }
        inner.tasks.insert(task, events);
    }

    /// The call goes on when the host brings what it was asked for.
    /// Nothing may be sent for it after this moment. Of too many such calls the one whose moment
    /// comes first is forgotten, and so is one that waits for the same.
    pub fn park_input(&self, input: Input, events: Events, last_moment_ms: u64) {
        let mut inner = self.lock();
        if inner.is_server_gone {
            let _ = events.send(Event::Gone(inner.gone_class()));
            return;
        }
        let parked = Parked { events: events.clone(), last_moment_ms };
        let mut forgotten = inner.inputs.insert(input, parked);
        if inner.inputs.len() > INPUTS_MAX {
            let first = inner.inputs.iter().min_by_key(|(_, parked)| parked.last_moment_ms);
            let first = first.map(|(input, _)| input.clone());
            forgotten = first.and_then(|input| inner.inputs.remove(&input));
        }
        if let Some(parked) = forgotten.filter(|parked| !parked.events.same_channel(&events)) {
            let _ = parked.events.send(Event::Forgotten);
        }
    }

    /// Who is to hear of a task.
    pub fn task(&self, task: &str) -> Option<Events> {
        self.lock().tasks.get(task).cloned()
    }

    /// The outcome of a call is recorded as unknown; its answer may still come. Of too many such
    /// calls the oldest is forgotten.
    pub fn give_up(&self, events: &Events) {
        let mut inner = self.lock();
        inner.given_up.push_back(events.clone());
        if inner.given_up.len() > GIVEN_UP_MAX
            && let Some(oldest) = inner.given_up.pop_front()
        {
            let _ = oldest.send(Event::Forgotten);
        }
    }

    /// A call is over: nothing leads to it any more.
    pub fn end(&self, events: &Events) {
        let mut inner = self.lock();
        inner.tasks.retain(|_, other| !other.same_channel(events));
        inner.inputs.retain(|_, parked| !parked.events.same_channel(events));
        inner.given_up.retain(|other| !other.same_channel(events));
        inner.open.retain(|_, open| !open.leads_to(events));
    }

    /// Nobody follows the call any more, but its request is without an answer: the id stays taken,
    /// so that a late answer is never taken for the answer to another call.
    pub fn abandon(&self, events: &Events) {
        let mut inner = self.lock();
        inner.tasks.retain(|_, other| !other.same_channel(events));
        inner.inputs.retain(|_, parked| !parked.events.same_channel(events));
        for open in inner.open.values_mut().filter(|open| open.leads_to(events)) {
            open.events = None;
        }
    }

    /// Whether no call is under way.
    pub fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.open.is_empty() && inner.tasks.is_empty() && inner.inputs.is_empty()
    }

    /// The host has ended its side, or wants the session to end.
    pub fn host_gone(&self) {
        self.lock().is_host_gone = true;
    }

    /// The server is gone.
    pub fn server_gone(&self) {
        let mut inner = self.lock();
        inner.is_server_gone = true;
        let class = inner.gone_class();
        let open = std::mem::take(&mut inner.open).into_values().filter_map(|open| open.events);
        let tasks = std::mem::take(&mut inner.tasks).into_values();
        let inputs = std::mem::take(&mut inner.inputs).into_values().map(|parked| parked.events);
        // Some given-up calls have no open request, task or input.
        let given_up = std::mem::take(&mut inner.given_up);
        for events in open.chain(tasks).chain(inputs).chain(given_up) {
            let _ = events.send(Event::Gone(class));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder panics")
    }
}

impl Open {
    fn leads_to(&self, events: &Events) -> bool {
        self.events.as_ref().is_some_and(|own| own.same_channel(events))
    }
}

impl Inner {
    /// Whether a call, or a request about one, may have this id.
    fn check(&self, id: &Id) -> Result<(), Taken> {
        let is_open = self.open.contains_key(id) || self.others.contains_key(id);
        if is_open { Err(Taken::SameId) } else { Ok(()) }
    }

    /// Takes note of an id that is used again.
    fn know(&mut self, id: &Id) -> &mut Known {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(id) {
            // What was forgotten must not be numbered as if it came for the first time.
            self.next_round();
        }
        let known = self.known.entry(id.clone()).or_default();
        known.is_answered = false;
        known
    }

    fn next_round(&mut self) {
        self.known.clear();
        self.round = self.round.saturating_add(1);
    }

    fn take(&mut self, id: &Id) -> Option<Whose> {
        if let Some(open) = self.open.get(id) {
            // The server cannot answer what it did not get.
            if open.phase != Phase::Sent {
                return Some(Whose::Nobody);
            }
            let open = self.open.remove(id)?;
            if let Some(known) = self.known.get_mut(id) {
                known.is_answered = true;
            }
            return Some(match open.events {
                Some(events) => Whose::Call(events, open.kind),
                None => Whose::Stranger,
            });
        }
        let others = self.others.get_mut(id)?;
        let asked = others.remove(0);
        if others.is_empty() {
            self.others.remove(id);
        }
        self.others_open -= usize::from(!asked.is_cancelled);
        Some(Whose::Other(asked.other))
    }

    /// A server need not answer a cancelled request. Its id stays taken all the same: an answer
    /// that comes is never taken for the answer to a call.
    fn cancel_other(&mut self, id: &Id) {
        let mut asked = self.others.get_mut(id).into_iter().flatten();
        if let Some(asked) = asked.find(|asked| !asked.is_cancelled) {
            asked.is_cancelled = true;
            self.others_open -= 1;
        }
    }

    fn gone_class(&self) -> &'static str {
        if self.is_host_gone { "host_gone" } else { "server_gone" }
    }
}

/// `1` for `"1"`, and the reverse.
fn other_type(id: &Id) -> Option<Id> {
    match string(id.as_str()) {
        Some(text) => {
            let number = text.parse::<f64>().is_ok().then(|| Id::read(&text));
            number.filter(|id| id.as_str() == text)
        }
        None => Some(Id::read(&format!("\"{}\"", id.as_str()))),
    }
}

#[cfg(test)]
mod tests;
