//! The credential scan of free text that is about to be stored. A hit is masked as
//! `[REDACTED:<kind>]`.
//!
//! It knows shapes (`table`) and names (`name`, `value`): a password that has neither a telling
//! shape nor a telling name beside it passes. Receipt tokens are not secret and pass untouched,
//! whatever surrounds them. Masking can lengthen a text; limits on stored text are checked
//! after it. `docs/secrets.md` says how much it finds.

mod assignment;
mod document;
mod name;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use data_encoding::BASE64;
use regex::{Regex, RegexSet};

use crate::json;
use crate::receipt::Token;
use document::Walk;
use name::Meaning;

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
    mask_with(None, text)
}

/// Masks the credentials in a value that has a name. The name may say that all of it is one.
pub fn mask_member<'a>(name: &str, value: &'a str) -> Scan<'a> {
    mask_with(name::meaning(name), value)
}

fn mask_with(meaning: Option<Meaning>, text: &str) -> Scan<'_> {
    let mut found = shapes(text);
    found.extend(meaning.and_then(|meaning| value::secret_part(meaning, text)));
    let hits = apart(text, found);
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

/// Whether identifiers certainly hold no credential: one pass that needs no memory. They can be
/// joined by a comma; no hint holds one, and no identifier a sign that a value would follow.
pub(crate) fn are_clean_names(identifiers: &str) -> bool {
    !PATTERNS.hint.is_match(identifiers)
}

/// The kind of the first credential in a text, for names that are refused, never masked.
pub fn finds(text: &str) -> Option<&'static str> {
    apart(text, shapes(text)).first().map(|hit| hit.kind)
}

/// Masks the values and the member names inside a canonical JSON text, and says whether there
/// was anything to mask. Values are read together with their names, at any depth. The answer is
/// canonical JSON again. Masked names that would be equal are numbered: `[REDACTED:jwt]`,
/// `[REDACTED:jwt] 2`.
///
/// For documents with a limit of a few KiB: numbering looks for each name in all of it.
pub fn mask_json(canonical: &str) -> (String, bool) {
    // Escapes cannot hide a hint: no hint holds a character that is escaped.
    if !PATTERNS.hint.is_match(canonical) && !PATTERNS.names.is_match(canonical) {
        return (canonical.to_owned(), false);
    }
    let Walk { masked, redacted, .. } = Walk::over(canonical);
    // Masked names have new places. The text is valid and without equal names, so this
    // cannot fail; if it ever did, what may be secret would still not be stored.
    let masked = if redacted {
        json::canonicalize(masked.as_bytes()).unwrap_or("{}".to_owned())
    } else {
        masked
    };
    (masked, redacted)
}

struct Hit {
    at: Range<usize>,
    kind: &'static str,
}

struct Patterns {
    hint: Regex,
    /// A telling name in a JSON document: one that ends soon after a telling word, or that has
    /// a value inside a string.
    names: Regex,
    set: RegexSet,
    each: Vec<Regex>,
    receipt: Regex,
    basic: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("the table holds sound patterns");
    Patterns {
        hint: regex(table::HINT),
        names: regex(&format!(
            r#"(?i)(?:{})[\p{{L}}\p{{N}}_. -]{{0,32}}\\{{0,3}}["'=:]|--[a-z]"#,
            name::WORDS
        )),
        set: RegexSet::new(table::PATTERNS.iter().map(|(_, pattern)| pattern))
            .expect("the table holds sound patterns"),
        each: table::PATTERNS.iter().map(|(_, pattern)| regex(pattern)).collect(),
        receipt: regex("zc-receipt-[0-9]{1,20}-[A-Za-z0-9_-]+"),
        basic: regex(table::BASIC),
    }
});

/// All places with a telling shape, or with a telling name before them.
fn shapes(text: &str) -> Vec<Hit> {
    let mut found = Vec::new();
    if PATTERNS.hint.is_match(text) {
        for index in PATTERNS.set.matches(text) {
            let kind = table::PATTERNS[index].0;
            for captures in PATTERNS.each[index].captures_iter(text) {
                let part = captures.iter().flatten().last();
                found.extend(part.map(|part| Hit { at: part.range(), kind }));
            }
        }
        let basic = PATTERNS.basic.captures_iter(text).filter_map(|captures| captures.get(1));
        let basic = basic.filter(|part| is_basic(part.as_str()));
        found.extend(basic.map(|part| Hit { at: part.range(), kind: "basic_auth" }));
    }
    assignment::hits(text, &mut found);
    found
}

/// Whether a text is `user:password` in base64.
fn is_basic(text: &str) -> bool {
    let decoded =
        BASE64.decode(text.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.is_some_and(|pair| pair.contains(':') && !pair.contains(char::is_control))
}

/// The places to mask, in order and apart from each other.
fn apart(text: &str, mut found: Vec<Hit>) -> Vec<Hit> {
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
