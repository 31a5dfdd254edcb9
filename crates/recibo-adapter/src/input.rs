//! The arguments of a call, as the ledger hashes them. Hashed here: a tree of values would round
//! large numbers and lose double members, and the arguments need not travel.

use recibo_api::{Code, Problem};
use recibo_core::hash::InputHash;
use recibo_core::json::{JsonErrorKind, canonicalize};

use crate::error::LedgerError;

/// Hashes a provider's argument text: JSON, exactly as it came; a text that does not parse is
/// hashed as a JSON string.
///
/// # Errors
/// `duplicate_member` or `number_out_of_range` for JSON that breaks a rule of the ledger. The
/// text itself is in no error.
pub fn hash(arguments: &str) -> Result<InputHash, LedgerError> {
    match canonicalize(arguments.as_bytes()) {
        Ok(canonical) => Ok(InputHash::of_canonical(&canonical)),
        Err(error) if error.kind == JsonErrorKind::InvalidJson => {
            let mut quoted = String::with_capacity(arguments.len() + 2);
            recibo_core::json::write_string(&mut quoted, arguments);
            Ok(InputHash::of_canonical(&quoted))
        }
        Err(error) => {
            let detail = format!("in the arguments: {error}");
            Err(Problem::new(Code::from(error.kind), detail).into())
        }
    }
}

#[cfg(test)]
mod tests {
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
}
