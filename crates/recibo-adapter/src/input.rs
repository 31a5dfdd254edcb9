//! The arguments of a call, as the ledger hashes them. Checked here, on the text itself: a tree of
//! values would round large numbers and lose double members.

use std::fmt;
use std::sync::Arc;

use recibo_api::Problem;
use recibo_core::hash::InputHash;
use recibo_core::json::{JsonErrorKind, canonicalize};
use serde_json::value::RawValue;

use crate::error::LedgerError;

/// Longest arguments that a claim sends, so that the ledger finds the members that make two calls
/// the same. Of longer ones it gets the hash alone. Half of a body, which is 1 MiB: the other
/// members take up to 10 KiB.
const INPUT_BYTES_MAX: usize = 512 * 1024;

/// Hashes a provider's argument text: JSON, exactly as it came; a text that does not parse is
/// hashed as a JSON string.
///
/// # Errors
/// `duplicate_member` or `number_out_of_range` for JSON that breaks a rule of the ledger. The
/// text itself is in no error.
pub fn hash(arguments: &str) -> Result<InputHash, LedgerError> {
    read(arguments).map(|(hash, _)| hash)
}

/// Hash and JSON of an argument text. The JSON is borrowed where the text is JSON already.
fn read(arguments: &str) -> Result<(InputHash, Option<String>), LedgerError> {
    match canonicalize(arguments.as_bytes()) {
        Ok(canonical) => Ok((InputHash::of_canonical(&canonical), None)),
        Err(error) if error.kind == JsonErrorKind::InvalidJson => {
            let mut quoted = String::with_capacity(arguments.len() + 2);
            recibo_core::json::write_string(&mut quoted, arguments);
            Ok((InputHash::of_canonical(&quoted), Some(quoted)))
        }
        Err(error) => {
            let mut problem = Problem::json(arguments.as_bytes(), error);
            problem.detail = format!("in the arguments: {}", problem.detail);
            Err(problem.into())
        }
    }
}

/// The arguments of a claim. In memory only, and only as long as the claim may be repeated.
#[derive(Clone)]
pub(crate) struct Arguments {
    hash: InputHash,
    json: Option<Arc<RawValue>>,
}

impl Arguments {
    pub(crate) fn read(arguments: &str) -> Result<Self, LedgerError> {
        let (hash, quoted) = read(arguments)?;
        let json = quoted.unwrap_or_else(|| arguments.to_owned());
        let json = match json.len() {
            0..=INPUT_BYTES_MAX => RawValue::from_string(json).ok().map(Arc::from),
            _ => None,
        };
        Ok(Self { hash, json })
    }

    pub(crate) fn hash(&self) -> InputHash {
        self.hash
    }

    /// The JSON to send, if it is short enough and is what was hashed.
    pub(crate) fn json(&self, hash: InputHash) -> Option<&RawValue> {
        self.json.as_deref().filter(|_| self.hash == hash)
    }
}

/// Without the arguments.
impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arguments").field("hash", &self.hash).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use recibo_api::Code;

    use super::*;

    #[test]
    fn what_does_not_parse_is_a_string() {
        for (text, canonical) in [
            (r#"{"b": 1, "a": 2.0}"#, r#"{"a":2,"b":1}"#),
            ("17", "17"),
            ("hello", r#""hello""#),
            (r#""hello""#, r#""hello""#),
            ("", r#""""#),
            ("a \"b\"\n", r#""a \"b\"\n""#),
        ] {
            assert_eq!(hash(text).unwrap(), InputHash::of_canonical(canonical), "{text}");
        }
    }

    #[test]
    fn broken_rules_are_refused_without_the_text() {
        for (text, code) in [
            (r#"{"MARK":1,"MARK":2}"#, Code::DuplicateMember),
            (r#"{"MARK":1e999}"#, Code::NumberOutOfRange),
        ] {
            let error = hash(text).unwrap_err();
            assert_eq!(error.code(), Some(code));
            assert!(!error.to_string().contains("MARK"), "{error}");
        }
    }

    #[test]
    fn short_arguments_are_sent_as_they_came_and_never_shown() {
        let of = |text: &str| {
            let arguments = Arguments::read(text).unwrap();
            let json = arguments.json(arguments.hash()).map(|json| json.get().to_owned());
            (arguments, json)
        };
        for (text, sent) in [
            (r#" {"b": 1.0} "#, r#"{"b": 1.0}"#),
            ("MARK", r#""MARK""#),
            ("12345678901234567890", "12345678901234567890"),
        ] {
            assert_eq!(of(text).1.as_deref(), Some(sent));
        }
        let (marked, _) = of(r#"{"a":"MARK"}"#);
        assert!(!format!("{marked:?}").contains("MARK"));
        assert!(marked.json(of("{}").0.hash()).is_none(), "of other arguments");
        assert!(of(&"x".repeat(INPUT_BYTES_MAX)).1.is_none(), "with quotes it is too long");
    }
}
