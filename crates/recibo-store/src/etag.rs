//! The entity tag of a call: the number of its last event, and whether its lease has ended
//! since, which no event may say yet.

use recibo_core::call::Tip;
use recibo_core::time::Time;

/// The tag, without the quotes of the header.
pub fn of(tip: &Tip, now: Time) -> String {
    let mark = if tip.newest.is_expiry_due(now) { "-expired" } else { "" };
    format!("{}{mark}", tip.version)
}

/// Whether an `If-Match` or `If-None-Match` value names the call as it is now: `*`, or a list
/// of quoted tags. `If-None-Match` compares weakly, so `W/` is skipped.
pub fn matches(header: &str, tip: &Tip, now: Time) -> bool {
    let current = of(tip, now);
    header
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/").trim_matches('"') == current)
}
