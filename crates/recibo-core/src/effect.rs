//! What a tool does to the world, and the policy that says so per tool.

use crate::id::ToolName;

/// Effect of a tool, from the weakest promise needed to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Repeating changes nothing.
    ReadOnly,
    /// Repeating gives the same end state.
    Idempotent,
    /// The outside service honours our idempotency key for a window.
    Keyed,
    /// The outside service can be asked what happened.
    Queryable,
    /// None of these.
    Opaque,
}

impl Effect {
    /// All effects, weakest first.
    pub const ALL: [Self; 5] =
        [Self::ReadOnly, Self::Idempotent, Self::Keyed, Self::Queryable, Self::Opaque];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Idempotent => "idempotent",
            Self::Keyed => "keyed",
            Self::Queryable => "queryable",
            Self::Opaque => "opaque",
        }
    }

    /// Reads the word of the contract.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == text)
    }

    /// Whether a second execution does no harm, so that not knowing is no obstacle.
    pub fn is_repeatable(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Idempotent)
    }
}

/// What a tool's own error (MCP's `isError`) says of the effect. Read by the MCP proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsError {
    /// The tool promises that nothing took effect.
    NoEffect,
    /// A tool that failed may have done half of its work.
    Unknown,
}

impl IsError {
    /// Both, in the order of the contract.
    pub const ALL: &'static [Self] = &[Self::NoEffect, Self::Unknown];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoEffect => "no_effect",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the word of the contract.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.as_str() == text)
    }
}

/// Where twins of a call are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TwinScope {
    /// In the call's own run.
    #[default]
    Run,
    /// In all runs of the namespace: for agents that start again under a new run.
    Namespace,
}

impl TwinScope {
    /// Both, in the order of the contract.
    pub const ALL: &'static [Self] = &[Self::Run, Self::Namespace];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Namespace => "namespace",
        }
    }

    /// Reads the word of the contract.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.as_str() == text)
    }
}

/// What a call's first attempt froze: its effect and the numbers that held then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Effect of the call.
    pub effect: Effect,
    /// How long the outside service honours the key, from the start of attempt 1.
    /// `None` counts as over.
    pub key_window_ms: Option<u64>,
    /// How long after an attempt's end the outside service's answer is final.
    /// `None`: "not executed" never counts.
    pub settle_ms: Option<u64>,
    /// Attempts that the ledger grants; `None`: no bound.
    pub max_attempts: Option<u32>,
    /// What the tool's own error says of the effect; `None` counts as [`IsError::Unknown`].
    pub is_error: Option<IsError>,
}

impl Terms {
    /// An effect without numbers.
    pub const fn of(effect: Effect) -> Self {
        Self { effect, key_window_ms: None, settle_ms: None, max_attempts: None, is_error: None }
    }
}

/// What a claim or a one-shot states of its tool. The numbers hold where no policy rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatedTerms {
    /// The effect.
    pub effect: Option<Effect>,
    /// See [`Terms::key_window_ms`].
    pub key_window_ms: Option<u64>,
    /// See [`Terms::settle_ms`].
    pub settle_ms: Option<u64>,
}

impl StatedTerms {
    /// Only an effect, or nothing.
    pub const fn of(effect: Option<Effect>) -> Self {
        Self { effect, key_window_ms: None, settle_ms: None }
    }
}

/// One rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// An exact tool name, or a prefix followed by `*`.
    pub pattern: String,
    /// The terms of tools that match.
    pub terms: Terms,
    /// The top-level members of the arguments that make two calls the same effect; empty: all
    /// arguments do.
    pub twin_by: Vec<String>,
    /// Where twins are looked for.
    pub twin_scope: TwinScope,
}

impl Rule {
    /// A rule whose twins are calls of the same run with the same arguments.
    pub fn new(pattern: impl Into<String>, terms: Terms) -> Self {
        let twin_scope = TwinScope::default();
        Self { pattern: pattern.into(), terms, twin_by: Vec::new(), twin_scope }
    }

    fn matches(&self, tool: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => tool == self.pattern,
        }
    }
}

/// Effect policy of a namespace: the first rule that matches wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules, in order.
    pub rules: Vec<Rule>,
}

/// A claim stated a weaker effect than the policy has for its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakerThanPolicy {
    /// What the policy says.
    pub policy: Effect,
}

impl Policy {
    /// The rule of a tool, if one matches.
    pub fn rule(&self, tool: &ToolName) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(tool.as_str()))
    }

    /// The terms of a new call: the matching rule's, its effect made stricter if the claim
    /// says so; without a rule what the claim states, and `opaque` if it states nothing.
    pub fn terms(&self, tool: &ToolName, stated: StatedTerms) -> Result<Terms, WeakerThanPolicy> {
        let Some(rule) = self.rule(tool) else {
            let StatedTerms { effect, key_window_ms, settle_ms } = stated;
            let effect = effect.unwrap_or(Effect::Opaque);
            return Ok(Terms { key_window_ms, settle_ms, ..Terms::of(effect) });
        };
        let effect = stated.effect.unwrap_or(rule.terms.effect);
        if effect < rule.terms.effect {
            return Err(WeakerThanPolicy { policy: rule.terms.effect });
        }
        Ok(Terms { effect, ..rule.terms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, effect: Effect) -> Rule {
        let terms = Terms {
            key_window_ms: Some(1),
            settle_ms: Some(2),
            max_attempts: Some(3),
            ..Terms::of(effect)
        };
        Rule::new(pattern, terms)
    }

    #[test]
    fn first_match_wins_and_only_stricter_is_accepted() {
        let policy = Policy {
            rules: vec![rule("crm/get", Effect::ReadOnly), rule("crm/*", Effect::Queryable)],
        };
        let effect = |tool: &str, stated| {
            let stated = StatedTerms::of(stated);
            policy.terms(&ToolName::parse(tool).unwrap(), stated).map(|terms| terms.effect)
        };
        assert_eq!(effect("crm/get", None), Ok(Effect::ReadOnly));
        assert_eq!(effect("crm/get2", None), Ok(Effect::Queryable));
        assert_eq!(effect("crm/put", Some(Effect::Opaque)), Ok(Effect::Opaque));
        assert_eq!(
            effect("crm/put", Some(Effect::Keyed)),
            Err(WeakerThanPolicy { policy: Effect::Queryable })
        );
        assert_eq!(effect("mail", Some(Effect::ReadOnly)), Ok(Effect::ReadOnly));
        assert_eq!(effect("mail", None), Ok(Effect::Opaque));
    }

    #[test]
    fn a_claim_brings_numbers_only_where_no_rule_matches() {
        let policy = Policy { rules: vec![rule("crm/*", Effect::Keyed)] };
        let stated = StatedTerms {
            effect: Some(Effect::Keyed),
            key_window_ms: Some(500),
            settle_ms: Some(600),
        };
        let terms = |tool: &str| policy.terms(&ToolName::parse(tool).unwrap(), stated).unwrap();
        assert_eq!((terms("mail").key_window_ms, terms("mail").settle_ms), (Some(500), Some(600)));
        assert_eq!((terms("crm/x").key_window_ms, terms("crm/x").settle_ms), (Some(1), Some(2)));
    }
}
