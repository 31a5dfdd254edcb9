//! The scan of a JSON document: names and values together, at any depth.

use crate::json;

use super::name::{self, Meaning};
use super::{mask, mask_with, value};

/// Members that hold the value itself where a telling name has an object:
/// `{"password": {"value": "..."}}`.
const INNER_NAMES: &[&str] =
    &["value", "plain", "plaintext", "text", "raw", "current", "new", "old"];
/// Members that name the `value` beside them, as in lists of headers and variables.
const NAMING_NAMES: &[&str] = &["field", "header", "key", "name", "param", "parameter", "property"];

/// A walk over canonical JSON. What it reads is sound, so it only follows brackets.
pub(super) struct Walk<'a> {
    rest: &'a str,
    pub(super) masked: String,
    pub(super) redacted: bool,
    original: &'a str,
}

impl<'a> Walk<'a> {
    pub(super) fn over(canonical: &'a str) -> Self {
        let masked = String::with_capacity(canonical.len());
        let mut walk = Self { rest: canonical, masked, redacted: false, original: canonical };
        walk.value(None);
        walk
    }

    /// Copies a value with its secrets masked. `meaning` is what its name says of it.
    fn value(&mut self, meaning: Option<Meaning>) {
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(meaning),
            Some(b'[') => {
                self.copy(1);
                while !self.closes() {
                    self.value(meaning);
                }
            }
            Some(b'"') => {
                self.string(meaning);
            }
            _ => self.scalar(meaning),
        }
    }

    fn object(&mut self, outer: Option<Meaning>) {
        self.copy(1);
        let mut named = None;
        while !self.closes() {
            let name = self.name();
            self.copy(1);
            let inner = outer.filter(|_| INNER_NAMES.contains(&&*name));
            let beside = named.filter(|_| name == "value");
            let meaning = name::meaning(&name).or(beside).or(inner);
            // Canonical order: `value` comes last.
            if NAMING_NAMES.contains(&&*name) && self.rest.starts_with('"') {
                let text = self.string(meaning);
                named = named.or_else(|| name::meaning(&text));
            } else {
                self.value(meaning);
            }
        }
    }

    /// Copies what separates two elements (false) or ends them (true).
    fn closes(&mut self) -> bool {
        let ends = self.rest.is_empty() || self.rest.starts_with([']', '}']);
        if ends || self.rest.starts_with(',') {
            self.copy(1);
        }
        ends
    }

    fn name(&mut self) -> String {
        let (raw, name) = self.take_string();
        let scan = mask(&name);
        if scan.redacted() {
            let unused = unused_name(&scan.text, self.original, &self.masked);
            self.masked.push_str(&unused);
            self.redacted = true;
        } else {
            self.masked.push_str(raw);
        }
        name
    }

    /// Copies a string; the answer is what it held.
    fn string(&mut self, meaning: Option<Meaning>) -> String {
        let (raw, text) = self.take_string();
        let scan = mask_with(meaning, &text);
        if scan.redacted() {
            json::write_string(&mut self.masked, &scan.text);
            self.redacted = true;
        } else {
            self.masked.push_str(raw);
        }
        text
    }

    fn scalar(&mut self, meaning: Option<Meaning>) {
        let end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
        let literal = &self.rest[..end];
        match meaning.filter(|meaning| value::is_secret_number(*meaning, literal)) {
            Some(meaning) => {
                self.masked.push_str(&format!("\"[REDACTED:{}]\"", meaning.kind));
                self.redacted = true;
                self.rest = &self.rest[end..];
            }
            None => self.copy(end),
        }
    }

    fn copy(&mut self, n: usize) {
        let (taken, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.masked.push_str(taken);
        self.rest = rest;
    }

    /// Takes a string: as it is spelled, with its quotes, and what it holds.
    fn take_string(&mut self) -> (&'a str, String) {
        let mut is_escaped = false;
        let closing = self.rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            closes
        });
        let end = closing.map_or(self.rest.len(), |at| at + 2);
        let (raw, rest) = self.rest.split_at(end);
        self.rest = rest;
        (
            raw,
            json::unescape(
                raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(""),
            )
            .into_owned(),
        )
    }
}

/// A canonical spelling of `name`, numbered if a text holds that string already.
fn unused_name(name: &str, original: &str, masked: &str) -> String {
    let mut number = 1;
    loop {
        let numbered = if number == 1 { name.to_owned() } else { format!("{name} {number}") };
        let mut spelled = String::new();
        json::write_string(&mut spelled, &numbered);
        if !original.contains(&spelled) && !masked.contains(&spelled) {
            return spelled;
        }
        number += 1;
    }
}
