//! The rest of the book: what settles calls from outside, what time does, what a restart does.

use recibo_core::effect::Policy;
use recibo_core::event::{Body, Restarted};
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

    /// A start on the same boot, after so long: keys are gone, and time went on.
    pub fn start_again(&mut self, down_ms: u64, wall: Time) {
        self.forget_keys();
        self.now = if self.seen.is_some() { self.now.plus_ms(down_ms) } else { wall };
    }

    /// A start on another boot at a wall time: keys are gone, leases that lived when the ledger
    /// was last seen get the time that remained then, and a clock that is behind ends all key
    /// windows.
    pub fn restart(&mut self, wall: Time) {
        self.forget_keys();
        let last_event_at = self.events.last().map(|event| event.at);
        let Some(last_at) = last_event_at.max(self.seen) else {
            self.now = wall;
            return;
        };
        self.now = wall.max(last_at);
        if let Some(last_event_at) = last_event_at {
            let key_windows_void = wall < last_event_at;
            if key_windows_void {
                self.void_until = Some(last_at);
            }
            self.append_restart(Restarted { last_at, key_windows_void });
            self.seen = Some(self.now);
        }
    }

    /// Whether an attempt is open, its lease live or not.
    pub fn has_open_leases(&self) -> bool {
        !self.open_leases().is_empty()
    }

    /// Whether a lease has ended since the ledger was last seen.
    pub fn has_unmarked_end(&self) -> bool {
        let has_ended = |end: Time| end <= self.now && self.seen.is_none_or(|seen| end > seen);
        self.open_leases().into_iter().any(|(end, ..)| has_ended(end))
    }

    /// Leases of attempts that are open, whether live or not, by their ends, and then by the
    /// age of their calls.
    fn open_leases(&self) -> Vec<(Time, Namespace, CallRef)> {
        let mut calls: Vec<(Namespace, CallRef)> = Vec::new();
        for event in &self.events {
            if let Some((call, _)) = event.body.call() {
                let owner = event.owner.as_ref().expect("a call is of a namespace");
                let call = (owner.namespace.clone(), call.clone());
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        let mut leases: Vec<_> = calls
            .into_iter()
            .filter_map(|(namespace, call)| {
                let newest = self.known(&namespace, &call)?.call.tip.newest;
                let end = newest.lease_expires_at().filter(|_| newest.is_open())?;
                Some((end, namespace, call))
            })
            .collect();
        leases.sort_by_key(|(end, _, _)| *end);
        leases
    }
}
