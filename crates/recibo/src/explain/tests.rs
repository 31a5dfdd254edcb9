//! One page per state and effect, kept as files: a change of words is read as a whole.
//! `just bless` rewrites them.

use std::path::PathBuf;

use recibo_api::answer::{Call, DecisionAnswer};
use recibo_core::effect::Effect;
use recibo_core::status::CallState;
use recibo_core::time::Time;
use serde_json::{Value, json};

use crate::layout::{View, Width};
use crate::paint;

const EFFECTS: [&str; 5] = ["read_only", "idempotent", "keyed", "queryable", "opaque"];

fn page(call: Option<&Value>, decision: Value) -> String {
    page_at(80, call, decision)
}

fn page_at(columns: u16, call: Option<&Value>, decision: Value) -> String {
    let call: Option<Call> = call.map(|call| serde_json::from_value(call.clone()).unwrap());
    let decision: DecisionAnswer = serde_json::from_value(decision).unwrap();
    let now = Time::parse("2026-09-13T02:05:00.000Z").unwrap();
    let view = View { now, width: Width::fixed(columns), is_key_given: false };
    paint::plain(&super::page(call.as_ref(), &decision, view))
}

fn decision(state: &str, decision: &str, reason: &str, retry_after_ms: Option<u64>) -> Value {
    let mut answer = json!({
        "decision": decision, "reason": reason, "run_id": "run_82f", "tool_call_id": "call|17",
        "attempt": null, "state": state, "idempotency_key": "rk1_abc", "input_hash": null,
        "started_at": null, "replayed": false, "twin": null, "record": null,
    });
    if let Some(ms) = retry_after_ms {
        answer["retry_after_ms"] = json!(ms);
    }
    answer
}

/// An attempt that began in minute `attempt`; `more` replaces members.
fn attempt(attempt: u32, effect: &str, status: &str, more: Value) -> Value {
    let mut record = json!({
        "run_id": "run_82f", "tool_call_id": "call|17", "tool": "crm/add_task",
        "attempt": attempt, "status": status,
        "started_at": format!("2026-09-13T02:0{attempt}:00.000Z"), "duration_ms": null,
        "finished_at": null, "recorded_at": "2026-09-13T02:01:00.000Z", "input_hash": "sha256:00",
        "output_hash": null, "output_summary": null, "error_class": null, "token": null,
        "scope_id": "sc_1", "effect": effect, "idempotency_key": "rk1_abc",
        "operation_key": null, "message_id": null, "labels": {}, "trace_id": null,
        "span_id": null, "provider_ref": null,
        "lease_expires_at": format!("2026-09-13T02:0{attempt}:30.000Z"), "outcomes": [],
        "seq": {"started": attempt, "finished": null}, "redacted": false, "late": false,
        "settled_by": null, "swept": null,
    });
    for (name, value) in more.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}

/// A reported attempt.
fn reported(n: u32, effect: &str, status: &str, class: Option<&str>, token: Option<&str>) -> Value {
    attempt(
        n,
        effect,
        status,
        json!({
            "duration_ms": 12_000, "error_class": class, "token": token,
            "outcomes": [{"status": status, "at": "2026-09-13T02:03:12.000Z", "seq": 9,
                          "late": false}],
        }),
    )
}

fn call(effect: &str, state: &str, is_conflict: bool, attempts: Vec<Value>) -> Value {
    json!({
        "run_id": "run_82f", "tool_call_id": "call|17", "tool": "crm/add_task", "effect": effect,
        "state": state, "conflict": is_conflict, "idempotency_key": "rk1_abc",
        "operation_key": null, "input_hash": "sha256:00", "attempts": attempts, "version": 9,
    })
}

fn timed_out(n: u32, effect: &str) -> Value {
    reported(n, effect, "timeout", Some("timeout"), None)
}

fn refused(n: u32, effect: &str) -> Value {
    reported(n, effect, "retryable_error", Some("rate_limited"), None)
}

fn page_of(state: &str, effect: &str) -> String {
    page_of_at(80, state, effect)
}

fn page_of_at(columns: u16, state: &str, effect: &str) -> String {
    let page = |call: Option<&Value>, decision| page_at(columns, call, decision);
    let with = |attempts| call(effect, state, false, attempts);
    let silent = |n| attempt(n, effect, "unknown", json!({"error_class": "lease_expired"}));
    match state {
        "absent" => page(None, decision(state, "proceed", "first_attempt", None)),
        "in_flight" => page(
            Some(&with(vec![
                refused(1, effect),
                attempt(
                    4,
                    effect,
                    "started",
                    json!({"attempt": 2,
                    "lease_expires_at": "2026-09-13T02:05:30.000Z"}),
                ),
            ])),
            decision(state, "wait", "lease_live", Some(30_000)),
        ),
        "unknown" => {
            let (word, reason, ms) = match effect {
                "read_only" | "idempotent" | "keyed" => ("proceed", "retry_allowed", None),
                "queryable" => ("check_status", "outcome_unknown", Some(4_000)),
                _ => ("stop", "outcome_unknown", None),
            };
            let mut first = timed_out(1, effect);
            first["provider_ref"] = json!("task-9");
            page(Some(&with(vec![first, silent(2)])), decision(state, word, reason, ms))
        }
        "retryable" => page(
            Some(&with(vec![refused(1, effect)])),
            decision(state, "proceed", "retry_allowed", None),
        ),
        "ok" => page(
            Some(&with(vec![
                timed_out(1, effect),
                reported(2, effect, "ok", None, Some("zc-receipt-1789264800-abc")),
            ])),
            decision(state, "reuse", "already_ok", None),
        ),
        "terminal" => page(
            Some(&with(vec![reported(1, effect, "terminal_error", Some("invalid"), None)])),
            decision(state, "stop", "terminal_error", None),
        ),
        "abandoned" => {
            let mut record = silent(1);
            record["settled_by"] = json!("resolution");
            page(Some(&with(vec![record])), decision(state, "stop", "abandoned", None))
        }
        _ => unreachable!("no such state"),
    }
}

fn compare(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/explain")
        .join(format!("{name}.txt"));
    if std::env::var_os("RECIBO_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name}.txt differs; the page is now:\n{text}");
}

fn pages_of(state: &str) -> String {
    EFFECTS.map(|effect| format!("==== {state}, {effect}\n{}", page_of(state, effect))).join("\n")
}

#[test]
fn every_state_and_effect_has_its_page() {
    assert_eq!(EFFECTS, Effect::ALL.map(Effect::as_str));
    for state in CallState::ALL {
        compare(state.as_str(), &pages_of(state.as_str()));
    }
}

#[test]
fn the_rarer_answers_have_their_pages() {
    let keyed_over = page(
        Some(&call("keyed", "unknown", false, vec![timed_out(1, "keyed")])),
        decision("unknown", "stop", "key_window_over", None),
    );
    let exhausted = page(
        Some(&call("opaque", "retryable", false, vec![refused(1, "opaque"), refused(2, "opaque")])),
        decision("retryable", "stop", "attempts_exhausted", None),
    );
    let mut late = reported(1, "opaque", "retryable_error", Some("rate_limited"), None);
    late["outcomes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"status": "ok", "at": "2026-09-13T02:04:00.000Z", "seq": 10, "late": true}));
    let conflict = page(
        Some(&call("opaque", "retryable", true, vec![late])),
        decision("retryable", "stop", "conflict", None),
    );
    for claim in ["had an effect", "had no effect"] {
        assert!(!conflict.contains(claim), "{conflict}");
    }
    let mut told = attempt(1, "queryable", "ok", json!({"settled_by": "status_check"}));
    told["late"] = json!(false);
    told["checks"] = json!([
        {"answer": "pending", "source": "crm", "counted": false, "seq": 6,
         "at": "2026-09-13T02:02:00.000Z"},
        {"answer": "executed_ok", "source": "crm", "counted": true, "seq": 7,
         "at": "2026-09-13T02:03:00.000Z"},
    ]);
    let checked = page(
        Some(&call("queryable", "ok", false, vec![told])),
        decision("ok", "reuse", "already_ok", None),
    );
    let word = attempt(1, "opaque", "ok", json!({"settled_by": "resolution"}));
    let mut word = call("opaque", "ok", false, vec![word]);
    word["resolutions"] = json!([
        {"state": "abandoned", "reason": "nobody answers", "by": "4c9hq0mr", "seq": 8,
         "at": "2026-09-13T02:03:00.000Z", "corrects": null},
        {"state": "ok", "reason": "the bank shows it", "by": "local", "seq": 9,
         "at": "2026-09-13T02:04:00.000Z", "corrects": 8},
    ]);
    let word = page(Some(&word), decision("ok", "reuse", "already_ok", None));
    assert!(word.contains("--corrects 9"), "{word}");
    let many = (1..=9).chain([1, 2, 3]).map(|n| refused(n, "read_only")).collect();
    let many = page(
        Some(&call("read_only", "retryable", false, many)),
        decision("retryable", "proceed", "retry_allowed", None),
    );
    compare("rarer", &[keyed_over, exhausted, conflict, checked, word, many].join("\n====\n"));
}

/// Which answer came, or why none did.
#[test]
fn every_class_of_this_program_is_told_in_words() {
    let attempts = |of: &[(&str, &str)]| {
        let records: Vec<Value> = (1..)
            .zip(of)
            .map(|(n, (status, class))| reported(n, "read_only", status, Some(class), None))
            .collect();
        page(
            Some(&call("read_only", "unknown", false, records)),
            decision("unknown", "proceed", "retry_allowed", None),
        )
    };
    let unknown = |class| ("unknown", class);
    let of_proxies = attempts(&[
        unknown("cancelled"),
        unknown("host_gone"),
        unknown("server_gone"),
        unknown("sent_in_part"),
        unknown("tool_error"),
        unknown("rpc_32603"),
        unknown("unreadable_answer"),
        unknown("unknown_result_type"),
    ]);
    let of_others = attempts(&[
        unknown("task_failed"),
        ("retryable_error", "not_sent"),
        ("retryable_error", "lease_over"),
        ("retryable_error", "rpc_32042"),
        ("terminal_error", "rpc_32602"),
        unknown("signal_9"),
        ("terminal_error", "exit_3"),
        unknown("a_word_of_an_adapter"),
    ]);
    compare("classes", &[of_proxies, of_others].join("\n====\n"));
}

#[test]
fn pages_have_the_width_of_their_terminal() {
    let pages =
        [60, 120, 200].map(|n| format!("==== {n}\n{}", page_of_at(n, "unknown", "queryable")));
    compare("widths", &pages.join("\n"));
}

#[test]
fn at_every_width_a_page_fits_and_says_the_same() {
    // The breaks of long commands are no words.
    let words = |text: &str| text.replace(" \\\n", " ");
    let sorted = |text: &str| {
        let mut words: Vec<_> = words(text).split_whitespace().map(str::to_owned).collect();
        words.retain(|word| word != "#");
        words.sort();
        words
    };
    for state in CallState::ALL {
        for effect in EFFECTS {
            let widest = page_of_at(200, state.as_str(), effect);
            for columns in 60..200 {
                let text = page_of_at(columns, state.as_str(), effect);
                assert_eq!(sorted(&text), sorted(&widest), "{columns}: {text}");
                for line in text.lines().filter(|line| !line.contains("POST ")) {
                    let is_one_word = line.split_whitespace().count() == 1;
                    let length = line.chars().count();
                    assert!(length <= columns.into() || is_one_word, "{columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn the_namespace_of_a_key_is_named_only_where_a_key_was_given() {
    for (is_key_given, count) in [(true, 1), (false, 0)] {
        let now = Time::parse("2026-09-13T02:05:00.000Z").unwrap();
        let view = View { now, width: Width::fixed(80), is_key_given };
        let decision = serde_json::from_value(decision("absent", "proceed", "first_attempt", None));
        let text = super::page(None, &decision.unwrap(), view);
        assert_eq!(text.matches("namespace").count(), count, "{text}");
    }
}

/// Whoever reads at night acts on what a page seems to say.
#[test]
fn where_nobody_knows_no_sentence_says_that_nothing_happened() {
    for effect in EFFECTS {
        let text = page_of("unknown", effect);
        let facts = text.split("What the ledger answers now").next().unwrap();
        for claim in ["without effect", "had no effect", "did not take effect", "not executed"] {
            assert!(!facts.contains(claim), "{effect}: {claim}\n{text}");
        }
        assert!(facts.contains("may have taken effect"), "{text}");
    }
}
