//! One tool call up to the moment when the server has it: permission, a last look, sending.

use std::time::Duration;

use recibo_adapter::{CallSpec, Grant, Outcome, OutcomeStatus, now_ms};
use recibo_core::json::canonicalize;
use tokio::time::timeout;

use super::admission::Verdict;
use super::calls::{self, Events, Sending, Taken, Use};
use super::io::Written;
use super::message::Id;
use super::queue::Ticket;
use super::refusal::Refusal;
use super::session::Session;
use super::strict::{HostCall, Unfit};
use super::{refusal, tell};

/// A request to call a tool.
pub struct Request {
    /// Its id.
    pub id: Id,
    raw_id: String,
    /// What is asked of the ledger.
    pub spec: CallSpec,
    state: Option<String>,
    is_continued: bool,
}

/// Whether a call may be sent.
pub enum Permit {
    /// It may; without a grant it is not recorded.
    Go(Option<Grant>),
    /// It may not; what the model is told.
    No(Refusal),
}

/// A permitted call at the moment of sending.
pub enum Check {
    /// It may be sent.
    Send(Option<Grant>),
    /// It is not sent.
    Stay(Stay),
}

/// A call that was not sent: what is recorded and what is answered once nothing is held up by it.
pub struct Stay {
    grant: Option<Grant>,
    error_class: &'static str,
    /// What the model is told; `None` if nobody waits for an answer.
    why: Option<Refusal>,
}

/// What is known of a call for which only its answer is waited: no arguments.
pub struct Sent {
    raw_id: String,
    tool: String,
    input_hash: String,
    /// The call's id in the ledger.
    pub tool_call_id: String,
}

/// What becomes of a request that stands before the ledger.
pub enum Begun {
    /// A new call.
    Call(Box<Request>),
    /// It belongs to a call that has permission: it is passed on.
    Continues,
    /// It is not passed on; this is the answer.
    Refused(String),
}

impl Request {
    /// Takes a tool call from the host.
    pub fn begin(session: &Session, call: &HostCall<'_>, events: Events) -> Begun {
        let request = match Self::read(session, call) {
            Ok(request) => request,
            Err(answer) => return Begun::Refused(answer),
        };
        if request.is_continued {
            let input = input(&request.spec.tool, request.spec.input_hash, request.state.clone());
            match session.calls.bring_input(&request.id, &input, now_ms()) {
                Some(Ok(())) => return Begun::Continues,
                Some(Err(taken)) => return Begun::Refused(request.answer(why_taken(taken))),
                // Nobody waits for that any more: the ledger decides.
                None => {}
            }
        }
        match session.calls.begin(&request.id, events) {
            Ok(used) => Begun::Call(Box::new(request.named(session, used))),
            Err(taken) => Begun::Refused(request.answer(why_taken(taken))),
        }
    }

    fn read(session: &Session, call: &HostCall<'_>) -> Result<Self, String> {
        let arguments = call.params.get("arguments").unwrap_or("{}");
        if let Err(error) = canonicalize(arguments.as_bytes()) {
            // The pointer goes to the host alone: it holds names that the model wrote.
            tell(&format!("a tools/call was not passed on: in its arguments, {error}"));
            let fault = error.fault(arguments.as_bytes());
            return Err(refusal::answer(call.raw_id, &refusal::of_arguments(&fault)));
        }
        let name = format!("{}{}", session.settings.tool_prefix, call.tool);
        let mut spec = CallSpec::new("", "", &name, arguments)
            .map_err(|error| refusal::answer(call.raw_id, &refusal::of_error(&error)))?;
        spec.effect = session.hints.as_ref().and_then(|hints| hints.effect(&call.tool));
        spec.lease = session.settings.lease;
        spec.wait = session.settings.wait;
        spec.on_twin = session.settings.on_twin;
        session.names.learn_client(&call.params);
        spec.labels = session.names.labels();
        let params = &call.params;
        Ok(Self {
            raw_id: call.raw_id.to_owned(),
            id: call.id.clone(),
            spec,
            state: params.text("requestState").map(Into::into),
            is_continued: params.get("requestState").or(params.get("inputResponses")).is_some(),
        })
    }

    fn named(mut self, session: &Session, used: Use) -> Self {
        self.spec.run_id = session.settings.run.of(used.client);
        self.spec.tool_call_id = session.settings.session.call_id(&self.id, used);
        self
    }

    /// What is kept of it once it was sent.
    pub fn sent(self) -> Sent {
        Sent {
            raw_id: self.raw_id,
            tool: self.spec.tool,
            input_hash: self.spec.input_hash.to_string(),
            tool_call_id: self.spec.tool_call_id,
        }
    }

    /// Asks the ledger. Releases the ticket before it waits for another attempt.
    pub async fn permit(&self, session: &Session, ticket: &mut Option<Ticket>) -> Permit {
        session.calls.reports.before().await;
        let mut verdict = session.admission.ask(&self.spec, false).await;
        if matches!(verdict, Verdict::Wait) {
            if let Some(ticket) = ticket.take() {
                ticket.release();
            }
            // If the question is dropped, what was granted meanwhile is reported as not sent.
            verdict = tokio::select! {
                verdict = session.admission.ask(&self.spec, true) => verdict,
                () = session.calls.unwanted(&self.id) => Verdict::Refuse(refusal::closed().into()),
            };
        }
        match verdict {
            Verdict::Run(grant) => Permit::Go(Some(grant)),
            Verdict::RunUnrecorded => Permit::Go(None),
            Verdict::Refuse(why) => Permit::No(why),
            Verdict::Wait => unreachable!("it was waited for"),
        }
    }

    /// Whether the permission still holds at the moment of sending, and the host still wants the
    /// call. Waits for nothing: the way to the server is held meanwhile.
    pub fn check(&self, session: &Session, permit: Permit, is_open: bool) -> Check {
        let grant = match permit {
            Permit::No(why) => return Check::Stay(self.refuse(session, why)),
            Permit::Go(grant) => grant,
        };
        let (error_class, why) = if grant.as_ref().is_some_and(|grant| !grant.may_send()) {
            ("lease_over", Some(refusal::too_late()))
        } else if !is_open {
            ("not_sent", Some(refusal::closed()))
        } else {
            match session.calls.send(&self.id) {
                Sending::Go => return Check::Send(grant),
                Sending::Cancelled => ("cancelled", None),
                Sending::Gone => ("not_sent", Some(refusal::closed())),
            }
        };
        Check::Stay(self.stay(session, grant, error_class, why))
    }

    /// The ledger does not permit it. A host that has cancelled it meanwhile reads no answer.
    pub fn refuse(&self, session: &Session, why: Refusal) -> Stay {
        let is_wanted = session.calls.is_wanted(&self.id);
        session.calls.forget(&self.id);
        Stay { grant: None, error_class: "not_sent", why: is_wanted.then_some(why) }
    }

    /// Nothing of the call was written within its time.
    pub fn stuck(&self, session: &Session, grant: Option<Grant>) -> Stay {
        self.stay(session, grant, "not_sent", Some(refusal::too_late()))
    }

    fn stay(
        &self,
        session: &Session,
        grant: Option<Grant>,
        error_class: &'static str,
        why: Option<String>,
    ) -> Stay {
        session.calls.forget(&self.id);
        Stay { grant, error_class, why: why.map(Refusal::from) }
    }

    /// Sends the call, within the time of its permission, and gives its grant and the moment;
    /// else what is to be recorded and answered.
    pub async fn send(
        &self,
        session: &Session,
        permit: Permit,
        line: &[u8],
    ) -> Result<(Option<Grant>, Written, u64), Stay> {
        let grant = match permit {
            Permit::No(why) => return Err(self.refuse(session, why)),
            Permit::Go(grant) => grant,
        };
        let left = grant.as_ref().map_or(Duration::MAX, Grant::left);
        // Whoever writes may be held up by a server that does not read.
        let Ok(mut guard) = timeout(left, session.to_server.guard()).await else {
            return Err(self.stuck(session, grant));
        };
        let permit = Permit::Go(grant);
        let grant = match self.check(session, permit, guard.is_open()) {
            Check::Send(grant) => grant,
            Check::Stay(stay) => return Err(stay),
        };
        let sent_at_ms = now_ms();
        let left = grant.as_ref().map_or(Duration::MAX, Grant::left);
        match guard.write_within(line, left).await {
            Written::Nothing => Err(self.stuck(session, grant)),
            written => Ok((grant, written, sent_at_ms)),
        }
    }

    /// An answer of our own.
    pub fn answer(&self, why: &str) -> String {
        refusal::answer(&self.raw_id, why)
    }
}

impl Sent {
    /// How a request is found that goes on with this call.
    pub fn input(&self, state: Option<String>) -> calls::Input {
        input(&self.tool, &self.input_hash, state)
    }

    /// An answer of our own.
    pub fn answer(&self, why: &str) -> String {
        refusal::answer(&self.raw_id, why)
    }

    /// Tells the server that nobody waits for the answer any more.
    pub fn cancellation(&self) -> String {
        format!(
            "{}{}{}",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
            self.raw_id,
            ",\"reason\":\"no answer in time\"}}\n"
        )
    }
}

impl Stay {
    /// Records that nothing was sent, so that there was no effect; gives the text for the model,
    /// if it waits for one.
    pub async fn settle(self) -> Option<Refusal> {
        if let Some(grant) = self.grant {
            let (status, gone) = (OutcomeStatus::RetryableError, grant.since_asked());
            // If this fails, the end of the lease makes it `unknown`.
            let _ = grant.finish(Outcome::failed(status, gone, self.error_class)).await;
        }
        self.why
    }
}

fn input(tool: &str, input_hash: impl ToString, state: Option<String>) -> calls::Input {
    (tool.to_owned(), input_hash.to_string(), state)
}

/// The answer to a request that is no call.
pub fn taken_answer(raw_id: &str, taken: Taken) -> String {
    Unfit::taken(raw_id, why_taken(taken)).answer()
}

fn why_taken(taken: Taken) -> &'static str {
    match taken {
        Taken::SameId => refusal::SAME_ID,
        Taken::TooMany => refusal::TOO_MANY,
    }
}
