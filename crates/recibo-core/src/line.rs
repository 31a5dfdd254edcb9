//! The canonical line of an event: what is hashed into the log, and what an export writes.
//!
//! Lines are rendered again from stored events, so a version once released is frozen: golden
//! files hold every event type, and a change of any byte needs a new version. A line has the
//! lowest version that knows all its members. Members that do not apply are left out. The schema
//! for readers is `api/events.md`.

use std::fmt::Write as _;

use crate::effect::{IsError, Policy, Rule, Terms, TwinScope};
use crate::event::{Body, Event, Facts, Outcome};
use crate::hash::push_hex;
use crate::id::{CallRef, Labels, Trace};
use crate::json::write_string;
use crate::receipt::Token;
use crate::time::Time;

/// The newest version of the lines that this module writes.
pub const LINE_VERSION: u64 = 2;

/// What an event is beside what happened.
pub struct Header<'a> {
    /// Place in the ledger.
    pub seq: u64,
    /// Ledger time.
    pub at: Time,
    /// Whose event it is, and its place among the events of that namespace.
    pub owner: Option<(&'a str, u64)>,
    /// Random bytes.
    pub salt: &'a [u8; 16],
}

/// Renders an event, without a line feed.
pub fn render(event: &Event) -> String {
    let header = Header {
        seq: event.seq,
        at: event.at,
        owner: event.owner.as_ref().map(|owner| (owner.namespace.as_str(), owner.nseq)),
        salt: &event.salt,
    };
    let mut out = String::with_capacity(768);
    render_to(&mut out, &header, &event.body);
    out
}

/// Appends the line of an event, without a line feed.
pub fn render_to(out: &mut String, header: &Header<'_>, body: &Body) {
    let mut line = Line {
        at: Some(header.at),
        namespace: header.owner.map(|(namespace, _)| namespace),
        nseq: header.owner.map(|(_, nseq)| nseq),
        salt: Some(header.salt),
        seq: Some(header.seq),
        kind: Some(body.type_name()),
        ..Line::default()
    };
    line.body(body);
    line.v = Some(line.version());
    line.write(&mut Object::begin(out));
}

/// All members that a line can have, in canonical order: by the bytes of their names, which
/// are ours and ASCII. What does not apply is `None` or `false`.
#[derive(Default)]
struct Line<'a> {
    age_ms: Option<u64>,
    answer: Option<&'a str>,
    answered: bool,
    at: Option<Time>,
    attempt: Option<u64>,
    by: Option<&'a str>,
    claim_id: Option<&'a str>,
    corrects: Option<u64>,
    duration_ms: Option<u64>,
    effect: Option<&'a str>,
    end: Option<&'a str>,
    error_class: Option<&'a str>,
    expires_at: Option<Time>,
    input_hash: Option<&'a [u8; 32]>,
    is_error: Option<&'a str>,
    key_window_ms: Option<u64>,
    key_windows_void: bool,
    label: Option<&'a str>,
    labels: Option<&'a Labels>,
    last_at: Option<Time>,
    late: bool,
    lease_expires_at: Option<Time>,
    max_attempts: Option<u64>,
    message_id: Option<&'a str>,
    namespace: Option<&'a str>,
    nseq: Option<u64>,
    operation_key: Option<&'a str>,
    output_hash: Option<&'a [u8; 32]>,
    /// Canonical JSON.
    output_summary: Option<&'a str>,
    policy: Option<&'a Policy>,
    provider_ref: Option<&'a str>,
    reason: Option<&'a str>,
    redacted: bool,
    run_id: Option<&'a str>,
    salt: Option<&'a [u8; 16]>,
    scope_id: Option<&'a str>,
    seq: Option<u64>,
    settle_ms: Option<u64>,
    settles: bool,
    source: Option<&'a str>,
    /// `span_id` and `trace_id`.
    trace: Option<&'a Trace>,
    started_at: Option<Time>,
    state: Option<&'a str>,
    status: Option<&'a str>,
    token: Option<&'a Token>,
    tool: Option<&'a str>,
    tool_call_id: Option<&'a str>,
    twin_hash: Option<&'a [u8; 32]>,
    twin_scope: Option<&'a str>,
    /// `type`.
    kind: Option<&'a str>,
    v: Option<u64>,
}

impl<'a> Line<'a> {
    /// The lowest version that knows all members of the line.
    fn version(&self) -> u64 {
        let is_second = self.answered
            || self.by.is_some()
            || self.corrects.is_some()
            || self.is_error.is_some()
            || self.last_at.is_some()
            || self.twin_hash.is_some()
            || self.twin_scope.is_some()
            || self.policy.is_some_and(|policy| policy.rules.iter().any(has_second_members));
        if is_second { LINE_VERSION } else { 1 }
    }

    fn body(&mut self, body: &'a Body) {
        match body {
            Body::ScopeOpened(e) => {
                self.scope_id = Some(e.scope_id.as_str());
                self.label = e.label.as_deref();
                self.expires_at = Some(e.expires_at);
            }
            Body::ScopeClosed { scope_id, end } => {
                self.scope_id = Some(scope_id.as_str());
                self.end = Some(end.as_str());
            }
            Body::Started(e) => {
                self.attempt_of(&e.call, e.attempt);
                self.facts(&e.facts);
                self.claim_id = Some(e.claim_id.as_str());
                self.scope_id = Some(e.scope_id.as_str());
                self.lease_expires_at = Some(e.lease_expires_at);
            }
            Body::Finished(e) => {
                self.attempt_of(&e.call, e.attempt);
                self.outcome(&e.outcome);
                self.late = e.late;
                if let Some(receipt) = &e.receipt {
                    self.scope_id = Some(receipt.scope_id.as_str());
                    self.token = Some(&receipt.token);
                }
            }
            Body::Recorded(e) => {
                self.attempt_of(&e.call, e.attempt);
                self.facts(&e.facts);
                self.outcome(&e.outcome);
                self.started_at = Some(e.started_at);
                self.scope_id = Some(e.scope_id.as_str());
                self.token = e.token.as_ref();
            }
            Body::LeaseExpired { call, attempt } => self.attempt_of(call, *attempt),
            Body::LeaseExtended { call, attempt, lease_expires_at } => {
                self.attempt_of(call, *attempt);
                self.lease_expires_at = Some(*lease_expires_at);
            }
            Body::StatusChecked(e) => {
                self.attempt_of(&e.call, e.attempt);
                self.answer = Some(e.answer.as_str());
                self.source = Some(&e.source);
                self.age_ms = Some(e.age_ms);
                self.provider_ref = e.provider_ref.as_deref();
                self.settles = e.settles;
                self.redacted = e.redacted;
            }
            Body::Resolved(e) => {
                self.call(&e.call);
                self.state = Some(e.state.as_str());
                self.reason = Some(&e.reason);
                self.redacted = e.redacted;
                self.by = e.by.as_deref();
                self.corrects = e.corrects;
            }
            Body::PolicySet { policy } => self.policy = Some(policy),
            Body::Restarted(e) => {
                self.last_at = Some(e.last_at);
                self.key_windows_void = e.key_windows_void;
            }
        }
    }

    fn attempt_of(&mut self, call: &'a CallRef, attempt: u32) {
        self.call(call);
        self.attempt = Some(u64::from(attempt));
    }

    fn call(&mut self, call: &'a CallRef) {
        self.run_id = Some(call.run_id.as_str());
        self.tool_call_id = Some(call.tool_call_id.as_str());
    }

    fn facts(&mut self, facts: &'a Facts) {
        self.tool = Some(facts.tool.as_str());
        self.input_hash = Some(facts.input_hash.as_bytes());
        self.terms(&facts.terms);
        self.operation_key = facts.operation_key.as_ref().map(|key| key.as_str());
        self.message_id = facts.message_id.as_ref().map(|id| id.as_str());
        self.labels = Some(&facts.labels).filter(|labels| !labels.is_empty());
        self.trace = facts.trace.as_ref();
        self.redacted |= facts.redacted;
        self.twin_hash = facts.twin_hash.as_ref().map(|hash| hash.as_bytes());
        self.twin_scope = (facts.twin_scope != TwinScope::Run).then_some(facts.twin_scope.as_str());
    }

    fn terms(&mut self, terms: &Terms) {
        self.effect = Some(terms.effect.as_str());
        self.key_window_ms = terms.key_window_ms;
        self.settle_ms = terms.settle_ms;
        self.max_attempts = terms.max_attempts.map(u64::from);
        self.is_error = terms.is_error.map(IsError::as_str);
    }

    /// A one-shot's outcome comes after its facts, and may bring the message id.
    fn outcome(&mut self, outcome: &'a Outcome) {
        self.status = Some(outcome.status.as_str());
        self.duration_ms = Some(outcome.duration_ms);
        self.output_hash = outcome.output_hash.as_ref().map(|hash| hash.as_bytes());
        self.output_summary = outcome.output_summary.as_deref();
        self.error_class = outcome.error_class.as_ref().map(|class| class.as_str());
        self.provider_ref = outcome.provider_ref.as_deref();
        self.message_id = outcome.message_id.as_deref().or(self.message_id);
        self.redacted |= outcome.redacted;
        self.answered = outcome.answered;
    }

    /// The order of these statements is the order in the line.
    fn write(&self, object: &mut Object<'_>) {
        object.number("age_ms", self.age_ms);
        object.str("answer", self.answer);
        object.flag("answered", self.answered);
        object.time("at", self.at);
        object.number("attempt", self.attempt);
        object.str("by", self.by);
        object.str("claim_id", self.claim_id);
        object.number("corrects", self.corrects);
        object.number("duration_ms", self.duration_ms);
        object.str("effect", self.effect);
        object.str("end", self.end);
        object.str("error_class", self.error_class);
        object.time("expires_at", self.expires_at);
        object.hash("input_hash", self.input_hash);
        object.str("is_error", self.is_error);
        object.number("key_window_ms", self.key_window_ms);
        object.flag("key_windows_void", self.key_windows_void);
        object.str("label", self.label);
        object.with("labels", self.labels, push_labels);
        object.time("last_at", self.last_at);
        object.flag("late", self.late);
        object.time("lease_expires_at", self.lease_expires_at);
        object.number("max_attempts", self.max_attempts);
        object.str("message_id", self.message_id);
        object.str("namespace", self.namespace);
        object.number("nseq", self.nseq);
        object.str("operation_key", self.operation_key);
        object.hash("output_hash", self.output_hash);
        object.with("output_summary", self.output_summary, |out, json| out.push_str(json));
        object.with("policy", self.policy, push_policy);
        object.str("provider_ref", self.provider_ref);
        object.str("reason", self.reason);
        object.flag("redacted", self.redacted);
        object.str("run_id", self.run_id);
        object.hex("salt", self.salt.map(|salt| &salt[..]));
        object.str("scope_id", self.scope_id);
        object.number("seq", self.seq);
        object.number("settle_ms", self.settle_ms);
        object.flag("settles", self.settles);
        object.str("source", self.source);
        object.hex("span_id", self.trace.map(|trace| &trace.span_id[..]));
        object.time("started_at", self.started_at);
        object.str("state", self.state);
        object.str("status", self.status);
        object.with("token", self.token, |out, token| {
            out.push('"');
            token.push_to(out);
            out.push('"');
        });
        object.str("tool", self.tool);
        object.str("tool_call_id", self.tool_call_id);
        object.hex("trace_id", self.trace.map(|trace| &trace.trace_id[..]));
        object.hash("twin_hash", self.twin_hash);
        object.str("twin_scope", self.twin_scope);
        object.str("type", self.kind);
        object.number("v", self.v);
        object.end();
    }
}

fn push_labels(out: &mut String, labels: &Labels) {
    out.push('{');
    for (index, (name, value)) in labels.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_string(out, value);
    }
    out.push('}');
}

/// Whether a rule says what lines of version 1 have no members for.
fn has_second_members(rule: &Rule) -> bool {
    rule.terms.is_error.is_some() || !rule.twin_by.is_empty() || rule.twin_scope != TwinScope::Run
}

/// A policy as canonical JSON, in the form of the API.
pub fn policy_json(policy: &Policy) -> String {
    let mut out = String::new();
    push_policy(&mut out, policy);
    out
}

fn push_policy(out: &mut String, policy: &Policy) {
    out.push_str("{\"tools\":[");
    for (index, rule) in policy.rules.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let mut object = Object::begin(out);
        object.str("effect", Some(rule.terms.effect.as_str()));
        object.str("is_error", rule.terms.is_error.map(IsError::as_str));
        object.number_or_null("key_window_ms", rule.terms.key_window_ms);
        object.str("match", Some(&rule.pattern));
        object.number_or_null("max_attempts", rule.terms.max_attempts.map(u64::from));
        object.number_or_null("settle_ms", rule.terms.settle_ms);
        let names = Some(rule.twin_by.as_slice()).filter(|names| !names.is_empty());
        object.with("twin_by", names, push_names);
        let is_wide = rule.twin_scope != TwinScope::Run;
        object.str("twin_scope", is_wide.then_some(rule.twin_scope.as_str()));
        object.end();
    }
    out.push_str("]}");
}

fn push_names(out: &mut String, names: &[String]) {
    out.push('[');
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
    }
    out.push(']');
}

/// Writes the members of one object; what is absent is left out.
struct Object<'o> {
    out: &'o mut String,
    /// What comes before the next name.
    before: char,
    #[cfg(debug_assertions)]
    last: &'static str,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut String) -> Self {
        Self {
            out,
            before: '{',
            #[cfg(debug_assertions)]
            last: "",
        }
    }

    fn name(&mut self, name: &'static str) -> &mut String {
        #[cfg(debug_assertions)]
        {
            assert!(self.last < name, "{name} stands after {}", self.last);
            self.last = name;
        }
        self.out.push(self.before);
        self.before = ',';
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    fn with<T>(&mut self, name: &'static str, value: Option<T>, push: fn(&mut String, T)) {
        if let Some(value) = value {
            push(self.name(name), value);
        }
    }

    fn number(&mut self, name: &'static str, value: Option<u64>) {
        self.with(name, value, |out, value| {
            // Writing into a String cannot fail.
            let _ = write!(out, "{value}");
        });
    }

    fn number_or_null(&mut self, name: &'static str, value: Option<u64>) {
        match value {
            Some(_) => self.number(name, value),
            None => self.name(name).push_str("null"),
        }
    }

    fn str(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(text) = value {
            write_string(self.name(name), text);
        }
    }

    fn time(&mut self, name: &'static str, value: Option<Time>) {
        self.with(name, value, |out, time| {
            out.push('"');
            time.push_to(out);
            out.push('"');
        });
    }

    fn hex(&mut self, name: &'static str, value: Option<&[u8]>) {
        if let Some(bytes) = value {
            let out = self.name(name);
            out.push('"');
            push_hex(out, bytes);
            out.push('"');
        }
    }

    fn hash(&mut self, name: &'static str, value: Option<&[u8; 32]>) {
        if let Some(bytes) = value {
            let out = self.name(name);
            out.push_str("\"sha256:");
            push_hex(out, bytes);
            out.push('"');
        }
    }

    fn flag(&mut self, name: &'static str, set: bool) {
        if set {
            self.name(name).push_str("true");
        }
    }

    fn end(&mut self) {
        self.out.push('}');
    }
}
