//! Reading a JSON text for the names of its top level, writing nothing. It refuses what has
//! no canonical form, by the same rules as the writer.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::{DEPTH_MAX, INTEGER_DIGITS_MAX, JsonError};

/// Up to this many names are compared each with each; beyond, sorting them is cheaper.
const PAIRWISE_MAX: usize = 16;

/// Why a text is not read. Nobody is told: there is no place to keep.
pub(super) struct Refused;

impl From<JsonError> for Refused {
    fn from(_: JsonError) -> Self {
        Self
    }
}

/// Hands out the member names of a top-level object, or of the objects in a top-level array,
/// each with its place in its object. The answer is the number of elements, of an array.
pub(super) fn read<'a>(
    text: &'a str,
    on_name: impl FnMut(Cow<'a, str>, usize),
) -> Result<Option<usize>, Refused> {
    let mut reader = Reader { input: Cursor::new(text), names: Vec::new(), on_name };
    reader.input.skip_space();
    let items = match reader.input.peek() {
        Some(b'[') => Some(reader.array(1)?),
        _ => reader.value(0, true).map(|()| None)?,
    };
    reader.input.skip_space();
    if reader.input.peek().is_some() { Err(Refused) } else { Ok(items) }
}

struct Reader<'a, F> {
    input: Cursor<'a>,
    /// The names of all objects that are still open, the innermost last.
    names: Vec<Cow<'a, str>>,
    on_name: F,
}

impl<'a, F: FnMut(Cow<'a, str>, usize)> Reader<'a, F> {
    fn value(&mut self, depth: usize, shown: bool) -> Result<(), Refused> {
        match self.input.peek() {
            Some(b'"') => Ok(self.input.skip_string()?),
            Some(b'{') => self.object(depth + 1, shown),
            Some(b'[') => self.array(depth + 1).map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => Ok(self.input.eat_word("true")?),
            Some(b'f') => Ok(self.input.eat_word("false")?),
            Some(b'n') => Ok(self.input.eat_word("null")?),
            _ => Err(Refused),
        }
    }

    fn array(&mut self, depth: usize) -> Result<usize, Refused> {
        self.open(b'[', depth)?;
        if self.input.eat(b']') {
            return Ok(0);
        }
        let mut items = 0;
        loop {
            self.value(depth, depth == 1)?;
            items += 1;
            if self.closes(b']')? {
                return Ok(items);
            }
        }
    }

    fn object(&mut self, depth: usize, shown: bool) -> Result<(), Refused> {
        self.open(b'{', depth)?;
        if self.input.eat(b'}') {
            return Ok(());
        }
        let base = self.names.len();
        loop {
            if self.input.peek() != Some(b'"') {
                return Err(Refused);
            }
            let name = self.input.string(0)?;
            if shown {
                (self.on_name)(name.clone(), self.names.len() - base);
            }
            self.names.push(name);
            self.input.skip_space();
            if !self.input.eat(b':') {
                return Err(Refused);
            }
            self.input.skip_space();
            self.value(depth, false)?;
            if self.closes(b'}')? {
                break;
            }
        }
        if any_twice(&mut self.names[base..]) {
            return Err(Refused);
        }
        self.names.truncate(base);
        Ok(())
    }

    fn open(&mut self, bracket: u8, depth: usize) -> Result<(), Refused> {
        if depth > DEPTH_MAX {
            return Err(Refused);
        }
        self.input.eat(bracket);
        self.input.skip_space();
        Ok(())
    }

    /// Reads what follows an element: a comma (false) or the end (true).
    fn closes(&mut self, bracket: u8) -> Result<bool, Refused> {
        self.input.skip_space();
        if self.input.eat(b',') {
            self.input.skip_space();
            return Ok(false);
        }
        if self.input.eat(bracket) { Ok(true) } else { Err(Refused) }
    }

    fn number(&mut self) -> Result<(), Refused> {
        let (literal, integer) = self.input.number()?;
        let fits = if integer {
            literal.strip_prefix('-').unwrap_or(literal).len() <= INTEGER_DIGITS_MAX
        } else {
            literal.parse::<f64>().is_ok_and(f64::is_finite)
        };
        if fits { Ok(()) } else { Err(Refused) }
    }
}

/// May reorder the names.
fn any_twice(names: &mut [Cow<'_, str>]) -> bool {
    if names.len() <= PAIRWISE_MAX {
        return names.iter().enumerate().any(|(i, name)| names[..i].contains(name));
    }
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}
