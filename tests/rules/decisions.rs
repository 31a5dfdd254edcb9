//! Every cell of the decision table.

use recibo_core::effect::{Effect, Terms};
use recibo_tests::pure::{Answer, Pure, START};

/// A state, a script that leads to it, and the decision for each effect, in the order
/// read_only, idempotent, keyed (inside its window), queryable, opaque.
const TABLE: [(&str, [&str; 5]); 9] = [
    ("", ["absent proceed first_attempt"; 5]),
    ("claim", ["in_flight wait lease_live"; 5]),
    (
        "claim; timeout",
        [
            "unknown proceed retry_allowed",
            "unknown proceed retry_allowed",
            "unknown proceed retry_allowed",
            "unknown check_status outcome_unknown",
            "unknown stop outcome_unknown",
        ],
    ),
    (
        "claim; +1000",
        [
            "unknown proceed retry_allowed",
            "unknown proceed retry_allowed",
            "unknown proceed retry_allowed",
            "unknown check_status outcome_unknown",
            "unknown stop outcome_unknown",
        ],
    ),
    ("claim; retryable_error", ["retryable proceed retry_allowed"; 5]),
    ("claim; ok", ["ok reuse already_ok"; 5]),
    ("claim; terminal_error", ["terminal stop terminal_error"; 5]),
    ("claim; timeout; resolve=abandoned", ["abandoned stop abandoned"; 5]),
    ("claim; retryable_error; ok", ["retryable stop conflict !"; 5]),
];

#[test]
fn every_cell_of_the_decision_table() {
    for (script, row) in TABLE {
        for (effect, expected) in Effect::ALL.into_iter().zip(row) {
            let mut ledger = Pure::of(effect);
            ledger.run(script);
            assert_eq!(ledger.summary(), expected, "{} after: {script}", effect.as_str());
        }
    }
}

#[test]
fn a_claim_decides_as_the_advice_says() {
    for (script, _) in TABLE {
        for effect in Effect::ALL {
            let mut ledger = Pure::of(effect);
            ledger.run(script);
            let advice = ledger.decision();
            match ledger.run("claim") {
                Answer::Advice(decision) => assert_eq!(decision, advice),
                Answer::Granted { .. } => assert_eq!(advice.kind.as_str(), "proceed"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn used_up_attempts_turn_proceed_into_stop() {
    for effect in Effect::ALL {
        let terms = Terms {
            key_window_ms: Some(1_000_000),
            settle_ms: Some(0),
            max_attempts: Some(2),
            ..Terms::of(effect)
        };
        let mut ledger = Pure::new(terms);
        ledger.run("claim; retryable_error; claim; retryable_error");
        assert_eq!(ledger.summary(), "retryable stop attempts_exhausted", "{effect:?}");
        let mut ledger = Pure::new(terms);
        ledger.run("claim; retryable_error; claim");
        assert_eq!(ledger.summary(), "in_flight wait lease_live", "{effect:?}");
    }
}

#[test]
fn keyed_calls_stop_where_the_window_ends() {
    let keyed = |window| Pure::new(Terms { key_window_ms: window, ..Terms::of(Effect::Keyed) });
    // (window, script, what follows)
    let table = [
        (Some(5000), "claim; timeout; +4999", "unknown proceed retry_allowed"),
        (Some(5000), "claim; timeout; +5000", "unknown stop key_window_over"),
        (None, "claim; timeout", "unknown stop key_window_over"),
        (None, "claim; retryable_error", "retryable proceed retry_allowed"),
        (Some(5000), "claim; retryable_error; +5000", "retryable proceed retry_allowed"),
        // The window counts from the first attempt, not from the newest.
        (
            Some(5000),
            "claim; timeout; +3000; claim; timeout; +2000",
            "unknown stop key_window_over",
        ),
        // The lease ends no later than the window.
        (Some(300), "claim; +299", "in_flight wait lease_live"),
        (Some(300), "claim; +300", "unknown stop key_window_over"),
        (Some(1500), "claim; +1000; claim; +499", "in_flight wait lease_live"),
        (Some(1500), "claim; +1000; claim; +500", "unknown stop key_window_over"),
    ];
    for (window, script, expected) in table {
        let mut ledger = keyed(window);
        ledger.run(script);
        assert_eq!(ledger.summary(), expected, "{window:?} {script}");
    }
}

#[test]
fn a_key_window_that_nobody_can_measure_counts_as_over() {
    let mut ledger = Pure::of(Effect::Keyed);
    ledger.run("claim; timeout");
    assert_eq!(ledger.summary(), "unknown proceed retry_allowed");
    ledger.void_until = Some(START);
    assert_eq!(ledger.summary(), "unknown stop key_window_over");
}

#[test]
fn a_lease_lives_until_its_last_millisecond() {
    for (script, expected) in [
        ("claim; +999", "in_flight wait lease_live"),
        ("claim; +1000", "unknown stop outcome_unknown"),
        ("claim; +1001", "unknown stop outcome_unknown"),
        ("claim; +1000; expire", "unknown stop outcome_unknown"),
    ] {
        let mut ledger = Pure::of(Effect::Opaque);
        ledger.run(script);
        assert_eq!(ledger.summary(), expected, "{script}");
    }
}

#[test]
fn advice_says_when_to_ask_again() {
    let mut ledger = Pure::of(Effect::Queryable);
    ledger.run("claim; +400");
    assert_eq!(ledger.decision().retry_after_ms, Some(600));
    ledger.run("timeout; +30");
    assert_eq!(ledger.decision().retry_after_ms, Some(70));
    ledger.run("+500");
    assert_eq!(ledger.decision().retry_after_ms, Some(0));
}
