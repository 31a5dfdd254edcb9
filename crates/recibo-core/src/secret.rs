//! The credential scan of free text that is about to be stored. A hit is masked as
//! `[REDACTED:<kind>]`.
//!
//! It knows shapes, not entropy: a password without a telling shape passes. Receipt tokens
//! are not secret and pass untouched, whatever surrounds them. Masking can lengthen a text;
//! limits on stored text are checked after it.

mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::json;
use crate::receipt::Token;

/// What the scan made of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<'a> {
    /// The text with every credential masked; borrowed if there was none.
    pub text: Cow<'a, str>,
    /// The kinds that were masked, each once, in order of appearance.
    pub kinds: Vec<&'static str>,
}

impl Scan<'_> {
    /// Whether anything was masked.
    pub fn redacted(&self) -> bool {
        !self.kinds.is_empty()
    }
}

/// Masks the credentials in a text.
pub fn mask(text: &str) -> Scan<'_> {
    let hits = hits(text);
    if hits.is_empty() {
        return Scan { text: Cow::Borrowed(text), kinds: Vec::new() };
    }
    let (mut masked, mut kinds, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
    for Hit { at, kind } in hits {
        masked.push_str(&text[from..at.start]);
        masked.push_str(&format!("[REDACTED:{kind}]"));
        from = at.end;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    masked.push_str(&text[from..]);
    Scan { text: Cow::Owned(masked), kinds }
}

/// Whether a text certainly holds no credential: one pass that needs no memory. Texts joined by
/// a comma can be asked about together; no hint holds one.
pub(crate) fn is_clean(text: &str) -> bool {
    !PATTERNS.hint.is_match(text)
}

/// The kind of the first credential in a text, for names that are refused, never masked.
pub fn finds(text: &str) -> Option<&'static str> {
    hits(text).first().map(|hit| hit.kind)
}

/// Masks the string values and the member names inside a canonical JSON text, and says
/// whether there was anything to mask. The answer is canonical JSON again. Masked names
/// that would be equal are numbered: `[REDACTED:jwt]`, `[REDACTED:jwt] 2`.
///
/// For documents with a limit of a few KiB: numbering looks for each name in all of it.
pub fn mask_json(canonical: &str) -> (String, bool) {
    // Escapes cannot hide a hint: no hint holds a character that is escaped.
    if !PATTERNS.hint.is_match(canonical) {
        return (canonical.to_owned(), false);
    }
    let mut masked = String::with_capacity(canonical.len());
    let (mut redacted, mut rest) = (false, canonical);
    while let Some((before, inner, after)) = next_string(rest) {
        masked.push_str(before);
        let value = json::unescape(inner);
        let scan = mask(&value);
        if !scan.redacted() {
            masked.push_str(&rest[before.len()..rest.len() - after.len()]);
        } else if after.starts_with(':') {
            masked.push_str(&unused_name(&scan.text, canonical, &masked));
        } else {
            json::write_string(&mut masked, &scan.text);
        }
        redacted |= scan.redacted();
        rest = after;
    }
    masked.push_str(rest);
    // Masked names have new places. The text is valid and without equal names, so this
    // cannot fail; if it ever did, what may be secret would still not be stored.
    let masked = if redacted {
        json::canonicalize(masked.as_bytes()).unwrap_or("{}".to_owned())
    } else {
        masked
    };
    (masked, redacted)
}

/// The next string of canonical JSON: what stands before it, inside it and after it.
fn next_string(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_at(text.find('"')?);
    let mut escaped = false;
    let end = rest.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    Some((before, &rest[1..=end], &rest[end + 2..]))
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

struct Hit {
    at: Range<usize>,
    kind: &'static str,
}

struct Patterns {
    hint: Regex,
    set: RegexSet,
    each: Vec<Regex>,
    receipt: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("the table holds sound patterns");
    Patterns {
        hint: regex(table::HINT),
        set: RegexSet::new(table::PATTERNS.iter().map(|(_, pattern)| pattern))
            .expect("the table holds sound patterns"),
        each: table::PATTERNS.iter().map(|(_, pattern)| regex(pattern)).collect(),
        receipt: regex("zc-receipt-[0-9]{1,20}-[A-Za-z0-9_-]+"),
    }
});

/// The places to mask, in order and apart from each other.
fn hits(text: &str) -> Vec<Hit> {
    if !PATTERNS.hint.is_match(text) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for index in PATTERNS.set.matches(text) {
        let kind = table::PATTERNS[index].0;
        for captures in PATTERNS.each[index].captures_iter(text) {
            if let Some(part) = captures.get(1).or(captures.get(0)) {
                found.push(Hit { at: part.range(), kind });
            }
        }
    }
    if found.is_empty() {
        return found;
    }
    found.sort_by_key(|hit| (hit.at.start, std::cmp::Reverse(hit.at.end)));
    spare_receipts(text, merge(found))
}

/// Overlapping hits become one, of the kind that begins first.
fn merge(found: Vec<Hit>) -> Vec<Hit> {
    let mut merged: Vec<Hit> = Vec::with_capacity(found.len());
    for hit in found {
        match merged.last_mut() {
            Some(last) if hit.at.start < last.at.end => last.at.end = last.at.end.max(hit.at.end),
            _ => merged.push(hit),
        }
    }
    merged
}

/// Cuts the receipt tokens out of the hits.
fn spare_receipts(text: &str, hits: Vec<Hit>) -> Vec<Hit> {
    let tokens = PATTERNS.receipt.find_iter(text);
    let tokens: Vec<_> = tokens.filter(|token| token.as_str().parse::<Token>().is_ok()).collect();
    let mut spared = Vec::with_capacity(hits.len());
    for Hit { mut at, kind } in hits {
        for token in &tokens {
            if token.end() <= at.start || token.start() >= at.end {
                continue;
            }
            if at.start < token.start() {
                spared.push(Hit { at: at.start..token.start(), kind });
            }
            at.start = token.end().min(at.end);
        }
        if !at.is_empty() {
            spared.push(Hit { at, kind });
        }
    }
    spared
}
