//! What a claim says of its twins: other calls that do the same.

use std::collections::BTreeMap;

use recibo_core::effect::Policy;
use recibo_core::hash::InputHash;
use recibo_core::id::ToolName;
use recibo_core::json::write_string;
use recibo_core::limits;
use recibo_core::plan::{Knows, OnTwin, TwinRule};
use serde_json::value::RawValue;

use crate::member;
use crate::problem::{Code, Problem};
use crate::word::words;

words! {
    OnTwin, OnTwinWord = OnTwin::ALL;
}

/// The members of a claim that are about twins.
pub(super) struct TwinMembers<'a> {
    pub(super) on_twin: Option<OnTwinWord>,
    pub(super) window_ms: Option<u64>,
    pub(super) knows: Option<&'a [String]>,
    pub(super) hash: Option<InputHash>,
}

impl TwinMembers<'_> {
    pub(super) fn parse(self) -> Result<TwinRule, Problem> {
        let knows = self.knows.unwrap_or_default();
        if knows.len() > limits::KNOWS_MAX {
            let max = limits::KNOWS_MAX;
            return Err(Problem::invalid(format!("knows must be at most {max} entries")));
        }
        let knows = knows.iter().map(|entry| {
            Knows::parse(entry).map_err(|error| {
                let detail = format!(
                    "each entry of knows must be tool_call_id or run_id/tool_call_id: {error}"
                );
                Problem::new(Code::InvalidId, detail)
            })
        });
        let window_ms = self.window_ms.unwrap_or(limits::TWIN_WINDOW_MS_DEFAULT);
        Ok(TwinRule {
            on_twin: self.on_twin.map(|word| word.0).unwrap_or_default(),
            window_ms: member::within("twin_window_ms", window_ms, 0, limits::NUMBER_MAX)?,
            knows: knows.collect::<Result<_, _>>()?,
            hash: self.hash,
        })
    }
}

/// What calls of the tool share that do the same, where that is not the input hash: the hash of
/// the members that the policy names, or what the caller says who sends no input.
pub(super) fn twin_hash(
    policy: &Policy,
    tool: &ToolName,
    input: Option<&RawValue>,
    given: Option<&str>,
) -> Result<Option<InputHash>, Problem> {
    if let Some(given) = given {
        if input.is_some() {
            return Err(Problem::invalid(
                "input and twin_hash exclude each other: with input the service computes it",
            ));
        }
        let hash = given.parse().map_err(|_| member::bad_hash("twin_hash"))?;
        return Ok(Some(hash));
    }
    let Some(input) = input else { return Ok(None) };
    let names = policy.rule(tool).map(|rule| rule.twin_by.as_slice()).unwrap_or_default();
    if names.is_empty() {
        return Ok(None);
    }
    let text = only_members(input, names);
    let hash = InputHash::of_json(text.as_bytes());
    hash.map(Some).map_err(|error| member::inside("input", &text, error))
}

/// An object with just these members of a JSON value; what is no object has none.
fn only_members(input: &RawValue, names: &[String]) -> String {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(input.get()).unwrap_or_default();
    let mut text = String::from("{");
    for (name, value) in members.iter().filter(|(name, _)| names.contains(name)) {
        if text.len() > 1 {
            text.push(',');
        }
        write_string(&mut text, name);
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use recibo_core::effect::{Effect, Rule, Terms};

    use super::*;

    fn policy(names: &[&str]) -> Policy {
        let mut rule = Rule::new("pay", Terms::of(Effect::Opaque));
        rule.twin_by = names.iter().map(|name| (*name).to_owned()).collect();
        Policy { rules: vec![rule] }
    }

    fn hash(policy: &Policy, tool: &str, input: &str) -> Option<InputHash> {
        let input = RawValue::from_string(input.to_owned()).unwrap();
        twin_hash(policy, &ToolName::parse(tool).unwrap(), Some(&input), None).unwrap()
    }

    #[test]
    fn only_the_members_that_the_policy_names_make_a_twin() {
        let by_order = policy(&["order_id", "cents"]);
        let of = |canonical: &str| Some(InputHash::of_json(canonical.as_bytes()).unwrap());
        let cases = [
            (r#"{"text":"Dear", "cents":5, "order_id":"a"}"#, of(r#"{"cents":5,"order_id":"a"}"#)),
            (r#"{"cents": 5e0, "\u006frder_id":"a"}"#, of(r#"{"cents":5,"order_id":"a"}"#)),
            (r#"{"cents":5}"#, of(r#"{"cents":5}"#)),
            (r#"{"text":"Dear"}"#, of("{}")),
            ("[1]", of("{}")),
        ];
        for (input, expected) in cases {
            assert_eq!(hash(&by_order, "pay", input), expected, "{input}");
        }
        assert_eq!(hash(&by_order, "mail", r#"{"cents":5}"#), None, "no rule matches");
        assert_eq!(hash(&policy(&[]), "pay", r#"{"cents":5}"#), None, "the input hash counts");
    }

    #[test]
    fn a_twin_hash_goes_with_an_input_hash() {
        let tool = ToolName::parse("pay").unwrap();
        let text = InputHash::of_canonical("{}").to_string();
        let given = |input, hash| twin_hash(&policy(&["a"]), &tool, input, hash);
        assert_eq!(given(None, Some(&text)).unwrap(), Some(InputHash::of_canonical("{}")));
        let input = RawValue::from_string("{}".to_owned()).unwrap();
        assert_eq!(given(Some(&input), Some(&text)).unwrap_err().code, Code::InvalidRequest);
        assert_eq!(given(None, Some("sha256:0")).unwrap_err().code, Code::InvalidRequest);
    }
}
