//! Call ids from JSON-RPC ids. Different ids give different calls, whatever they are made of.

use data_encoding::HEXLOWER;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use recibo_core::hash::sha256;
use recibo_core::limits::ID_LEN_MAX;

use super::message::{Id, string};

/// What an id of the ledger may not hold, and the sign that stands for it.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'/').add(b'%');

/// The id of a call: the session, then the JSON-RPC id. A number is as it is, a string follows
/// `s:` with what the ledger refuses percent-encoded; what is too long is hashed.
pub fn of(session: &str, id: &Id) -> String {
    let call_id = match string(id.as_str()) {
        Some(text) => format!("{session}:s:{}", utf8_percent_encode(&text, ESCAPED)),
        None => format!("{session}:{}", utf8_percent_encode(id.as_str(), ESCAPED)),
    };
    if call_id.len() <= ID_LEN_MAX {
        return call_id;
    }
    // No number begins with a letter, so this is the id of no other call.
    format!("{session}:h:{}", HEXLOWER.encode(&sha256(&[id.as_str().as_bytes()])))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use recibo_core::id::ToolCallId;

    use super::*;

    #[test]
    fn different_ids_are_different_calls_and_all_are_good_ids() {
        let long = |end: &str| format!("\"{}{end}\"", "x".repeat(300));
        let texts = [
            "1".to_owned(),
            "-1".into(),
            "1.5".into(),
            "null".into(),
            "true".into(),
            r#""1""#.into(),
            r#""s:1""#.into(),
            r#""null""#.into(),
            r#""h:1""#.into(),
            r#""a b""#.into(),
            r#""a%20b""#.into(),
            r#""a/b""#.into(),
            r#""""#.into(),
            r#"".""#.into(),
            r#""é\n""#.into(),
            r#"{"a":"/ "}"#.into(),
            format!("{:0<300}", "7"),
            long("a"),
            long("b"),
        ];
        let ids: HashSet<String> = texts.iter().map(|text| of("s1", &Id::read(text))).collect();
        assert_eq!(ids.len(), texts.len());
        for id in &ids {
            assert!(ToolCallId::parse(id).is_ok(), "{id}");
        }
        assert_eq!(of("s1", &Id::read("1.0")), "s1:1");
        assert_eq!(of("s1", &Id::read(r#""1""#)), "s1:s:1");
        assert_eq!(of("s1", &Id::read(r#""a b/c""#)), "s1:s:a%20b%2Fc");
    }
}
