//! The signing keys that live. They are in memory only and wiped when dropped.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use recibo_core::id::{Namespace, ScopeId};
use recibo_core::plan::Signer;
use recibo_core::receipt::ScopeKey;
use recibo_core::time::Time;

/// An open scope.
pub(crate) struct LiveScope {
    pub(crate) scope_id: ScopeId,
    pub(crate) namespace: Namespace,
    pub(crate) expires_at: Time,
    pub(crate) key: ScopeKey,
}

impl LiveScope {
    pub(crate) fn signer(&self) -> Signer<'_> {
        Signer { scope_id: &self.scope_id, key: &self.key }
    }
}

/// All open scopes. The writer changes it, readers verify with it.
#[derive(Clone, Default)]
pub(crate) struct Keyring(Arc<RwLock<HashMap<ScopeId, Arc<LiveScope>>>>);

impl Keyring {
    /// A scope's key, if it is of this namespace and its time is not over.
    pub(crate) fn get(
        &self,
        namespace: &Namespace,
        scope_id: &ScopeId,
        now: Time,
    ) -> Option<Arc<LiveScope>> {
        let scopes = self.0.read().expect("no holder panics");
        scopes
            .get(scope_id)
            .filter(|scope| scope.namespace == *namespace && now < scope.expires_at)
            .cloned()
    }

    pub(crate) fn insert(&self, scope: LiveScope) {
        let mut scopes = self.0.write().expect("no holder panics");
        scopes.insert(scope.scope_id.clone(), Arc::new(scope));
    }

    /// Forgets a key, if it is there; it is wiped as soon as no signature under way uses it.
    pub(crate) fn remove(&self, scope_id: &ScopeId) -> bool {
        self.0.write().expect("no holder panics").remove(scope_id).is_some()
    }

    /// Scopes whose time is over, in the order in which it ended: the log must not depend on
    /// the order of a hash map.
    pub(crate) fn due(&self, now: Time) -> Vec<(Namespace, ScopeId)> {
        let scopes = self.0.read().expect("no holder panics");
        let mut due: Vec<_> = scopes.values().filter(|scope| scope.expires_at <= now).collect();
        due.sort_by(|a, b| (a.expires_at, &a.scope_id).cmp(&(b.expires_at, &b.scope_id)));
        due.iter().map(|scope| (scope.namespace.clone(), scope.scope_id.clone())).collect()
    }
}
