//! What a history is about: about 12 calls, their tools, arguments and effects, and the policies.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::model::{CallKey, Effect, Rule, canonical, sha256};

/// How many calls a history has.
pub const CALLS: usize = 12;

/// How a caller sends its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// As they are.
    Input,
    /// As their hash.
    Hash,
    /// As their hash, with the twin hash.
    Hashes,
}

/// One call, as its caller means it.
#[derive(Clone, Debug)]
pub struct Spec {
    pub key: CallKey,
    pub tool: &'static str,
    /// Two of its arguments; a model that plans again rewords the second.
    pub order: u64,
    pub text: &'static str,
    pub sent: Sent,
    /// What claims state where no rule matches.
    pub effect: Effect,
    /// What claims bring where no rule matches: `key_window_ms`, `settle_ms`.
    pub terms: (Option<u64>, Option<u64>),
    pub operation_key: Option<String>,
}

const TOOLS: [&str; 8] =
    ["read/list", "idem/set", "pay/charge", "crm/put", "mail/send", "shop/buy", "free", "free/too"];

/// Everything that a seed decides before the first step.
pub struct World {
    pub calls: Vec<Spec>,
    /// Policies that the history switches between.
    pub policies: [Vec<Rule>; 2],
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
        let tools: Vec<&str> = (0..3).map(|_| pick(&mut rng, &TOOLS)).collect();
        let calls = (0..CALLS).map(|number| spec(&mut rng, number, &tools)).collect();
        Self { calls, policies: [policy(0), policy(1)] }
    }

    /// A policy as it is sent.
    pub fn policy(&self, number: usize) -> Value {
        self.policies[number].iter().map(|rule| self.rule(rule)).collect()
    }

    fn rule(&self, rule: &Rule) -> Value {
        let mut sent = json!({
            "match": rule.pattern, "effect": rule.effect.word(),
            "key_window_ms": rule.key_window_ms, "settle_ms": rule.settle_ms,
            "max_attempts": rule.max_attempts,
        });
        if !rule.twin_by.is_empty() {
            sent["twin_by"] = json!(rule.twin_by);
        }
        if rule.across_runs {
            sent["twin_scope"] = json!("namespace");
        }
        sent
    }

    /// What makes a call the same effect as another one.
    pub fn twin_hash(&self, spec: &Spec) -> String {
        let rule = self.policies[0].iter().find(|rule| covers(rule, spec.tool));
        let by = rule.map_or(&[] as &[&str], |rule| rule.twin_by);
        if by.is_empty() || spec.sent == Sent::Hash {
            return spec.input_hash();
        }
        let members = spec.input().into_iter().filter(|(name, _)| by.contains(name));
        sha256(&canonical(&members.collect()))
    }
}

impl Spec {
    /// Its arguments.
    pub fn input(&self) -> BTreeMap<&'static str, Value> {
        BTreeMap::from([("order_id", json!(self.order)), ("text", json!(self.text))])
    }

    /// Their hash.
    pub fn input_hash(&self) -> String {
        sha256(&canonical(&self.input()))
    }

    /// Whether a rule says what its tool does.
    pub fn has_rule(&self) -> bool {
        !self.tool.starts_with("free")
    }
}

fn covers(rule: &Rule, tool: &str) -> bool {
    match rule.pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => tool == rule.pattern,
    }
}

fn pick<T: Copy>(rng: &mut StdRng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

fn spec(rng: &mut StdRng, number: usize, tools: &[&'static str]) -> Spec {
    let tool = pick(rng, tools);
    let operation_key = rng.random_bool(0.2).then(|| format!("op-{}", rng.random_range(0..3)));
    Spec {
        key: CallKey { run: format!("run_{}", number % 2), id: format!("call:{number}|a=b%?#") },
        tool,
        order: rng.random_range(1..3),
        text: pick(rng, &["a", "b"]),
        sent: pick(rng, &[Sent::Input, Sent::Input, Sent::Input, Sent::Hashes, Sent::Hash]),
        effect: pick(rng, Effect::ALL),
        terms: (
            rng.random_bool(0.7).then(|| rng.random_range(1..40) * 1000),
            rng.random_bool(0.7).then(|| rng.random_range(0..8) * 1000),
        ),
        operation_key,
    }
}

/// Two policies that differ in their numbers; what makes twins is the same in both.
fn policy(number: u64) -> Vec<Rule> {
    let rule = |pattern, effect| Rule {
        pattern,
        effect,
        key_window_ms: None,
        settle_ms: None,
        max_attempts: None,
        twin_by: &[],
        across_runs: false,
    };
    let more = |ms: u64| Some(ms + 1000 * number);
    vec![
        rule("read/list", Effect::ReadOnly),
        Rule { max_attempts: Some(2), ..rule("idem/set", Effect::Idempotent) },
        Rule {
            key_window_ms: more(20_000),
            max_attempts: Some(3),
            ..rule("pay/charge", Effect::Keyed)
        },
        Rule { settle_ms: more(5000), across_runs: true, ..rule("crm/*", Effect::Queryable) },
        Rule { twin_by: &["order_id"], ..rule("mail/send", Effect::Opaque) },
        Rule {
            key_window_ms: more(3_600_000),
            settle_ms: (number == 0).then_some(0),
            twin_by: &["order_id", "missing"],
            across_runs: true,
            ..rule("shop/*", Effect::Keyed)
        },
    ]
}
