//! What becomes of a tool call that the server has: its answer, or that none comes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use recibo_adapter::{
    Effect, Grant, LedgerError, Outcome, OutcomeAnswer, OutcomeStatus, Output, now_ms,
};
use recibo_core::visible::visible;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use super::answer::{Reading, Success};
use super::call::{Request, Sent};
use super::calls::{Answer, Event, Events, Kind, Reply};
use super::io::Written;
use super::message::Members;
use super::session::Session;
use super::{refusal, tell};

/// How long an answer waits for the ledger: as long as the ledger has for one request.
const REPORT_WAIT: Duration = Duration::from_secs(20);
/// How long the server has to take a cancellation.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// Follows a call that was sent, to its end.
pub struct Follower {
    session: Arc<Session>,
    request: Sent,
    events: Events,
    grant: Option<Grant>,
    sent_at_ms: u64,
    /// Whether the host has an answer from here.
    is_answered: bool,
    /// Whether an indefinite outcome is recorded already.
    is_noted: bool,
    /// Renews the lease as long as the server is at work.
    renewing: Option<Renewing>,
}

type Renewing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Follower {
    /// Right after it was sent.
    pub fn new(
        session: Arc<Session>,
        request: Request,
        events: Events,
        grant: Option<Grant>,
        sent_at_ms: u64,
    ) -> Self {
        let mut follower = Self {
            session,
            request: request.sent(),
            events,
            grant,
            sent_at_ms,
            is_answered: false,
            is_noted: false,
            renewing: None,
        };
        follower.renew();
        follower
    }

    /// Follows it until it is answered, or nobody will answer.
    pub async fn follow(mut self, written: Written, mut heard: UnboundedReceiver<Event>) {
        if written == Written::Part {
            tell("the server did not read a whole call in time; nothing more is sent to it");
            self.note(OutcomeStatus::Unknown, "sent_in_part").await;
        }
        loop {
            let event = tokio::select! {
                event = heard.recv() => event,
                () = until_timeout(self.timeout_at_ms()) => {
                    self.time_out().await;
                    continue;
                }
                () = over(&mut self.renewing) => {
                    self.renewing = None;
                    continue;
                }
            };
            match event.unwrap_or(Event::Forgotten) {
                Event::Cancelled(_report) => self.note(OutcomeStatus::Unknown, "cancelled").await,
                Event::Continued => self.renew(),
                Event::Gone(error_class) => {
                    self.note(OutcomeStatus::Unknown, error_class).await;
                    break;
                }
                Event::Forgotten => {
                    self.session.calls.abandon(&self.events);
                    return;
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

    /// Keeps the lease alive from now on, unless nobody knows of the call any more.
    fn renew(&mut self) {
        let grant = self.grant.as_ref().filter(|_| !self.is_noted);
        let renew_for = self.session.settings.renew_for;
        self.renewing = grant.map(|grant| -> Renewing { Box::pin(grant.keep_renewed(renew_for)) });
    }

    /// Takes an answer; says whether the call is over.
    async fn take(&mut self, answer: Answer) -> bool {
        let Answer { text, reading, at_ms, kind, reply, report: _report } = answer;
        let is_direct = matches!(kind, Kind::Call | Kind::Continuation);
        let as_it_came =
            if self.is_answered && is_direct { Reply::Nothing } else { Reply::AsItCame };
        let duration = Duration::from_millis(at_ms.saturating_sub(self.sent_at_ms));
        // Dropping the reply lets the answer pass as it came.
        match reading {
            Reading::Task(_) | Reading::TaskGoesOn => {
                let _ = reply.send(as_it_came);
                false
            }
            Reading::InputRequired(state) => {
                // It is the host's turn, and it may never come back.
                self.renewing = None;
                let input = self.request.input(state);
                let end = self.grant.as_ref().map(Grant::lease_end);
                let last_moment_ms = end.map_or(u64::MAX, |end| end.last_moment_ms());
                self.session.calls.park_input(input, self.events.clone(), last_moment_ms);
                let _ = reply.send(as_it_came);
                false
            }
            reading @ Reading::TaskEnded(_) => {
                self.note_reading(&reading).await;
                let _ = reply.send(as_it_came);
                // Nobody can ask for more of a task that ended before it was known.
                is_direct
            }
            // It is about the later question, and says little of the call.
            reading @ Reading::RpcError(_) if is_about_question(&text, kind) => {
                self.note_reading(&reading).await;
                let _ = reply.send(as_it_came);
                false
            }
            Reading::Success(success) => {
                let receipt_line = self.succeed(duration, &success).await;
                let placement = self.session.settings.receipt;
                let changed = receipt_line.and_then(|line| placement.put(&text, &success, &line));
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
        let mut grant = self.grant.take()?;
        if !matches!(grant.effect(), Effect::ReadOnly | Effect::Idempotent) {
            // The model may not have seen it, and ask again.
            self.session.admission.memory.keep(&success.output);
        }
        let outcome = Outcome::ok(duration, Output::Text(success.output.clone()));
        self.report(&mut grant, outcome).await.and_then(|answer| answer.receipt_line)
    }

    /// Reports an outcome. A ledger that does not answer holds the host up for a while only; the
    /// report goes on in the background.
    async fn report(&mut self, grant: &mut Grant, outcome: Outcome) -> Option<OutcomeAnswer> {
        match timeout(REPORT_WAIT, grant.report(outcome)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.lost(&error);
                None
            }
            Err(_) => {
                tell(&format!(
                    "{}: its outcome is not recorded yet; the answer passes without waiting on",
                    self.request.tool_call_id
                ));
                None
            }
        }
    }

    async fn fail(&mut self, duration: Duration, reading: &Reading) {
        let Some(mut grant) = self.grant.take() else { return };
        let (status, error_class) = reading.failure(grant.effect(), grant.is_error());
        if self.is_noted && status == OutcomeStatus::Unknown {
            return;
        }
        let mut outcome = Outcome::failed(status, duration, error_class);
        // The host gets what the tool says of its failure, and so does the model.
        outcome.answered =
            status == OutcomeStatus::Unknown && matches!(reading, Reading::ToolError);
        self.report(&mut grant, outcome).await;
    }

    async fn note_reading(&mut self, reading: &Reading) {
        let (_, error_class) = reading.failure(Effect::Opaque, None);
        self.note(OutcomeStatus::Unknown, &error_class).await;
    }

    /// Records that nobody knows; what is learned later is added.
    async fn note(&mut self, status: OutcomeStatus, error_class: &str) {
        if std::mem::replace(&mut self.is_noted, true) {
            return;
        }
        self.renewing = None;
        self.session.calls.give_up(&self.events);
        let Some(mut grant) = self.grant.take() else { return };
        let duration = Duration::from_millis(now_ms().saturating_sub(self.sent_at_ms));
        self.report(&mut grant, Outcome::failed(status, duration, error_class)).await;
        self.grant = Some(grant);
    }

    /// When the server is answered for.
    fn timeout_at_ms(&self) -> Option<u64> {
        let timeout = self.session.settings.timeout.filter(|_| !self.is_answered)?;
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Some(self.sent_at_ms.saturating_add(timeout_ms))
    }

    /// Answers for the server. Only a tool that may be repeated is told to stop: of all others the
    /// late answer is worth more than its work.
    async fn time_out(&mut self) {
        self.is_answered = true;
        let _report = self.session.calls.reports.begin();
        let given = self.session.settings.timeout.unwrap_or_default();
        let timeout_ms = u64::try_from(given.as_millis()).unwrap_or(u64::MAX);
        self.note(OutcomeStatus::Timeout, "timeout").await;
        self.session.answer(&self.request.answer(&refusal::timed_out(timeout_ms))).await;
        let effect = self.grant.as_ref().map_or(Effect::Opaque, Grant::effect);
        if matches!(effect, Effect::ReadOnly | Effect::Idempotent) {
            let (session, line) = (self.session.clone(), self.request.cancellation());
            // A server that does not read must not hold up what it says itself.
            tokio::spawn(async move {
                if let Ok(mut guard) = timeout(CANCEL_WAIT, session.to_server.guard()).await {
                    guard.write_within(line.as_bytes(), CANCEL_WAIT).await;
                }
            });
        }
    }

    fn lost(&self, error: &LedgerError) {
        tell(&format!(
            "{}: the tool was called, but its outcome could not be recorded: {}",
            self.request.tool_call_id,
            visible(&error.to_string())
        ));
    }
}

async fn until_timeout(at_ms: Option<u64>) {
    match at_ms {
        Some(at_ms) => sleep(Duration::from_millis(at_ms.saturating_sub(now_ms()))).await,
        None => std::future::pending().await,
    }
}

async fn over(renewing: &mut Option<Renewing>) {
    match renewing {
        Some(renewing) => renewing.await,
        None => std::future::pending().await,
    }
}

/// Whether an error answers another request than the first.
fn is_about_question(text: &str, kind: Kind) -> bool {
    let is_error = || Members::of(text).is_some_and(|members| members.get("error").is_some());
    matches!(kind, Kind::Continuation | Kind::TaskGet | Kind::TaskResult) && is_error()
}
