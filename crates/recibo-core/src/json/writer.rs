//! Writing the canonical form of one JSON text while it is read.

use std::cmp::Ordering;
use std::ops::Range;

use super::cursor::Cursor;
use super::{DEPTH_MAX, INTEGER_DIGITS_MAX, JsonError, JsonErrorKind, push_escaped, unescape};

pub(super) fn write_canonical(text: &str) -> Result<String, JsonError> {
    let mut writer = Writer {
        input: Cursor::new(text),
        out: String::with_capacity(text.len()),
        members: Vec::new(),
        scratch: String::new(),
        refusal: None,
    };
    writer.input.skip_space();
    writer.value(0)?;
    writer.input.skip_space();
    if writer.input.peek().is_some() {
        return Err(writer.input.invalid());
    }
    match writer.refusal {
        Some(error) => Err(error),
        None => Ok(writer.out),
    }
}

/// Where a member that has been written stands in the output.
struct Member {
    /// Its name, without the quotes.
    name: Range<usize>,
    /// Whether the name is spelled with escapes.
    escaped: bool,
    /// The end of its value.
    end: usize,
    /// Where its name begins in the input, for errors.
    offset: usize,
}

struct Writer<'a> {
    input: Cursor<'a>,
    out: String,
    /// The members of all objects that are still open, the innermost last.
    members: Vec<Member>,
    scratch: String,
    /// The first fault that leaves the text valid JSON. Reading goes on, since a later
    /// syntax error outranks it.
    refusal: Option<JsonError>,
}

impl Writer<'_> {
    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.input.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => Err(self.input.invalid()),
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<(), JsonError> {
        self.input.eat_word(word)?;
        self.out.push_str(word);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        self.open(b'[', depth)?;
        if self.input.eat(b']') {
            self.out.push(']');
            return Ok(());
        }
        loop {
            self.value(depth)?;
            if self.closes(b']')? {
                return Ok(());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        self.open(b'{', depth)?;
        if self.input.eat(b'}') {
            self.out.push('}');
            return Ok(());
        }
        let (start, base) = (self.out.len(), self.members.len());
        let mut ordered = true;
        loop {
            let member = self.member(depth)?;
            if self.members.len() > base {
                ordered &= self.follows_last(&member);
            }
            self.members.push(member);
            if self.closes(b'}')? {
                break;
            }
        }
        if !ordered {
            self.sort_members(start, base);
        }
        self.members.truncate(base);
        Ok(())
    }

    fn open(&mut self, bracket: u8, depth: usize) -> Result<(), JsonError> {
        if depth > DEPTH_MAX {
            return Err(self.input.invalid());
        }
        self.input.eat(bracket);
        self.out.push(char::from(bracket));
        self.input.skip_space();
        Ok(())
    }

    /// Reads and writes what follows an element: a comma (false) or the end (true).
    fn closes(&mut self, bracket: u8) -> Result<bool, JsonError> {
        self.input.skip_space();
        if self.input.eat(b',') {
            self.input.skip_space();
            self.out.push(',');
            return Ok(false);
        }
        if self.input.eat(bracket) {
            self.out.push(char::from(bracket));
            return Ok(true);
        }
        Err(self.input.invalid())
    }

    fn member(&mut self, depth: usize) -> Result<Member, JsonError> {
        let offset = self.input.offset();
        if self.input.peek() != Some(b'"') {
            return Err(self.input.invalid());
        }
        let name_start = self.out.len() + 1;
        let escaped = self.string()?;
        let name = name_start..self.out.len() - 1;
        self.input.skip_space();
        if !self.input.eat(b':') {
            return Err(self.input.invalid());
        }
        self.out.push(':');
        self.input.skip_space();
        self.value(depth)?;
        Ok(Member { name, escaped, end: self.out.len(), offset })
    }

    fn follows_last(&mut self, member: &Member) -> bool {
        let Some(last) = self.members.last() else {
            return true;
        };
        match name_order(&self.out, last, member) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                self.refuse(JsonErrorKind::DuplicateMember, member.offset);
                true
            }
        }
    }

    /// Puts the members of the object that ends the output in order.
    fn sort_members(&mut self, start: usize, base: usize) {
        let out = &self.out;
        self.members[base..].sort_by(|a, b| name_order(out, a, b));
        let twice = self.members[base..]
            .windows(2)
            .filter(|pair| name_order(out, &pair[0], &pair[1]).is_eq())
            .map(|pair| pair[1].offset)
            .min();
        if let Some(offset) = twice {
            self.refuse(JsonErrorKind::DuplicateMember, offset);
        }
        self.scratch.clear();
        for member in &self.members[base..] {
            if !self.scratch.is_empty() {
                self.scratch.push(',');
            }
            self.scratch.push_str(&self.out[member.name.start - 1..member.end]);
        }
        self.out.truncate(start);
        self.out.push_str(&self.scratch);
        self.out.push('}');
    }

    /// Says whether the string was spelled with escapes: only then can its canonical form be.
    fn string(&mut self) -> Result<bool, JsonError> {
        let mut escaped = false;
        self.input.eat(b'"');
        self.out.push('"');
        loop {
            self.out.push_str(self.input.plain());
            if self.input.eat(b'"') {
                self.out.push('"');
                return Ok(escaped);
            }
            escaped = true;
            push_escaped(&mut self.out, self.input.escape()?);
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let offset = self.input.offset();
        let (literal, integer) = self.input.number()?;
        if integer {
            let digits = literal.strip_prefix('-').unwrap_or(literal);
            if digits.len() > INTEGER_DIGITS_MAX {
                self.refuse(JsonErrorKind::NumberOutOfRange, offset);
            }
            self.out.push_str(if literal == "-0" { "0" } else { literal });
            return Ok(());
        }
        match literal.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.out.push_str(ryu_js::Buffer::new().format_finite(value));
            }
            _ => self.refuse(JsonErrorKind::NumberOutOfRange, offset),
        }
        Ok(())
    }

    fn refuse(&mut self, kind: JsonErrorKind, offset: usize) {
        if self.refusal.is_none_or(|first| offset < first.offset) {
            self.refusal = Some(JsonError { kind, offset });
        }
    }
}

fn name_order(out: &str, a: &Member, b: &Member) -> Ordering {
    let (x, y) = (&out[a.name.clone()], &out[b.name.clone()]);
    if a.escaped || b.escaped {
        return utf16_order(&unescape(x), &unescape(y));
    }
    utf16_order(x, y)
}

/// The order of member names: by UTF-16 code units (RFC 8785, section 3.2.3).
///
/// UTF-8 bytes sort the same way except that U+E000..U+FFFF (lead bytes EE, EF) come after
/// the characters that need surrogates (lead bytes F0 to F4).
fn utf16_order(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| {
        if matches!(byte, 0xEE | 0xEF) { byte + 0x10 } else { byte }
    };
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        Some((x, y)) => rank(x).cmp(&rank(y)),
        None => a.len().cmp(&b.len()),
    }
}
