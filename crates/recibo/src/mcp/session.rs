//! A session between a host and a server, and what the host says in it. Everything that was read
//! passes as it came and in its order, but for tool calls: those wait for the ledger, each by
//! itself.

use std::sync::Arc;
use std::time::Duration;

use recibo_adapter::OnTwin;
use tokio::sync::mpsc::{self, UnboundedReceiver, unbounded_channel};

use super::admission::Admission;
use super::batch;
use super::call::{Begun, Permit, Request, taken_answer};
use super::call_id;
use super::calls::{Calls, Cancel, Event, Events, Kind, Other, Taken};
use super::delivery::Delivery;
use super::follow::Follower;
use super::hints::Hints;
use super::io::{Input, Output, next_line};
use super::message::{Id, Members};
use super::names::Names;
use super::placement::Placement;
use super::queue::{SendQueue, Ticket};
use super::run::Run;
use super::strict::{self, Framing, HostLine, HostMessage, Unfit};
use super::tell;

/// What the user has chosen.
pub struct Settings {
    /// The run.
    pub run: Run,
    /// What call ids begin with.
    pub session: call_id::Session,
    /// What tool names begin with.
    pub tool_prefix: String,
    /// How long an attempt may stay open.
    pub lease: Duration,
    /// How long its lease is renewed at most.
    pub renew_for: Duration,
    /// How long another attempt is waited for.
    pub wait: Duration,
    /// What becomes of a call while another one that does the same may have taken effect.
    pub on_twin: OnTwin,
    /// How long an answer is waited for; without one, as long as the host does.
    pub timeout: Option<Duration>,
    /// Where receipts go.
    pub receipt: Placement,
}

/// A session between a host and a server.
pub struct Session {
    /// What the user has chosen.
    pub settings: Settings,
    /// The way to the ledger.
    pub admission: Arc<Admission>,
    /// What the server says of its tools, if it is believed.
    pub hints: Option<Hints>,
    /// Who speaks to whom.
    pub names: Names,
    /// The requests under way.
    pub calls: Calls,
    /// To the server.
    pub to_server: Output,
    /// To the host, for answers of this proxy.
    to_host: Arc<Output>,
    /// To the host, for what the server says.
    pub delivery: Delivery,
    queue: SendQueue,
    /// Whoever holds one of these is at work.
    busy: mpsc::Sender<()>,
}

/// How the host has ended its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// It says no more.
    Closed,
    /// It does not write one message a line.
    Misframed,
}

/// What becomes of a message of the host.
pub enum Step {
    /// It goes to the server as it came.
    Pass,
    /// It goes nowhere.
    Drop,
    /// It goes nowhere; this is the answer.
    Answer(String),
    /// The ledger is asked.
    Call(Box<Pending>),
    /// Several at once.
    Batch(batch::Plan),
}

/// A call that stands before the ledger.
pub struct Pending {
    /// The request.
    pub request: Request,
    /// Where its events go.
    pub events: Events,
    /// Where they come from.
    pub heard: UnboundedReceiver<Event>,
}

impl Session {
    /// A session, and what ends once nobody is at work any more and the session is dropped.
    pub fn new(
        settings: Settings,
        admission: Arc<Admission>,
        hints: Option<Hints>,
        names: Names,
        to_server: Output,
        to_host: Output,
    ) -> (Arc<Self>, mpsc::Receiver<()>) {
        let (busy, idle) = mpsc::channel(1);
        let to_host = Arc::new(to_host);
        let session = Self {
            settings,
            admission,
            hints,
            names,
            calls: Calls::default(),
            to_server,
            delivery: Delivery::start(to_host.clone()),
            to_host,
            queue: SendQueue::default(),
            busy,
        };
        (Arc::new(session), idle)
    }

    /// Takes what the host says, to its end; then the server reads the end too, once the calls
    /// before it are with it.
    pub async fn hear_host(self: Arc<Self>, mut host: Input) -> HostEnd {
        let mut end = HostEnd::Closed;
        let mut is_open = false;
        while let Some(line) = next_line(&mut host).await {
            match self.judge(&line) {
                Ok(step) => {
                    is_open = false;
                    self.clone().carry_out(step, line).await;
                }
                Err(unfit) => {
                    tell(&format!("a line was not passed on: {}", unfit.reason));
                    self.answer(&unfit.answer()).await;
                    if is_open || unfit.framing == Framing::Headers {
                        tell("the host does not write one message a line; the session ends");
                        end = HostEnd::Misframed;
                        break;
                    }
                    is_open = unfit.framing == Framing::Open;
                }
            }
        }
        self.calls.host_gone();
        self.queue.join().wait().await;
        self.to_server.close().await;
        end
    }

    fn judge(&self, line: &[u8]) -> Result<Step, Unfit> {
        Ok(match strict::read(line)? {
            HostLine::Blank => Step::Pass,
            HostLine::One(message) => self.step(&message),
            HostLine::Batch(elements) => Step::Batch(batch::Plan::read(self, line, elements)),
        })
    }

    async fn carry_out(self: Arc<Self>, step: Step, line: Vec<u8>) {
        match step {
            Step::Pass => _ = self.to_server.write(&line).await,
            Step::Drop => {}
            Step::Answer(answer) => self.answer(&answer).await,
            Step::Call(pending) => self.call(*pending, line),
            Step::Batch(plan) => plan.carry_out(self, line).await,
        }
    }

    /// Takes note of a message of the host, and says what becomes of it.
    pub fn step(&self, message: &HostMessage<'_>) -> Step {
        match message {
            HostMessage::Call(call) => {
                let (events, heard) = unbounded_channel();
                match Request::begin(self, call, events.clone()) {
                    Begun::Call(request) => {
                        Step::Call(Box::new(Pending { request: *request, events, heard }))
                    }
                    Begun::Continues => Step::Pass,
                    Begun::Refused(answer) => Step::Answer(answer),
                }
            }
            HostMessage::CallWithoutId => {
                tell("a tools/call without an id could not be recorded and was not passed on");
                Step::Drop
            }
            HostMessage::Notification(method, members)
                if method == "notifications/cancelled" && self.is_cancelled_unsent(members) =>
            {
                Step::Drop
            }
            HostMessage::Request(id, method, members) => match self.request(id, method, members) {
                Ok(()) => Step::Pass,
                Err(taken) => {
                    tell("a request with the id of another one was not passed on");
                    let raw_id = members.get("id").unwrap_or("null");
                    Step::Answer(taken_answer(raw_id, taken))
                }
            },
            HostMessage::Notification(..) | HostMessage::Response => Step::Pass,
        }
    }

    fn is_cancelled_unsent(&self, members: &Members<'_>) -> bool {
        let request = members.object("params").and_then(|params| params.get("requestId"));
        request.is_some_and(|id| self.calls.cancel(&Id::read(id)) == Cancel::Drop)
    }

    /// Takes note of a request that is no call.
    fn request(&self, id: &Id, method: &str, members: &Members<'_>) -> Result<(), Taken> {
        let kind = match method {
            "tasks/get" => Some(Kind::TaskGet),
            "tasks/result" => Some(Kind::TaskResult),
            _ => None,
        };
        let events = || self.events_of_task(&members.object("params")?);
        if let Some(kind) = kind
            && let Some(events) = events()
        {
            return self.calls.continue_with(id, events, kind);
        }
        let other = match method {
            "initialize" => Other::Initialize,
            "server/discover" => Other::Discover,
            "tools/list" => Other::List,
            _ => Other::Any,
        };
        self.calls.request(id, other)?;
        if method == "tasks/cancel"
            && let Some(events) = events()
        {
            let _ = events.send(Event::Cancelled(self.calls.reports.begin()));
        }
        if other == Other::Initialize
            && let Some(params) = members.object("params")
        {
            self.names.learn_client(&params);
        }
        Ok(())
    }

    /// Who is to hear of the task that these parameters name.
    pub fn events_of_task(&self, params: &Members<'_>) -> Option<Events> {
        let nested = || params.object("task")?.text("taskId");
        self.calls.task(&params.text("taskId").or_else(nested)?)
    }

    /// Sends a tool call once it is permitted. Returns as soon as it stands in the queue.
    fn call(self: Arc<Self>, pending: Pending, line: Vec<u8>) {
        let Pending { request, events, heard } = pending;
        let (ticket, busy) = (self.join_queue(), self.busy());
        let run = request.spec.run_id.clone();
        tokio::spawn(async move {
            let mut ticket = Some(ticket);
            let permit = request.permit(&self, &mut ticket).await;
            if matches!(permit, Permit::Go(_)) {
                wait(&mut ticket).await;
            }
            let sent = request.send(&self, permit, &line).await;
            release(ticket);
            drop(line);
            match sent {
                Ok((grant, written, sent_at_ms)) => {
                    let follower = Follower::new(self, request, events, grant, sent_at_ms);
                    follower.follow(written, heard).await;
                }
                Err(stay) => {
                    if let Some(why) = stay.settle().await {
                        // Before the answer: a call that follows it is to be judged by it.
                        self.admission.memory.note(&run, why.success);
                        self.answer(&request.answer(&why.text)).await;
                    }
                }
            }
            drop(busy);
        });
    }

    /// A place in the queue of calls.
    pub fn join_queue(&self) -> Ticket {
        self.queue.join()
    }

    /// Proof of being at work.
    pub fn busy(&self) -> mpsc::Sender<()> {
        self.busy.clone()
    }

    /// An answer of our own to the host.
    pub async fn answer(&self, answer: &str) {
        self.to_host.write(format!("{answer}\n").as_bytes()).await;
    }
}

/// Waits for a ticket that was not released.
pub async fn wait(ticket: &mut Option<Ticket>) {
    if let Some(ticket) = ticket {
        ticket.wait().await;
    }
}

/// Releases a ticket that was not released.
pub fn release(ticket: Option<Ticket>) {
    if let Some(ticket) = ticket {
        ticket.release();
    }
}
