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

    /// Names and values, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (&**name, value.get()))
    }

    /// The first of these names that occurs twice, or in another spelling that some reader takes
    /// for it. Readers that take members in any case exist, and of two members with one name
    /// some take the first: what such an object says depends on who reads it.
    pub fn ambiguous(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| {
            let mut spellings = self.0.iter().filter(|(key, _)| is_spelling_of(key, name));
            match (spellings.next(), spellings.next()) {
                (Some((key, _)), None) => key != name,
                (None, _) => false,
                (Some(_), Some(_)) => true,
            }
        })
    }
}

/// Whether a lenient reader may take a text for this lower-case or mixed-case ASCII name: case does
/// not count, a reader in C stops at NUL, Go folds the long s and the Kelvin sign, Java the dotted
/// and the dotless i.
pub fn is_spelling_of(text: &str, name: &str) -> bool {
    let text = text.split('\0').next().unwrap_or_default();
    let folded = text.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{131}' | '\u{130}' => 'i',
        c => c.to_ascii_lowercase(),
    });
    folded.eq(name.chars().map(|c| c.to_ascii_lowercase()))
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

/// A message of the server, as far as it concerns this proxy.
pub enum Message<'a> {
    /// Something with a method and an id.
    Request,
    /// Something with a method and no id.
    Notification(Cow<'a, str>, Members<'a>),
    /// The answer to a request of the other side: something with an id and a result or an error.
    Response(Id, Members<'a>),
    /// None of these, or one that two readers may read as two things.
    Other,
}

impl<'a> Message<'a> {
    /// Reads a message.
    pub fn read(text: &'a str) -> Self {
        let Some(members) = Members::of(text) else { return Self::Other };
        if members.ambiguous(&["id", "method", "result", "error"]).is_some() {
            return Self::Other;
        }
        let id = members.get("id").map(Id::read);
        let is_answer = members.get("result").or(members.get("error")).is_some();
        match (id, members.text("method")) {
            (Some(_), Some(_)) => Self::Request,
            (None, Some(method)) => Self::Notification(method, members),
            (Some(id), None) if is_answer => Self::Response(id, members),
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match Message::read(text) {
            Message::Request => "request".into(),
            Message::Notification(method, _) => format!("notification {method}"),
            Message::Response(id, _) => format!("response {}", id.as_str()),
            Message::Other => "other".into(),
        }
    }

    #[test]
    fn messages_are_told_apart_by_id_and_method() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "request"),
            (r#" { "method" : "tools\/call" , "id" : 1.0 } "#, "request"),
            (r#"{"id":"1","method":"a"}"#, "request"),
            (r#"{"id":"\u0031","method":"a"}"#, "request"),
            (r#"{"id":12345678901234567890123,"result":{}}"#, "response 12345678901234567890123"),
            (r#"{"id":null,"error":{}}"#, "response null"),
            (r#"{"method":"a"}"#, "notification a"),
            (r#"{"method":1}"#, "other"),
            (r#"{"id":1,"method":"x","id":2,"method":"y"}"#, "other"),
            (r#"{"id":1,"result":{},"Result":{}}"#, "other"),
            (r#"{"id":1,"level":"info"}"#, "other"),
            (r#"[{"id":1},2]"#, "other"),
            ("[]", "other"),
            ("", "other"),
            ("{", "other"),
            ("17", "other"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_in_another_spelling_is_told() {
        for (text, expected) in [
            (r#"{"id":1,"method":"m","params":{}}"#, None),
            (r#"{"id":1,"ids":2,"meth":"m"}"#, None),
            (r#"{"ID":1}"#, Some("id")),
            (r#"{"id":1,"id":1}"#, Some("id")),
            (r#"{"\u0069d":1,"id":1}"#, Some("id")),
            (r#"{"param\u017f":1}"#, Some("params")),
            (r#"{"\u0130D":1}"#, Some("id")),
            (r#"{"method\u0000x":1}"#, Some("method")),
        ] {
            let members = Members::of(text).unwrap();
            assert_eq!(members.ambiguous(&["id", "method", "params"]), expected, "{text}");
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
