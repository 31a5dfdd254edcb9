//! One tool call: permission, sending, and what becomes of it afterwards.

use std::sync::Arc;
use std::time::Duration;

use recibo_adapter::{CallSpec, Grant, Outcome, OutcomeStatus, Output, now_ms};
use recibo_core::json::write_string;
use recibo_core::visible::visible;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::answer::{Reading, Success};
use super::calls::{self, Event, Events, Reply};
use super::desk;
use super::message::{Id, Members};
use super::session::Session;
use super::turn::Turn;
use super::{call_id, refusal, tell};

/// A request to call a tool.
pub struct Request {
    /// Its id.
    pub id: Id,
    raw_id: String,
    spec: CallSpec,
    state: Option<String>,
    is_continued: bool,
}

/// Whether a call may be sent.
pub enum Permit {
    /// It may; without a grant it is not recorded.
    Go(Option<Grant>),
    /// It may not. This is the answer.
    No(String),
}

impl Request {
    /// Reads the parameters of a `tools/call`. `None` without the name of a tool: the server
    /// has no such tool, and will say so.
    pub fn read(session: &Session, id: Id, members: &Members<'_>) -> Option<Self> {
        let params = members.object("params")?;
        let tool = params.text("name")?;
        let arguments = params.get("arguments").unwrap_or("{}");
        let name = format!("{}{tool}", session.settings.tool_prefix);
        let call = call_id::of(&session.settings.session, &id);
        let run = &session.settings.run;
        let mut spec = CallSpec::new(run, &call, &name, arguments)
            // What has no canonical form counts as text: the server will take it all the same.
            .or_else(|_| CallSpec::new(run, &call, &name, &quoted(arguments)))
            .expect("a string has a canonical form");
        spec.effect = session.hints.as_ref().and_then(|hints| hints.effect(&tool));
        spec.lease = session.settings.lease;
        spec.wait = session.settings.wait;
        Some(Self {
            raw_id: members.get("id").unwrap_or("null").to_owned(),
            id,
            spec,
            state: params.text("requestState").map(Into::into),
            is_continued: params.get("requestState").or(params.get("inputResponses")).is_some(),
        })
    }

    /// Whether it brings an earlier call what that was waiting for, and which.
    pub fn continued(&self, session: &Session) -> Option<Events> {
        if !self.is_continued {
            return None;
        }
        session.calls.take_input(&self.input(self.state.clone()))
    }

    fn input(&self, state: Option<String>) -> calls::Input {
        (self.spec.tool.clone(), self.spec.input_hash.to_string(), state)
    }

    /// Asks the ledger. Calls that follow wait for this one only as long as nobody else is
    /// waited for.
    pub async fn permit(&self, session: &Session, turn: &mut Option<Turn>) -> Permit {
        let mut answer = session.desk.ask(&self.spec, false).await;
        if matches!(answer, desk::Answer::Wait) {
            if let Some(turn) = turn.take() {
                turn.leave();
            }
            answer = session.desk.ask(&self.spec, true).await;
        }
        match answer {
            desk::Answer::Run(grant) => Permit::Go(Some(grant)),
            desk::Answer::RunUnrecorded => Permit::Go(None),
            desk::Answer::Refuse(why) => Permit::No(self.answer(&why)),
            desk::Answer::Wait => unreachable!("it was waited for"),
        }
    }

    /// Whether the permission still holds at the moment of sending, and the host still wants it.
    /// If not, that is recorded, and the answer for the host, if it waits for one, is given.
    pub async fn check(&self, session: &Session, permit: Permit, is_open: bool) -> Checked {
        let grant = match permit {
            Permit::No(answer) => {
                session.calls.forget(&self.id);
                return Checked::Answer(answer);
            }
            Permit::Go(grant) => grant,
        };
        if grant.as_ref().is_some_and(|grant| !grant.may_send()) {
            session.calls.forget(&self.id);
            not_sent(grant, "lease_over").await;
            return Checked::Answer(self.answer(&refusal::too_late()));
        }
        if is_open && session.calls.send(&self.id) {
            return Checked::Send(grant);
        }
        session.calls.forget(&self.id);
        not_sent(grant, "cancelled").await;
        Checked::Nothing
    }

    /// An answer of our own.
    pub fn answer(&self, why: &str) -> String {
        refusal::answer(&self.raw_id, why)
    }
}

/// What [`Request::check`] found.
pub enum Checked {
    /// Send it, and follow it.
    Send(Option<Grant>),
    /// Do not send it; this is the host's answer.
    Answer(String),
    /// Do not send it; nobody waits for an answer.
    Nothing,
}

/// Nothing was sent, so there was no effect.
async fn not_sent(grant: Option<Grant>, error_class: &str) {
    let Some(grant) = grant else { return };
    let outcome = Outcome::failed(OutcomeStatus::RetryableError, grant.since_asked(), error_class);
    // If this fails, the end of the lease makes it `unknown`.
    let _ = grant.finish(outcome).await;
}

/// Where the events of a new call go.
pub fn events() -> (Events, UnboundedReceiver<Event>) {
    unbounded_channel()
}

/// Follows a call that was sent, to its end.
pub struct Follower {
    session: Arc<Session>,
    request: Request,
    events: Events,
    grant: Option<Grant>,
    sent_at_ms: u64,
    /// Whether the host has an answer from here.
    is_answered: bool,
    /// Whether something indefinite is recorded already.
    is_noted: bool,
}

impl Follower {
    /// Right before it is sent.
    pub fn new(
        session: Arc<Session>,
        request: Request,
        events: Events,
        grant: Option<Grant>,
    ) -> Self {
        let sent_at_ms = now_ms();
        Self { session, request, events, grant, sent_at_ms, is_answered: false, is_noted: false }
    }

    /// Follows it until it is answered or the server is gone.
    pub async fn follow(mut self, mut heard: UnboundedReceiver<Event>) {
        loop {
            let event = tokio::select! {
                event = heard.recv() => event,
                () = self.timeout() => {
                    self.time_out().await;
                    continue;
                }
            };
            match event.unwrap_or(Event::Gone) {
                Event::Cancelled => self.note(OutcomeStatus::Unknown, "cancelled").await,
                Event::Gone => {
                    self.note(OutcomeStatus::Unknown, "server_gone").await;
                    break;
                }
                Event::Answer(answer) => {
                    let is_over = self.take(answer).await;
                    if is_over {
                        break;
                    }
                }
            }
        }
        self.session.calls.end(&self.events);
    }

    /// Takes an answer; says whether the call is over.
    async fn take(&mut self, answer: calls::Answer) -> bool {
        let calls::Answer { text, at_ms, is_first, reply } = answer;
        let as_it_came = if self.is_answered { Reply::Nothing } else { Reply::AsItCame };
        let members = Members::of(&text);
        let reading = members.map_or(Reading::Unreadable, |members| Reading::of(&text, &members));
        let duration = Duration::from_millis(at_ms.saturating_sub(self.sent_at_ms));
        // Dropping the reply lets the answer pass as it came.
        match reading {
            Reading::Task(task) => {
                self.session.calls.park_task(task, self.events.clone());
                let _ = reply.send(as_it_came);
                false
            }
            Reading::InputRequired(state) => {
                let input = self.request.input(state);
                self.session.calls.park_input(input, self.events.clone());
                let _ = reply.send(as_it_came);
                false
            }
            Reading::RpcError(_) if !is_first => {
                // It is about the later question, and says little of the call.
                let (_, error_class) = reading.failure(recibo_adapter::Effect::Opaque);
                self.note(OutcomeStatus::Unknown, &error_class).await;
                let _ = reply.send(as_it_came);
                false
            }
            Reading::Success(success) => {
                let receipt_line = self.succeed(duration, &success).await;
                let changed = receipt_line.and_then(|line| success.with_receipt(&text, &line));
                let _ = reply.send(match (as_it_came, changed) {
                    (Reply::AsItCame, Some(changed)) => Reply::Changed(changed),
                    (as_it_came, _) => as_it_came,
                });
                true
            }
            reading => {
                self.fail(duration, &reading).await;
                let _ = reply.send(as_it_came);
                true
            }
        }
    }

    async fn succeed(&mut self, duration: Duration, success: &Success) -> Option<String> {
        let grant = self.grant.take()?;
        let outcome = Outcome::ok(duration, Output::Text(success.output.clone()));
        match grant.finish(outcome).await {
            Ok(answer) => answer.receipt_line,
            Err(error) => {
                self.lost(&error);
                None
            }
        }
    }

    async fn fail(&mut self, duration: Duration, reading: &Reading) {
        let Some(grant) = self.grant.take() else { return };
        let effect = match reading {
            Reading::ToolError => self.session.desk.effect(&grant).await,
            // The others mean the same for every effect.
            _ => recibo_adapter::Effect::Opaque,
        };
        let (status, error_class) = reading.failure(effect);
        if self.is_noted && status == OutcomeStatus::Unknown {
            return;
        }
        if let Err(error) = grant.finish(Outcome::failed(status, duration, error_class)).await {
            self.lost(&error);
        }
    }

    /// Records that nobody knows; what is learned later is added.
    async fn note(&mut self, status: OutcomeStatus, error_class: &str) {
        if std::mem::replace(&mut self.is_noted, true) {
            return;
        }
        let Some(grant) = &mut self.grant else { return };
        let duration = Duration::from_millis(now_ms().saturating_sub(self.sent_at_ms));
        let outcome = Outcome::failed(status, duration, error_class);
        if let Err(error) = grant.report(outcome).await {
            self.lost(&error);
        }
    }

    async fn timeout(&self) {
        match self.session.settings.timeout {
            Some(timeout) if !self.is_answered => {
                let gone = Duration::from_millis(now_ms().saturating_sub(self.sent_at_ms));
                sleep(timeout.saturating_sub(gone)).await;
            }
            _ => std::future::pending().await,
        }
    }

    async fn time_out(&mut self) {
        self.is_answered = true;
        let timeout = self.session.settings.timeout.unwrap_or_default();
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let cancel = format!(
            "{}{}{}",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
            self.request.raw_id,
            ",\"reason\":\"no answer in time\"}}\n"
        );
        self.session.to_server.write(cancel.as_bytes()).await;
        self.note(OutcomeStatus::Timeout, "timeout").await;
        let answer = self.request.answer(&refusal::timed_out(timeout_ms));
        self.session.to_host.write(format!("{answer}\n").as_bytes()).await;
    }

    fn lost(&self, error: &recibo_adapter::LedgerError) {
        tell(&format!(
            "{}: the tool was called, but its outcome could not be recorded: {}",
            self.request.spec.tool_call_id,
            visible(&error.to_string())
        ));
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    write_string(&mut quoted, text);
    quoted
}
