//! Strict reading of bodies: unknown members, equal members and wrong types are refused at
//! every level.
//!
//! serde reads the good ones in one pass. Only what it refuses is looked at again, to say
//! what was wrong without saying what was sent: a body may hold secrets, and serde's own
//! messages hold pieces of it.

#[cfg(test)]
mod tests;

use recibo_core::json;
use serde::Deserialize;
use serde::de::value::Error as Unread;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::member;
use crate::problem::{Code, Problem};

/// Reads a body that must be a JSON object.
///
/// # Errors
/// `invalid_json`, `duplicate_member`, `number_out_of_range` with the place, else
/// `invalid_request`.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    // serde would take an array for an object and its elements for the members in order.
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    let text = std::str::from_utf8(body).ok();
    match text.filter(|_| is_object).map(serde_json::from_str) {
        Some(Ok(value)) => Ok(value),
        _ => Err(refuse::<T>(body)),
    }
}

/// Says why a body was not read.
#[cold]
fn refuse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Problem {
    if let Err(error) = json::canonicalize(body) {
        let mut problem = Problem::json(body, error);
        let pointer = problem.extra.remove("pointer");
        let pointer = pointer.as_ref().and_then(Value::as_str).unwrap_or_default();
        if let Some(place) = known_place(pointer, members_of::<T>()) {
            problem = problem.with("pointer", place);
        }
        return member::instead_of_output(problem);
    }
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Problem::invalid("the body must be a JSON object");
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => {
            let place = known_path(error.path(), members_of::<T>());
            Problem::new(Code::InvalidRequest, describe(&place, error.inner()))
        }
        Ok(_) => Problem::invalid("the body does not fit the contract"),
    }
}

/// The pointer into the arguments, which the caller wrote and must mend; of another place the
/// member of the contract.
fn known_place<'a>(pointer: &'a str, members: &[&str]) -> Option<&'a str> {
    let name = pointer.strip_prefix('/')?.split('/').next()?;
    let place = if name == "input" { pointer } else { &pointer[..=name.len()] };
    members.contains(&name).then_some(place)
}

/// As much of the path as is ours: the names of members that the contract has, and places in
/// lists. The rest are names that the caller chose.
fn known_path(path: &Path, members: &[&str]) -> String {
    let mut known = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } if known.is_empty() && members.contains(&key.as_str()) => {
                known.push_str(key);
            }
            Segment::Seq { index } if !known.is_empty() => known.push_str(&format!("[{index}]")),
            _ => break,
        }
    }
    known
}

/// Keeps of serde's message what the contract wrote: what was expected. What was found stands
/// before it.
fn describe(place: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&position).unwrap_or(&message);
    let what = if message.starts_with("missing field `") {
        message.replacen("missing field", "a member is missing:", 1)
    } else {
        let expected =
            message.rsplit_once(", expected ").map_or("a value of the contract", |m| m.1);
        match (message.starts_with("unknown field `"), place) {
            (true, _) => match misspelt(message) {
                Some(name) => format!("unknown member `{name}`, expected {expected}"),
                None => format!("unknown member, expected {expected}"),
            },
            (false, "") => format!("expected {}", plain(expected)),
            (false, place) => format!("`{place}`: expected {}", plain(expected)),
        }
    };
    format!("{what}{position}")
}

/// The name of an unknown member, where it looks like a name that was meant for the contract.
/// Others may be data.
fn misspelt(message: &str) -> Option<&str> {
    const LEN_MAX: usize = 32;
    let (name, _) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let is_name = (1..=LEN_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then_some(name)
}

/// Names of Rust types in the words of JSON.
fn plain(expected: &str) -> &str {
    match expected {
        "u64" => "an integer from 0 to 9007199254740991",
        "u32" => "an integer from 1 to 4294967295",
        text if text.starts_with("struct ") => "a JSON object",
        text => text,
    }
}

/// The member names of a request type, as its derived reader states them.
fn members_of<'a, T: Deserialize<'a>>() -> &'static [&'static str] {
    let mut members: &'static [&'static str] = &[];
    // Reads nothing, so it fails; the names were noted by then.
    let _ = T::deserialize(Names(&mut members)).is_ok();
    members
}

/// Notes the member names that a struct asks for.
struct Names<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Unread;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Unread> {
        *self.0 = fields;
        Err(Unread::custom("names only"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Unread> {
        Err(Unread::custom("names only"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}
