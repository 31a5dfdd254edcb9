//! One face for two ledgers: a service over HTTP, and a store of this process. Typed: what is
//! asked and answered is the same, however it travels.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use recibo_api::answer::{DecisionAnswer, OutcomeAnswer, ScopeState};
use recibo_api::client::Service;
use recibo_api::request::{CheckRequest, ClaimRequest, RenewalRequest, ScopeRequest};
use recibo_core::id::{CallRef, Namespace, RunId, ToolCallId};
use recibo_store::{Config, OpenError, Store, SystemClock};

use crate::background::Background;
use crate::embedded::Embedded;
use crate::error::LedgerError;
use crate::http::Http;
use crate::reply::{Checked, Claimed};
use crate::report::OutcomeDelivery;
use crate::retry::{Backoff, RetryPolicy};
use crate::scope::{Scope, ScopeSpec};

/// A ledger to talk to. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    backend: Arc<Mutex<Backend>>,
    finder: Option<Arc<Finder>>,
    pub(crate) retry_policy: RetryPolicy,
    pub(crate) background: Background,
}

#[derive(Clone)]
enum Backend {
    Http(Http),
    Embedded(Embedded),
}

/// What a finder answers: where the ledger is now, if it is anywhere.
pub type Finding = Pin<Box<dyn Future<Output = Option<Ledger>> + Send>>;
type Finder = dyn Fn() -> Finding + Send + Sync;

/// Calls a method of whichever backend there is.
macro_rules! backend {
    ($ledger:ident.$method:ident($($argument:expr),*)) => {
        match $ledger.backend() {
            Backend::Http(http) => http.$method($($argument),*).await,
            Backend::Embedded(embedded) => embedded.$method($($argument),*).await,
        }
    };
}

impl Ledger {
    /// A service.
    pub fn http(service: Service) -> Self {
        Self::new(Backend::Http(Http(service)))
    }

    /// An open store of this process, and the namespace to write in. There are no roles here:
    /// who has the store may do everything. The caller closes the store, or [`Ledger::close`]
    /// does.
    pub fn embedded(store: Store, namespace: Namespace) -> Self {
        Self::new(Backend::Embedded(Embedded::new(store, namespace)))
    }

    /// Opens the ledger in a folder, which is made if it is missing, with the defaults of the
    /// store. One process at a time can. Blocks.
    ///
    /// # Errors
    /// Why the store cannot be opened, `InUse` for instance while a service runs on the folder.
    pub fn open(folder: &Path, namespace: Namespace) -> Result<Self, OpenError> {
        let entropy = Box::new(|bytes: &mut [u8]| rand::fill(bytes));
        let store = Store::open(folder, Config::default(), Arc::new(SystemClock), entropy)?;
        Ok(Self::embedded(store, namespace))
    }

    fn new(backend: Backend) -> Self {
        Self {
            backend: Arc::new(Mutex::new(backend)),
            finder: None,
            retry_policy: RetryPolicy::default(),
            background: Background::default(),
        }
    }

    /// The same ledger, asked again for longer or shorter while it does not answer.
    #[must_use]
    pub fn with_retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// The same ledger, looked for again whenever a request got no answer: a service may come back
    /// at another address, or leave its folder to this process.
    #[must_use]
    pub fn with_finder(mut self, finder: impl Fn() -> Finding + Send + Sync + 'static) -> Self {
        self.finder = Some(Arc::new(finder));
        self
    }

    /// A scope, not opened yet: the first claim opens it.
    pub fn scope(&self, spec: ScopeSpec) -> Scope {
        Scope::new(self.clone(), spec)
    }

    /// What to do about a call; with `wait` (up to 30 s) once there is something else to do
    /// than wait, or when the time is over. Advice, never permission.
    ///
    /// # Errors
    /// `invalid_id`, or what stands between here and the ledger.
    pub async fn decision(
        &self,
        run_id: &str,
        tool_call_id: &str,
        wait: Duration,
    ) -> Result<DecisionAnswer, LedgerError> {
        let call = call_ref(run_id, tool_call_id)?;
        backend!(self.decision(&call, wait))
    }

    /// Tells the ledger what the outside service said of an attempt. Over HTTP this needs the
    /// role `reconciler`.
    ///
    /// # Errors
    /// `forbidden`, `call_not_found`, `attempt_not_found`, `attempt_settled` and the like.
    pub async fn check(
        &self,
        run_id: &str,
        tool_call_id: &str,
        attempt: u32,
        check: CheckRequest,
    ) -> Result<Checked, LedgerError> {
        let call = call_ref(run_id, tool_call_id)?;
        backend!(self.check(&call, attempt, check))
    }

    /// Returns once no claim and no outcome is under way, also none of a dropped [`crate::Grant`].
    /// Call it before the runtime ends.
    pub async fn idle(&self) {
        self.background.idle().await;
    }

    /// Waits until nothing is under way and closes a store of this process, for all clones. A
    /// service is left alone.
    pub async fn close(&self) {
        self.idle().await;
        if let Backend::Embedded(embedded) = self.backend() {
            embedded.close().await;
        }
    }

    pub(crate) async fn open_scope(
        &self,
        spec: &ScopeSpec,
        tries: u32,
    ) -> Result<String, LedgerError> {
        let mut backoff = Backoff::new(tries, &self.retry_policy);
        loop {
            let request = ScopeRequest { label: spec.label.clone(), ttl_ms: spec.ttl_ms() };
            match backend!(self.open_scope(request)) {
                Err(error) if error.is_transient() && backoff.take() => {
                    backoff.wait().await;
                    self.find_again().await;
                }
                result => return result,
            }
        }
    }

    pub(crate) async fn close_scope(&self, scope_id: &str) -> Result<(), LedgerError> {
        backend!(self.close_scope(scope_id))
    }

    /// Whether a scope still signs.
    pub(crate) async fn scope_signs(&self, scope_id: &str) -> Result<bool, LedgerError> {
        match backend!(self.scope_state(scope_id)) {
            Ok(state) => Ok(state == ScopeState::Open),
            Err(error) if error.is_scope_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn claim(
        &self,
        call: &CallRef,
        request: ClaimRequest<'_>,
    ) -> Result<Claimed, LedgerError> {
        backend!(self.claim(call, request))
    }

    pub(crate) async fn report(
        &self,
        call: &CallRef,
        attempt: u32,
        delivery: &OutcomeDelivery,
    ) -> Result<OutcomeAnswer, LedgerError> {
        backend!(self.report(call, attempt, delivery))
    }

    /// Asks for another end of a lease; gives what is left of it.
    pub(crate) async fn renew(
        &self,
        call: &CallRef,
        attempt: u32,
        request: RenewalRequest,
    ) -> Result<u64, LedgerError> {
        backend!(self.renew(call, attempt, request))
    }

    /// Looks for the ledger again. What it is replaced by is shared by all clones.
    pub async fn find_again(&self) {
        let Some(finder) = &self.finder else { return };
        if let Some(found) = finder().await {
            let found = found.backend();
            *self.backend.lock().expect("no holder panics") = found;
        }
    }

    fn backend(&self) -> Backend {
        self.backend.lock().expect("no holder panics").clone()
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.backend() {
            Backend::Http(Http(service)) => f.debug_tuple("Ledger").field(&service).finish(),
            Backend::Embedded(_) => f.debug_tuple("Ledger").finish_non_exhaustive(),
        }
    }
}

pub(crate) fn call_ref(run_id: &str, tool_call_id: &str) -> Result<CallRef, LedgerError> {
    Ok(CallRef { run_id: RunId::parse(run_id)?, tool_call_id: ToolCallId::parse(tool_call_id)? })
}
