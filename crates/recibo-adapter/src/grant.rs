//! Permission to run one attempt. It is reported, or it reports itself when it is dropped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use recibo_api::answer::{OutcomeAnswer, Twin};
use recibo_core::id::CallRef;
use recibo_core::status::OutcomeStatus;
use tokio::runtime::Handle;

use crate::error::LedgerError;
use crate::lease::{last_moment_ms, now_ms};
use crate::ledger::Granted;
use crate::outcome::Outcome;
use crate::report::{self, Said};
use crate::scope::Scope;

/// Permission to run one attempt. Who holds it sends nothing after [`Grant::last_moment_ms`] and
/// ends with [`Grant::finish`].
///
/// Dropped unfinished, it reports `unknown` with the error class `dropped` in the background of
/// the runtime that it is dropped in. Where there is none, nothing is reported, and the end of
/// the lease makes the attempt `unknown`.
pub struct Grant {
    held: Arc<Held>,
    is_reported: bool,
}

pub(crate) struct Held {
    pub(crate) scope: Scope,
    pub(crate) call: CallRef,
    tool: String,
    /// The scope that was claimed in.
    pub(crate) scope_id: String,
    pub(crate) attempt: u32,
    pub(crate) lease_token: String,
    idempotency_key: String,
    replayed: bool,
    twin: Option<Twin>,
    asked_at_ms: u64,
    last_moment_ms: u64,
}

impl Grant {
    pub(crate) fn new(
        scope: Scope,
        call: CallRef,
        tool: &str,
        scope_id: String,
        granted: Granted,
        asked_at_ms: u64,
    ) -> Self {
        let held = Held {
            scope,
            call,
            tool: tool.to_owned(),
            scope_id,
            attempt: granted.attempt,
            lease_token: granted.lease_token,
            idempotency_key: granted.idempotency_key,
            replayed: granted.replayed,
            twin: granted.twin,
            asked_at_ms,
            last_moment_ms: last_moment_ms(asked_at_ms, granted.lease_ms),
        };
        Self { held: Arc::new(held), is_reported: false }
    }

    /// The run.
    pub fn run_id(&self) -> &str {
        self.held.call.run_id.as_str()
    }

    /// The call.
    pub fn tool_call_id(&self) -> &str {
        self.held.call.tool_call_id.as_str()
    }

    /// The tool.
    pub fn tool(&self) -> &str {
        &self.held.tool
    }

    /// The attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.held.attempt
    }

    /// Names the effect to the outside service: the same for every attempt.
    pub fn idempotency_key(&self) -> &str {
        &self.held.idempotency_key
    }

    /// The newest other call of the run with the same tool and arguments. Advice only.
    pub fn twin(&self) -> Option<&Twin> {
        self.held.twin.as_ref()
    }

    /// Whether the answer to the claim came only after it was sent again.
    pub fn replayed(&self) -> bool {
        self.held.replayed
    }

    /// The moment, by [`crate::now_ms`], after which nothing may be sent any more.
    pub fn last_moment_ms(&self) -> u64 {
        self.held.last_moment_ms
    }

    /// What is left until then.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.last_moment_ms().saturating_sub(now_ms()))
    }

    /// Whether something may be sent. Ask right before.
    pub fn may_send(&self) -> bool {
        !self.left().is_zero()
    }

    /// How long ago the claim was sent.
    pub fn since_asked(&self) -> Duration {
        self.held.since_asked()
    }

    /// Reports how the attempt ended, again and again while no answer comes. If this future is
    /// dropped, the report goes on in the background.
    ///
    /// # Errors
    /// If it could not be recorded: keep what is known of the result, and do not run the call
    /// again before the ledger says so.
    pub async fn finish(mut self, outcome: Outcome) -> Result<OutcomeAnswer, LedgerError> {
        self.report(outcome).await
    }

    /// The same, and keeps the grant: after `timeout` or `unknown` a late answer may still come,
    /// and the first definite outcome is taken.
    ///
    /// # Errors
    /// As [`Grant::finish`].
    pub async fn report(&mut self, outcome: Outcome) -> Result<OutcomeAnswer, LedgerError> {
        self.is_reported = true;
        let held = self.held.clone();
        let running = held.scope.ledger().background.begin();
        let reported = tokio::spawn(async move {
            let result = report::send(&held, outcome).await;
            drop(running);
            result
        });
        reported.await.unwrap_or_else(|_| Err(LedgerError::internal()))
    }
}

impl Held {
    fn since_asked(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.asked_at_ms))
    }

    pub(crate) fn said(&self, outcome: Outcome) -> Said {
        Said { lease_token: self.lease_token.clone(), scope_id: None, is_too_large: false, outcome }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.is_reported {
            return;
        }
        let held = self.held.clone();
        let (run_id, tool_call_id) = (held.call.run_id.as_str(), held.call.tool_call_id.as_str());
        tracing::warn!(run_id, tool_call_id, attempt = held.attempt, "a grant was dropped");
        let Ok(runtime) = Handle::try_current() else { return };
        let running = held.scope.ledger().background.begin();
        runtime.spawn(async move {
            let outcome = Outcome::failed(OutcomeStatus::Unknown, held.since_asked(), "dropped");
            // If this fails, the end of the lease makes it `unknown` all the same.
            let _ = report::send(&held, outcome).await;
            drop(running);
        });
    }
}

/// Without the lease token: who has it can report outcomes.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("run_id", &self.run_id())
            .field("tool_call_id", &self.tool_call_id())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
