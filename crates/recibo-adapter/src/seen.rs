//! What of a result gets through its contract: to the model, and into the record.
//!
//! Values are taken over as the text that they are: a tree of values would round large numbers.

use std::collections::{BTreeMap, BTreeSet};

use recibo_core::json::{canonicalize, write_string};
use recibo_core::limits;
use serde_json::value::RawValue;

use crate::contract::{Shown, ToolContract};
use crate::tool::ToolOutput;

/// In place of a value that is masked.
const MASK: &str = "\"[MASKED]\"";
/// In place of a result that has no members to choose from.
const WITHHELD: &str = "[withheld: the result has no members that may be shown]";

/// A result as it may be seen.
pub(crate) struct Seen {
    /// Exactly what the model sees, before the receipt line.
    pub(crate) text: String,
    /// What the ledger keeps, if the contract names it.
    pub(crate) summary: Option<Box<RawValue>>,
}

/// Applies a contract to a result.
pub(crate) fn see(contract: &ToolContract, output: &ToolOutput) -> Seen {
    let is_restricted = contract.shown != Shown::Everything || !contract.masked.is_empty();
    let is_read = output.is_json || is_restricted || !contract.summarized.is_empty();
    let canonical = if is_read { canonicalize(output.text.as_bytes()).ok() } else { None };
    let summary = canonical.as_deref().and_then(|canonical| summary(contract, canonical));
    let text = match (canonical, is_restricted) {
        (Some(canonical), true) => {
            value(contract, &canonical).unwrap_or_else(|| WITHHELD.to_owned())
        }
        (Some(canonical), false) if output.is_json => canonical,
        (_, false) => output.text.clone(),
        (None, true) if contract.shown == Shown::Everything && is_plain(output) => {
            output.text.clone()
        }
        (None, true) => WITHHELD.to_owned(),
    };
    Seen { text, summary }
}

/// Whether there is nothing to mask in it. What looks like JSON and does not parse may be read
/// as JSON by the model all the same.
fn is_plain(output: &ToolOutput) -> bool {
    !output.is_json && !output.text.trim_start().starts_with(['{', '['])
}

/// An object, or an array of them, with what may be seen; `None` if nothing may.
fn value(contract: &ToolContract, canonical: &str) -> Option<String> {
    match canonical.as_bytes().first() {
        Some(b'{') => object(canonical, |name, value| {
            if contract.masked.contains(name) {
                return Some(MASK);
            }
            is_shown(&contract.shown, name).then_some(value)
        }),
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(canonical).ok()?;
            let seen: Vec<_> =
                elements.iter().filter_map(|element| value(contract, element.get())).collect();
            Some(format!("[{}]", seen.join(",")))
        }
        _ if contract.shown == Shown::Everything => Some(canonical.to_owned()),
        _ => None,
    }
}

fn is_shown(shown: &Shown, name: &str) -> bool {
    match shown {
        Shown::Everything => true,
        Shown::Members(names) => names.contains(name),
    }
}

fn summary(contract: &ToolContract, canonical: &str) -> Option<Box<RawValue>> {
    let names: &BTreeSet<String> = &contract.summarized;
    if names.is_empty() || !canonical.starts_with('{') {
        return None;
    }
    let summary = object(canonical, |name, value| {
        let seen = if contract.masked.contains(name) { MASK } else { value };
        names.contains(name).then_some(seen)
    })?;
    if summary.len() > limits::SUMMARY_BYTES_MAX {
        return None;
    }
    RawValue::from_string(summary).ok()
}

/// The members of a canonical object that `choose` gives a value for, in canonical form.
fn object<'a>(
    canonical: &'a str,
    choose: impl Fn(&str, &'a str) -> Option<&'a str>,
) -> Option<String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(canonical).ok()?;
    let mut text = String::from("{");
    for (name, value) in &members {
        let Some(value) = choose(name, value.get()) else { continue };
        if text.len() > 1 {
            text.push(',');
        }
        write_string(&mut text, name);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    // The order of the map is not the canonical one where names hold rare characters.
    canonicalize(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(contract: &ToolContract, output: ToolOutput) -> (String, Option<String>) {
        let seen = see(contract, &output);
        (seen.text, seen.summary.map(|summary| summary.get().to_owned()))
    }

    #[test]
    fn nothing_gets_through_that_is_not_named() {
        let some = ToolContract::new("t", Shown::members(["id", "plan"])).masks(["mail"]);
        let all = ToolContract::new("t", Shown::Everything);
        let masking = all.clone().masks(["mail"]);
        let result = r#"{"plan":"gold","mail":"MARK@x","id":12345678901234567890,"x":"MARK"}"#;
        for (contract, output, text) in [
            (&some, result, r#"{"id":12345678901234567890,"mail":"[MASKED]","plan":"gold"}"#),
            (&some, r#"[{"id":1,"x":"MARK"},"MARK",[{"x":2}]]"#, r#"[{"id":1},[{}]]"#),
            (&some, r#"{"x":{"id":1}}"#, "{}"),
            (&some, r#""MARK""#, WITHHELD),
            (&some, "MARK", WITHHELD),
            (&some, r#"{"id":1,"id":"MARK"}"#, WITHHELD),
            (&masking, r#"{"mail":1,"b":2.0}"#, r#"{"b":2,"mail":"[MASKED]"}"#),
            (&masking, r#" {"mail":1,"mail":2}"#, WITHHELD),
        ] {
            for output in [ToolOutput::text(output), ToolOutput::json(output)] {
                assert_eq!(seen(contract, output).0, text);
            }
        }
        assert_eq!(seen(&masking, ToolOutput::text("plain")).0, "plain");
        assert_eq!(seen(&all, ToolOutput::json(r#"{"b": 1,"a":2}"#)).0, r#"{"a":2,"b":1}"#);
        assert_eq!(seen(&all, ToolOutput::text(r#"{"b": 1}"#)).0, r#"{"b": 1}"#);
    }

    #[test]
    fn a_summary_holds_what_is_named_and_fits() {
        let contract = ToolContract::new("t", Shown::members(["id"]))
            .masks(["mail"])
            .summarizes(["plan", "mail"]);
        let output = ToolOutput::json(r#"{"id":1,"plan":"gold","mail":"MARK"}"#);
        let (text, summary) = seen(&contract, output);
        assert_eq!(text, r#"{"id":1,"mail":"[MASKED]"}"#);
        assert_eq!(summary.as_deref(), Some(r#"{"mail":"[MASKED]","plan":"gold"}"#));
        let long = format!(r#"{{"plan":"{}"}}"#, "x".repeat(2048));
        assert_eq!(seen(&contract, ToolOutput::json(long)).1, None);
        assert_eq!(seen(&contract, ToolOutput::json("[1]")).1, None);
    }
}
