//! Policies and API keys.

use std::sync::Arc;

use recibo_core::effect::Policy;
use recibo_core::event::Body;
use recibo_core::id::Namespace;
use recibo_core::time::Time;

use crate::api_key::{ApiKeyDraft, ApiKeyInfo, Revoked};
use crate::batch::Batch;
use crate::codec::ApiKeyRow;
use crate::error::StorageError;

impl Batch<'_, '_> {
    pub(crate) fn set_policy(&mut self, namespace: &Namespace, policy: Arc<Policy>) -> u64 {
        let body = Body::PolicySet { policy: Policy::clone(&policy) };
        let seq = self.append(namespace, None, body);
        let state = self.namespace(namespace);
        state.row.policy_seq = Some(seq);
        state.policy = policy;
        seq
    }

    pub(crate) fn create_api_key(
        &mut self,
        draft: ApiKeyDraft,
    ) -> Result<ApiKeyInfo, StorageError> {
        let now = self.now();
        let row = ApiKeyRow {
            roles: draft.roles.clone(),
            namespace: draft.namespace.as_str().to_owned(),
            digest: draft.digest,
            created_ms: now.ms(),
            expires_ms: draft.expires_ms.map(|ms| now.plus_ms(ms).ms()),
            revoked_ms: None,
        };
        self.tables.api_keys.insert(draft.id.as_bytes(), row.encode().as_slice())?;
        let info = ApiKeyInfo {
            id: draft.id.clone(),
            roles: draft.roles,
            namespace: draft.namespace,
            created_at: now,
            expires_at: row.expires_ms.map(Time::from_ms),
            revoked_at: None,
        };
        self.state.api_keys.put(draft.id, row);
        Ok(info)
    }

    pub(crate) fn revoke_api_key(
        &mut self,
        id: &str,
        kept_role: &str,
    ) -> Result<Revoked, StorageError> {
        let Some(mut row) = self.state.api_keys.row(id) else { return Ok(Revoked::NotKnown) };
        if self.state.api_keys.is_last(id, kept_role) {
            return Ok(Revoked::LastOfRole);
        }
        if row.revoked_ms.is_none() {
            row.revoked_ms = Some(self.now().ms());
            self.tables.api_keys.insert(id.as_bytes(), row.encode().as_slice())?;
            self.state.api_keys.put(id.to_owned(), row);
        }
        Ok(Revoked::Yes)
    }
}
