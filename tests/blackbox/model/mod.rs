//! The model: a plain list of what happened to each call, folded with the sentences of the
//! contract (sections 1, 2, 3, 6 and *Ledger time*). It shares no code with the service.

mod call;
mod claim;
mod decide;
mod fold;
mod hash;
mod lease;
mod report;
mod settle;
mod twin;
mod words;

pub use call::{Call, CallKey, Event, Outcome, Terms};
pub use claim::{ClaimAsk, Grant, Verdict};
pub use decide::{Decision, Retry};
pub use fold::{Attempt, Fold};
pub use hash::{canonical, idempotency_key, sha256};
pub use lease::Survivor;
pub use report::{OutcomeVerdict, ShotAsk, ShotVerdict};
pub use settle::CheckVerdict;
pub use twin::TwinAsk;
pub use words::{Answer, Effect, Resolved, State, Status};

/// Default of `twin_window_ms`.
pub const TWIN_WINDOW_MS: u64 = 3_600_000;

/// A rule of the effect policy.
#[derive(Clone, Debug)]
pub struct Rule {
    /// An exact name, or a prefix with `*`.
    pub pattern: &'static str,
    pub effect: Effect,
    pub key_window_ms: Option<u64>,
    pub settle_ms: Option<u64>,
    pub max_attempts: Option<u32>,
    /// The arguments that make two calls the same effect; empty: all of them.
    pub twin_by: &'static [&'static str],
    /// Whether twins of other runs count.
    pub across_runs: bool,
}

impl Rule {
    fn matches(&self, tool: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => tool == self.pattern,
        }
    }
}

/// A signing key's life.
#[derive(Clone, Debug)]
pub struct Scope {
    pub id: String,
    pub expires_at: u64,
    /// It was closed by request.
    pub is_closed: bool,
    /// It went with its process.
    pub is_gone: bool,
}

/// All that the model knows of the ledger.
pub struct Ledger {
    /// Ledger time.
    pub now: u64,
    /// Ledger time of the newest event that is known to be durable.
    pub last_write: u64,
    /// In the order of their first events.
    pub calls: Vec<Call>,
    pub scopes: Vec<Scope>,
    pub policy: Vec<Rule>,
    /// Key windows opened up to here count as over.
    pub windows_void_until: Option<u64>,
}

impl Ledger {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            now: 0,
            last_write: 0,
            calls: Vec::new(),
            scopes: Vec::new(),
            policy: Vec::new(),
            windows_void_until: None,
        }
    }

    /// Where a call stands, if it is known.
    pub fn find(&self, key: &CallKey) -> Option<usize> {
        self.calls.iter().position(|call| call.key == *key)
    }

    /// A call, if it is known.
    pub fn call(&self, key: &CallKey) -> Option<&Call> {
        self.calls.iter().find(|call| call.key == *key)
    }

    /// A known call, folded.
    pub fn fold(&self, call: &Call) -> Fold {
        Fold::of(call)
    }

    /// Appends an event to a known call, now.
    pub fn append(&mut self, index: usize, event: Event) {
        self.calls[index].events.push(event);
        self.last_write = self.now;
    }

    /// The first rule that matches a tool.
    pub fn rule(&self, tool: &str) -> Option<&Rule> {
        self.policy.iter().find(|rule| rule.matches(tool))
    }

    /// What a first attempt would freeze, or the refusal.
    pub fn first_terms(
        &self,
        tool: &str,
        stated: Option<Effect>,
        brought: (Option<u64>, Option<u64>),
    ) -> Result<Terms, (u16, &'static str)> {
        let Some(rule) = self.rule(tool) else {
            return Ok(Terms {
                effect: stated.unwrap_or(Effect::Opaque),
                key_window_ms: brought.0,
                settle_ms: brought.1,
                max_attempts: None,
            });
        };
        let effect = stated.unwrap_or(rule.effect);
        if effect < rule.effect {
            return Err((422, "effect_weaker_than_policy"));
        }
        Ok(Terms {
            effect,
            key_window_ms: rule.key_window_ms,
            settle_ms: rule.settle_ms,
            max_attempts: rule.max_attempts,
        })
    }

    /// Whether a scope can sign now.
    pub fn can_sign(&self, id: &str) -> bool {
        self.scopes.iter().any(|scope| {
            scope.id == id && !scope.is_closed && !scope.is_gone && self.now < scope.expires_at
        })
    }

    /// The state of a scope; `None`: never opened.
    pub fn scope_state(&self, id: &str) -> Option<&'static str> {
        let scope = self.scopes.iter().find(|scope| scope.id == id)?;
        Some(if scope.is_closed {
            "closed"
        } else if scope.is_gone {
            "gone"
        } else if self.now < scope.expires_at {
            "open"
        } else {
            "closed"
        })
    }

    /// The other call that holds an operation key.
    pub fn holder(&self, key: Option<&str>, of: &CallKey) -> Option<&Call> {
        let key = key?;
        self.calls.iter().find(|call| call.key != *of && call.operation_key.as_deref() == Some(key))
    }
}
