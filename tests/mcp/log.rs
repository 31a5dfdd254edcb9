//! What passed between a client and whatever stands behind it, line by line.

use std::path::Path;

use recibo_core::hash::OutputHash;
use recibo_core::json::canonicalize;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const ITEM_START: &str = r#"{"type":"text","text":"[receipt: zc-receipt-"#;
const ITEM_END: &str = r#"]"}"#;

/// The lines of a session, and the receipts that were found in results.
pub struct Log {
    /// What the client sent, in order.
    pub sent: Vec<String>,
    /// What the client got, without receipts, sorted: answers to calls that run side by side
    /// come in any order.
    pub got: Vec<String>,
    /// The successes with a receipt.
    pub receipts: Vec<Receipted>,
}

/// A result with a receipt.
pub struct Receipted {
    /// The id of the request, as JSON.
    pub id: String,
    /// The receipt.
    pub token: String,
    /// What must have been hashed.
    pub output_hash: String,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: &'a RawValue,
}

impl Log {
    /// Reads what `tap.py` wrote.
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("a log of text");
        let mut log = Self { sent: Vec::new(), got: Vec::new(), receipts: Vec::new() };
        for line in text.lines() {
            match line.split_at(1) {
                (">", line) => log.sent.push(line.to_owned()),
                ("<", line) => log.take(line),
                other => panic!("no line of a tap: {other:?}"),
            }
        }
        log.got.sort();
        log
    }

    fn take(&mut self, line: &str) {
        let Some(start) = line.rfind(ITEM_START) else {
            self.got.push(line.to_owned());
            return;
        };
        let end = start + line[start..].find(ITEM_END).expect("an item ends") + ITEM_END.len();
        let token_start = start + ITEM_START.len() - "zc-receipt-".len();
        let token = line[token_start..end - ITEM_END.len()].to_owned();
        let before = line[..start].strip_suffix(',').unwrap_or(&line[..start]);
        let bare = format!("{before}{}", &line[end..]);
        let answer: Answer<'_> = serde_json::from_str(&bare).expect("an answer");
        self.receipts.push(Receipted {
            id: answer.id.get().to_owned(),
            token,
            output_hash: OutputHash::of_text(&hashed(answer.result.get())).to_string(),
        });
        self.got.push(bare);
    }

    /// Ids of the tool calls that were sent, as JSON.
    pub fn calls(&self) -> Vec<String> {
        let messages = self.sent.iter().map(|line| line.parse::<Value>().expect("JSON"));
        let calls = messages.filter(|message| message["method"] == "tools/call");
        calls.map(|message| message["id"].to_string()).collect()
    }

    /// The answer to a request, without a receipt; null if none came.
    pub fn answer(&self, id: &str) -> Value {
        let id: Value = id.parse().expect("JSON");
        let messages = self.got.iter().map(|line| line.parse::<Value>().expect("JSON"));
        let mut answers =
            messages.filter(|message| message["id"] == id && message.get("method").is_none());
        answers.next().unwrap_or_default()
    }
}

/// The text of a result that is one text item and nothing else, otherwise its canonical JSON.
fn hashed(result: &str) -> String {
    let value: Value = serde_json::from_str(result).expect("a result");
    let members = value.as_object().expect("an object");
    let is_bare = members.iter().all(|(name, value)| match name.as_str() {
        "content" | "_meta" | "resultType" => true,
        "isError" => value == false,
        _ => value.is_null(),
    });
    match value["content"].as_array().map(Vec::as_slice) {
        Some([item]) if is_bare && item["type"] == "text" => {
            item["text"].as_str().expect("text").to_owned()
        }
        _ => canonicalize(result.as_bytes()).expect("a canonical form"),
    }
}
