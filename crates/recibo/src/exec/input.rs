//! The arguments of a call, as the ledger hashes them.

use std::ffi::OsString;

use recibo_core::json::{JsonErrorKind, canonicalize};

use crate::failure::Failure;

/// A text as JSON: as it is if it parses, else as a JSON string. JSON that parses but breaks a
/// rule of the ledger is left for the ledger to refuse.
pub fn from_text(text: &str) -> String {
    match canonicalize(text.as_bytes()) {
        Err(error) if error.kind == JsonErrorKind::InvalidJson => {
            serde_json::to_string(text).expect("a text always has a JSON form")
        }
        _ => text.to_owned(),
    }
}

/// A command line as a JSON array of strings.
pub fn from_command(command: &[OsString]) -> Result<String, Failure> {
    let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
    // Replaced bytes would give two different commands one hash.
    let words = words.ok_or_else(|| {
        Failure::usage("the command line is not UTF-8: say with --input what it does")
    })?;
    Ok(serde_json::to_string(&words).expect("texts always have a JSON form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_parse_is_a_string() {
        for (text, json) in [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            ("17", "17"),
            ("hello", r#""hello""#),
            ("", r#""""#),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
        ] {
            assert_eq!(from_text(text), json);
        }
        let command = ["send".into(), "a \"b\"".into()];
        assert_eq!(from_command(&command).unwrap(), r#"["send","a \"b\""]"#);
    }
}
