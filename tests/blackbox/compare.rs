//! Holds answers against the model. Every member that the contract determines is compared.

use serde_json::{Value, json};

use super::clock::{ms_of, text};
use super::model::{Attempt, Call, Decision, Fold, Grant, Ledger, Retry, State, Status};
use super::model::{Terms, idempotency_key};

/// Differences that one answer shows.
#[derive(Default)]
pub struct Diff(Vec<String>);

impl Diff {
    /// Notes a difference unless the values agree.
    pub fn eq(&mut self, what: &str, want: impl Into<Value>, got: &Value) {
        let want = want.into();
        if want != *got {
            self.0.push(format!("{what}: the contract says {want}, the answer {got}"));
        }
    }

    /// Notes a difference unless it holds.
    pub fn holds(&mut self, what: &str, holds: bool, got: &Value) {
        if !holds {
            self.0.push(format!("{what}: not {got}"));
        }
    }

    /// All differences, or none.
    pub fn result(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.join("\n")) }
    }
}

/// A time, or null.
fn time(ms: Option<u64>) -> Value {
    ms.map_or(Value::Null, |ms| json!(text(ms)))
}

/// Holds a whole call against the model.
pub fn call(diff: &mut Diff, ledger: &Ledger, call: &Call, got: &Value) {
    let fold = ledger.fold(call);
    let mut eq = |name: &str, want: Value| diff.eq(name, want, &got[name]);
    eq("run_id", json!(call.key.run));
    eq("tool_call_id", json!(call.key.id));
    eq("tool", json!(call.tool));
    eq("effect", json!(call.terms.effect.word()));
    eq("state", json!(fold.state(ledger.now).word()));
    eq("conflict", json!(fold.conflict));
    eq("idempotency_key", json!(idempotency_key("default", &call.key.run, &call.key.id)));
    eq("operation_key", json!(call.operation_key));
    eq("input_hash", json!(call.input_hash));
    terms(diff, ledger, Some(call), &call.terms, &got["terms"]);
    resolutions(diff, call, &got["resolutions"]);
    let Some(records) = got["attempts"].as_array() else {
        return diff.holds("attempts", false, &got["attempts"]);
    };
    diff.eq("attempts", fold.attempts.len(), &json!(records.len()));
    for (attempt, got) in fold.attempts.iter().zip(records) {
        record(diff, ledger, call, attempt, got);
    }
}

/// Holds frozen terms against the model. `known` is null for a call that is granted first.
pub fn terms(diff: &mut Diff, ledger: &Ledger, known: Option<&Call>, want: &Terms, got: &Value) {
    diff.eq("terms.key_window_ms", json!(want.key_window_ms), &got["key_window_ms"]);
    diff.eq("terms.settle_ms", json!(want.settle_ms), &got["settle_ms"]);
    diff.eq("terms.max_attempts", json!(want.max_attempts), &got["max_attempts"]);
    let Some(call) = known else { return };
    let is_void = ledger.is_void(call);
    // For a window that nobody can measure the contract names no end.
    if !is_void && (call.window_end().is_some() || want.key_window_ms.is_none()) {
        let end = &got["key_window_ends_at"];
        diff.eq("terms.key_window_ends_at", time(call.window_end()), end);
    }
}

fn resolutions(diff: &mut Diff, call: &Call, got: &Value) {
    use super::model::Event;
    let words = call.events.iter().filter_map(|event| match event {
        Event::Resolved { at, state, reason, seq, .. } => Some((at, state, reason, seq)),
        _ => None,
    });
    let words: Vec<_> = words.collect();
    let listed = got.as_array().map_or(&[] as &[Value], Vec::as_slice);
    diff.eq("resolutions", words.len(), &json!(listed.len()));
    for ((at, state, reason, seq), got) in words.into_iter().zip(listed) {
        diff.eq("resolution.state", state.word(), &got["state"]);
        diff.eq("resolution.reason", reason.as_str(), &got["reason"]);
        diff.eq("resolution.at", text(*at), &got["at"]);
        diff.eq("resolution.seq", *seq, &got["seq"]);
        diff.holds("resolution.by", got["by"].is_string(), &got["by"]);
    }
}

/// Holds a record against the model.
pub fn record(diff: &mut Diff, ledger: &Ledger, call: &Call, attempt: &Attempt, got: &Value) {
    let now = ledger.now;
    let status = attempt.status(now);
    let mut eq = |name: &str, want: Value| {
        diff.eq(&format!("attempt {} {name}", attempt.number), want, &got[name]);
    };
    let deciding = attempt.deciding();
    let said = deciding.map(|(_, _, outcome)| outcome);
    let token = said.and_then(|said| said.token.clone());
    let signer = said.and_then(|said| said.signer.clone());
    eq("attempt", json!(attempt.number));
    eq("status", json!(status.word()));
    eq("tool", json!(call.tool));
    eq("effect", json!(call.terms.effect.word()));
    eq("input_hash", json!(call.input_hash));
    eq("operation_key", json!(call.operation_key));
    eq("started_at", time(Some(attempt.started_at)));
    eq("recorded_at", time(Some(call.recorded_at)));
    eq("lease_expires_at", time(attempt.lease.as_ref().map(|lease| lease.end)));
    eq("token", json!(token));
    eq("scope_id", json!(signer.unwrap_or_else(|| attempt.scope.clone())));
    eq("late", json!(deciding.is_some_and(|(_, late, _)| *late)));
    eq("redacted", json!(false));
    eq("swept", Value::Null);
    let settled = attempt.settled.filter(|_| attempt.definite().is_none());
    eq("settled_by", json!(settled.map(|settled| settled.by)));
    // What a record shows of the outcome beside a word from outside is not said.
    if settled.is_none() {
        eq("duration_ms", json!(said.map(|said| said.duration_ms)));
        eq("finished_at", time(deciding.map(|(at, _, _)| *at)));
        eq("output_hash", json!(said.and_then(|said| said.output_hash.clone())));
        let expired = (status == Status::Unknown && said.is_none()).then_some("lease_expired");
        let class = said.and_then(|said| said.error_class.as_deref()).or(expired);
        eq("error_class", json!(class));
    }
    outcomes(diff, attempt, got);
    checks(diff, attempt, &got["checks"]);
}

fn outcomes(diff: &mut Diff, attempt: &Attempt, got: &Value) {
    let want: Vec<Value> = attempt
        .outcomes
        .iter()
        .map(|(at, late, outcome)| json!([outcome.status.word(), text(*at), late]))
        .collect();
    let listed = got["outcomes"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let shown: Vec<Value> =
        listed.iter().map(|one| json!([one["status"], one["at"], one["late"]])).collect();
    diff.eq(&format!("attempt {} outcomes", attempt.number), want, &json!(shown));
    let mut seqs = vec![got["seq"]["started"].as_u64()];
    seqs.extend(listed.iter().map(|one| one["seq"].as_u64()));
    let is_rising = seqs.iter().all(Option::is_some) && seqs.is_sorted();
    diff.holds("seq and outcomes.seq rise", is_rising, got);
}

fn checks(diff: &mut Diff, attempt: &Attempt, got: &Value) {
    let want: Vec<Value> = attempt
        .checks
        .iter()
        .map(|check| json!([check.answer.word(), check.source, text(check.at), check.counted]))
        .collect();
    let listed = got.as_array().map_or(&[] as &[Value], Vec::as_slice);
    let shown: Vec<Value> = listed
        .iter()
        .map(|one| json!([one["answer"], one["source"], one["at"], one["counted"]]))
        .collect();
    diff.eq(&format!("attempt {} checks", attempt.number), want, &json!(shown));
    diff.holds("checks.seq", listed.iter().all(|one| one["seq"].is_u64()), got);
}

/// Holds decision, reason and when to ask again against the model.
pub fn decision(diff: &mut Diff, want: &Decision, got: &Value) {
    diff.eq("decision", want.kind, &got["decision"]);
    let reason = got["reason"].as_str().unwrap_or_default();
    diff.holds(
        &format!("reason is one of {:?}", want.reasons),
        want.reasons.contains(&reason),
        &got["reason"],
    );
    retry(diff, want.retry, &got["retry_after_ms"]);
}

/// Holds `retry_after_ms` against the model.
pub fn retry(diff: &mut Diff, want: Retry, got: &Value) {
    match want {
        Retry::None => diff.eq("retry_after_ms", Value::Null, got),
        Retry::Exactly(ms) => diff.eq("retry_after_ms", ms, got),
        Retry::Within(min, max) => {
            let is_within = got.as_u64().is_some_and(|ms| (min..=max).contains(&ms));
            diff.holds(&format!("retry_after_ms from {min} to {max}"), is_within, got);
        }
    }
}

/// Holds advice, an answer without a lease, against the model: what to do about a call, with the
/// record that decides.
pub fn advice(
    diff: &mut Diff,
    ledger: &Ledger,
    key: &super::model::CallKey,
    want: &Decision,
    got: &Value,
) {
    decision(diff, want, got);
    diff.eq("run_id", key.run.as_str(), &got["run_id"]);
    diff.eq("tool_call_id", key.id.as_str(), &got["tool_call_id"]);
    diff.eq("state", want.state.word(), &got["state"]);
    diff.eq("lease", Value::Null, &got["lease"]);
    diff.eq("replayed", false, &got["replayed"]);
    let named = idempotency_key("default", &key.run, &key.id);
    diff.eq("idempotency_key", named, &got["idempotency_key"]);
    let is_reuse = want.kind == "reuse";
    diff.eq("result_available", is_reuse.then_some(false), &got["result_available"]);
    let Some(call) = ledger.call(key) else {
        diff.eq("attempt", Value::Null, &got["attempt"]);
        diff.eq("record", Value::Null, &got["record"]);
        return;
    };
    let fold = ledger.fold(call);
    diff.eq("input_hash", call.input_hash.as_str(), &got["input_hash"]);
    let number = got["attempt"].as_u64().and_then(|number| u32::try_from(number).ok());
    let Some(number) = number.filter(|number| want.attempts.contains(number)) else {
        return diff.holds(
            &format!("attempt is one of {:?}", want.attempts),
            false,
            &got["attempt"],
        );
    };
    let attempt = fold.attempt(number).expect("it is one of them");
    diff.eq("started_at", text(attempt.started_at), &got["started_at"]);
    record(diff, ledger, call, attempt, &got["record"]);
    diff.eq("effect", call.terms.effect.word(), &got["effect"]);
    terms(diff, ledger, Some(call), &call.terms, &got["terms"]);
}

/// Holds a grant against the model.
pub fn grant(
    diff: &mut Diff,
    ledger: &Ledger,
    ask: &super::model::ClaimAsk,
    want: &Grant,
    got: &Value,
) {
    let mut eq = |name: &str, want: Value| diff.eq(name, want, &got[name]);
    eq("decision", json!("proceed"));
    eq("reason", json!(want.reason));
    eq("run_id", json!(ask.key.run));
    eq("tool_call_id", json!(ask.key.id));
    eq("attempt", json!(want.attempt));
    eq("state", json!("in_flight"));
    eq("idempotency_key", json!(idempotency_key("default", &ask.key.run, &ask.key.id)));
    eq("input_hash", json!(ask.input_hash));
    eq("started_at", json!(text(want.started_at)));
    eq("replayed", json!(want.replayed.is_some()));
    let lease = &got["lease"];
    diff.eq("lease.duration_ms", want.lease_end - ledger.now, &lease["duration_ms"]);
    diff.eq("lease.expires_at", text(want.lease_end), &lease["expires_at"]);
    match &want.replayed {
        Some(token) => diff.eq("lease.token", token.as_str(), &lease["token"]),
        None => diff.holds("lease.token", lease["token"].is_string(), &lease["token"]),
    }
    diff.eq("effect", want.terms.effect.word(), &got["effect"]);
    terms(diff, ledger, ledger.call(&ask.key), &want.terms, &got["terms"]);
}

/// Holds the twin that an answer names against the model.
pub fn twin(diff: &mut Diff, ledger: &Ledger, want: Option<usize>, got: &Value) {
    let Some(index) = want else { return diff.eq("twin", Value::Null, got) };
    let call = &ledger.calls[index];
    let decision = ledger.decide_known(call);
    diff.eq("twin.run_id", call.key.run.as_str(), &got["run_id"]);
    diff.eq("twin.tool_call_id", call.key.id.as_str(), &got["tool_call_id"]);
    diff.eq("twin.state", decision.state.word(), &got["state"]);
    let is_deciding = got["attempt"].as_u64().is_some_and(|number| {
        decision.attempts.iter().any(|attempt| u64::from(*attempt) == number)
    });
    diff.holds(
        &format!("twin.attempt is one of {:?}", decision.attempts),
        is_deciding,
        &got["attempt"],
    );
}

/// Holds the summary of a run against the model.
pub fn summary(diff: &mut Diff, ledger: &Ledger, run: &str, got: &Value) {
    let folds: Vec<(&Call, Fold)> = ledger
        .calls
        .iter()
        .filter(|call| call.key.run == run)
        .map(|call| (call, ledger.fold(call)))
        .collect();
    diff.eq("run_id", run, &got["run_id"]);
    diff.eq("calls", folds.len(), &got["calls"]);
    diff.eq(
        "attempts",
        folds.iter().map(|(_, f)| f.attempts.len()).sum::<usize>(),
        &got["attempts"],
    );
    diff.eq("conflicts", folds.iter().filter(|(_, f)| f.conflict).count(), &got["conflicts"]);
    for state in State::ALL.iter().filter(|state| **state != State::Absent) {
        let count = folds.iter().filter(|(_, f)| f.state(ledger.now) == *state).count();
        diff.eq(&format!("by_state.{}", state.word()), count, &got["by_state"][state.word()]);
    }
    let first = folds.iter().map(|(call, _)| call.recorded_at).min();
    diff.eq("first_at", time(first), &got["first_at"]);
    let last = got["last_at"].as_str().and_then(ms_of);
    let newest = folds.iter().map(|(_, fold)| fold.last_event_at).max();
    let holds = last.is_some_and(|last| Some(last) >= newest && last <= ledger.now);
    diff.holds("last_at", holds, &got["last_at"]);
}
