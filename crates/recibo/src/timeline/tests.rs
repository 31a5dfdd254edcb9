use recibo_api::answer::Call;
use serde_json::json;

use super::*;

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
            json!({"error_class": "lease_expired", "settled_by": "resolution"}),
        ),
        record(4, "started", "2026-09-13T02:00:50.000Z", json!({})),
    ];
    let verdict = Verdict::of_fixed_state(CallState::Ok);
    let shown = Shown { call: call("ok", attempts), verdict };
    let now = Time::parse("2026-09-13T02:00:55.000Z").unwrap();
    let expected = "\
c  crm/add (opaque)  ok
  #1  ✓ ok               02:00:00.000  ████████████████████   12.0 s
       └ 02:00:12.000  report: timeout
       └ 2026-09-14 02:00:14.120  late report: ok
       └ zc-receipt-1-a
  #2  ✗ terminal_error   02:00:30.000  █▍                     842 ms  refused
  #3  ? unknown          02:00:40.000                                 lease_expired: no report \
                            until 2026-09-13 02:01:00.000
       └ settled by an operator
  #4  … started          02:00:50.000                                 lease ends in 5.0 s
  now: reuse (already_ok): it is done, do not run it again

  run           r
  key           rk1_x
  input         sha256:00
  label         team=blue
";
    assert_eq!(paint::plain(&of_call(&shown, now)), expected);
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
