use recibo_api::answer::Call;
use recibo_core::time::Time;
use serde_json::json;

use super::*;
use crate::layout::Width;

/// A record as the ledger shows it; `more` replaces members.
fn record(attempt: u32, status: &str, at: &str, more: serde_json::Value) -> serde_json::Value {
    let mut record = json!({
        "run_id": "r", "tool_call_id": "c", "tool": "crm/add", "attempt": attempt,
        "status": status, "started_at": at, "duration_ms": null, "finished_at": null,
        "recorded_at": "2026-09-13T02:00:00.000Z", "input_hash": "sha256:00", "output_hash": null,
        "output_summary": null, "error_class": null, "token": null, "scope_id": "sc_1",
        "effect": "opaque", "idempotency_key": "rk1_x", "operation_key": null, "message_id": null,
        "labels": {"team": "blue"}, "trace_id": null, "span_id": null, "provider_ref": null,
        "lease_expires_at": "2026-09-13T02:01:00.000Z", "outcomes": [],
        "seq": {"started": 1, "finished": null}, "redacted": false, "late": false,
        "settled_by": null, "swept": null,
    });
    for (name, value) in more.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}

fn call(state: &str, attempts: Vec<serde_json::Value>) -> Call {
    serde_json::from_value(json!({
        "run_id": "r", "tool_call_id": "c", "tool": "crm/add", "effect": "opaque", "state": state,
        "conflict": false, "idempotency_key": "rk1_x", "operation_key": null,
        "input_hash": "sha256:00", "attempts": attempts, "version": 9,
    }))
    .unwrap()
}

#[test]
fn a_call_is_a_timeline_of_its_attempts() {
    let outcome = |status, at, late| json!({"status": status, "at": at, "seq": 2, "late": late});
    let attempts = vec![
        record(
            1,
            "ok",
            "2026-09-13T02:00:00.000Z",
            json!({"duration_ms": 12_000, "token": "zc-receipt-1-a", "late": true, "outcomes": [
                outcome("timeout", "2026-09-13T02:00:12.000Z", false),
                outcome("ok", "2026-09-14T02:00:14.120Z", true),
            ]}),
        ),
        record(
            2,
            "terminal_error",
            "2026-09-13T02:00:30.000Z",
            json!({"duration_ms": 842, "error_class": "refused",
                "outcomes": [outcome("terminal_error", "2026-09-13T02:00:31.000Z", false)]}),
        ),
        record(
            3,
            "unknown",
            "2026-09-13T02:00:40.000Z",
            json!({"error_class": "lease_expired", "settled_by": "resolution", "checks": [
                {"answer": "not_executed", "source": "the bank", "counted": false, "seq": 4,
                 "at": "2026-09-13T02:00:45.000Z"},
            ]}),
        ),
        record(4, "started", "2026-09-13T02:00:50.000Z", json!({})),
    ];
    let verdict = Verdict::of_fixed_state(CallState::Ok);
    let mut call = call("ok", attempts);
    call.resolutions = serde_json::from_value(json!([
        {"state": "abandoned", "reason": "nobody knows", "at": "2026-09-13T02:00:46.000Z",
         "by": "4c9h", "seq": 17, "corrects": 12},
    ]))
    .unwrap();
    let shown = Shown { call, verdict };
    let at = |columns| {
        let now = Time::parse("2026-09-13T02:00:55.000Z").unwrap();
        View { now, width: Width::fixed(columns), is_key_given: false }
    };
    let wide = "\
c  crm/add (opaque)  ok
  #1  ✓ ok               02:00:00.000  ████████████████████   12.0 s
       └ 02:00:12.000  report: timeout
       └ 2026-09-14 02:00:14.120  late report: ok
       └ zc-receipt-1-a
  #2  ✗ terminal_error   02:00:30.000  █▍                     842 ms  refused
  #3  ? unknown          02:00:40.000                                 lease_expired: no report \
                until 2026-09-13 02:01:00.000
       └ 02:00:45.000  status check: not_executed (settled nothing), from the bank
       └ settled by an operator
  #4  … started          02:00:50.000                                 lease ends in 5.0 s
  resolved: as abandoned 2026-09-13 02:00:46.000 by API key 4c9h (event 17, corrects event 12): \
                nobody knows
  now:      reuse (already_ok): it is done, do not run it again

  run:             r
  idempotency key: rk1_x
  input:           sha256:00
  label:           team=blue

lease:      the time that an attempt has to report
opaque:     the outside service neither recognizes a repeated request nor can be asked
more words: recibo help words
";
    assert_eq!(paint::plain(&of_call(&shown, at(130))), wide);
    let narrow = "\
c  crm/add (opaque)  ok
  #1  ✓ ok               02:00:00.000  ████████████   12.0 s
       └ 02:00:12.000  report: timeout
       └ 2026-09-14 02:00:14.120  late report: ok
       └ zc-receipt-1-a
  #2  ✗ terminal_error   02:00:30.000  ▊              842 ms
       └ refused
  #3  ? unknown          02:00:40.000
       └ lease_expired: no report until 2026-09-13
         02:01:00.000
       └ 02:00:45.000  status check: not_executed (settled
         nothing), from the bank
       └ settled by an operator
  #4  … started          02:00:50.000
       └ lease ends in 5.0 s
";
    let text = paint::plain(&of_call(&shown, at(60)));
    assert!(text.starts_with(narrow), "{text}");
    for columns in 60..=200 {
        let text = paint::plain(&of_call(&shown, at(columns)));
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns.into()), "{columns}:\n{text}");
    }
}

/// Ids as long as providers make them.
fn long_call() -> Call {
    let mut call = call(
        "unknown",
        vec![record(
            1,
            "timeout",
            "2026-09-13T02:00:00.000Z",
            json!({
                "duration_ms": 59_999_000, "error_class": "timeout", "provider_ref": "p".repeat(70),
            }),
        )],
    );
    call.run_id = format!("run-{}", "0123456789abcdef".repeat(4));
    call.tool_call_id = format!("call_{}|fc_{}", "a".repeat(24), "b".repeat(48));
    call
}

#[test]
fn no_list_cuts_or_splits_an_id() {
    let now = Time::parse("2026-09-13T02:05:00.000Z").unwrap();
    let call = long_call();
    let decision = || {
        serde_json::from_value(json!({
            "decision": "stop", "reason": "outcome_unknown", "run_id": call.run_id,
            "tool_call_id": call.tool_call_id, "attempt": null, "state": "unknown",
            "idempotency_key": "rk1_x", "input_hash": null, "started_at": null,
            "replayed": false, "twin": null, "record": null,
        }))
        .unwrap()
    };
    for columns in 60..=200 {
        let view = View { now, width: Width::fixed(columns), is_key_given: false };
        let verdict = Verdict::from(&decision());
        for text in [
            list::of_calls(std::slice::from_ref(&call), view.width),
            list::of_unknown(&[(call.clone(), decision())], view),
            of_call(&Shown { call: call.clone(), verdict }, view),
        ] {
            let text = paint::plain(&text);
            assert!(text.contains(&call.tool_call_id) && text.contains(&call.run_id), "{text}");
            for line in text.lines().filter(|line| line.chars().count() > columns.into()) {
                // One long word, behind a label, a mark, or before a backslash.
                let words = line.split_whitespace().filter(|word| word.len() > 60).count();
                let others = line.split_whitespace().count() - words;
                assert!(words == 1 && others <= 2, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn every_decision_and_reason_has_words() {
    for decision in DecisionKind::ALL {
        for reason in Reason::ALL {
            let verdict = Verdict { decision: *decision, reason: *reason, retry_after_ms: None };
            let text = paint::plain(&advice(&verdict));
            assert!(text.starts_with(decision.as_str()), "{text}");
            assert!(!text.contains("not executed"), "{text}");
        }
    }
}
