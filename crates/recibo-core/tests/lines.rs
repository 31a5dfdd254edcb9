//! Event lines are hashed into the log, so each version is frozen: one golden line for every type
//! of event, with all members and with as few as possible. `RECIBO_BLESS=1` writes the files
//! anew; that is allowed only together with a new line version.

use recibo_core::effect::{Effect, IsError, Policy, Rule, Terms, TwinScope};
use recibo_core::event::{
    Body, Event, Facts, Finished, Outcome, Owner, Receipt, Recorded, Resolved, Restarted,
    ScopeOpened, Started, StatusChecked,
};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::*;
use recibo_core::json::canonicalize;
use recibo_core::limits;
use recibo_core::line::render;
use recibo_core::receipt::Token;
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs, ScopeEnd};
use recibo_core::time::Time;

fn call() -> CallRef {
    CallRef {
        run_id: RunId::parse("run_82f").unwrap(),
        tool_call_id: ToolCallId::parse("call_x|fc_y=").unwrap(),
    }
}

fn at(ms: u64) -> Time {
    Time::from_ms(1_789_264_800_000 + ms)
}

fn scope() -> ScopeId {
    ScopeId::parse("sc_06hhgn2g003u09u08ug6f047c0").unwrap()
}

fn full_facts() -> Facts {
    Facts {
        tool: ToolName::parse("crm/\"día ☀\"").unwrap(),
        input_hash: InputHash::of_canonical("{}"),
        terms: Terms {
            key_window_ms: Some(86_400_000),
            settle_ms: Some(5000),
            max_attempts: Some(5),
            ..Terms::of(Effect::Queryable)
        },
        operation_key: Some(OperationKey::parse("order-17").unwrap()),
        message_id: Some(MessageId::parse("msg_9").unwrap()),
        labels: Labels::parse([("team".into(), "blue".into()), ("\u{e9}".into(), "\"".into())])
            .unwrap(),
        trace: Some(
            Trace::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap(),
        ),
        redacted: true,
        twin_hash: None,
        twin_scope: TwinScope::Run,
    }
}

fn bare_facts() -> Facts {
    Facts {
        tool: ToolName::parse("mail").unwrap(),
        input_hash: InputHash::of_canonical("null"),
        terms: Terms::of(Effect::Opaque),
        operation_key: None,
        message_id: None,
        labels: Labels::default(),
        trace: None,
        redacted: false,
        twin_hash: None,
        twin_scope: TwinScope::Run,
    }
}

fn ok() -> Outcome {
    Outcome {
        status: OutcomeStatus::Ok,
        duration_ms: 842,
        output_hash: Some(OutputHash::of_text("día ☀\n")),
        output_summary: Some("{\"bytes\":42,\"fields\":[\"customer_id\",\"plan\"]}".into()),
        error_class: None,
        provider_ref: Some("re_17".into()),
        message_id: Some("msg_10".into()),
        redacted: true,
        answered: false,
    }
}

fn failed(status: OutcomeStatus) -> Outcome {
    Outcome {
        status,
        duration_ms: 0,
        output_hash: None,
        output_summary: None,
        error_class: Some(ErrorClass::parse("http.503").unwrap()),
        provider_ref: None,
        message_id: None,
        redacted: false,
        answered: false,
    }
}

fn token() -> Token {
    Token { epoch: 1_789_264_800, digest: [0xa5; 32] }
}

fn resolution() -> Resolved {
    Resolved {
        call: call(),
        state: ResolvedAs::Abandoned,
        reason: "asked \"the bank\"\n".into(),
        redacted: false,
        by: None,
        corrects: None,
    }
}

/// What lines of version 1 have members for.
fn first_bodies() -> Vec<Body> {
    let policy = Policy {
        rules: vec![Rule::new("crm/*", full_facts().terms), Rule::new("mail", bare_facts().terms)],
    };
    let opened = |label: Option<&str>| {
        let label = label.map(str::to_owned);
        Body::ScopeOpened(ScopeOpened { scope_id: scope(), label, expires_at: at(86_400_000) })
    };
    let closed = |end| Body::ScopeClosed { scope_id: scope(), end };
    let started = |facts| {
        Body::Started(Started {
            call: call(),
            attempt: 2,
            facts,
            claim_id: ClaimId::parse("c-1").unwrap(),
            scope_id: scope(),
            lease_expires_at: at(30_000),
        })
    };
    let receipt = Receipt { scope_id: scope(), token: token() };
    let finished = |outcome, late, receipt| {
        Body::Finished(Finished { call: call(), attempt: 2, outcome, late, receipt })
    };
    let recorded = |facts, outcome, token| {
        let (call, scope_id, started_at) = (call(), scope(), at(0));
        Body::Recorded(Recorded { call, attempt: 1, facts, scope_id, started_at, outcome, token })
    };
    let checked = |provider_ref: Option<&str>, settles, redacted| {
        Body::StatusChecked(StatusChecked {
            call: call(),
            attempt: 1,
            answer: CheckAnswer::NotExecuted,
            source: "status page".into(),
            age_ms: 12,
            provider_ref: provider_ref.map(str::to_owned),
            settles,
            redacted,
        })
    };
    let resolved = |redacted| Body::Resolved(Resolved { redacted, ..resolution() });
    vec![
        opened(Some("turn 3")),
        opened(None),
        closed(ScopeEnd::Closed),
        closed(ScopeEnd::Expired),
        started(full_facts()),
        started(bare_facts()),
        finished(ok(), true, Some(receipt)),
        finished(failed(OutcomeStatus::Timeout), false, None),
        recorded(full_facts(), Outcome { message_id: None, ..ok() }, Some(token())),
        recorded(bare_facts(), ok(), None),
        recorded(bare_facts(), failed(OutcomeStatus::TerminalError), None),
        Body::LeaseExpired { call: call(), attempt: 3 },
        Body::LeaseExtended { call: call(), attempt: 3, lease_expires_at: at(60_000) },
        checked(Some("re_17"), true, true),
        checked(None, false, false),
        resolved(true),
        resolved(false),
        Body::PolicySet { policy },
        Body::PolicySet { policy: Policy::default() },
    ]
}

/// Members that came with version 2, each alone and all together.
fn second_bodies() -> Vec<Body> {
    let twin_hash = Some(InputHash::of_canonical("[]"));
    let is_error = Some(IsError::NoEffect);
    let terms = Terms { is_error, ..bare_facts().terms };
    let started = |facts| {
        Body::Started(Started {
            call: call(),
            attempt: 1,
            facts,
            claim_id: ClaimId::parse("c-1").unwrap(),
            scope_id: scope(),
            lease_expires_at: at(30_000),
        })
    };
    let unknown = Outcome { answered: true, ..failed(OutcomeStatus::Unknown) };
    let mut rule = Rule::new("pay", terms);
    rule.twin_by = vec!["order_id".into(), "\"cents\"".into()];
    rule.twin_scope = TwinScope::Namespace;
    let policy = Policy { rules: vec![rule, Rule::new("mail", bare_facts().terms)] };
    let by = Some("06hhgn2g".to_owned());
    vec![
        started(Facts { terms, ..bare_facts() }),
        started(Facts { twin_hash, ..bare_facts() }),
        started(Facts { twin_scope: TwinScope::Namespace, ..bare_facts() }),
        Body::Recorded(Recorded {
            call: call(),
            attempt: 1,
            facts: Facts { terms, twin_hash, twin_scope: TwinScope::Namespace, ..full_facts() },
            scope_id: scope(),
            started_at: at(0),
            outcome: unknown.clone(),
            token: None,
        }),
        Body::Finished(Finished {
            call: call(),
            attempt: 2,
            outcome: unknown,
            late: false,
            receipt: None,
        }),
        Body::Resolved(Resolved { by: by.clone(), ..resolution() }),
        Body::Resolved(Resolved { by, corrects: Some(7), ..resolution() }),
        Body::PolicySet { policy },
        Body::Restarted(Restarted { last_at: at(2), key_windows_void: true }),
        Body::Restarted(Restarted { last_at: at(2), key_windows_void: false }),
    ]
}

fn event(seq: u64, body: Body) -> Event {
    let namespace = Namespace::parse("default").unwrap();
    let is_of_all = matches!(body, Body::Restarted(_));
    let owner = (!is_of_all).then_some(Owner { namespace, nseq: seq / 2 });
    Event { seq, at: at(seq), owner, salt: [seq as u8; 16], body }
}

fn lines(bodies: Vec<Body>) -> Vec<String> {
    (0..).zip(bodies).map(|(seq, body)| render(&event(seq, body))).collect()
}

#[test]
fn lines_of_a_version_never_change() {
    for (version, bodies) in [(1, first_bodies()), (2, second_bodies())] {
        let written = lines(bodies).join("\n") + "\n";
        for line in written.lines() {
            assert!(line.ends_with(&format!(",\"v\":{version}}}")), "{line}");
        }
        let golden = format!("tests/golden/lines-v{version}.ndjson");
        if std::env::var_os("RECIBO_BLESS").is_some() {
            std::fs::write(&golden, &written).unwrap();
        }
        assert_eq!(written, std::fs::read_to_string(&golden).unwrap());
    }
}

#[test]
fn every_line_is_canonical_json() {
    for line in lines([first_bodies(), second_bodies()].concat()) {
        assert_eq!(canonicalize(line.as_bytes()).unwrap(), line);
    }
}

#[test]
fn the_largest_event_fits_a_line() {
    let id = "\"".repeat(limits::ID_LEN_MAX);
    let label = "\"".repeat(limits::LABELS_BYTES_MAX - 1);
    let facts = Facts {
        tool: ToolName::parse(&"\"".repeat(limits::TOOL_LEN_MAX)).unwrap(),
        operation_key: Some(OperationKey::parse(&id).unwrap()),
        message_id: Some(MessageId::parse(&id).unwrap()),
        labels: Labels::parse([("k".into(), label)]).unwrap(),
        ..full_facts()
    };
    let outcome = Outcome {
        output_summary: Some(format!(
            "{{\"a\":\"{}\"}}",
            "x".repeat(limits::SUMMARY_BYTES_MAX - 8)
        )),
        provider_ref: Some(id.clone()),
        error_class: Some(ErrorClass::parse(&"e".repeat(limits::ERROR_CLASS_LEN_MAX)).unwrap()),
        message_id: None,
        duration_ms: limits::NUMBER_MAX,
        ..ok()
    };
    let call = CallRef {
        run_id: RunId::parse(&id).unwrap(),
        tool_call_id: ToolCallId::parse(&id).unwrap(),
    };
    let body = Body::Recorded(Recorded {
        call,
        attempt: u32::MAX,
        facts,
        scope_id: scope(),
        started_at: at(0),
        outcome,
        token: Some(token()),
    });
    let line = render(&event(limits::NUMBER_MAX, body));
    assert!(line.len() <= limits::LINE_BYTES_MAX, "{} bytes", line.len());
    assert!(line.len() > limits::LINE_BYTES_MAX / 2, "the arithmetic in limits.rs is stale");
}
