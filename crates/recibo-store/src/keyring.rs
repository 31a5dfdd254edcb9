//! The signing keys that live. They are in memory only and wiped when dropped.

use std::collections::{BTreeSet, HashMap};
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
pub(crate) struct Keyring(Arc<RwLock<Scopes>>);

#[derive(Default)]
struct Scopes {
    by_id: HashMap<ScopeId, Arc<LiveScope>>,
    /// The same in the order in which their time ends: the log must not depend on the order of
    /// a hash map.
    by_end: BTreeSet<(Time, ScopeId)>,
    live_of: HashMap<Namespace, usize>,
}

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
            .by_id
            .get(scope_id)
            .filter(|scope| scope.namespace == *namespace && now < scope.expires_at)
            .cloned()
    }

    /// How many scopes of a namespace live.
    pub(crate) fn live_of(&self, namespace: &Namespace) -> usize {
        let scopes = self.0.read().expect("no holder panics");
        scopes.live_of.get(namespace).copied().unwrap_or_default()
    }

    pub(crate) fn insert(&self, scope: LiveScope) {
        let mut scopes = self.0.write().expect("no holder panics");
        scopes.by_end.insert((scope.expires_at, scope.scope_id.clone()));
        *scopes.live_of.entry(scope.namespace.clone()).or_default() += 1;
        scopes.by_id.insert(scope.scope_id.clone(), Arc::new(scope));
    }

    /// Whether a scope's key is here, also if its time is over.
    pub(crate) fn holds(&self, scope_id: &ScopeId) -> bool {
        self.0.read().expect("no holder panics").by_id.contains_key(scope_id)
    }

    /// Forgets a key, if it is there; it is wiped as soon as no signature under way uses it.
    pub(crate) fn remove(&self, scope_id: &ScopeId) {
        let mut scopes = self.0.write().expect("no holder panics");
        let Some(scope) = scopes.by_id.remove(scope_id) else { return };
        scopes.by_end.remove(&(scope.expires_at, scope_id.clone()));
        if let Some(live) = scopes.live_of.get_mut(&scope.namespace) {
            *live -= 1;
            if *live == 0 {
                scopes.live_of.remove(&scope.namespace);
            }
        }
    }

    /// At most `limit` scopes whose time is over, in the order in which it ended.
    pub(crate) fn due(&self, now: Time, limit: usize) -> Vec<(Namespace, ScopeId)> {
        let scopes = self.0.read().expect("no holder panics");
        let due = scopes.by_end.iter().take_while(|(end, _)| *end <= now).take(limit);
        let named = due.filter_map(|(_, id)| {
            scopes.by_id.get(id).map(|scope| (scope.namespace.clone(), id.clone()))
        });
        named.collect()
    }
}
