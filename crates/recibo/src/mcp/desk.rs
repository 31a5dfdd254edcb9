//! Where a session asks its ledger. A session goes on without one: tools can be listed while
//! calls are refused, and a ledger that comes back is found again.

use std::sync::atomic::{AtomicU64, Ordering};

use recibo_adapter::{
    CallSpec, DecisionKind, Effect, Grant, LedgerError, Permission, Scope, ScopeSpec,
};
use recibo_api::Code;
use recibo_core::visible::visible;
use tokio::sync::Mutex;

use super::{refusal, tell};
use crate::failure::Failure;
use crate::ledger::{Purpose, find_for_adapter};
use crate::target::Target;

/// The way to the ledger.
pub struct Desk {
    target: Target,
    fail_open: bool,
    scope: Mutex<Option<Scope>>,
    unrecorded: AtomicU64,
}

/// What the ledger says of a call.
pub enum Answer {
    /// Run it.
    Run(Grant),
    /// Run it without a record: the ledger is down, and the user wants it so.
    RunUnrecorded,
    /// Another attempt is under way.
    Wait,
    /// Do not run it; what the model is told.
    Refuse(String),
}

impl Desk {
    /// A desk; the ledger is looked for with [`Desk::open`] or by the first call.
    pub fn new(target: Target, fail_open: bool) -> Self {
        Self { target, fail_open, scope: Mutex::default(), unrecorded: AtomicU64::new(0) }
    }

    /// Looks for the ledger. One that is only out of reach is looked for again by each call.
    ///
    /// # Errors
    /// Where no ledger will ever be found: the command line or the key is wrong.
    pub async fn open(&self) -> Result<(), Failure> {
        match self.scope().await {
            Ok(_) => Ok(()),
            Err(failure @ (Failure::Usage { .. } | Failure::Refused { .. })) => Err(failure),
            Err(failure) => {
                tell_failure(&failure);
                tell(if self.fail_open {
                    "tool calls are not recorded until the ledger is there (--fail-open)"
                } else {
                    "tool calls are refused until the ledger is there"
                });
                Ok(())
            }
        }
    }

    /// Asks; with `may_wait` the answer is never [`Answer::Wait`], but may take as long as the
    /// spec says.
    pub async fn ask(&self, spec: &CallSpec, may_wait: bool) -> Answer {
        let result = match self.claim(spec, may_wait).await {
            // What the server says of its tool is weaker than the policy, or than what the first
            // attempt froze: then that holds.
            Ok(Err(error)) if spec.effect.is_some() && is_about_effect(&error) => {
                let mut spec = spec.clone();
                spec.effect = None;
                self.claim(&spec, may_wait).await
            }
            result => result,
        };
        match result {
            Ok(Ok(Permission::Granted(grant))) => Answer::Run(grant),
            Ok(Ok(Permission::Refused(decision))) => match decision.decision.0 {
                DecisionKind::Wait if !may_wait => Answer::Wait,
                _ => Answer::Refuse(refusal::of_decision(&decision)),
            },
            Ok(Err(error)) if error.is_passing() => {
                tell(&format!("{}: {}", spec.tool_call_id, visible(&error.to_string())));
                self.without_ledger()
            }
            Ok(Err(error)) => Answer::Refuse(refusal::of_error(&error)),
            Err(failure) => {
                tell_failure(&failure);
                self.without_ledger()
            }
        }
    }

    fn without_ledger(&self) -> Answer {
        if !self.fail_open {
            return Answer::Refuse(refusal::unreachable());
        }
        let count = self.unrecorded.fetch_add(1, Ordering::Relaxed) + 1;
        tell(&format!(
            "the ledger is down: a tool call passes unrecorded (--fail-open), {count} so far"
        ));
        Answer::RunUnrecorded
    }

    async fn claim(
        &self,
        spec: &CallSpec,
        may_wait: bool,
    ) -> Result<Result<Permission, LedgerError>, Failure> {
        let scope = self.scope().await?;
        let claim = async || match may_wait {
            true => scope.claim(spec).await,
            false => scope.claim_now(spec).await,
        };
        let result = claim().await;
        if !result.as_ref().is_err_and(LedgerError::is_passing) {
            return Ok(result);
        }
        // A service may have come back elsewhere, or left its folder to us.
        scope.ledger().find_again().await;
        Ok(claim().await)
    }

    /// The effect that the ledger holds for a call under way; the strictest where it does not
    /// say.
    pub async fn effect(&self, grant: &Grant) -> Effect {
        let Ok(scope) = self.scope().await else { return Effect::Opaque };
        let wait = std::time::Duration::ZERO;
        let look = scope.ledger().decision(grant.run_id(), grant.tool_call_id(), wait).await;
        let record = look.ok().and_then(|decision| decision.record);
        record.map_or(Effect::Opaque, |record| record.effect.0)
    }

    async fn scope(&self) -> Result<Scope, Failure> {
        let mut scope = self.scope.lock().await;
        if let Some(scope) = &*scope {
            return Ok(scope.clone());
        }
        let ledger = find_for_adapter(&self.target, Purpose::Create).await?;
        let spec = ScopeSpec { label: Some("mcp".into()), ttl: None };
        Ok(scope.insert(ledger.scope(spec)).clone())
    }

    /// Waits for what is on its way to the ledger, and closes it.
    pub async fn close(&self) {
        if let Some(scope) = self.scope.lock().await.take() {
            scope.ledger().close().await;
        }
        match self.unrecorded.load(Ordering::Relaxed) {
            0 => {}
            count => tell(&format!("{count} tool calls passed unrecorded (--fail-open)")),
        }
    }
}

fn is_about_effect(error: &LedgerError) -> bool {
    matches!(error.code(), Some(Code::EffectWeakerThanPolicy | Code::EffectMismatch))
}

fn tell_failure(failure: &Failure) {
    tell(failure.for_people().trim_end());
}
