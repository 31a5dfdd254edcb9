//! What passes between a host and a server. Everything does, as it came and in its order, but for
//! tool calls: those wait for the ledger, each by itself.

use std::sync::Arc;
use std::time::Duration;

use recibo_adapter::now_ms;
use tokio::sync::{mpsc, oneshot};

use super::batch;
use super::call::{self, Checked, Follower, Request};
use super::calls::{Answer, Calls, Cancel, Event, Events, Reply};
use super::desk::Desk;
use super::hints::Hints;
use super::io::{Input, Output, next_line};
use super::message::{Id, Members, Message};
use super::turn::{Line, Turn};
use super::{refusal, tell};

/// What the user has chosen.
pub struct Settings {
    /// The run.
    pub run: String,
    /// What call ids begin with.
    pub session: String,
    /// What tool names begin with.
    pub tool_prefix: String,
    /// How long an attempt may stay open.
    pub lease: Duration,
    /// How long another attempt is waited for.
    pub wait: Duration,
    /// How long an answer is waited for; without one, as long as the host does.
    pub timeout: Option<Duration>,
}

/// A session between a host and a server.
pub struct Session {
    /// What the user has chosen.
    pub settings: Settings,
    /// The way to the ledger.
    pub desk: Arc<Desk>,
    /// What the server says of its tools, if it is believed.
    pub hints: Option<Hints>,
    /// The calls under way.
    pub calls: Calls,
    /// To the server.
    pub to_server: Output,
    /// To the host.
    pub to_host: Output,
    line: Line,
    /// Whoever holds one of these is at work.
    busy: mpsc::Sender<()>,
}

impl Session {
    /// A session, and what ends once nobody is at work any more and the session is dropped.
    pub fn new(
        settings: Settings,
        desk: Arc<Desk>,
        hints: Option<Hints>,
        to_server: Output,
        to_host: Output,
    ) -> (Arc<Self>, mpsc::Receiver<()>) {
        let (busy, idle) = mpsc::channel(1);
        let (calls, line) = Default::default();
        let session = Self { settings, desk, hints, calls, to_server, to_host, line, busy };
        (Arc::new(session), idle)
    }

    /// Takes what the host says, to its end; then the server reads the end too, once the calls
    /// before it are with it.
    pub async fn hear_host(self: Arc<Self>, mut host: Input) {
        while let Some(line) = next_line(&mut host).await {
            let text = String::from_utf8_lossy(&line);
            match Message::read(&text) {
                Message::Request(id, method, members) if method == "tools/call" => {
                    match Request::read(&self, id, &members) {
                        Some(request) => self.clone().call(request, line).await,
                        None => _ = self.to_server.write(&line).await,
                    }
                }
                Message::Notification(method, _) if method == "tools/call" => {
                    tell("a tools/call without an id could not be recorded and was not passed on");
                }
                Message::Batch(elements) if batch::has_call(&elements) => {
                    batch::from_host(&self, &text, &elements).await;
                }
                message => {
                    if self.notice(&message) {
                        self.to_server.write(&line).await;
                    }
                }
            }
        }
        self.line.queue().come().await;
        self.to_server.close().await;
    }

    /// Takes note of what concerns calls; says whether the message is to be passed on.
    pub fn notice(&self, message: &Message<'_>) -> bool {
        match message {
            Message::Notification(method, members) if method == "notifications/cancelled" => {
                let request = members.object("params").and_then(|params| params.get("requestId"));
                request.is_none_or(|id| self.calls.cancel(&Id::read(id)) == Cancel::Send)
            }
            Message::Request(id, method, _) if method == "tools/list" => {
                if self.hints.is_some() {
                    self.calls.list(id);
                }
                true
            }
            Message::Request(id, method, members) if method == "tasks/result" => {
                if let Some(events) = self.events_of_task(members) {
                    self.calls.continue_with(id, events);
                }
                true
            }
            Message::Request(_, method, members) if method == "tasks/cancel" => {
                if let Some(events) = self.events_of_task(members) {
                    let _ = events.send(Event::Cancelled);
                }
                true
            }
            _ => true,
        }
    }

    fn events_of_task(&self, members: &Members<'_>) -> Option<Events> {
        self.calls.task(&members.object("params")?.text("taskId")?)
    }

    /// A tool call. Returns as soon as it stands in line.
    async fn call(self: Arc<Self>, request: Request, line: Vec<u8>) {
        if let Some(events) = request.continued(&self) {
            self.calls.continue_with(&request.id, events);
            self.to_server.write(&line).await;
            return;
        }
        let (events, heard) = call::events();
        if !self.calls.begin(&request.id, events.clone()) {
            self.answer(&request.answer(refusal::SAME_ID)).await;
            return;
        }
        let turn = self.line.queue();
        let busy = self.busy.clone();
        tokio::spawn(async move {
            let mut turn = Some(turn);
            let permit = request.permit(&self, &mut turn).await;
            come(&mut turn).await;
            let mut pen = self.to_server.pen().await;
            let checked = request.check(&self, permit, pen.is_open()).await;
            if let Checked::Send(grant) = checked {
                let follower = Follower::new(self.clone(), request, events, grant);
                pen.write(&line).await;
                drop(pen);
                leave(turn);
                follower.follow(heard).await;
            } else {
                drop(pen);
                leave(turn);
                if let Checked::Answer(answer) = checked {
                    self.answer(&answer).await;
                }
            }
            drop(busy);
        });
    }

    /// A place in the line of calls.
    pub fn queue(&self) -> Turn {
        self.line.queue()
    }

    /// Proof of being at work.
    pub fn busy(&self) -> mpsc::Sender<()> {
        self.busy.clone()
    }

    /// An answer of our own to the host.
    pub async fn answer(&self, answer: &str) {
        self.to_host.write(format!("{answer}\n").as_bytes()).await;
    }

    /// Takes what the server says, to its end.
    pub async fn hear_server(self: Arc<Self>, mut server: Input) {
        while let Some(line) = next_line(&mut server).await {
            let at_ms = now_ms();
            let text = std::str::from_utf8(&line);
            let lossy = String::from_utf8_lossy(&line);
            let goes_on = match Message::read(&lossy) {
                Message::Response(id, members) => {
                    if self.calls.is_list(&id)
                        && let Some(hints) = &self.hints
                    {
                        hints.learn(&members);
                    }
                    if let Some((events, is_first)) = self.calls.answered(&id) {
                        // What is no text cannot be hashed as one.
                        let text = text.map(str::to_owned).unwrap_or_default();
                        let reply = ask(&events, text, at_ms, is_first);
                        let session = self.clone();
                        tokio::spawn(async move { session.pass_answer(line, reply).await });
                        true
                    } else {
                        self.pass(&line).await
                    }
                }
                Message::Batch(elements) if text.is_ok() => {
                    batch::from_server(&self, &lossy, &elements, at_ms).await;
                    true
                }
                _ => self.pass(&line).await,
            };
            if !goes_on {
                break;
            }
        }
    }

    /// Passes a line on to the host; says whether to go on. Once the host reads no more and no
    /// call is under way, nobody reads the server, and it will notice as it would by itself.
    async fn pass(&self, line: &[u8]) -> bool {
        self.to_host.write(line).await || !self.calls.is_empty()
    }

    async fn pass_answer(&self, line: Vec<u8>, reply: oneshot::Receiver<Reply>) {
        let _busy = self.busy.clone();
        match reply.await {
            // A host that reads no more needs no answer; what is recorded is recorded.
            Ok(Reply::Changed(changed)) => _ = self.to_host.write(changed.as_bytes()).await,
            Ok(Reply::Nothing) => {}
            Ok(Reply::AsItCame) | Err(_) => _ = self.to_host.write(&line).await,
        }
    }
}

/// Hands an answer to whoever follows the call.
pub fn ask(events: &Events, text: String, at_ms: u64, is_first: bool) -> oneshot::Receiver<Reply> {
    let (reply, replied) = oneshot::channel();
    // Who listens no more lets it pass as it came: the reply is dropped.
    let _ = events.send(Event::Answer(Answer { text, at_ms, is_first, reply }));
    replied
}

/// Waits for a turn that was not left.
pub async fn come(turn: &mut Option<Turn>) {
    if let Some(turn) = turn {
        turn.come().await;
    }
}

/// Leaves a turn that was not left.
pub fn leave(turn: Option<Turn>) {
    if let Some(turn) = turn {
        turn.leave();
    }
}
