//! Canonical JSON: one spelling per value, so that equal arguments have equal hashes.
//!
//! The form is RFC 8785 with one addition: integer literals (no `.`, no exponent) are
//! written out exactly. RFC 8785 alone would round them to doubles, and two different
//! 60-bit ids would share a hash.
//!
//! There is no tree here. The text is read once and its canonical form written straight
//! to one string; the members of an object are moved only if they came out of order.
//! Nothing of the input ever enters an error: a caller's arguments may be secret.

mod cursor;
mod fault;
#[cfg(test)]
mod tests;
mod top;
mod writer;

use std::borrow::Cow;
use std::fmt;

use cursor::{Cursor, plain_end};
pub use fault::Fault;

/// Deepest nesting of arrays and objects. It bounds the recursion of the reader.
pub const DEPTH_MAX: usize = 64;
/// Most digits of an integer literal, the sign not counted. Exact integers cost their
/// length, and no id is longer.
pub const INTEGER_DIGITS_MAX: usize = 1000;

/// Why a JSON text has no canonical form. Holds no part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Where, in bytes from the beginning of the text.
    pub offset: usize,
}

/// The three ways in which a JSON text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonErrorKind {
    /// No JSON text by RFC 8259, or not valid Unicode (lone surrogates too), or nested
    /// deeper than [`DEPTH_MAX`].
    InvalidJson,
    /// An object, at any level, holds two members of the same name (after unescaping).
    DuplicateMember,
    /// A literal with `.` or exponent overflows a double, or an integer literal has more
    /// than [`INTEGER_DIGITS_MAX`] digits.
    NumberOutOfRange,
}

impl JsonError {
    /// The stable problem code: `invalid_json`, `duplicate_member`, `number_out_of_range`.
    pub fn code(&self) -> &'static str {
        match self.kind {
            JsonErrorKind::InvalidJson => "invalid_json",
            JsonErrorKind::DuplicateMember => "duplicate_member",
            JsonErrorKind::NumberOutOfRange => "number_out_of_range",
        }
    }

    /// The place and the cause in the text that was refused with this error.
    pub fn fault(self, text: &[u8]) -> Fault {
        fault::find(text, self)
    }

    fn invalid(offset: usize) -> Self {
        Self { kind: JsonErrorKind::InvalidJson, offset }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            JsonErrorKind::InvalidJson => "not valid JSON",
            JsonErrorKind::DuplicateMember => "a member name occurs twice in one object",
            JsonErrorKind::NumberOutOfRange => "a number is out of range",
        };
        write!(f, "{what} (at byte {})", self.offset)
    }
}

impl std::error::Error for JsonError {}

/// The canonical form of a JSON text.
///
/// # Errors
/// See [`JsonErrorKind`]. A text with several faults is reported as invalid JSON if it is
/// that, else by its first fault; so the order of members does not change the code.
pub fn canonicalize(text: &[u8]) -> Result<String, JsonError> {
    writer::write_canonical(utf8(text)?)
}

/// The unescaped value if the JSON text is a string, `None` if it is another JSON value.
///
/// # Errors
/// As [`canonicalize`]: the whole text is checked, also when it is no string.
pub fn string_value(text: &[u8]) -> Result<Option<Cow<'_, str>>, JsonError> {
    let text = utf8(text)?;
    let mut input = Cursor::new(text);
    input.skip_space();
    if input.peek() != Some(b'"') {
        return writer::write_canonical(text).map(|_| None);
    }
    let value = input.string(text.len())?;
    input.skip_space();
    if input.peek().is_some() { Err(input.invalid()) } else { Ok(Some(value)) }
}

/// Hands out the names of the top level of an object or array, as values, each with its place
/// in its object. `Ok` holds the number of elements, of an array; `Err` says that the text has
/// no canonical form, whatever was handed out before.
pub(crate) fn top_names<'a>(
    text: &'a str,
    on_name: impl FnMut(Cow<'a, str>, usize),
) -> Result<Option<usize>, ()> {
    top::read(text, on_name).map_err(drop)
}

fn utf8(text: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(text).map_err(|e| JsonError::invalid(e.valid_up_to()))
}

/// Appends `s` as a canonical JSON string, quotes included: `"`, `\` and the control
/// characters below U+0020 are escaped, everything else stands for itself.
pub fn write_string(out: &mut String, s: &str) {
    out.push('"');
    let mut rest = s;
    loop {
        let (plain, special) = rest.split_at(plain_end(rest.as_bytes(), 0));
        out.push_str(plain);
        let mut chars = special.chars();
        let Some(c) = chars.next() else { break };
        push_escaped(out, c);
        rest = chars.as_str();
    }
    out.push('"');
}

/// The value of a canonical text that is a string.
pub(crate) fn string_of_canonical(canonical: &str) -> Option<Cow<'_, str>> {
    canonical.strip_prefix('"')?.strip_suffix('"').map(unescape)
}

/// The value of what stands between the quotes of a canonical string.
pub(crate) fn unescape(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut value = String::with_capacity(inner.len());
    let mut input = Cursor::new(inner);
    loop {
        value.push_str(input.plain());
        // Ends the string: what is canonical has no bad escape.
        let Ok(c) = input.escape() else { break };
        value.push(c);
    }
    Cow::Owned(value)
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        '\0'..='\u{1f}' => {
            out.push_str(if c < '\u{10}' { "\\u000" } else { "\\u001" });
            out.push(char::from_digit(u32::from(c) % 16, 16).unwrap_or('0'));
        }
        _ => out.push(c),
    }
}
