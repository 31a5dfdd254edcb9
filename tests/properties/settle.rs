//! The rest of the book: what settles calls from outside, what time does, what a restart does.

use recibo_core::effect::Policy;
use recibo_core::event::Body;
use recibo_core::id::{CallRef, Namespace};
use recibo_core::plan::{self, Check, Refusal, Resolution};
use recibo_core::status::ScopeEnd;
use recibo_core::time::Time;
use recibo_store::{CheckedAnswer, etag};

use super::book::Book;

impl Book {
    /// A status check.
    pub fn check(
        &mut self,
        namespace: &Namespace,
        check: &Check,
    ) -> Result<CheckedAnswer, Refusal> {
        let known = self.known(namespace, &check.call);
        let checked = plan::check(&self.place(), check, known.as_ref())?;
        self.take(namespace, &check.call, checked.plan);
        Ok(CheckedAnswer { retry_after_ms: checked.retry_after_ms })
    }

    /// An operator's word.
    pub fn resolve(
        &mut self,
        namespace: &Namespace,
        resolution: &Resolution,
        given: &str,
    ) -> Result<(), Refusal> {
        let known = self.known(namespace, &resolution.call);
        let is_current =
            known.as_ref().is_some_and(|known| etag::matches(given, &known.call.tip, self.now));
        let plan = plan::resolve(&self.place(), resolution, known.as_ref(), is_current)?;
        self.take(namespace, &resolution.call, plan);
        Ok(())
    }

    /// Replaces a policy; answers the number of the event.
    pub fn set_policy(&mut self, namespace: &Namespace, policy: Policy) -> u64 {
        self.append(namespace, Body::PolicySet { policy });
        self.events.len() as u64 - 1
    }

    /// The background job.
    pub fn tick(&mut self) {
        for (namespace, scope) in self.due_scopes() {
            self.close_scope(&namespace, &scope, ScopeEnd::Expired);
        }
        for (_, namespace, call) in self.open_leases() {
            let known = self.known(&namespace, &call).expect("it has a lease");
            if let Some(plan) = plan::expire(&self.place(), &call, &known) {
                self.take(&namespace, &call, plan);
            }
        }
    }

    /// A restart at a wall time: keys are gone, leases that lived at the last event get their
    /// remaining time again, and a clock that is behind ends all key windows.
    pub fn restart(&mut self, wall: Time) {
        self.forget_keys();
        let Some(last) = self.events.last().map(|event| event.at) else {
            self.now = wall;
            return;
        };
        self.now = wall.max(last);
        if wall < last {
            self.void_until = Some(last);
        }
        for (_, namespace, call) in self.open_leases() {
            let known = self.known(&namespace, &call).expect("it has a lease");
            if let Some(plan) = plan::extend(&self.place(), &call, &known, last) {
                self.take(&namespace, &call, plan);
            }
        }
    }

    /// Leases of attempts that are open, whether live or not, by their ends, and then by the
    /// age of their calls.
    fn open_leases(&self) -> Vec<(Time, Namespace, CallRef)> {
        let mut calls: Vec<(Namespace, CallRef)> = Vec::new();
        for event in &self.events {
            if let Some((call, _)) = event.body.call() {
                let call = (event.namespace.clone(), call.clone());
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        let mut leases: Vec<_> = calls
            .into_iter()
            .filter_map(|(namespace, call)| {
                let newest = self.known(&namespace, &call)?.call.tip.newest;
                let end = newest.lease_expires_at.filter(|_| newest.is_open())?;
                Some((end, namespace, call))
            })
            .collect();
        leases.sort_by_key(|(end, _, _)| *end);
        leases
    }
}
