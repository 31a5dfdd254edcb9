//! The summary of a result that is kept when the caller gives none: its shape, not its
//! values. Names of members are kept only if they look like identifiers; any other name may
//! itself be data.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::{json, secret};

/// Longest summary, in bytes of canonical JSON.
pub const SUMMARY_BYTES_MAX: usize = 2048;
/// Most member names in a summary.
pub const NAMES_MAX: usize = 32;
/// Longest member name that is taken for an identifier, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// What the names may take together, each with two quotes and a comma: it leaves 128 bytes
/// for `{"bytes":..,"fields":[],"items":..,"other_fields":..}` with 20 digits each.
const NAMES_BYTES_MAX: usize = SUMMARY_BYTES_MAX - 128;

/// The shape of a result text as canonical JSON of at most [`SUMMARY_BYTES_MAX`] bytes:
/// - a JSON object: `{"bytes": n, "fields": [names]}`,
/// - a JSON array: `{"bytes": n, "fields": [names of its elements], "items": n}`,
/// - other text, JSON scalars too: `{"bytes": n, "chars": n, "lines": n}`.
///
/// `bytes` are UTF-8 bytes of the text, `chars` Unicode scalar values. Names that do not
/// look like identifiers or hold a credential, and those beyond [`NAMES_MAX`], are counted
/// in `other_fields`, each once. Only the top level is looked at.
///
/// A result that is no JSON string is passed as its canonical JSON.
pub fn shape(text: &str) -> String {
    let bytes = text.len();
    // Only these can be an object or array; everything else is described without parsing.
    let nested = text.trim_start_matches([' ', '\n', '\r', '\t']).starts_with(['{', '[']);
    if nested && let Ok(top) = Top::read(text) {
        let (fields, others) = top.names();
        let items = top.items.map_or(String::new(), |n| format!(",\"items\":{n}"));
        return format!("{{\"bytes\":{bytes},\"fields\":[{fields}]{items}{others}}}");
    }
    let (chars, lines) = (text.chars().count(), text.lines().count());
    format!("{{\"bytes\":{bytes},\"chars\":{chars},\"lines\":{lines}}}")
}

/// What the top level of an object or array holds.
#[derive(Default)]
struct Top<'a> {
    identifiers: BTreeSet<Cow<'a, str>>,
    others: BTreeSet<Cow<'a, str>>,
    /// The number of elements, of an array.
    items: Option<usize>,
}

impl<'a> Top<'a> {
    fn read(text: &'a str) -> Result<Self, ()> {
        let mut top = Self::default();
        // Elements of one array mostly have the same names in the same places.
        let mut usual: Vec<Cow<'a, str>> = Vec::new();
        top.items = json::top_names(text, |name, place| {
            match usual.get_mut(place) {
                Some(known) if *known == name => return,
                Some(known) => known.clone_from(&name),
                None => usual.push(name.clone()),
            }
            top.add(name);
        })?;
        Ok(top)
    }

    fn add(&mut self, name: Cow<'a, str>) {
        if is_identifier(&name) {
            self.identifiers.insert(name);
        } else {
            self.others.insert(name);
        }
    }

    /// The inside of `fields`, and the member `other_fields` if any name is not shown.
    /// Identifiers are ASCII: their byte order is the canonical order.
    fn names(&self) -> (String, String) {
        let mut fields = String::new();
        let mut shown = 0;
        let joined: Vec<&str> = self.identifiers.iter().map(|name| &**name).collect();
        let are_clean = secret::are_clean_names(&joined.join(","));
        for name in &self.identifiers {
            let fits = shown < NAMES_MAX && fields.len() + name.len() + 3 <= NAMES_BYTES_MAX;
            if fits && (are_clean || secret::finds(name).is_none()) {
                fields.push_str(if shown == 0 { "" } else { "," });
                json::write_string(&mut fields, name);
                shown += 1;
            }
        }
        let hidden = self.others.len() + self.identifiers.len() - shown;
        let others =
            if hidden == 0 { String::new() } else { format!(",\"other_fields\":{hidden}") };
        (fields, others)
    }
}

/// `[A-Za-z_][A-Za-z0-9_.-]{0,63}`
fn is_identifier(name: &str) -> bool {
    let first = name.bytes().next();
    name.len() <= NAME_BYTES_MAX
        && first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_shows_names_and_sizes_but_no_values() {
        let cases = [
            ("", r#"{"bytes":0,"chars":0,"lines":0}"#),
            ("día ☀\nx", r#"{"bytes":10,"chars":7,"lines":2}"#),
            ("null", r#"{"bytes":4,"chars":4,"lines":1}"#),
            ("\"{}\"", r#"{"bytes":4,"chars":4,"lines":1}"#),
            ("{}", r#"{"bytes":2,"fields":[]}"#),
            (r#" {"b":{"x":[1,{"y":2}]},"a":"}\"]"}"#, r#"{"bytes":35,"fields":["a","b"]}"#),
            (
                r#"{"a":1,"a b":2,"7":3,"é":4,"":5}"#,
                r#"{"bytes":33,"fields":["a"],"other_fields":4}"#,
            ),
            (r#"{"\u0061b":1}"#, r#"{"bytes":13,"fields":["ab"]}"#),
            ("[]", r#"{"bytes":2,"fields":[],"items":0}"#),
            (r#"[1,"a",[2,3],null]"#, r#"{"bytes":18,"fields":[],"items":4}"#),
            (
                r#"[{"id":1,"v":[{}]},{"v":2,"id":3},[4,{"no":1}],{"at":{},"x y":1},{"x y":2}]"#,
                r#"{"bytes":75,"fields":["at","id","v"],"items":5,"other_fields":1}"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"bytes":13,"chars":13,"lines":1}"#),
            ("{not json}", r#"{"bytes":10,"chars":10,"lines":1}"#),
        ];
        for (text, want) in cases {
            assert_eq!(shape(text), want, "{text}");
            assert_eq!(json::canonicalize(want.as_bytes()).as_deref(), Ok(want));
        }
    }

    #[test]
    fn a_name_that_is_a_credential_is_only_counted() {
        let text = format!("{{\"AKIA{}\":1,\"ok\":2}}", "Q7".repeat(8));
        assert!(shape(&text).ends_with(r#""fields":["ok"],"other_fields":1}"#));
    }

    #[test]
    fn a_summary_stays_within_its_limits() {
        let object = |count: usize, width: usize| {
            let members: Vec<_> = (0..count).map(|i| format!("\"n{i:0width$}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        let few = shape(&object(33, 2));
        assert!(few.contains("\"n31\"") && few.ends_with(",\"other_fields\":1}"), "{few}");
        assert!(!shape(&object(32, 2)).contains("other_fields"));
        let wide = shape(&format!("[{}]", object(40, 63)));
        assert!(wide.len() <= SUMMARY_BYTES_MAX && wide.len() > 1900, "{}", wide.len());
        assert!(wide.ends_with(",\"items\":1,\"other_fields\":12}"), "{wide}");
        assert!(shape(&object(1, 64)).ends_with("\"fields\":[],\"other_fields\":1}"));
    }
}
