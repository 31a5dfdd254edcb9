//! Colours. Texts always carry them; the streams of `anstream` take them out where stdout is
//! no terminal or `NO_COLOR` is set.

use anstyle::{AnsiColor, Style};

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

fn with(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

fn coloured(colour: AnsiColor, text: &str) -> String {
    with(colour.on_default(), text)
}

/// Something to see first.
pub fn strong(text: &str) -> String {
    with(STRONG, text)
}

/// Something to see last.
pub fn faint(text: &str) -> String {
    with(FAINT, text)
}

/// A success.
pub fn good(text: &str) -> String {
    coloured(AnsiColor::Green, text)
}

/// Something that nobody knows, or that waits.
pub fn open(text: &str) -> String {
    coloured(AnsiColor::Yellow, text)
}

/// A failure.
pub fn bad(text: &str) -> String {
    coloured(AnsiColor::Red, text)
}

/// Something under way.
pub fn live(text: &str) -> String {
    coloured(AnsiColor::Cyan, text)
}

/// The text without its colours.
#[cfg(test)]
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
