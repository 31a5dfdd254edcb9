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

/// What a call's first attempt froze: its effect and the numbers of the policy rule that held then.
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
}

/// One rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// An exact tool name, or a prefix followed by `*`.
    pub pattern: String,
    /// The terms of tools that match.
    pub terms: Terms,
}

impl Rule {
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
    /// The terms of a new call: the matching rule's, its effect made stricter if the claim
    /// says so; without a rule what the claim states, and `opaque` if it states nothing.
    pub fn terms(
        &self,
        tool: &ToolName,
        stated: Option<Effect>,
    ) -> Result<Terms, WeakerThanPolicy> {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(tool.as_str())) else {
            return Ok(Terms {
                effect: stated.unwrap_or(Effect::Opaque),
                key_window_ms: None,
                settle_ms: None,
                max_attempts: None,
            });
        };
        let effect = stated.unwrap_or(rule.terms.effect);
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
        let terms =
            Terms { effect, key_window_ms: Some(1), settle_ms: Some(2), max_attempts: Some(3) };
        Rule { pattern: pattern.into(), terms }
    }

    #[test]
    fn first_match_wins_and_only_stricter_is_accepted() {
        let policy = Policy {
            rules: vec![rule("crm/get", Effect::ReadOnly), rule("crm/*", Effect::Queryable)],
        };
        let effect = |tool: &str, stated| {
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
}
