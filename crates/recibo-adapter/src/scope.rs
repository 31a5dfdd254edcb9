//! The scope of a turn: the life of one signing key. A scope that is gone is replaced, since a
//! service that was restarted has lost its keys, and the turn goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recibo_api::answer::DecisionAnswer;
use tokio::sync::Mutex;

use crate::claim::{self, CallSpec, Permission};
use crate::error::LedgerError;
use crate::ledger::Ledger;

/// What a scope is opened with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSpec {
    /// A name for it, at most 256 bytes.
    pub label: Option<String>,
    /// How long its key lives at most, 1 s to 30 days; 24 hours when not given.
    pub ttl: Option<Duration>,
}

impl ScopeSpec {
    pub(crate) fn ttl_ms(&self) -> Option<u64> {
        self.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A turn's signing scope. Clones share it: a sub-agent in the same turn takes one.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    spec: ScopeSpec,
    opened: Mutex<Opened>,
    /// How often none could be opened.
    failures: AtomicU64,
}

#[derive(Default)]
struct Opened {
    /// The last one signs.
    ids: Vec<String>,
    /// Whether the owner has closed it, and nothing was claimed since.
    is_closed: bool,
    /// Why none could be opened: whoever waited meanwhile need not find out again.
    failed: Option<LedgerError>,
}

impl Scope {
    pub(crate) fn new(ledger: Ledger, spec: ScopeSpec) -> Self {
        Self(Arc::new(Inner {
            ledger,
            spec,
            opened: Mutex::default(),
            failures: AtomicU64::new(0),
        }))
    }

    /// The ledger that it is a scope of.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Its id; opens it if no claim has yet.
    ///
    /// # Errors
    /// Where no scope can be opened.
    pub async fn open(&self) -> Result<String, LedgerError> {
        let failures = self.failures();
        let mut opened = self.0.opened.lock().await;
        opened.is_closed = false;
        match opened.ids.last() {
            Some(id) => Ok(id.clone()),
            None => self.open_another(&mut opened, self.claim_tries(), failures).await,
        }
    }

    /// Closes it: its key is wiped, its receipts verify as `recorded` from now on. A later
    /// claim opens another one.
    ///
    /// # Errors
    /// If the ledger cannot be reached; then the scope's time ends it.
    pub async fn close(&self) -> Result<(), LedgerError> {
        let ids = {
            let mut opened = self.0.opened.lock().await;
            opened.is_closed = true;
            std::mem::take(&mut opened.ids)
        };
        let mut result = Ok(());
        for id in ids {
            match self.0.ledger.close_scope(&id).await {
                Err(error) if !error.is_scope_gone() => result = Err(error),
                _ => {}
            }
        }
        result
    }

    /// Asks for permission to run a call. While another attempt at the call, or another call that
    /// does the same, is under way, it waits up to `spec.wait` for its end and asks again. If
    /// that other call has succeeded, the answer is `reuse` with the reason `twin_ok_late`, and
    /// its record.
    ///
    /// If this future is dropped, nothing is left open: an attempt granted meanwhile is reported
    /// as `retryable_error`, since nothing was sent.
    ///
    /// # Errors
    /// What the ledger refuses, or that it does not answer. A claim that got no answer may have
    /// been granted; then nobody is permitted, and its lease ends by itself.
    pub async fn claim(&self, spec: &CallSpec) -> Result<Permission, LedgerError> {
        claim::patiently(self, spec).await
    }

    /// The same without waiting for another attempt.
    ///
    /// # Errors
    /// As [`Scope::claim`].
    pub async fn claim_now(&self, spec: &CallSpec) -> Result<Permission, LedgerError> {
        claim::now(self, spec).await
    }

    /// After the advice to wait: waits for the end of what is under way. `None`: claim again.
    /// Else what is known instead: it is still under way, or another call that does the same
    /// has succeeded (`reuse`, `twin_ok_late`).
    ///
    /// # Errors
    /// What stands between here and the ledger.
    pub async fn wait_out(
        &self,
        advice: &DecisionAnswer,
        wait: Duration,
    ) -> Result<Option<Box<DecisionAnswer>>, LedgerError> {
        claim::wait_out(&self.0.ledger, advice, wait).await
    }

    /// A scope that signs in place of the one that was claimed in, opened if need be; `None` if
    /// that one still signs. The ledger is asked, since a restart shows in nothing else, and an
    /// outcome is taken once: a receipt that it does not bring is lost.
    pub(crate) async fn other_signer(&self, claimed: &str) -> Result<Option<String>, LedgerError> {
        let ledger = &self.0.ledger;
        if ledger.scope_signs(claimed).await? {
            return Ok(None);
        }
        let current = self.0.opened.lock().await.ids.last().cloned();
        let gone = match current {
            Some(id) if id == claimed => id,
            Some(id) if ledger.scope_signs(&id).await? => return Ok(Some(id)),
            Some(id) => id,
            None => claimed.to_owned(),
        };
        // Once: the report that needs it comes again by itself.
        self.replace(&gone, 1).await.map(Some)
    }

    /// Opens another one in place of one that signs no more, unless somebody has.
    pub(crate) async fn renew(&self, gone: &str) -> Result<String, LedgerError> {
        self.replace(gone, self.claim_tries()).await
    }

    /// Closes what a report has opened after the owner closed the scope.
    pub(crate) async fn close_if_closed(&self) {
        let is_left_open = {
            let opened = self.0.opened.lock().await;
            opened.is_closed && !opened.ids.is_empty()
        };
        if is_left_open {
            // If this fails, the scope's time ends it.
            let _ = self.close().await;
        }
    }

    async fn replace(&self, gone: &str, tries: u32) -> Result<String, LedgerError> {
        let failures = self.failures();
        let mut opened = self.0.opened.lock().await;
        match opened.ids.last() {
            Some(id) if id != gone => Ok(id.clone()),
            _ => self.open_another(&mut opened, tries, failures).await,
        }
    }

    /// Opens one for a caller who began to wait for that after so many failures.
    async fn open_another(
        &self,
        opened: &mut Opened,
        tries: u32,
        failures: u64,
    ) -> Result<String, LedgerError> {
        if let Some(error) = opened.failed.as_ref().filter(|_| self.failures() > failures) {
            return Err(error.clone());
        }
        let result = self.0.ledger.open_scope(&self.0.spec, tries).await;
        if let Err(error) = &result {
            opened.failed = Some(error.clone());
            self.0.failures.fetch_add(1, Ordering::Relaxed);
        }
        let id = result?;
        opened.ids.push(id.clone());
        Ok(id)
    }

    fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    fn claim_tries(&self) -> u32 {
        self.0.ledger.retry_policy.claim_tries
    }
}
