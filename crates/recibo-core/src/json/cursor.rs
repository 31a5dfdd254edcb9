//! Reading one JSON text from left to right: bytes, white space, string pieces, escapes
//! and numbers by RFC 8259. Knows nothing of the canonical form.

use std::borrow::Cow;

use super::JsonError;

/// A place in a JSON text. Always on a character boundary when a piece is cut.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn invalid(&self) -> JsonError {
        JsonError::invalid(self.at)
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> Result<(), JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.invalid());
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The characters up to the next quote, backslash or control character.
    #[inline]
    pub(super) fn plain(&mut self) -> &'a str {
        let start = self.at;
        self.at = plain_end(self.text.as_bytes(), start);
        &self.text[start..self.at]
    }

    /// The value of a string, which begins here; borrowed if it is spelled without escapes,
    /// else with room for `bytes_usual`.
    pub(super) fn string(&mut self, bytes_usual: usize) -> Result<Cow<'a, str>, JsonError> {
        self.eat(b'"');
        let plain = self.plain();
        if self.eat(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut value = String::with_capacity(bytes_usual.max(plain.len()));
        value.push_str(plain);
        loop {
            value.push(self.escape()?);
            value.push_str(self.plain());
            if self.eat(b'"') {
                return Ok(Cow::Owned(value));
            }
        }
    }

    /// Passes a string, which begins here.
    pub(super) fn skip_string(&mut self) -> Result<(), JsonError> {
        self.eat(b'"');
        loop {
            self.plain();
            if self.eat(b'"') {
                return Ok(());
            }
            self.escape()?;
        }
    }

    /// One escape sequence, a surrogate pair counting as one. Anything else here (the end
    /// of the text, a bare control character) has no place in a string.
    pub(super) fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        if !self.eat(b'\\') {
            return Err(self.invalid());
        }
        let letter = self.peek().ok_or_else(|| self.invalid())?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(start),
            _ => return Err(JsonError::invalid(start)),
        })
    }

    fn unicode(&mut self, start: usize) -> Result<char, JsonError> {
        let mut code = self.four_hex(start)?;
        if (0xD800..0xDC00).contains(&code) {
            if !(self.eat(b'\\') && self.eat(b'u')) {
                return Err(JsonError::invalid(start));
            }
            let low = self.four_hex(start)?;
            if !(0xDC00..0xE000).contains(&low) {
                return Err(JsonError::invalid(start));
            }
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        // A low surrogate that stands alone is no character.
        char::from_u32(code).ok_or(JsonError::invalid(start))
    }

    fn four_hex(&mut self, start: usize) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or(JsonError::invalid(start))?;
            self.at += 1;
        }
        Ok(code)
    }

    /// A number literal, and whether it is an integer literal (no `.`, no exponent).
    pub(super) fn number(&mut self) -> Result<(&'a str, bool), JsonError> {
        let start = self.at;
        let mut integer = true;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            integer = false;
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            integer = false;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok((&self.text[start..self.at], integer))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.invalid()) } else { Ok(()) }
    }
}

/// Where, from `at` on, the first quote, backslash or control character stands; the length
/// if none does. Eight bytes a step: most of a document is inside plain strings.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(Ok(chunk)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let special = special_bits(u64::from_le_bytes(chunk));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
    let rest = &bytes[at..];
    at + rest.iter().position(special).unwrap_or(rest.len())
}

/// The high bit of each byte that needs attention. Borrows can set a false bit only above a
/// true one, so the lowest set bit is exact.
#[inline]
fn special_bits(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero = |w: u64| w.wrapping_sub(ONES) & !w;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & (ONES * 0x80)
}
