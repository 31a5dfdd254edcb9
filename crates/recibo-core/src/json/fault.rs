//! Telling where in a JSON text a fault is, and its cause. Reads the text once more: only a
//! refused one pays for that.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::{DEPTH_MAX, JsonError, JsonErrorKind};

/// Longest pointer in bytes: the names in it are the caller's, of any length.
const POINTER_BYTES_MAX: usize = 512;

/// What the writer of a refused text needs to mend it. The pointer repeats names of the text: for
/// its sender alone, and for no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The place of the value at fault as a JSON pointer (RFC 6901); none where it is longer than
    /// 512 bytes.
    pub pointer: Option<String>,
    /// The cause, as the object of a verb; none where the text is simply no JSON.
    pub cause: Option<&'static str>,
}

/// An array or object that is open at the fault.
enum Open<'a> {
    Array(usize),
    Object(Option<Cow<'a, str>>),
}

pub(super) fn find(text: &[u8], error: JsonError) -> Fault {
    let valid = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    };
    let open = walk(valid, error.offset);
    let cause = cause(&text[error.offset.min(text.len())..], error.kind, open.len());
    let mut pointer = String::new();
    for place in &open {
        match place {
            Open::Array(at) => pointer.push_str(&format!("/{at}")),
            Open::Object(Some(name)) => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Open::Object(None) => {}
        }
    }
    Fault { pointer: (pointer.len() <= POINTER_BYTES_MAX).then_some(pointer), cause }
}

/// What is open at this offset. A string that the offset lies in counts as the place.
fn walk(text: &str, offset: usize) -> Vec<Open<'_>> {
    let mut input = Cursor::new(text);
    let mut open = Vec::new();
    loop {
        input.skip_space();
        let start = input.offset();
        let Some(byte) = input.peek() else { return open };
        if byte == b'"' {
            match open.last_mut() {
                Some(Open::Object(name @ None)) => match input.string(0) {
                    Ok(value) => *name = Some(value),
                    Err(_) => return open,
                },
                _ if input.skip_string().is_err() => return open,
                _ => {}
            }
            if start >= offset {
                return open;
            }
            continue;
        }
        if start >= offset {
            return open;
        }
        input.eat(byte);
        match byte {
            b'[' => open.push(Open::Array(0)),
            b'{' => open.push(Open::Object(None)),
            b']' | b'}' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Array(at)) => *at += 1,
                Some(Open::Object(name)) => *name = None,
                None => {}
            },
            // The inside of a number, of a word, or a colon.
            _ => {}
        }
    }
}

fn cause(rest: &[u8], kind: JsonErrorKind, depth: usize) -> Option<&'static str> {
    match kind {
        JsonErrorKind::DuplicateMember => return Some("a member that stands there twice"),
        JsonErrorKind::NumberOutOfRange => return Some("a number out of range"),
        JsonErrorKind::InvalidJson => {}
    }
    let begins_with = |word: &str| rest.starts_with(word.as_bytes());
    if ["NaN", "Infinity", "-Infinity"].into_iter().any(begins_with) {
        return Some("NaN or Infinity, which JSON does not have");
    }
    if depth >= DEPTH_MAX && matches!(rest.first(), Some(b'[' | b'{')) {
        return Some("more than 64 levels of arrays and objects");
    }
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    let code = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..0xE000).contains(&code).then_some("half of a surrogate pair, which is no character")
}

#[cfg(test)]
mod tests {
    use super::super::canonicalize;

    #[test]
    fn m17_the_place_of_a_fault_is_told_and_its_cause() {
        let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
        let long = format!(r#"{{"{}":[1e999]}}"#, "x".repeat(600));
        for (text, pointer, cause) in [
            (r#"{"a":{"b":[0,{"c":1,"c":1}]}}"#, Some("/a/b/1/c"), "twice"),
            (r#"{"z":0,"a":{"c":1, "b":2, "c":3}}"#, Some("/a/c"), "twice"),
            (r#"{"a":1,"\u0061":2}"#, Some("/a"), "twice"),
            (r#"{"x":[1,[],{},1e999]}"#, Some("/x/3"), "out of range"),
            (r#"{"x":"half \ud835 pair"}"#, Some("/x"), "surrogate"),
            (r#"["a","\udc00"]"#, Some("/1"), "surrogate"),
            (r#"{"a":"]},[{","a/b~":{"c":1e999}}"#, Some("/a~1b~0/c"), "out of range"),
            (r#"{"a": -Infinity}"#, Some("/a"), "Infinity"),
            ("NaN", Some(""), "NaN"),
            (&deep, Some(&"/0".repeat(64)), "64 levels"),
            (&long, None, "out of range"),
            (r#"{"a":[1,2"#, Some("/a/1"), ""),
            (r#"{"a":[1,}]}"#, Some("/a/1"), ""),
            (r#"{"\ud835":1}"#, Some(""), "surrogate"),
            ("", Some(""), ""),
        ] {
            let error = canonicalize(text.as_bytes()).unwrap_err();
            let fault = error.fault(text.as_bytes());
            assert_eq!(fault.pointer.as_deref(), pointer, "{text}");
            assert!(fault.cause.unwrap_or_default().contains(cause), "{text}: {fault:?}");
            assert_eq!(fault.cause.is_none(), cause.is_empty(), "{text}: {fault:?}");
        }
        let text = b"{\"a\":\"\xff\"}";
        let fault = canonicalize(text).unwrap_err().fault(text);
        assert_eq!((fault.pointer.as_deref(), fault.cause), (Some("/a"), None));
    }
}
