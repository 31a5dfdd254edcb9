//! The arguments of a call whose input is its command line.

use std::ffi::OsString;

use crate::failure::Failure;

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
    fn a_command_line_is_an_array_of_strings() {
        let command = ["send".into(), "a \"b\"".into()];
        assert_eq!(from_command(&command).unwrap(), r#"["send","a \"b\""]"#);
    }
}
