//! The effect policy, as it is set and as it is shown.

use recibo_core::effect::{Effect, Policy, Rule, Terms, TwinScope};
use recibo_core::visible::has_hidden;
use recibo_core::{limits, line};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::body;
use crate::member;
use crate::problem::{Code, Problem};
use crate::word::{EffectWord, IsErrorWord, TwinScopeWord, Word};

/// Effects per tool: the first rule that matches wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyBody {
    /// The rules, in order.
    #[schema(max_items = 256)]
    pub tools: Vec<PolicyRule>,
}

/// The effect of the tools that match, and its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// An exact tool name, or a prefix followed by `*`.
    #[schema(min_length = 1, max_length = 256)]
    pub r#match: String,
    /// The effect.
    pub effect: EffectWord,
    /// How long after an attempt's end the outside service's answer is final.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub settle_ms: Option<u64>,
    /// How long the outside service honours an idempotency key, from the start of attempt 1.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub key_window_ms: Option<u64>,
    /// Attempts that are granted.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_294_967_295_i64)]
    pub max_attempts: Option<u32>,
    /// What the tool's own error (`isError` of MCP) says of the effect; null counts as
    /// `unknown`. Read by the MCP proxy.
    pub is_error: Option<IsErrorWord>,
    /// The top-level members of the arguments that make two calls the same effect; null: all
    /// arguments do.
    #[schema(min_items = 1, max_items = 16)]
    pub twin_by: Option<Vec<String>>,
    /// Where twins are looked for; null counts as `run`.
    pub twin_scope: Option<TwinScopeWord>,
}

/// The body with its rules unread, so that each rule is read as strictly as a body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unread<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl PolicyBody {
    /// Reads and checks a body.
    ///
    /// # Errors
    /// As [`body::read`]; `invalid_request` for a rule that breaks a limit, `policy_invalid` for
    /// one that makes no sense.
    pub fn read(bytes: &[u8]) -> Result<Policy, Problem> {
        let tools = body::read::<Unread<'_>>(bytes)?.tools;
        if tools.len() > limits::POLICY_RULES_MAX {
            let max = limits::POLICY_RULES_MAX;
            return Err(Problem::invalid(format!("tools must be at most {max} rules")));
        }
        let mut rules = Vec::with_capacity(tools.len());
        for (i, tool) in tools.into_iter().enumerate() {
            let rule = body::read::<PolicyRule>(tool.get().as_bytes())
                .and_then(|rule| rule.parse(&format!("tools[{i}]")));
            rules.push(rule.map_err(|problem| Problem {
                detail: format!("in `tools[{i}]`: {}", problem.detail),
                ..problem
            })?);
        }
        let policy = Policy { rules };
        let bytes = line::policy_json(&policy).len();
        if bytes > limits::POLICY_BYTES_MAX {
            let max = limits::POLICY_BYTES_MAX;
            return Err(Problem::invalid(format!(
                "a policy must be at most {max} bytes in canonical form; this one has {bytes}"
            )));
        }
        Ok(policy)
    }

    /// A policy as it is shown.
    pub fn from_core(policy: &Policy) -> Self {
        let tools = policy.rules.iter().map(|rule| PolicyRule {
            r#match: rule.pattern.clone(),
            effect: Word(rule.terms.effect),
            settle_ms: rule.terms.settle_ms,
            key_window_ms: rule.terms.key_window_ms,
            max_attempts: rule.terms.max_attempts,
            is_error: rule.terms.is_error.map(Word),
            twin_by: Some(&rule.twin_by).filter(|names| !names.is_empty()).cloned(),
            twin_scope: (rule.twin_scope != TwinScope::Run).then_some(Word(rule.twin_scope)),
        });
        Self { tools: tools.collect() }
    }
}

impl PolicyRule {
    /// `path` is where the rule stands in the body.
    fn parse(self, path: &str) -> Result<Rule, Problem> {
        let twin_by = self.checked_twin_by()?;
        let pattern = self.r#match;
        let prefix = pattern.strip_suffix('*').unwrap_or(&pattern);
        let is_sound = !pattern.is_empty()
            && pattern.len() <= limits::TOOL_LEN_MAX
            && !prefix.contains('*')
            && !has_hidden(&pattern);
        if !is_sound {
            return Err(Problem::invalid(format!(
                "match must be 1 to {} bytes without control, format, line and paragraph separator \
                 characters, with '*' only at the end",
                limits::TOOL_LEN_MAX
            )));
        }
        if self.max_attempts == Some(0) {
            return Err(Problem::invalid("max_attempts must be an integer from 1 to 4294967295"));
        }
        let terms = Terms {
            effect: self.effect.0,
            key_window_ms: member::number("key_window_ms", self.key_window_ms)?,
            settle_ms: member::number("settle_ms", self.settle_ms)?,
            max_attempts: self.max_attempts,
            is_error: self.is_error.map(|word| word.0),
        };
        if terms.effect == Effect::Keyed && terms.key_window_ms.is_none() {
            let detail = "a keyed tool needs key_window_ms: how long the outside service honours \
                          an idempotency key; without it every retry would be refused";
            return Err(Problem::new(Code::PolicyInvalid, detail)
                .with("path", format!("{path}.key_window_ms")));
        }
        let twin_scope = self.twin_scope.map(|word| word.0).unwrap_or_default();
        Ok(Rule { pattern, terms, twin_by, twin_scope })
    }

    fn checked_twin_by(&self) -> Result<Vec<String>, Problem> {
        let Some(names) = &self.twin_by else { return Ok(Vec::new()) };
        let (max, len_max) = (limits::TWIN_BY_MAX, limits::TWIN_BY_NAME_LEN_MAX);
        let is_name = |name: &String| (1..=len_max).contains(&name.len());
        let is_sound = (1..=max).contains(&names.len())
            && names.iter().all(is_name)
            && names.iter().enumerate().all(|(i, name)| !names[..i].contains(name));
        if is_sound {
            return Ok(names.clone());
        }
        Err(Problem::invalid(format!(
            "twin_by must be 1 to {max} different names of 1 to {len_max} bytes"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;

    #[test]
    fn a_policy_is_read_and_shown_with_nulls() {
        let body = br#"{"tools":[{"match":"crm/*","effect":"queryable","settle_ms":5000},
            {"max_attempts":5,"match":"*","effect":"opaque","key_window_ms":null}]}"#;
        let policy = PolicyBody::read(body).unwrap();
        assert_eq!(
            serde_json::to_string(&PolicyBody::from_core(&policy)).unwrap(),
            concat!(
                r#"{"tools":[{"match":"crm/*","effect":"queryable","settle_ms":5000,"key_window_ms":null,"max_attempts":null,"is_error":null,"twin_by":null,"twin_scope":null},"#,
                r#"{"match":"*","effect":"opaque","settle_ms":null,"key_window_ms":null,"max_attempts":5,"is_error":null,"twin_by":null,"twin_scope":null}]}"#
            )
        );
        assert!(PolicyBody::read(br#"{"tools":[]}"#).unwrap().rules.is_empty());
    }

    #[test]
    fn bad_policies_are_refused_and_not_repeated() {
        let rule = |members: &str| format!(r#"{{"tools":[{{"match":"a",{members}}}]}}"#);
        let matching =
            |text: &str| format!(r#"{{"tools":[{{"match":"{text}","effect":"opaque"}}]}}"#);
        let many = |n: usize, len: usize| {
            let one = format!(r#"{{"match":"{}","effect":"opaque"}}"#, "m".repeat(len));
            format!(r#"{{"tools":[{}]}}"#, vec![one; n].join(","))
        };
        let cases = [
            ("{}".to_owned(), Code::InvalidRequest),
            (r#"{"tools":{}}"#.to_owned(), Code::InvalidRequest),
            (r#"{"tools":[],"MARK":1}"#.to_owned(), Code::InvalidRequest),
            (r#"{"tools":[["a","opaque",1,1,1]]}"#.to_owned(), Code::InvalidRequest),
            (rule(r#""effect":"MARK""#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","MARK":1"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","effect":"keyed""#), Code::DuplicateMember),
            (rule(r#""effect":"opaque","settle_ms":-1"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","settle_ms":1.5"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","settle_ms":9007199254740992"#), Code::InvalidRequest),
            (rule(r#""effect":"keyed""#), Code::PolicyInvalid),
            (rule(r#""effect":"opaque","twin_by":[]"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","twin_by":["MARK","MARK"]"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","twin_by":[""]"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","twin_scope":"MARK""#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","is_error":"MARK""#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","max_attempts":0"#), Code::InvalidRequest),
            (rule(r#""effect":"opaque","max_attempts":4294967296"#), Code::InvalidRequest),
            (matching(""), Code::InvalidRequest),
            (matching("*MARK"), Code::InvalidRequest),
            (matching("MARK**"), Code::InvalidRequest),
            (matching("MARK\\n"), Code::InvalidRequest),
            (matching("MARK\u{202e}"), Code::InvalidRequest),
            (matching("MARK\\u2028*"), Code::InvalidRequest),
            (matching("MARK\\u200b"), Code::InvalidRequest),
            (matching(&"m".repeat(257)), Code::InvalidRequest),
            (many(257, 1), Code::InvalidRequest),
            (many(100, 100), Code::InvalidRequest),
        ];
        for (body, code) in cases {
            let problem = PolicyBody::read(body.as_bytes()).unwrap_err();
            assert_eq!(problem.code, code, "{body}");
            assert!(!problem.to_json().contains("MARK"), "{problem:?}");
        }
    }
}
