//! How text is laid out for a terminal. Pure, but for the one function that asks how wide the
//! terminal is.
//!
//! No word is ever split or cut: an id or a token will be copied. One that is longer than a line
//! stands alone and goes beyond its end.

use recibo_core::time::Time;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

use crate::paint;

/// Stands for a space where no line may end.
pub const NO_BREAK: &str = "\u{a0}";
/// Narrower than this, a line has no room for two ids.
const COLUMNS_MIN: usize = 60;
/// Wider than this, the eye does not find the next line.
const COLUMNS_MAX: usize = 200;
/// Where stdout is no terminal.
const COLUMNS_ELSE: usize = 80;

/// How wide a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(usize);

impl Width {
    /// What `COLUMNS` says, else the terminal that stdout is, else 80.
    pub fn of_stdout() -> Self {
        let terminal = rustix::termios::tcgetwinsize(std::io::stdout());
        Self::of(std::env::var("COLUMNS").ok().as_deref(), terminal.ok().map(|size| size.ws_col))
    }

    /// So many columns, within what pages are made for.
    #[cfg(test)]
    pub fn fixed(columns: u16) -> Self {
        Self::of(None, Some(columns))
    }

    fn of(variable: Option<&str>, terminal: Option<u16>) -> Self {
        let named = variable.and_then(|text| text.trim().parse().ok());
        // A terminal without a size, on a serial line for instance, says 0.
        let columns = named.or(terminal.map(usize::from)).filter(|columns| *columns > 0);
        Self(columns.unwrap_or(COLUMNS_ELSE).clamp(COLUMNS_MIN, COLUMNS_MAX))
    }

    /// How many columns.
    pub fn columns(self) -> usize {
        self.0
    }
}

/// Who reads a page, when, and on how wide a terminal.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The time.
    pub now: Time,
    /// The terminal's.
    pub width: Width,
    /// Whether the reader gave an API key: without one there is no other namespace to be in.
    pub is_key_given: bool,
}

/// Sentences, broken between words. The first line begins with `first`, the others with as many
/// spaces.
pub fn prose(first: &str, sentences: &str, width: Width) -> String {
    let rest = " ".repeat(display_width(first));
    let lines = textwrap::fill(sentences, breaking(first, &rest, width.0));
    format!("{}\n", lines.replace(NO_BREAK, " "))
}

/// Lines end at spaces and nowhere else.
fn breaking<'a>(first: &'a str, rest: &'a str, columns: usize) -> Options<'a> {
    Options::new(columns)
        .initial_indent(first)
        .subsequent_indent(rest)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
}

/// `label: text` blocks, the texts below each other. All of them go through here.
pub fn facts(indent: &str, rows: &[(&str, String)], width: Width) -> String {
    let longest = rows.iter().map(|(label, _)| display_width(label)).max().unwrap_or(0);
    let block = |(label, text): &(&str, String)| {
        let gap = longest - display_width(label);
        prose(&format!("{indent}{}{:gap$} ", paint::faint(&format!("{label}:")), ""), text, width)
    };
    rows.iter().map(block).collect()
}

/// Parts beside each other with two spaces between them; a part that does not fit goes to the
/// next line, which begins with `indent`. Empty parts are left out.
pub fn flow(parts: &[String], indent: &str, width: Width) -> String {
    let mut text = String::new();
    let mut column = 0;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let part_width = display_width(part);
        if text.is_empty() {
            column = part_width;
        } else if column + 2 + part_width <= width.0 {
            text.push_str("  ");
            column += 2 + part_width;
        } else {
            text.push('\n');
            text.push_str(indent);
            column = display_width(indent) + part_width;
        }
        text.push_str(part);
    }
    text.push('\n');
    text
}

/// Rows with aligned columns; where they are too wide for that, each row flows.
pub fn table(rows: &[Vec<String>], width: Width) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| display_width(cell)).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
    let used = widths.iter().filter(|width| **width > 0);
    if used.map(|width| width + 2).sum::<usize>() > width.0 + 2 {
        return rows.iter().map(|row| flow(row, "    ", width)).collect();
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, column_width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            let gap = column_width - display_width(cell) + 2;
            line.push_str(&format!("{cell}{:gap$}", ""));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A line to copy, with a comment after `   # `. Where it is too long the comment goes above it,
/// and a command of ours, whose words hold no spaces, goes on behind a backslash. Any other line
/// stays whole.
pub fn command(indent: &str, line: &str, width: Width) -> String {
    let room = width.0 - indent.len();
    if display_width(line) <= room {
        return format!("{indent}{line}\n");
    }
    let (command, comment) = match line.split_once("   # ") {
        Some((command, comment)) => (command.trim_end(), Some(comment)),
        None => (line, None),
    };
    let mark = format!("{indent}# ");
    let above = comment.map(|text| textwrap::fill(text, breaking(&mark, &mark, width.0)) + "\n");
    let above = above.unwrap_or_default();
    let lines = match command.starts_with("recibo ") && display_width(command) > room {
        // The backslash and its space need room too.
        true => textwrap::wrap(command, breaking("", "  ", room - 2)),
        false => vec![command.into()],
    };
    format!("{above}{indent}{}\n", lines.join(&format!(" \\\n{indent}")))
}

#[cfg(test)]
mod tests;
