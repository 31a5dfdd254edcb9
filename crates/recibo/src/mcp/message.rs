//! Reading a JSON-RPC message no deeper than needed, and changing one place of its text. What is
//! not changed is never written anew: another spelling of a number, an order of members or an
//! unknown member would be lost that way.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use recibo_core::json::canonicalize;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, unread, in the order in which they came.
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object; `None` for anything else.
    pub fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A member. Of several with one name the last, as nearly all readers take it: what this
    /// proxy sees is what the other side acts upon.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.get())
    }

    /// A member that is a string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.get(name)?)
    }

    /// A member that is an object.
    pub fn object(&self, name: &str) -> Option<Members<'a>> {
        Members::of(self.get(name)?)
    }

    /// A member that is an array.
    pub fn array(&self, name: &str) -> Option<Vec<&'a str>> {
        elements(self.get(name)?)
    }

    /// Whether a member is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        input.deserialize_map(All)
    }
}

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The value of a JSON string.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Name<'_>>(text).ok().map(|Name(name)| name)
}

/// The elements of an array, unread.
pub fn elements(text: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Where a part stands in the text that it was read from.
pub fn place(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize);
    let start = start.filter(|start| start + part.len() <= whole.len());
    let start = start.expect("a part is borrowed from its whole");
    start..start + part.len()
}

/// The id of a request, in its one spelling: `1` and `1.0` are one id, `1` and `"1"` are two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id(String);

impl Id {
    /// Reads an id. One without a canonical form counts as it is spelled.
    pub fn read(text: &str) -> Self {
        Self(canonicalize(text.as_bytes()).unwrap_or_else(|_| text.to_owned()))
    }

    /// Its canonical JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message of either side, as far as it concerns this proxy.
pub enum Message<'a> {
    /// Something with a method and an id.
    Request(Id, Cow<'a, str>, Members<'a>),
    /// Something with a method and no id.
    Notification(Cow<'a, str>, Members<'a>),
    /// The answer to a request of the other side.
    Response(Id, Members<'a>),
    /// Several at once; the protocol had this until 2025-06-18.
    Batch(Vec<&'a str>),
    /// None of these. The other side will say so.
    Other,
}

impl<'a> Message<'a> {
    /// Reads a line.
    pub fn read(text: &'a str) -> Self {
        let Some(members) = Members::of(text) else {
            return match elements(text) {
                Some(elements) => Self::Batch(elements),
                None => Self::Other,
            };
        };
        let id = members.get("id").map(Id::read);
        match (id, members.text("method")) {
            (Some(id), Some(method)) => Self::Request(id, method, members),
            (None, Some(method)) => Self::Notification(method, members),
            (Some(id), None) => Self::Response(id, members),
            (None, None) => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match Message::read(text) {
            Message::Request(id, method, _) => format!("request {} {method}", id.as_str()),
            Message::Notification(method, _) => format!("notification {method}"),
            Message::Response(id, _) => format!("response {}", id.as_str()),
            Message::Batch(elements) => format!("batch of {}", elements.len()),
            Message::Other => "other".into(),
        }
    }

    #[test]
    fn messages_are_told_apart_by_id_and_method() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "request 1 a"),
            (r#" { "method" : "tools\/call" , "id" : 1.0 } "#, "request 1 tools/call"),
            (r#"{"id":"1","method":"a"}"#, r#"request "1" a"#),
            (r#"{"id":"\u0031","method":"a"}"#, r#"request "1" a"#),
            (r#"{"id":12345678901234567890123,"result":{}}"#, "response 12345678901234567890123"),
            (r#"{"id":null,"error":{}}"#, "response null"),
            (r#"{"method":"a"}"#, "notification a"),
            (r#"{"method":1}"#, "other"),
            (r#"{"id":1,"method":"x","id":2,"method":"y"}"#, "request 2 y"),
            (r#"[{"id":1},2]"#, "batch of 2"),
            ("[]", "batch of 0"),
            ("", "other"),
            ("{", "other"),
            ("17", "other"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn a_deep_message_is_read() {
        let deep = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(kind(&deep), "response 1");
    }

    #[test]
    fn a_part_is_found_where_it_stands() {
        let whole = r#"{"a": {"b": [1, 2e400]}}"#;
        let members = Members::of(whole).unwrap();
        let inner = members.object("a").unwrap();
        let array = inner.array("b").unwrap();
        assert_eq!(&whole[place(whole, array[1])], "2e400");
    }
}
