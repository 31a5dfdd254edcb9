//! Late and repeated outcomes, one-shots, status checks and resolutions: what is taken, what
//! it makes of the call, and what is refused.

use recibo_core::effect::{Effect, Terms};
use recibo_core::plan::Refusal;
use recibo_tests::pure::{Answer, Pure};

const TAKEN: Answer = Answer::Taken { replayed: false };
const REPLAYED: Answer = Answer::Taken { replayed: true };

/// Effect, script, the answer of its last word, the statuses of all attempts, the summary.
type Row = (Effect, &'static str, Answer, &'static str, &'static str);

fn check(rows: impl IntoIterator<Item = Row>) {
    for (effect, script, answer, statuses, summary) in rows {
        let mut ledger = Pure::of(effect);
        assert_eq!(ledger.run(script), answer, "answer of: {script}");
        assert_eq!(ledger.statuses(), statuses, "statuses after: {script}");
        assert_eq!(ledger.summary(), summary, "summary after: {script}");
    }
}

#[test]
fn first_outcomes_are_always_taken() {
    let o = Effect::Opaque;
    check([
        (o, "claim; ok", TAKEN, "ok", "ok reuse already_ok"),
        (o, "claim; +1000; ok", TAKEN, "ok", "ok reuse already_ok"),
        (o, "claim; +1000; expire; ok", TAKEN, "ok", "ok reuse already_ok"),
        (o, "claim; +5000; timeout", TAKEN, "timeout", "unknown stop outcome_unknown"),
        (
            o,
            "claim; +5000; retryable_error",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            o,
            "claim; +5000; resolve=abandoned; unknown",
            TAKEN,
            "unknown",
            "abandoned stop abandoned",
        ),
    ]);
}

#[test]
fn outcomes_after_outcomes() {
    let o = Effect::Opaque;
    let no = || Answer::Refused(Refusal::OutcomeConflict);
    check([
        // The same again.
        (o, "claim; ok; ok", REPLAYED, "ok", "ok reuse already_ok"),
        (o, "claim; timeout; timeout", REPLAYED, "timeout", "unknown stop outcome_unknown"),
        (o, "claim; timeout; ok; timeout", REPLAYED, "ok", "ok reuse already_ok"),
        // A definite one after an indefinite one.
        (o, "claim; timeout; ok", TAKEN, "ok", "ok reuse already_ok"),
        (o, "claim; unknown; ok", TAKEN, "ok", "ok reuse already_ok"),
        (
            o,
            "claim; timeout; retryable_error",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            o,
            "claim; timeout; terminal_error",
            TAKEN,
            "terminal_error",
            "terminal stop terminal_error",
        ),
        // An indefinite one after another.
        (o, "claim; timeout; unknown", no(), "timeout", "unknown stop outcome_unknown"),
        (o, "claim; unknown; timeout", no(), "unknown", "unknown stop outcome_unknown"),
        // Anything after a definite one, but for a success after an error.
        (o, "claim; ok; timeout", no(), "ok", "ok reuse already_ok"),
        (o, "claim; ok; terminal_error", no(), "ok", "ok reuse already_ok"),
        (o, "claim; ok; retryable_error", no(), "ok", "ok reuse already_ok"),
        (
            o,
            "claim; retryable_error; terminal_error",
            no(),
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            o,
            "claim; terminal_error; timeout",
            no(),
            "terminal_error",
            "terminal stop terminal_error",
        ),
        (o, "claim; terminal_error; ok", TAKEN, "terminal_error", "terminal stop terminal_error !"),
        (o, "claim; retryable_error; ok", TAKEN, "retryable_error", "retryable stop conflict !"),
        (
            o,
            "claim; retryable_error; ok; ok",
            REPLAYED,
            "retryable_error",
            "retryable stop conflict !",
        ),
        (
            o,
            "claim; retryable_error; ok; resolve=retryable",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            o,
            "claim; retryable_error; ok; resolve=ok",
            TAKEN,
            "retryable_error",
            "ok reuse already_ok",
        ),
    ]);
}

#[test]
fn success_as_evidence_has_no_token_and_a_late_success_has_one() {
    let token_of_last = |script: &str| {
        let mut ledger = Pure::of(Effect::Opaque);
        ledger.run(script);
        ledger.events.last().and_then(|event| event.body.token().copied())
    };
    assert!(token_of_last("claim; timeout; ok").is_some());
    assert!(token_of_last("claim; +1000; ok").is_some());
    assert!(token_of_last("claim; retryable_error; ok").is_none());
    assert!(token_of_last("claim; terminal_error; ok").is_none());
    assert!(token_of_last("claim; timeout").is_none());
}

#[test]
fn late_success_of_an_older_attempt() {
    let i = Effect::Idempotent;
    check([
        (i, "claim; timeout; claim; ok@1", TAKEN, "ok started", "ok reuse already_ok"),
        (
            i,
            "claim; timeout; claim; retryable_error; ok@1",
            TAKEN,
            "ok retryable_error",
            "ok reuse already_ok",
        ),
        (i, "claim; timeout; claim; timeout; ok@1", TAKEN, "ok timeout", "ok reuse already_ok"),
        (
            i,
            "claim; timeout; claim; terminal_error; ok@1",
            TAKEN,
            "ok terminal_error",
            "terminal stop terminal_error !",
        ),
        // Two successes are no conflict where repeating does no harm.
        (i, "claim; timeout; claim; ok; ok@1", TAKEN, "ok ok", "ok reuse already_ok"),
        (i, "claim; timeout; resolve=abandoned; ok", TAKEN, "ok", "ok reuse already_ok"),
    ]);
}

#[test]
fn one_shots_record_what_happened_in_any_state() {
    let o = Effect::Opaque;
    check([
        (o, "shot=ok", TAKEN, "ok", "ok reuse already_ok"),
        (o, "shot=ok; shot=ok", REPLAYED, "ok", "ok reuse already_ok"),
        (o, "shot=ok; +1; shot=ok", TAKEN, "ok ok", "ok reuse already_ok !"),
        (
            o,
            "shot=timeout; +1; shot=retryable_error",
            TAKEN,
            "timeout retryable_error",
            "unknown stop outcome_unknown",
        ),
        (
            o,
            "shot=timeout; +1; shot=terminal_error",
            TAKEN,
            "timeout terminal_error",
            "unknown stop outcome_unknown",
        ),
        (
            o,
            "shot=terminal_error; +1; shot=ok",
            TAKEN,
            "terminal_error ok",
            "terminal stop terminal_error !",
        ),
        (o, "claim; timeout; shot=ok", TAKEN, "timeout ok", "ok reuse already_ok"),
        (o, "claim; +1000; shot=ok", TAKEN, "unknown ok", "ok reuse already_ok"),
        (Effect::ReadOnly, "shot=ok; +1; shot=ok", TAKEN, "ok ok", "ok reuse already_ok"),
        (
            Effect::ReadOnly,
            "shot=timeout; +1; shot=retryable_error",
            TAKEN,
            "timeout retryable_error",
            "retryable proceed retry_allowed",
        ),
    ]);
    let mut ledger = Pure::of(o);
    let answer = ledger.run("claim; +10; shot=ok");
    assert!(matches!(answer, Answer::Refused(Refusal::AttemptOpen { attempt: 1, .. })));
}

#[test]
fn status_checks_settle_only_when_they_can_know() {
    let q = Effect::Queryable;
    let settled = || Answer::Refused(Refusal::AttemptSettled);
    check([
        (q, "claim; timeout; check=executed_ok", TAKEN, "ok", "ok reuse already_ok"),
        (
            q,
            "claim; timeout; check=executed_failed",
            TAKEN,
            "terminal_error",
            "terminal stop terminal_error",
        ),
        // "Not executed" counts from the attempt's end plus the settle time (100 ms) on.
        (
            q,
            "claim; timeout; +99; check=not_executed",
            TAKEN,
            "timeout",
            "unknown check_status outcome_unknown",
        ),
        (
            q,
            "claim; timeout; +100; check=not_executed",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            q,
            "claim; timeout; +150; check=not_executed@1-51",
            TAKEN,
            "timeout",
            "unknown check_status outcome_unknown",
        ),
        (
            q,
            "claim; timeout; +150; check=not_executed@1-50",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            q,
            "claim; +1099; check=not_executed",
            TAKEN,
            "unknown",
            "unknown check_status outcome_unknown",
        ),
        (
            q,
            "claim; +1100; check=not_executed",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        // These change nothing.
        (
            q,
            "claim; timeout; +200; check=pending",
            TAKEN,
            "timeout",
            "unknown check_status outcome_unknown",
        ),
        (
            q,
            "claim; timeout; +200; check=indeterminate",
            TAKEN,
            "timeout",
            "unknown check_status outcome_unknown",
        ),
        (
            q,
            "claim; timeout; +200; check=unsupported",
            TAKEN,
            "timeout",
            "unknown check_status outcome_unknown",
        ),
        // Only attempts that read unknown or timeout.
        (q, "claim; check=executed_ok", settled(), "started", "in_flight wait lease_live"),
        (q, "claim; ok; check=executed_ok", settled(), "ok", "ok reuse already_ok"),
        (
            q,
            "claim; retryable_error; check=executed_ok",
            settled(),
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            q,
            "claim; timeout; check=executed_ok; check=executed_failed",
            settled(),
            "ok",
            "ok reuse already_ok",
        ),
        // What comes later contradicts, or does not.
        (q, "claim; timeout; check=executed_ok; ok", TAKEN, "ok", "ok reuse already_ok"),
        (
            q,
            "claim; timeout; check=executed_ok; terminal_error",
            TAKEN,
            "terminal_error",
            "ok reuse already_ok !",
        ),
        (q, "claim; timeout; +100; check=not_executed; ok", TAKEN, "ok", "ok reuse already_ok !"),
        (
            q,
            "claim; timeout; check=executed_failed; ok",
            TAKEN,
            "ok",
            "terminal stop terminal_error !",
        ),
        // A second failure proves nothing about the first attempt.
        (
            q,
            "claim; timeout; shot=retryable_error; check=executed_failed@1",
            TAKEN,
            "terminal_error retryable_error",
            "retryable proceed retry_allowed",
        ),
    ]);
}

#[test]
fn without_a_settle_time_not_executed_never_counts() {
    let mut ledger = Pure::new(Terms::of(Effect::Queryable));
    ledger.run("claim; timeout; +1000000000; check=not_executed");
    assert_eq!(ledger.summary(), "unknown check_status outcome_unknown");
}

#[test]
fn resolutions_settle_what_nobody_knows() {
    let o = Effect::Opaque;
    let nothing = || Answer::Refused(Refusal::NothingToResolve);
    check([
        (o, "claim; timeout; resolve=ok", TAKEN, "ok", "ok reuse already_ok"),
        (o, "claim; +1000; resolve=ok", TAKEN, "ok", "ok reuse already_ok"),
        (
            o,
            "claim; timeout; resolve=retryable",
            TAKEN,
            "retryable_error",
            "retryable proceed retry_allowed",
        ),
        (
            o,
            "claim; timeout; resolve=terminal",
            TAKEN,
            "terminal_error",
            "terminal stop terminal_error",
        ),
        (
            o,
            "claim; retryable_error; resolve=terminal",
            TAKEN,
            "retryable_error",
            "terminal stop terminal_error",
        ),
        (
            o,
            "claim; retryable_error; resolve=abandoned",
            TAKEN,
            "retryable_error",
            "abandoned stop abandoned",
        ),
        (
            o,
            "claim; timeout; resolve=retryable; claim; timeout",
            TAKEN,
            "retryable_error timeout",
            "unknown stop outcome_unknown",
        ),
        (o, "claim; timeout; resolve=retryable; ok", TAKEN, "ok", "ok reuse already_ok !"),
        (
            o,
            "claim; timeout; shot=timeout; resolve=retryable",
            TAKEN,
            "retryable_error retryable_error",
            "retryable proceed retry_allowed",
        ),
        (o, "claim; ok; resolve=ok", nothing(), "ok", "ok reuse already_ok"),
        (
            o,
            "claim; timeout; resolve=abandoned; resolve=ok",
            nothing(),
            "timeout",
            "abandoned stop abandoned",
        ),
        (o, "shot=ok; +1; shot=ok; resolve=ok", TAKEN, "ok ok", "ok reuse already_ok"),
        (
            o,
            "claim; terminal_error; ok; resolve=ok",
            TAKEN,
            "terminal_error",
            "terminal stop terminal_error",
        ),
    ]);
    check([
        // An operator's word is about the call, and says of one attempt only if there is one.
        (
            o,
            "claim; timeout; resolve=ok; retryable_error",
            TAKEN,
            "retryable_error",
            "ok reuse already_ok !",
        ),
        (
            Effect::Keyed,
            "claim; +1000; claim; +1000; resolve=ok; retryable_error@1",
            TAKEN,
            "retryable_error ok",
            "ok reuse already_ok",
        ),
    ]);
    let mut ledger = Pure::of(o);
    let answer = ledger.run("claim; +10; resolve=ok");
    assert!(matches!(answer, Answer::Refused(Refusal::LeaseLive { .. })));
}

#[test]
fn one_claim_id_gets_one_grant() {
    let mut ledger = Pure::of(Effect::Idempotent);
    assert_eq!(ledger.run("claim=a"), Answer::Granted { attempt: 1, replayed: false });
    assert_eq!(ledger.run("+500; claim=a"), Answer::Granted { attempt: 1, replayed: true });
    assert!(matches!(ledger.run("claim=b"), Answer::Advice(_)));
    assert_eq!(
        ledger.run("+500; claim=a"),
        Answer::Refused(Refusal::ClaimUsed { attempt: 1 }),
        "after the lease the same claim would be a second permission"
    );
    assert_eq!(ledger.run("claim=b"), Answer::Granted { attempt: 2, replayed: false });
    assert_eq!(
        ledger.run("retryable_error; claim=a"),
        Answer::Refused(Refusal::ClaimUsed { attempt: 1 })
    );
    assert!(matches!(ledger.run("ok@1; claim=a"), Answer::Advice(_)), "the current decision");
}
