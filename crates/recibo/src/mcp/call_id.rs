//! Call ids from JSON-RPC ids. Different ids give different calls, whatever they are made of. The
//! map is written down in `api/ids.md`.

use data_encoding::HEXLOWER;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use recibo_core::hash::sha256;
use recibo_core::limits::ID_LEN_MAX;

use super::calls::Use;
use super::message::{Id, string};

/// What an id of the ledger may not hold, the sign that stands for it, and the sign before the
/// number of a use.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'/').add(b'%').add(b'#');

/// What call ids begin with.
pub enum Session {
    /// The user has named it: an id names a call, also after a restart.
    Named(String),
    /// Drawn for this process: an id names a request, and once that is answered, the next one.
    Drawn(String),
}

impl Session {
    /// The id of a call; the map is in `api/ids.md`.
    pub fn call_id(&self, id: &Id, used: Use) -> String {
        match self {
            Self::Named(session) => join(session, id, ""),
            Self::Drawn(session) => {
                let round = match used.round {
                    1 => String::new(),
                    round => format!(".{round}"),
                };
                let number = match used.number {
                    1 => String::new(),
                    number => format!("#{number}"),
                };
                join(&format!("{session}{round}"), id, &number)
            }
        }
    }
}

/// The session, then the JSON-RPC id. A number is as it is, a string follows `s:` with what the
/// ledger refuses percent-encoded; what is too long is hashed.
fn join(session: &str, id: &Id, number: &str) -> String {
    let call_id = match string(id.as_str()) {
        Some(text) => format!("{session}:s:{}{number}", utf8_percent_encode(&text, ESCAPED)),
        None => format!("{session}:{}{number}", utf8_percent_encode(id.as_str(), ESCAPED)),
    };
    if call_id.len() <= ID_LEN_MAX {
        return call_id;
    }
    // No number begins with a letter, so this is the id of no other call.
    format!("{session}:h:{}{number}", HEXLOWER.encode(&sha256(&[id.as_str().as_bytes()])))
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
            r#""1#2""#.into(),
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
        let named = Session::Named("s1".into());
        let drawn = Session::Drawn("s1".into());
        let first = Use { client: 1, round: 1, number: 1 };
        let again = Use { client: 1, round: 1, number: 2 };
        let of = |text: &str| named.call_id(&Id::read(text), again);
        let mut ids: HashSet<String> = texts.iter().map(|text| of(text)).collect();
        ids.extend(texts.iter().map(|text| drawn.call_id(&Id::read(text), again)));
        assert_eq!(ids.len(), 2 * texts.len());
        for text in &texts {
            assert_eq!(of(text), drawn.call_id(&Id::read(text), first));
        }
        for id in &ids {
            assert!(ToolCallId::parse(id).is_ok(), "{id}");
        }
        assert_eq!(of("1.0"), "s1:1");
        assert_eq!(of(r#""1""#), "s1:s:1");
        assert_eq!(of(r#""a b/c#1""#), "s1:s:a%20b%2Fc%231");
        let other_client = Use { client: 1, round: 2, number: 1 };
        assert_eq!(drawn.call_id(&Id::read("1"), again), "s1:1#2");
        assert_eq!(drawn.call_id(&Id::read("1"), other_client), "s1.2:1");
    }

    #[test]
    fn the_map_is_the_one_that_is_written_down() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/ids.md");
        let text = std::fs::read_to_string(path).unwrap();
        let from_request = text.split("## From").nth(2).unwrap();
        let mut rows = 0;
        for line in from_request.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('`').collect();
            let (session, request, id) = (cells[1], cells[2], cells[3]);
            let used = Use {
                client: 1,
                round: if line.contains("a second `initialize`") { 2 } else { 1 },
                number: if request.contains("the second") { 2 } else { 1 },
            };
            let call = Session::Drawn(session.into()).call_id(&Id::read(id), used);
            assert_eq!(call, cells[cells.len() - 2], "{line}");
            rows += 1;
        }
        assert_eq!(rows, 5);
    }
}
