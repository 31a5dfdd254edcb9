//! Evidence that comes after an operator's word, and words that are taken back.

use recibo_core::effect::Effect;
use recibo_core::plan::Refusal;
use recibo_tests::pure::{Answer, Pure};

fn summary(effect: Effect, script: &str) -> String {
    let mut ledger = Pure::of(effect);
    ledger.run(script);
    ledger.summary()
}

/// Two successes of a queryable or opaque call are a conflict whenever the second comes.
#[test]
fn two_successes_are_a_conflict_whenever_they_come() {
    const CONFLICT: &str = "ok reuse already_ok !";
    const OK: &str = "ok reuse already_ok";
    let cases = [
        ("shot=ok; +1; shot=ok", CONFLICT),
        ("claim; timeout; shot=ok; ok@1", CONFLICT),
        ("claim; timeout; shot=ok; check=executed_ok@1", CONFLICT),
        ("claim; timeout; resolve=ok; shot=ok", CONFLICT),
        // A resolution clears it; each later success sets it again.
        ("claim; timeout; resolve=ok; shot=ok; resolve=ok", OK),
        ("claim; timeout; resolve=ok; shot=ok; resolve=ok; ok@1", CONFLICT),
        ("shot=ok; +1; shot=ok; resolve=ok; +1; shot=ok", CONFLICT),
        // Evidence of the only attempt that counts as one confirms it.
        ("claim; timeout; resolve=ok; ok", OK),
        ("claim; timeout; check=executed_ok; ok", OK),
        ("claim; timeout; shot=retryable_error; resolve=ok; ok@1", OK),
    ];
    for (script, expected) in cases {
        assert_eq!(summary(Effect::Opaque, script), expected, "{script}");
        assert_eq!(summary(Effect::Queryable, script), expected, "queryable: {script}");
        assert_eq!(summary(Effect::Idempotent, script), OK, "idempotent: {script}");
    }
}

#[test]
fn a_word_that_the_state_rests_on_alone_can_be_taken_back() {
    let cases = [
        ("claim; timeout; resolve=ok; resolve=retryable!last", "retryable proceed retry_allowed"),
        ("claim; timeout; resolve=terminal; resolve=ok!last", "ok reuse already_ok"),
        ("claim; timeout; resolve=abandoned; resolve=ok!last", "ok reuse already_ok"),
        ("claim; timeout; resolve=retryable; resolve=ok!last", "ok reuse already_ok"),
        // A correction can be corrected.
        (
            "claim; timeout; resolve=ok; resolve=terminal!last; resolve=retryable!last",
            "retryable proceed retry_allowed",
        ),
        // What was wrongly taken for a success counts as none afterwards.
        ("claim; timeout; resolve=ok; resolve=retryable!last; claim; ok", "ok reuse already_ok"),
        // An earlier word about another attempt stays.
        (
            "claim; timeout; resolve=retryable; claim; timeout; resolve=ok; resolve=terminal!last",
            "terminal stop terminal_error",
        ),
        // Evidence that was there all the time decides once the word is gone.
        ("claim; timeout; resolve=terminal; ok; resolve=retryable!last", "ok reuse already_ok"),
        (
            "claim; timeout; resolve=ok; terminal_error; resolve=retryable!last",
            "terminal stop terminal_error",
        ),
    ];
    for (script, expected) in cases {
        let mut ledger = Pure::of(Effect::Opaque);
        assert_eq!(ledger.run(script), Answer::Taken { replayed: false }, "{script}");
        assert_eq!(ledger.summary(), expected, "{script}");
    }
}

/// Evidence against a word sets a conflict; the resolution that clears it takes the place of that
/// word, without naming it.
#[test]
fn a_word_that_resolves_a_conflict_replaces_the_word_before() {
    const OK: &str = "ok reuse already_ok";
    const TERMINAL: &str = "terminal stop terminal_error";
    const RETRYABLE: &str = "retryable proceed retry_allowed";
    const ABANDONED: &str = "abandoned stop abandoned";
    let cases = [
        // A success after an error is kept as evidence, but it is not the attempt's status.
        (
            "claim; retryable_error; resolve=terminal; ok",
            [
                ("ok", OK),
                ("terminal", TERMINAL),
                ("retryable", RETRYABLE),
                ("abandoned", ABANDONED),
            ],
        ),
        // A late error of the only attempt contradicts an operator's `ok`.
        (
            "claim; timeout; resolve=ok; retryable_error",
            [
                ("ok", OK),
                ("terminal", TERMINAL),
                ("retryable", RETRYABLE),
                ("abandoned", ABANDONED),
            ],
        ),
        // A reported success beats all words but `terminal`.
        (
            "claim; timeout; resolve=terminal; ok",
            [("ok", OK), ("terminal", TERMINAL), ("retryable", OK), ("abandoned", OK)],
        ),
        (
            "claim; timeout; shot=retryable_error; resolve=terminal; ok@1",
            [("ok", OK), ("terminal", TERMINAL), ("retryable", OK), ("abandoned", OK)],
        ),
    ];
    for (script, words) in cases {
        for (word, expected) in words {
            let mut ledger = Pure::of(Effect::Opaque);
            ledger.run(script);
            assert!(ledger.summary().ends_with('!'), "{script}: {}", ledger.summary());
            ledger.run(&format!("resolve={word}"));
            assert_eq!(ledger.summary(), expected, "{script}; {word}");
        }
    }
}

/// What the word before had settled goes with it.
#[test]
fn a_replaced_word_leaves_nothing_behind() {
    const CONFLICT: &str = "claim; timeout; resolve=ok; retryable_error";
    let cases = [
        ("resolve=terminal; resolve=terminal!last", "terminal stop terminal_error"),
        ("resolve=ok; resolve=retryable!last", "retryable proceed retry_allowed"),
        ("resolve=retryable; claim; ok", "ok reuse already_ok"),
        // Here the first attempt still counts as one that took effect.
        ("resolve=ok; shot=ok", "ok reuse already_ok !"),
    ];
    for (script, expected) in cases {
        let script = format!("{CONFLICT}; {script}");
        assert_eq!(summary(Effect::Opaque, &script), expected, "{script}");
    }
}

#[test]
fn evidence_is_never_overruled() {
    let refused = Answer::Refused(Refusal::NothingToResolve);
    let cases = [
        // The success was reported later: the state rests on it, not on the word.
        "claim; timeout; resolve=ok; ok; resolve=retryable!last",
        "claim; ok; resolve=retryable!last",
        "claim; timeout; check=executed_ok; resolve=retryable!2",
        // Another event, or a word that was corrected already.
        "claim; timeout; resolve=ok; resolve=retryable!0",
        "claim; timeout; resolve=ok; resolve=terminal!last; resolve=ok!2",
        // A new attempt has begun since.
        "claim; timeout; resolve=retryable; claim; retryable_error; resolve=ok!2",
    ];
    for script in cases {
        let mut ledger = Pure::of(Effect::Opaque);
        assert_eq!(ledger.run(script), refused, "{script}");
    }
}

#[test]
fn a_lease_is_renewed_while_it_lives_and_never_past_its_key_window() {
    use recibo_core::effect::Terms;
    let ends = |terms: Terms, script: &str| {
        let mut ledger = Pure::new(terms);
        ledger.run(script);
        let end = ledger.call().and_then(|call| call.tip.newest.lease_expires_at());
        end.map(|end| end.ms_since(recibo_tests::pure::START))
    };
    let opaque = Terms::of(Effect::Opaque);
    let keyed = Terms { key_window_ms: Some(5000), ..Terms::of(Effect::Keyed) };
    assert_eq!(ends(opaque, "claim; +500; renew=1000"), Some(1500));
    assert_eq!(ends(opaque, "claim; +500; renew=2000; +1900; renew=60000"), Some(62_400));
    assert_eq!(ends(opaque, "claim; +500; renew=400"), Some(1000), "never an earlier end");
    assert_eq!(ends(keyed, "claim; +500; renew=60000"), Some(5000), "the key window's end");
    // After the window nothing can collide any more.
    assert_eq!(ends(keyed, "claim; retryable_error; +6000; claim; +500; renew=1000"), Some(7500));
    for script in ["claim; +1000; renew=1000", "claim; ok; renew=1000"] {
        let mut ledger = Pure::new(opaque);
        assert_eq!(ledger.run(script), Answer::Refused(Refusal::LeaseOver), "{script}");
    }
}

#[test]
fn restarts_add_to_a_lease_no_more_than_was_granted_or_renewed_last() {
    let left = |script: &str| {
        let mut ledger = Pure::of(Effect::Opaque);
        ledger.run(script);
        let end = ledger.call().and_then(|call| call.tip.newest.lease_expires_at());
        end.map(|end| end.ms_since(ledger.now))
    };
    assert_eq!(left("claim; +300; restart+5000"), Some(700));
    assert_eq!(left("claim; +300; restart+500; restart+500"), Some(700));
    assert_eq!(left("claim; +300; restart+600; restart+600"), Some(500), "1000 ms were added");
    assert_eq!(left("claim; +300; restart+600; restart+600; restart+5000"), Some(0));
    assert_eq!(
        left("claim; +300; restart+600; renew=1000; +300; restart+600; restart+400"),
        Some(700),
        "a renewal grants anew"
    );
    assert_eq!(left("claim; +1000; restart+5"), Some(0), "what was over stays over");
}
