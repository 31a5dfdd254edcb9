//! Where the receipt goes in a result. One place of the text changes; nothing is written anew.

use clap::ValueEnum;
use recibo_core::json::write_string;

use super::answer::Success;
use super::message::{Members, elements, place};

/// The member of `_meta` that holds the token.
const META: &str = "recibo/receipt";

/// Where the receipt of a success goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Placement {
    /// One more text item of the result, for the model
    Item,
    /// The member `recibo/receipt` of the result's `_meta`, for the host
    Meta,
    /// Nowhere: the receipt is in the ledger only
    None,
}

impl Placement {
    /// The message with the receipt; `None` where it takes none.
    pub fn put(self, text: &str, success: &Success, receipt_line: &str) -> Option<String> {
        let raw = &text[success.at.clone()];
        let (at, part) = match self {
            Self::Item => item(text, raw, receipt_line)?,
            Self::Meta => meta(text, raw, receipt_line)?,
            Self::None => return None,
        };
        let mut with = String::with_capacity(text.len() + part.len());
        with.push_str(&text[..at]);
        with.push_str(&part);
        with.push_str(&text[at..]);
        Some(with)
    }
}

/// A place in the message, and what comes there.
type Insertion = (usize, String);

fn item(text: &str, raw: &str, receipt_line: &str) -> Option<Insertion> {
    let result = Members::of(raw)?;
    let mut item = r#"{"type":"text","text":"#.to_owned();
    write_string(&mut item, receipt_line);
    item.push('}');
    match result.get("content") {
        // What is no list of items takes none.
        Some(content) => {
            let comma = if elements(content)?.is_empty() { "" } else { "," };
            Some((place(text, content).end - 1, format!("{comma}{item}")))
        }
        None => Some(first_member(text, raw, &result, &format!(r#""content":[{item}]"#))),
    }
}

fn meta(text: &str, raw: &str, receipt_line: &str) -> Option<Insertion> {
    let result = Members::of(raw)?;
    let token = receipt_line.strip_prefix("[receipt: ").and_then(|rest| rest.strip_suffix(']'));
    let mut member = format!("\"{META}\":");
    write_string(&mut member, token.unwrap_or(receipt_line));
    if result.ambiguous(&["_meta"]).is_some() {
        return None;
    }
    match result.get("_meta") {
        Some(raw) => {
            let meta = Members::of(raw)?;
            meta.get(META).is_none().then(|| first_member(text, raw, &meta, &member))
        }
        None => Some(first_member(text, raw, &result, &format!(r#""_meta":{{{member}}}"#))),
    }
}

fn first_member(text: &str, raw: &str, object: &Members<'_>, member: &str) -> Insertion {
    let comma = if object.is_empty() { "" } else { "," };
    (place(text, raw).start + 1, format!("{member}{comma}"))
}

#[cfg(test)]
mod tests {
    use super::super::answer::Reading;
    use super::*;

    fn put(placement: Placement, text: &str) -> Option<String> {
        let Reading::Success(success) = Reading::of_call(text, &Members::of(text).unwrap()) else {
            panic!("{text}");
        };
        placement.put(text, &success, "[receipt: r]")
    }

    #[test]
    fn the_receipt_is_one_more_item_and_nothing_else_changes() {
        const ITEM: &str = r#"{"type":"text","text":"[receipt: r]"}"#;
        for (before, after) in [
            (
                r#"{"id":1, "result":{"content":[{"a":1e0} ],"z":2}} "#,
                r#"{"id":1, "result":{"content":[{"a":1e0} ,ITEM],"z":2}} "#,
            ),
            (r#"{"result":{"content":[]},"id":1}"#, r#"{"result":{"content":[ITEM]},"id":1}"#),
            (r#"{"id":1,"result":{ "x":1}}"#, r#"{"id":1,"result":{"content":[ITEM], "x":1}}"#),
            (r#"{"id":1,"result":{}}"#, r#"{"id":1,"result":{"content":[ITEM]}}"#),
        ] {
            assert_eq!(put(Placement::Item, before), Some(after.replace("ITEM", ITEM)));
        }
        assert_eq!(put(Placement::Item, r#"{"id":1,"result":{"content":"text"}}"#), None);
    }

    #[test]
    fn m18_the_receipt_goes_into_meta_or_nowhere() {
        for (before, after) in [
            (r#"{"result":{}}"#, Some(r#"{"result":{"_meta":{"recibo/receipt":"r"}}}"#)),
            (
                r#"{"result":{ "content":[]}}"#,
                Some(r#"{"result":{"_meta":{"recibo/receipt":"r"}, "content":[]}}"#),
            ),
            (
                r#"{"result":{"content":[],"_meta":{"a":1}}}"#,
                Some(r#"{"result":{"content":[],"_meta":{"recibo/receipt":"r","a":1}}}"#),
            ),
            (r#"{"result":{"_meta":{}}}"#, Some(r#"{"result":{"_meta":{"recibo/receipt":"r"}}}"#)),
            (r#"{"result":{"_meta":7}}"#, None),
            (r#"{"result":{"_meta":{"recibo/receipt":"x"}}}"#, None),
        ] {
            assert_eq!(put(Placement::Meta, before).as_deref(), after, "{before}");
            assert_eq!(put(Placement::None, before), None);
        }
    }
}
