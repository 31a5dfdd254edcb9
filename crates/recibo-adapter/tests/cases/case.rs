//! The form of the table. Unknown members are refused, so that no case asks in vain.

use std::collections::BTreeMap;

use recibo_adapter::Effect;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    #[serde(rename = "about")]
    _about: Value,
    pub answers: BTreeMap<String, Answer>,
    pub cases: Vec<Case>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub ledger: Option<String>,
    #[serde(default)]
    pub contract: Contract,
    #[serde(default)]
    pub settings: Knobs,
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
    pub calls: Vec<Call>,
    pub respond: Option<Respond>,
    pub system_prompt: Option<bool>,
    pub unreceipted: Option<u64>,
    pub recorded: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contract {
    pub effect: Option<Word>,
    pub key_window_ms: Option<u64>,
    pub settle_ms: Option<u64>,
    pub twins_advise: bool,
    pub twin_window_ms: Option<u64>,
    pub lease_ms: Option<u64>,
    pub no_timeout: bool,
    pub timeout_ms: Option<u64>,
    pub wait_ms: u64,
    pub attempts_max: Option<u32>,
    pub shown: Option<Vec<String>>,
    pub masked: Vec<String>,
    pub summarized: Vec<String>,
    pub status: Option<Vec<String>>,
    pub late_answers: bool,
}

/// An effect by its word.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub struct Word(pub Effect);

impl TryFrom<String> for Word {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Effect::parse(&text).map(Self).ok_or(text)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Knobs {
    pub enabled: bool,
    pub show_in_response: bool,
    pub inject_system_prompt: bool,
    pub fail_open: bool,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            enabled: true,
            show_in_response: false,
            inject_system_prompt: false,
            fail_open: false,
        }
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    pub request: String,
    pub body: Option<Value>,
    pub answer: Option<String>,
    pub status: Option<u16>,
    pub with: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    #[serde(default)]
    pub call: Asked,
    pub tool: Vec<Behaviour>,
    #[serde(default)]
    pub dropped: bool,
    pub text: Option<String>,
    pub ended: Option<String>,
    pub attempts: Option<u32>,
    pub keys: Option<Vec<Option<String>>>,
    pub status_questions: Option<usize>,
    pub twin: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    pub id: Option<String>,
    pub arguments: Option<String>,
    pub arguments_of_x: Option<usize>,
    pub operation_key: Option<String>,
    pub message_id: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub traceparent: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    pub text: Option<String>,
    pub json: Option<String>,
    pub text_of_x: Option<usize>,
    pub provider_ref: Option<String>,
    pub message_id: Option<String>,
    pub fails: Option<String>,
    pub class: Option<String>,
    pub message: Option<String>,
    pub answered: bool,
    pub after_exchanges: usize,
    pub hangs: bool,
    pub late: Option<Box<Behaviour>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    pub text: String,
    pub gives: String,
}
