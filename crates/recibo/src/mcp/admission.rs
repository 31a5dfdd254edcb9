//! Whether a call may run: what the ledger says, and what happens without a ledger. A session goes
//! on without one: tools can be listed while calls are refused, and a ledger that comes back is
//! found again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recibo_adapter::{
    CallSpec, DecisionAnswer, DecisionKind, Grant, LedgerError, Permission, Record, Scope,
    ScopeSpec, words_on_twin,
};
use recibo_api::Code;
use recibo_core::visible::visible;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::memory::Memory;
use super::refusal::Refusal;
use super::{names, refusal, tell};
use crate::failure::Failure;
use crate::ledger::find_for_adapter;
use crate::target::Target;

/// How long a session that has ended waits for its key to be wiped.
const SCOPE_CLOSE: Duration = Duration::from_secs(2);

/// How long the start of a server waits for the ledger: hosts give up one that says nothing.
const OPEN_WAIT: Duration = Duration::from_secs(5);

/// How long a ledger that another process has open is waited for, and how often it is tried.
const IN_USE_WAIT: Duration = Duration::from_secs(2);
const IN_USE_POLL: Duration = Duration::from_millis(50);

/// The way to the ledger.
pub struct Admission {
    target: Target,
    fail_open: bool,
    scope: Mutex<Found>,
    /// What is remembered for the model.
    pub memory: Memory,
    unrecorded: AtomicU64,
}

/// The scope, once the ledger was found.
#[derive(Default)]
struct Found {
    scope: Option<Scope>,
    /// When it was not: whoever waited meanwhile need not look again.
    failed_at: Option<Instant>,
}

/// What the ledger says of a call.
pub enum Verdict {
    /// Run it.
    Run(Grant),
    /// Run it without a record: the ledger is down, and the user wants it so.
    RunUnrecorded,
    /// Another attempt is under way.
    Wait,
    /// Do not run it; what the model is told.
    Refuse(Refusal),
}

impl Admission {
    /// The ledger is looked for with [`Admission::open`] or by the first call.
    pub fn new(target: Target, fail_open: bool) -> Self {
        Self {
            target,
            fail_open,
            scope: Mutex::default(),
            memory: Memory::default(),
            unrecorded: AtomicU64::new(0),
        }
    }

    /// Looks for the ledger. One that is only out of reach is looked for again by each call.
    ///
    /// # Errors
    /// Where no ledger will ever be found: the command line or the key is wrong.
    pub async fn open(self: &Arc<Self>) -> Result<(), Failure> {
        let this = self.clone();
        // It goes on beside the session: a search that is dropped would leave a service starting that
        // nobody waits for, while another search starts a second one.
        let search = tokio::spawn(async move { this.scope().await.map(drop) });
        let found = match timeout(OPEN_WAIT, search).await {
            Ok(found) => found.unwrap_or_else(|_| Err(Failure::said("the search broke"))),
            Err(_) => {
                tell("the ledger is not there yet; tool calls wait for it");
                Ok(())
            }
        };
        match found {
            Ok(()) => Ok(()),
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

    /// Asks; with `may_wait` the answer is never [`Verdict::Wait`], but may take as long as the
    /// spec says.
    pub async fn ask(&self, spec: &CallSpec, may_wait: bool) -> Verdict {
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
        let result = match result {
            // A client or a server that is named like a credential must not fail its calls.
            Ok(Err(error)) if error.code() == Some(Code::SecretDetected) => {
                match names::without(spec) {
                    Some(spec) => self.claim(&spec, may_wait).await,
                    None => Ok(Err(error)),
                }
            }
            result => result,
        };
        match result {
            Ok(Ok(Permission::Granted(grant))) => Verdict::Run(grant),
            Ok(Ok(Permission::Refused(decision))) => match decision.decision.0 {
                DecisionKind::Wait if !may_wait => Verdict::Wait,
                _ => Verdict::Refuse(self.words(&decision).await),
            },
            Ok(Err(error)) if error.is_transient() => {
                tell(&format!("{}: {}", spec.tool_call_id, visible(&error.to_string())));
                self.without_ledger()
            }
            Ok(Err(error)) => Verdict::Refuse(refusal::of_error(&error).into()),
            Err(failure) => {
                tell_failure(&failure);
                self.without_ledger()
            }
        }
    }

    /// What the model is told of a decision that is no permission.
    async fn words(&self, decision: &DecisionAnswer) -> Refusal {
        let told = self.memory.told(&decision.run_id);
        let result_of = |record: &Record| self.memory.result(record);
        let of_twin = match self.scope().await {
            Ok(scope) => words_on_twin(scope.ledger(), &told, decision, result_of).await,
            Err(_) => None,
        };
        match of_twin {
            Some(words) => Refusal { text: refusal::of_twin(&words.text), success: words.success },
            None => refusal::of_decision(decision).into(),
        }
    }

    fn without_ledger(&self) -> Verdict {
        if !self.fail_open {
            return Verdict::Refuse(refusal::unreachable().into());
        }
        let count = self.unrecorded.fetch_add(1, Ordering::Relaxed) + 1;
        tell(&format!(
            "the ledger is down: a tool call passes unrecorded (--fail-open), {count} so far"
        ));
        Verdict::RunUnrecorded
    }

    async fn claim(
        &self,
        spec: &CallSpec,
        may_wait: bool,
    ) -> Result<Result<Permission, LedgerError>, Failure> {
        let scope = self.scope().await?;
        let mut spec = spec.clone();
        spec.knows = self.memory.told(&spec.run_id).entries();
        Ok(match may_wait {
            true => scope.claim(&spec).await,
            false => scope.claim_now(&spec).await,
        })
    }

    async fn scope(&self) -> Result<Scope, Failure> {
        let began = Instant::now();
        let mut found = self.scope.lock().await;
        if let Some(scope) = &found.scope {
            return Ok(scope.clone());
        }
        if found.failed_at.is_some_and(|failed_at| failed_at >= began) {
            return Err(Failure::said("the ledger is not there"));
        }
        // A host that starts a server anew does not wait for the end of the old one.
        let until = Instant::now() + IN_USE_WAIT;
        let ledger = loop {
            match find_for_adapter(&self.target).await {
                Err(Failure::InUse { .. }) if Instant::now() < until => sleep(IN_USE_POLL).await,
                Ok(ledger) => break ledger,
                Err(failure) => {
                    found.failed_at = Some(Instant::now());
                    return Err(failure);
                }
            }
        };
        let spec = ScopeSpec { label: Some("mcp".into()), ttl: None };
        Ok(found.scope.insert(ledger.scope(spec)).clone())
    }

    /// Waits for what is on its way to the ledger, and closes the scope and the ledger.
    pub async fn close(&self) {
        let scope = self.scope.lock().await.scope.take();
        if let Some(scope) = scope {
            scope.ledger().idle().await;
            // A service holds a limited number of keys. If this fails, the scope's time ends it.
            let _ = timeout(SCOPE_CLOSE, scope.close()).await;
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
