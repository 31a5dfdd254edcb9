//! Scopes: opened, closed, looked up.

use std::sync::Arc;

use recibo_core::event::{Body, ScopeOpened};
use recibo_core::id::{Namespace, ScopeId};
use recibo_core::limits::SCOPES_LIVE_MAX;
use recibo_core::plan::{Refusal, ScopeKnown};
use recibo_core::receipt::ScopeKey;
use recibo_core::status::ScopeEnd;
use redb::ReadableTable;
use zeroize::Zeroizing;

use super::Served;
use crate::answer::OpenedScope;
use crate::batch::Batch;
use crate::codec::ScopeRow;
use crate::error::StorageError;
use crate::keyring::LiveScope;
use crate::scope_id;

impl Batch<'_, '_> {
    pub(crate) fn open_scope(
        &mut self,
        namespace: &Namespace,
        label: Option<String>,
        ttl_ms: u64,
    ) -> Served<OpenedScope> {
        let now = self.now();
        if self.state.keyring.live_of(namespace) >= SCOPES_LIVE_MAX {
            return Ok(Err(Refusal::ScopeLimit { max: SCOPES_LIVE_MAX }));
        }
        let scope_id = scope_id::make(now, self.random());
        let expires_at = now.plus_ms(ttl_ms);
        let opened = ScopeOpened { scope_id: scope_id.clone(), label: label.clone(), expires_at };
        let seq = self.append(namespace, None, Body::ScopeOpened(opened));
        let row = ScopeRow {
            namespace_no: self.namespace(namespace).row.no,
            opened_seq: seq,
            closed_seq: None,
        };
        self.tables.scopes.insert(scope_id.as_str().as_bytes(), row.encode().as_slice())?;
        let mut key = Zeroizing::new([0; 32]);
        (self.state.entropy)(&mut *key);
        self.state.keyring.insert(LiveScope {
            scope_id: scope_id.clone(),
            namespace: namespace.clone(),
            expires_at,
            key: ScopeKey::new(&mut key),
        });
        Ok(Ok(OpenedScope { scope_id, label, opened_at: now, expires_at }))
    }

    /// Closes a scope; its key is wiped once that is durable. Closing again, or closing what an
    /// earlier process opened and took with it, appends nothing. Answers whether the namespace
    /// has such a scope.
    pub(crate) fn close_scope(
        &mut self,
        namespace: &Namespace,
        scope_id: &ScopeId,
        end: ScopeEnd,
    ) -> Result<bool, StorageError> {
        let Some(mut row) = self.scope_row(namespace, scope_id)? else { return Ok(false) };
        if self.state.keyring.holds(scope_id) && !self.closing.contains(scope_id) {
            self.closing.push(scope_id.clone());
            let body = Body::ScopeClosed { scope_id: scope_id.clone(), end };
            row.closed_seq = Some(self.append(namespace, None, body));
            self.tables.scopes.insert(scope_id.as_str().as_bytes(), row.encode().as_slice())?;
        }
        Ok(true)
    }

    fn scope_row(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
    ) -> Result<Option<ScopeRow>, StorageError> {
        let row = match self.tables.scopes.get(scope_id.as_str().as_bytes())? {
            Some(value) => ScopeRow::decode(value.value())?,
            None => return Ok(None),
        };
        Ok(Some(row).filter(|row| self.namespace_no(namespace) == Some(row.namespace_no)))
    }

    /// The key of a scope that lives, as this batch sees it.
    pub(super) fn live_scope(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
    ) -> Option<Arc<LiveScope>> {
        let live = self.state.keyring.get(namespace, scope_id, self.now());
        live.filter(|_| !self.closing.contains(scope_id))
    }

    pub(super) fn scope_known<'k>(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
        live: Option<&'k LiveScope>,
    ) -> Result<ScopeKnown<'k>, StorageError> {
        Ok(match live {
            Some(live) => ScopeKnown::Open(live.signer()),
            None if self.scope_row(namespace, scope_id)?.is_some() => ScopeKnown::Gone,
            None => ScopeKnown::Absent,
        })
    }
}
