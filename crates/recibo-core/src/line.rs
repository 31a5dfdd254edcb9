//! The canonical line of an event: what is hashed into the log, and what an export writes.
//!
//! Lines are rendered again from stored events, so a version once released is frozen: golden
//! files hold every event type, and a change of any byte needs a new version. Members that do
//! not apply are left out. The schema for readers is `api/events.md`.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::effect::{Policy, Terms};
use crate::event::{Body, Event, Facts, Outcome};
use crate::hash::hex;
use crate::id::{CallRef, Labels};
use crate::json::write_string;

/// Version of the lines that this module writes.
pub const LINE_VERSION: u64 = 1;

/// Renders an event, without a line feed.
pub fn render(event: &Event) -> String {
    let mut line = Members::new();
    line.number("seq", event.seq);
    line.number("nseq", event.nseq);
    line.str("type", event.body.type_name());
    line.text("at", event.at);
    line.str("namespace", event.namespace.as_str());
    line.number("v", LINE_VERSION);
    line.text("salt", hex(&event.salt));
    body(&mut line, &event.body);
    line.finish()
}

fn body<'a>(line: &mut Members<'a>, body: &'a Body) {
    match body {
        Body::ScopeOpened(e) => {
            line.str("scope_id", e.scope_id.as_str());
            line.optional("label", e.label.as_deref());
            line.text("expires_at", e.expires_at);
        }
        Body::ScopeClosed { scope_id, end } => {
            line.str("scope_id", scope_id.as_str());
            line.str("end", end.as_str());
        }
        Body::Started(e) => {
            call(line, &e.call, e.attempt);
            facts(line, &e.facts, None, e.facts.redacted);
            line.str("claim_id", e.claim_id.as_str());
            line.str("scope_id", e.scope_id.as_str());
            line.text("lease_expires_at", e.lease_expires_at);
        }
        Body::Finished(e) => {
            call(line, &e.call, e.attempt);
            outcome(line, &e.outcome);
            line.optional("message_id", e.outcome.message_id.as_deref());
            line.flag("redacted", e.outcome.redacted);
            line.flag("late", e.late);
            if let Some(receipt) = &e.receipt {
                line.str("scope_id", receipt.scope_id.as_str());
                line.text("token", receipt.token);
            }
        }
        Body::Recorded(e) => {
            call(line, &e.call, e.attempt);
            let redacted = e.facts.redacted || e.outcome.redacted;
            facts(line, &e.facts, e.outcome.message_id.as_deref(), redacted);
            outcome(line, &e.outcome);
            line.text("started_at", e.started_at);
            line.str("scope_id", e.scope_id.as_str());
            if let Some(token) = &e.token {
                line.text("token", token);
            }
        }
        Body::LeaseExpired { call: target, attempt } => call(line, target, *attempt),
        Body::LeaseExtended { call: target, attempt, lease_expires_at } => {
            call(line, target, *attempt);
            line.text("lease_expires_at", lease_expires_at);
        }
        Body::StatusChecked(e) => {
            call(line, &e.call, e.attempt);
            line.str("answer", e.answer.as_str());
            line.str("source", &e.source);
            line.number("age_ms", e.age_ms);
            line.optional("provider_ref", e.provider_ref.as_deref());
            line.flag("settles", e.settles);
            line.flag("redacted", e.redacted);
        }
        Body::Resolved { call: target, state, reason, redacted } => {
            line.str("run_id", target.run_id.as_str());
            line.str("tool_call_id", target.tool_call_id.as_str());
            line.str("state", state.as_str());
            line.str("reason", reason);
            line.flag("redacted", *redacted);
        }
        Body::PolicySet { policy } => line.raw("policy", policy_json(policy)),
    }
}

fn call<'a>(line: &mut Members<'a>, call: &'a CallRef, attempt: u32) {
    line.str("run_id", call.run_id.as_str());
    line.str("tool_call_id", call.tool_call_id.as_str());
    line.number("attempt", u64::from(attempt));
}

/// What a call is; a one-shot's outcome may bring the message id.
fn facts<'a>(
    line: &mut Members<'a>,
    facts: &'a Facts,
    message_id: Option<&'a str>,
    redacted: bool,
) {
    line.str("tool", facts.tool.as_str());
    line.text("input_hash", facts.input_hash);
    terms(line, &facts.terms);
    line.optional("operation_key", facts.operation_key.as_ref().map(|key| key.as_str()));
    let own_message_id = facts.message_id.as_ref().map(|id| id.as_str());
    line.optional("message_id", message_id.or(own_message_id));
    if !facts.labels.is_empty() {
        line.raw("labels", labels_json(&facts.labels));
    }
    if let Some(trace) = &facts.trace {
        line.text("trace_id", hex(&trace.trace_id));
        line.text("span_id", hex(&trace.span_id));
    }
    line.flag("redacted", redacted);
}

fn terms(line: &mut Members<'_>, terms: &Terms) {
    line.str("effect", terms.effect.as_str());
    line.optional_number("key_window_ms", terms.key_window_ms);
    line.optional_number("settle_ms", terms.settle_ms);
    line.optional_number("max_attempts", terms.max_attempts.map(u64::from));
}

/// Everything but `message_id` and `redacted`, which a one-shot shares with its facts.
fn outcome<'a>(line: &mut Members<'a>, outcome: &'a Outcome) {
    line.str("status", outcome.status.as_str());
    line.number("duration_ms", outcome.duration_ms);
    if let Some(hash) = &outcome.output_hash {
        line.text("output_hash", hash);
    }
    if let Some(summary) = &outcome.output_summary {
        line.raw("output_summary", summary.as_str());
    }
    line.optional("error_class", outcome.error_class.as_ref().map(|class| class.as_str()));
    line.optional("provider_ref", outcome.provider_ref.as_deref());
}

fn labels_json(labels: &Labels) -> String {
    let mut out = String::from("{");
    for (index, (name, value)) in labels.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(&mut out, name);
        out.push(':');
        write_string(&mut out, value);
    }
    out.push('}');
    out
}

/// A policy as canonical JSON, in the form of the API.
pub fn policy_json(policy: &Policy) -> String {
    let number = |value: Option<u64>| value.map_or_else(|| "null".to_owned(), |n| n.to_string());
    let rules: Vec<String> = policy
        .rules
        .iter()
        .map(|rule| {
            let mut object = Members::new();
            object.str("match", &rule.pattern);
            object.str("effect", rule.terms.effect.as_str());
            object.raw("key_window_ms", number(rule.terms.key_window_ms));
            object.raw("settle_ms", number(rule.terms.settle_ms));
            object.raw("max_attempts", number(rule.terms.max_attempts.map(u64::from)));
            object.finish()
        })
        .collect();
    format!("{{\"tools\":[{}]}}", rules.join(","))
}

/// Members of one canonical object. Names are ours and ASCII, so sorting bytes is sorting
/// UTF-16 code units.
struct Members<'a>(Vec<(&'static str, Value<'a>)>);

enum Value<'a> {
    Number(u64),
    Str(&'a str),
    /// Already canonical JSON.
    Raw(Cow<'a, str>),
    True,
}

impl<'a> Members<'a> {
    fn new() -> Self {
        Self(Vec::with_capacity(32))
    }

    fn number(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Value::Number(value)));
    }

    fn optional_number(&mut self, name: &'static str, value: Option<u64>) {
        if let Some(value) = value {
            self.number(name, value);
        }
    }

    fn str(&mut self, name: &'static str, value: &'a str) {
        self.0.push((name, Value::Str(value)));
    }

    fn optional(&mut self, name: &'static str, value: Option<&'a str>) {
        if let Some(value) = value {
            self.str(name, value);
        }
    }

    /// A value whose text needs no escapes.
    fn text(&mut self, name: &'static str, value: impl std::fmt::Display) {
        self.raw(name, format!("\"{value}\""));
    }

    fn raw(&mut self, name: &'static str, json: impl Into<Cow<'a, str>>) {
        self.0.push((name, Value::Raw(json.into())));
    }

    /// Present only if set.
    fn flag(&mut self, name: &'static str, set: bool) {
        if set {
            self.0.push((name, Value::True));
        }
    }

    fn finish(mut self) -> String {
        self.0.sort_unstable_by_key(|(name, _)| *name);
        let mut out = String::with_capacity(640);
        for (index, (name, value)) in self.0.iter().enumerate() {
            out.push(if index == 0 { '{' } else { ',' });
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
            match value {
                Value::Number(number) => {
                    // Writing into a String cannot fail.
                    let _ = write!(out, "{number}");
                }
                Value::Str(text) => write_string(&mut out, text),
                Value::Raw(json) => out.push_str(json),
                Value::True => out.push_str("true"),
            }
        }
        out.push('}');
        out
    }
}
