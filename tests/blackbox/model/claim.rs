//! The claim: section 2, *Claims*, and the order of checks.

use super::Ledger;
use super::call::{Call, CallKey, Event, Terms};
use super::decide::Decision;
use super::twin::{Hold, TwinAsk};
use super::words::Effect;

/// A claim as it is sent, hashed.
#[derive(Clone, Debug)]
pub struct ClaimAsk {
    pub key: CallKey,
    pub tool: String,
    pub input_hash: String,
    pub twin_hash: String,
    pub claim_id: String,
    pub scope: String,
    pub effect: Option<Effect>,
    pub lease_ms: u64,
    pub attempt: Option<u32>,
    pub operation_key: Option<String>,
    /// `key_window_ms`, `settle_ms`.
    pub terms: (Option<u64>, Option<u64>),
    pub twins: TwinAsk,
}

/// Permission.
#[derive(Clone, Debug)]
pub struct Grant {
    pub attempt: u32,
    pub reason: &'static str,
    pub started_at: u64,
    pub lease_end: u64,
    /// `None`: a new one.
    pub replayed: Option<String>,
    pub terms: Terms,
}

/// An answer that the contract permits.
#[derive(Clone, Debug)]
pub enum Verdict {
    Refused(u16, &'static str),
    Granted(Grant),
    Advised(Decision),
    Held(Decision, Hold),
}

impl Ledger {
    /// The answers that the contract permits. More than one only where it does not say which
    /// of several obstacles comes first.
    pub fn judge_claim(&self, ask: &ClaimAsk) -> Vec<Verdict> {
        let known = self.call(&ask.key);
        if let Some(call) = known {
            if call.tool != ask.tool || call.input_hash != ask.input_hash {
                return vec![Verdict::Refused(422, "input_mismatch")];
            }
            if let Some(grant) = self.replay(call, ask) {
                return vec![Verdict::Granted(grant)];
            }
        }
        let frozen =
            self.frozen(known, &ask.tool, ask.effect, ask.terms, ask.operation_key.as_deref());
        let terms = match frozen {
            Ok(terms) => terms,
            Err(refusals) => return refused(&refusals),
        };
        let decision = self.decide(&ask.key);
        if decision.kind != "proceed" {
            return vec![Verdict::Advised(decision)];
        }
        let obstacles = self.obstacles(ask, &terms, &decision);
        if !obstacles.is_empty() {
            return obstacles;
        }
        self.grants(ask, terms, &decision)
    }

    /// What stands between "proceed" and a grant.
    fn obstacles(&self, ask: &ClaimAsk, terms: &Terms, decision: &Decision) -> Vec<Verdict> {
        let known = self.call(&ask.key);
        let mut found = Vec::new();
        if known.is_some_and(|call| was_granted(call, &ask.claim_id)) {
            found.push(Verdict::Refused(409, "claim_used"));
        }
        let next = known.map_or(1, |call| self.fold(call).attempts.len() as u32 + 1);
        if ask.attempt.is_some_and(|attempt| attempt != next) {
            found.push(Verdict::Refused(409, "attempt_conflict"));
        }
        if known.is_none() && self.holder(ask.operation_key.as_deref(), &ask.key).is_some() {
            found.push(Verdict::Refused(409, "operation_key_taken"));
        }
        // "A scope is needed only to be granted", and twins are judged "wherever a grant would
        // follow": which of the two comes first is not said.
        if found.is_empty() && !self.can_sign(&ask.scope) {
            found.push(match self.scope_state(&ask.scope) {
                None => Verdict::Refused(404, "scope_not_found"),
                Some(_) => Verdict::Refused(409, "scope_gone"),
            });
        }
        if let Some(hold) = self.held_by_twins(ask, terms) {
            found.push(Verdict::Held(decision.clone(), hold));
        }
        found
    }

    fn replay(&self, call: &Call, ask: &ClaimAsk) -> Option<Grant> {
        let fold = self.fold(call);
        let open = fold.attempts.iter().find(|attempt| attempt.is_live(self.now))?;
        let lease = open.lease.as_ref()?;
        (lease.claim_id == ask.claim_id).then(|| Grant {
            attempt: open.number,
            reason: if open.number == 1 { "first_attempt" } else { "retry_allowed" },
            started_at: open.started_at,
            lease_end: lease.end,
            replayed: Some(lease.token.clone()),
            terms: call.terms,
        })
    }

    /// The terms that hold for a call, or the refusals that are all true of it.
    pub fn frozen(
        &self,
        known: Option<&Call>,
        tool: &str,
        effect: Option<Effect>,
        brought: (Option<u64>, Option<u64>),
        operation_key: Option<&str>,
    ) -> Result<Terms, Vec<(u16, &'static str)>> {
        let Some(call) = known else {
            return self.first_terms(tool, effect, brought).map_err(|refusal| vec![refusal]);
        };
        let mut refusals = Vec::new();
        if effect.is_some_and(|effect| effect != call.terms.effect) {
            refusals.push((422, "effect_mismatch"));
        }
        if operation_key.is_some_and(|key| call.operation_key.as_deref() != Some(key)) {
            refusals.push((422, "operation_key_mismatch"));
        }
        if refusals.is_empty() { Ok(call.terms) } else { Err(refusals) }
    }

    fn grants(&self, ask: &ClaimAsk, terms: Terms, decision: &Decision) -> Vec<Verdict> {
        let known = self.call(&ask.key);
        // "Where a key window is given, a keyed lease ends no later than it; after its window
        // [...] a full lease."
        let full = self.now + ask.lease_ms;
        let ends = match (known, terms.key_window_ms) {
            (Some(call), _) => self.lease_ends(call, ask.lease_ms),
            (None, Some(ms)) if terms.effect == Effect::Keyed => vec![full.min(self.now + ms)],
            (None, _) => vec![full],
        };
        let grant = |lease_end| Grant {
            attempt: known.map_or(1, |call| self.fold(call).attempts.len() as u32 + 1),
            reason: decision.reasons[0],
            started_at: self.now,
            lease_end,
            replayed: None,
            terms,
        };
        ends.into_iter().map(|end| Verdict::Granted(grant(end))).collect()
    }

    /// Books a new grant with the lease token that the service gave.
    pub fn granted(&mut self, ask: &ClaimAsk, grant: &Grant, lease_token: &str) {
        let index = self.find(&ask.key).unwrap_or_else(|| {
            self.calls.push(Call {
                key: ask.key.clone(),
                tool: ask.tool.clone(),
                input_hash: ask.input_hash.clone(),
                twin_hash: ask.twin_hash.clone(),
                terms: grant.terms,
                operation_key: ask.operation_key.clone(),
                recorded_at: self.now,
                window_from: self.now,
                events: Vec::new(),
            });
            self.calls.len() - 1
        });
        let started = Event::Started {
            at: self.now,
            claim_id: ask.claim_id.clone(),
            scope: ask.scope.clone(),
            lease_ms: ask.lease_ms,
            lease_end: grant.lease_end,
            lease_token: lease_token.to_owned(),
        };
        self.append(index, started);
    }
}

fn was_granted(call: &Call, id: &str) -> bool {
    let is_it = |event: &Event| matches!(event, Event::Started { claim_id, .. } if claim_id == id);
    call.events.iter().any(is_it)
}

fn refused(refusals: &[(u16, &'static str)]) -> Vec<Verdict> {
    refusals.iter().map(|(status, code)| Verdict::Refused(*status, code)).collect()
}
