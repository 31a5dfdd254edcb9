//! The scope of a turn: the life of one signing key. A scope that is gone is replaced, since a
//! service that was restarted has lost its keys, and the turn goes on.

use std::sync::Arc;
use std::time::Duration;

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
    /// Those that were opened; the last one signs.
    ids: Mutex<Vec<String>>,
}

impl Scope {
    pub(crate) fn new(ledger: Ledger, spec: ScopeSpec) -> Self {
        Self(Arc::new(Inner { ledger, spec, ids: Mutex::default() }))
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
        let mut ids = self.0.ids.lock().await;
        match ids.last() {
            Some(id) => Ok(id.clone()),
            None => self.open_another(&mut ids).await,
        }
    }

    /// Closes it: its key is wiped, its receipts verify as `recorded` from now on. A later
    /// claim opens another one.
    ///
    /// # Errors
    /// If the ledger cannot be reached; then the scope's time ends it.
    pub async fn close(&self) -> Result<(), LedgerError> {
        let ids = std::mem::take(&mut *self.0.ids.lock().await);
        let mut result = Ok(());
        for id in ids {
            match self.0.ledger.close_scope(&id).await {
                Err(error) if !error.is_scope_gone() => result = Err(error),
                _ => {}
            }
        }
        result
    }

    /// Asks for permission to run a call. While another attempt is under way it waits up to
    /// `spec.wait` for its end and asks again.
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

    /// Its id now, if it was opened.
    pub(crate) async fn current(&self) -> Option<String> {
        self.0.ids.lock().await.last().cloned()
    }

    /// Opens another one in place of one that signs no more, unless somebody has.
    pub(crate) async fn renew(&self, gone: &str) -> Result<String, LedgerError> {
        let mut ids = self.0.ids.lock().await;
        match ids.last() {
            Some(id) if id != gone => Ok(id.clone()),
            _ => self.open_another(&mut ids).await,
        }
    }

    async fn open_another(&self, ids: &mut Vec<String>) -> Result<String, LedgerError> {
        let id = self.0.ledger.open_scope(&self.0.spec).await?;
        ids.push(id.clone());
        Ok(id)
    }
}
