//! The rows of one call: one per attempt, and what is known beyond its first outcome.

use recibo_api::answer::Record;
use recibo_core::status::AttemptStatus;
use recibo_core::time::Time;
use textwrap::core::display_width;

use crate::layout::{self, View};
use crate::{duration, paint};

/// The longest bar.
const BAR_WIDTH: usize = 20;
/// A shorter one says nothing.
const BAR_WIDTH_MIN: usize = 6;
/// A bar that begins with a part of a cell.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Of a row: the status and all gaps.
const FIXED_WIDTH: usize = 27;

/// All attempts of a call.
pub fn rows(records: &[Record], longest_ms: u64, view: View) -> String {
    let day = records.first().map(|record| record.started_at.0);
    let stamps: Vec<_> = records.iter().map(|record| stamp(record.started_at.0, day)).collect();
    let stamp_width = stamps.iter().map(String::len).max().unwrap_or(0);
    let number_width = records.len().to_string().len();
    let took = |record: &Record| record.duration_ms.map(duration::in_words).unwrap_or_default();
    // Durations have one width in all calls of a run, but for the few that are longer.
    let took_width = records.iter().map(|record| took(record).len()).fold(8, usize::max);
    let used = FIXED_WIDTH + number_width + stamp_width + took_width;
    let room = view.width.columns().saturating_sub(used);
    let bar_width = if room < BAR_WIDTH_MIN { 0 } else { room.min(BAR_WIDTH) };
    // Where the details of an attempt stand.
    let indent = format!("      {:number_width$}", "");
    let mut text = String::new();
    for (record, stamp) in records.iter().zip(stamps) {
        let line = format!(
            "  {}  {}  {stamp:stamp_width$}  {} {:>took_width$}",
            paint::faint(&format!("#{:<number_width$}", record.attempt)),
            status(record.status.0),
            bar(record.duration_ms, longest_ms, bar_width),
            took(record),
        );
        let note = note(record, view.now);
        let fits = display_width(&line) + 2 + display_width(&note) <= view.width.columns();
        if note.is_empty() || fits {
            text.push_str(&format!("{}\n", format!("{line}  {note}").trim_end()));
        } else {
            text.push_str(&format!("{}\n", line.trim_end()));
            text.push_str(&layout::prose(&format!("{indent}└ "), &note, view.width));
        }
        for detail in details(record, day) {
            text.push_str(&layout::prose(&format!("{indent}└ "), &detail, view.width));
        }
    }
    text
}

fn status(status: AttemptStatus) -> String {
    let text = format!("{} {:<15}", symbol(status), status.as_str());
    match status {
        AttemptStatus::Ok => paint::good(&text),
        AttemptStatus::Started => paint::live(&text),
        AttemptStatus::Timeout | AttemptStatus::Unknown | AttemptStatus::RetryableError => {
            paint::open(&text)
        }
        AttemptStatus::TerminalError => paint::bad(&text),
    }
}

fn symbol(status: AttemptStatus) -> char {
    match status {
        AttemptStatus::Started => '…',
        AttemptStatus::Ok => '✓',
        AttemptStatus::Timeout => '◷',
        AttemptStatus::RetryableError => '↻',
        AttemptStatus::TerminalError => '✗',
        AttemptStatus::Unknown => '?',
    }
}

fn bar(duration_ms: Option<u64>, longest_ms: u64, width: usize) -> String {
    let Some(ms) = duration_ms.filter(|_| width > 0) else { return " ".repeat(width) };
    // Anything that took time shows.
    let cells = u64::try_from(width).unwrap_or(u64::MAX);
    let eighths = (ms.saturating_mul(cells * 8) / longest_ms.max(1)).clamp(1, cells * 8);
    let full = "█".repeat(usize::try_from(eighths / 8).unwrap_or(0));
    let bar = format!("{full}{}", EIGHTHS[(eighths % 8) as usize]);
    let rest = width - bar.chars().count();
    format!("{}{:rest$}", paint::faint(&bar), "")
}

/// What stands behind the bar.
fn note(record: &Record, now: Time) -> String {
    if let Some(class) = &record.error_class {
        let silent = record.outcomes.is_empty();
        return match record.lease_expires_at {
            Some(end) if silent => format!("{class}: no report until {}", stamp(end.0, None)),
            _ => class.clone(),
        };
    }
    match record.lease_expires_at {
        Some(end) if record.status.0 == AttemptStatus::Started => {
            format!("lease ends in {}", duration::in_words(end.0.ms_since(now)))
        }
        _ => String::new(),
    }
}

/// Further outcomes, status checks, who settled it, the token.
fn details(record: &Record, day: Option<Time>) -> Vec<String> {
    let mut lines = Vec::new();
    let is_plain = record.outcomes.len() == 1 && !record.outcomes[0].late;
    if !is_plain {
        for outcome in &record.outcomes {
            let late = if outcome.late { paint::open("late ") } else { String::new() };
            let word = outcome.status.0.as_str();
            lines.push(format!("{}  {late}report: {word}", stamp(outcome.at.0, day)));
        }
    }
    for check in &record.checks {
        let counted = if check.counted { "" } else { " (settled nothing)" };
        let (at, answer) = (stamp(check.at.0, day), check.answer.0.as_str());
        lines.push(format!("{at}  status check: {answer}{counted}, from {}", check.source));
    }
    if let Some(by) = record.settled_by {
        let who = match by.0 {
            recibo_core::status::SettledBy::StatusCheck => "a status check",
            recibo_core::status::SettledBy::Resolution => "an operator",
        };
        lines.push(format!("settled by {who}"));
    }
    if let Some(swept) = &record.swept {
        lines.push(format!("details swept {}", full_stamp(swept.at.0)));
    }
    if let Some(provider_ref) = &record.provider_ref {
        lines.push(format!("provider's reference {provider_ref}"));
    }
    if let Some(token) = &record.token {
        lines.push(paint::faint(token));
    }
    lines
}

/// The time of day; with the date where it is another day than the reader sees already.
fn stamp(time: Time, day: Option<Time>) -> String {
    let full = full_stamp(time);
    let is_same_day = day.is_some_and(|day| full_stamp(day)[..10] == full[..10]);
    if is_same_day { full[11..].to_owned() } else { full }
}

/// `2026-09-13 02:00:00.000`.
pub fn full_stamp(time: Time) -> String {
    time.to_string().replace('T', " ").replace('Z', "")
}
