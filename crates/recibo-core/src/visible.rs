//! Characters that a reader does not see, or that move what he sees: controls, format
//! characters (bidirectional marks, zero widths, the soft hyphen, tags), line and paragraph
//! separators. The general categories come from the Unicode tables of `regex`.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

static HIDDEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]").expect("the pattern is sound"));

/// Whether a text holds a character that is not shown as itself.
pub fn has_hidden(text: &str) -> bool {
    // Most names are ASCII.
    if text.is_ascii() {
        return text.bytes().any(|byte| byte.is_ascii_control());
    }
    HIDDEN.is_match(text)
}

/// The text as a person may be shown it: hidden characters are spelled out as in Rust, `\n`,
/// `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !has_hidden(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for hidden in HIDDEN.find_iter(text) {
        shown.push_str(&text[from..hidden.start()]);
        shown.extend(hidden.as_str().chars().flat_map(char::escape_default));
        from = hidden.end();
    }
    shown.push_str(&text[from..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_does_not_see_is_spelled_out() {
        let cases = [
            ("lookup_customer", "lookup_customer"),
            ("día ☀ 顧客", "día ☀ 顧客"),
            ("pay\u{202e}cod.exe", "pay\\u{202e}cod.exe"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("pay\u{200b}ment", "pay\\u{200b}ment"),
            ("\u{feff}pay", "\\u{feff}pay"),
            ("pay\u{ad}ment", "pay\\u{ad}ment"),
            ("a\u{2028}b\u{2029}c", "a\\u{2028}b\\u{2029}c"),
            ("\u{e0041}", "\\u{e0041}"),
            ("\u{1b}[31mred\u{9b}0m", "\\u{1b}[31mred\\u{9b}0m"),
            ("a\r\nb\tc\u{7f}\0", "a\\r\\nb\\tc\\u{7f}\\u{0}"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown, "{text:?}");
            assert_eq!(has_hidden(text), text != shown, "{text:?}");
        }
    }
}
