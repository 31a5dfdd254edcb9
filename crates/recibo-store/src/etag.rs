//! The entity tag of a call: the number of its last event, and whether its lease has ended
//! since, which no event may say yet.

use recibo_core::call::Tip;
use recibo_core::time::Time;

/// The tag, without the quotes of the header.
pub fn of(tip: &Tip, now: Time) -> String {
    let mark = if tip.newest.is_expiry_due(now) { "-expired" } else { "" };
    format!("{}{mark}", tip.version)
}

/// Whether an `If-Match` value names the call as it is now: `*`, or a list of tags. A weak tag
/// names nothing here: RFC 9110 13.1.1 wants a strong comparison.
pub fn matches(header: &str, tip: &Tip, now: Time) -> bool {
    let current = of(tip, now);
    let mut tags = header.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.trim_matches('"') == current)
}
