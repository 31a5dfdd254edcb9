//! Secrets beside their names in free text: `password=...`, `"token": "..."`, `--api-key ...`.

use std::sync::LazyLock;

use regex::Regex;

use super::Hit;
use super::name::{self, Meaning, Proof, WORDS};
use super::value;

/// Longest name that is looked at, in bytes.
const NAME_LEN_MAX: usize = 64;
/// How far a separator is looked ahead of for the next `name=`, in bytes.
const NEXT_NAME_LEN_MAX: usize = 40;

/// A name with a telling word, or an option of a command line, up to where its value begins.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(
        r#"(?i)--[a-z0-9-]{{0,32}}(?:{WORDS})[a-z0-9-]{{0,24}}[ \t]{{1,4}}|pass(?:word|phrase|code) (?:is|was) |(?:{WORDS})[\p{{L}}\p{{N}}_.-]{{0,32}}\\{{0,3}}["']?[ \t]{{0,4}}(?:=>|:=|={{1,3}}|:)[ \t]{{0,4}}"#
    );
    Regex::new(&pattern).expect("the pattern is sound")
});

/// How much a separator says: prose has colons, and hardly ever `=`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bond {
    Equals,
    Colon,
    /// Without a space after it: parts of ids are joined like that.
    BareColon,
    /// An option and its value, with a space between them.
    Option,
    /// `password is`: hardly more than a hint.
    Verb,
}

/// The secrets of a text that stand beside their names.
pub(super) fn hits(text: &str, found: &mut Vec<Hit>) {
    // Most short texts have nothing that joins a name and a value.
    let is_joined = text.bytes().any(|byte| matches!(byte, b'=' | b':'))
        || ["--", " is ", " was "].iter().any(|word| text.contains(word));
    if !is_joined {
        return;
    }
    for matched in NAME.find_iter(text) {
        let spelled = matched.as_str().trim_end_matches([' ', '\t']);
        let has_space = spelled.len() < matched.len();
        let bond = match spelled.trim_end_matches(['=', ':', '>']).len() {
            n if n == spelled.len() && spelled.starts_with("--") => Bond::Option,
            n if n == spelled.len() => Bond::Verb,
            _ if spelled.ends_with(['=', '>']) => Bond::Equals,
            _ if has_space => Bond::Colon,
            _ => Bond::BareColon,
        };
        let name = if bond == Bond::Verb { first_word(spelled) } else { spelled };
        let Some(meaning) = meaning(text, matched.start(), name.len()) else { continue };
        let Some(value) = Value::read(text, matched.end(), meaning.proof) else { continue };
        if value.is_plausible(meaning, bond)
            && let Some(Hit { at, kind }) = value::secret_part(meaning, value.text)
        {
            found.push(Hit { at: value.start + at.start..value.start + at.end, kind });
        }
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

/// What a name means; it may begin before the match that found it.
fn meaning(text: &str, at: usize, len: usize) -> Option<Meaning> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let start = text[..at].trim_end_matches(is_name).len();
    let name = text[start..at + len].trim_end_matches(|c| !is_name(c)).trim_start_matches('-');
    if name.len() > NAME_LEN_MAX {
        return None;
    }
    name::meaning(name).or_else(|| {
        // In the query of a URL these say more than elsewhere.
        let in_query = text[..start].ends_with(['?', '&']);
        let lower = name.to_ascii_lowercase();
        let kind = match lower.as_str() {
            "key" => "api_key",
            "sig" | "signature" | "x-amz-signature" | "x-goog-signature" => "url_signature",
            _ => return None,
        };
        in_query.then_some(Meaning { kind, proof: Proof::Random })
    })
}

struct Value<'a> {
    text: &'a str,
    start: usize,
    is_quoted: bool,
    /// Whether the clause ends behind it.
    is_last: bool,
}

impl<'a> Value<'a> {
    fn read(text: &'a str, from: usize, proof: Proof) -> Option<Self> {
        let unescaped = text[from..].trim_start_matches('\\');
        let quote = unescaped.chars().next()?;
        // As ODBC does; elsewhere braces are code.
        let is_braced = quote == '{' && text[..from].ends_with('=');
        let (start, end, is_quoted) = if matches!(quote, '"' | '\'' | '`') || is_braced {
            let start = text.len() - unescaped.len() + 1;
            (start, start + quoted_len(&text[start..], quote), true)
        } else if proof == Proof::Cookie {
            let end = text[from..].find(['\n', '\r', '"', '\'']);
            (from, end.map_or(text.len(), |end| from + end), false)
        } else {
            (from, from + bare_len(&text[from..]), false)
        };
        let after = text[end..].trim_start_matches(['"', '\'', '.']);
        let is_last = after.is_empty() || after.starts_with([',', ';', '\n', '\r', ')']);
        let value = &text[start..end];
        // `{password}` is a template, `{zx;81}` a quoted value.
        let is_template =
            quote == '{' && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (!value.is_empty() && !is_template).then_some(Self {
            text: value,
            start,
            is_quoted,
            is_last,
        })
    }

    /// Whether prose and ids can be ruled out.
    fn is_plausible(&self, meaning: Meaning, bond: Bond) -> bool {
        if meaning.proof != Proof::None {
            return bond != Bond::BareColon || self.is_quoted;
        }
        match bond {
            _ if self.is_quoted => true,
            Bond::Equals => true,
            // "password: must be", but "password: letmein".
            Bond::Colon | Bond::Option => {
                self.is_last || !self.text.chars().all(|c| c.is_alphabetic() || c == '\'')
            }
            Bond::Verb => is_mixed(self.text),
            Bond::BareColon => !self.text.contains(':') && is_mixed(self.text),
        }
    }
}

/// Letters with digits or signs that no id has: `hunter2`, but not `too_short` and `user-17`.
fn is_mixed(text: &str) -> bool {
    let runs = text.split(|c: char| !c.is_alphanumeric());
    let has = |run: &str, is: fn(char) -> bool| run.chars().any(is);
    text.contains(['!', '@', '#', '$', '%', '^', '&', '*'])
        || runs
            .into_iter()
            .any(|run| has(run, char::is_alphabetic) && has(run, |c| c.is_ascii_digit()))
}

/// Up to the closing quote; to the end if there is none.
fn quoted_len(text: &str, quote: char) -> usize {
    let close = if quote == '{' { '}' } else { quote };
    let end = text.find(close).unwrap_or(text.len());
    text[..end].trim_end_matches('\\').len()
}

/// Passwords hold separators too: one ends the value only if the next name follows it.
fn bare_len(text: &str) -> usize {
    let mut opened = 0_i32;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let ends = match c {
            '"' | '\'' | '`' => true,
            ',' | ';' | '&' => {
                rest.is_empty() || rest.starts_with(char::is_whitespace) || is_assignment(rest)
            }
            '(' | '[' | '{' => {
                opened += 1;
                false
            }
            ')' | ']' | '}' => {
                opened -= 1;
                opened < 0
            }
            c => c.is_whitespace(),
        };
        if ends {
            return text[..at].trim_end_matches(['.', ':', '\\']).len();
        }
    }
    text.trim_end_matches(['.', ':']).len()
}

/// Whether a text begins with `name=` or `"name":`.
fn is_assignment(text: &str) -> bool {
    let text = text.trim_start_matches(['\\', '"', '\'']);
    let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let end = text.char_indices().take(NEXT_NAME_LEN_MAX).find(|(_, c)| !name(*c));
    end.is_some_and(|(at, c)| at > 0 && matches!(c, '=' | '"' | '\''))
}
