//! Finding the ids in an answer that cannot be read: a bare `NaN`, a broken escape, several answers
//! in one line. A host that is less strict may read it; then what it has seen must not stay
//! without an end.

use super::message::{Id, is_spelling_of};

/// The ids of all objects at the top of a line, or in the list at its top, that look like answers:
/// with an id and a result or an error.
pub fn answered_ids(line: &[u8]) -> Vec<Id> {
    if !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Vec::new();
    }
    let mut scan = Scan::default();
    let mut at = 0;
    while at < line.len() {
        at = scan.step(line, at);
    }
    scan.end_object();
    scan.found
}

#[derive(Default)]
struct Scan {
    /// `{` and `[` that are open.
    open: Vec<u8>,
    /// Whether a name comes next.
    at_name: bool,
    ids: Vec<Id>,
    has_answer: bool,
    found: Vec<Id>,
}

impl Scan {
    /// Takes what stands at a place; gives the next place.
    fn step(&mut self, line: &[u8], at: usize) -> usize {
        match line[at] {
            b'"' => {
                let end = string_end(line, at);
                if std::mem::take(&mut self.at_name) && self.is_at_top() {
                    self.name(line, at, end);
                }
                end
            }
            byte @ (b'{' | b'[') => {
                self.open.push(byte);
                self.at_name = byte == b'{';
                at + 1
            }
            b'}' | b']' => {
                if self.is_at_top() {
                    self.end_object();
                }
                self.open.pop();
                at + 1
            }
            b',' => {
                self.at_name = self.open.last() == Some(&b'{');
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Whether the open object is a message.
    fn is_at_top(&self) -> bool {
        matches!(self.open.as_slice(), [b'{'] | [b'[', b'{'])
    }

    fn name(&mut self, line: &[u8], start: usize, end: usize) {
        let Ok(name) = serde_json::from_slice::<String>(&line[start..end]) else { return };
        if is_spelling_of(&name, "result") || is_spelling_of(&name, "error") {
            self.has_answer = true;
        }
        let rest = line[end..].trim_ascii_start();
        if is_spelling_of(&name, "id") && rest.first() == Some(&b':') {
            self.ids.extend(scalar(rest[1..].trim_ascii_start()).map(Id::read));
        }
    }

    fn end_object(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        if std::mem::take(&mut self.has_answer) {
            self.found.extend(ids);
        }
    }
}

/// The place after a string.
fn string_end(line: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < line.len() {
        match line[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    line.len()
}

/// A string or a number at the beginning of a text.
fn scalar(text: &[u8]) -> Option<&str> {
    let end = match text.first()? {
        b'"' => string_end(text, 0),
        _ => text.iter().position(|b| b",}] \t\r\n".contains(b)).unwrap_or(text.len()),
    };
    let text = std::str::from_utf8(&text[..end]).ok()?;
    serde_json::from_str::<&serde_json::value::RawValue>(text).ok().map(|raw| raw.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_unreadable_answers_are_found() {
        for (line, expected) in [
            (r#"{"id":1,"result":{"structuredContent":{"x":NaN}}}"#, "1"),
            (r#"{"result":{"id":7,"a":"}\"{"},"id" : "a,b" ,"x":Infinity}"#, r#""a,b""#),
            (r#"{"id":1,"result":{}} {"id":2,"error":{}}"#, "1 2"),
            (r#"[{"id":1,"result":NaN},{"id":2,"method":"m"},{"id":3,"result":1}]"#, "1 3"),
            (r#"{"id":1,"id":2,"result":{}}"#, "1 2"),
            (r#"{"ID":1,"Result":{}}"#, "1"),
            (r#"{"id":1,"result":{"#, "1"),
            (r#"{"id":1,"level":"info",}"#, ""),
            (r#"info {"id":1,"result":{}}"#, ""),
            (r#"{"id":"#, ""),
            (r#"{"a\"#, ""),
        ] {
            let found: Vec<_> =
                answered_ids(line.as_bytes()).iter().map(|id| id.as_str().to_owned()).collect();
            assert_eq!(found.join(" "), expected, "{line}");
        }
        assert_eq!(answered_ids(b"{\"id\":1,\"result\":\"\xff\"}").len(), 1);
    }
}
