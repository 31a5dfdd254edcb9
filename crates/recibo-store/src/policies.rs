//! The effect policies in force, for whoever reads a request before the writer has it.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use recibo_core::effect::Policy;
use recibo_core::id::Namespace;

/// A policy per namespace. The writer changes it once a change is durable.
#[derive(Clone, Default)]
pub(crate) struct Policies(Arc<RwLock<HashMap<Namespace, Arc<Policy>>>>);

impl Policies {
    pub(crate) fn get(&self, namespace: &Namespace) -> Arc<Policy> {
        let policies = self.0.read().expect("no holder panics");
        policies.get(namespace).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&self, namespace: Namespace, policy: Arc<Policy>) {
        self.0.write().expect("no holder panics").insert(namespace, policy);
    }
}
