use recibo_core::call::OutcomeMark;
use recibo_core::decision::Decision;
use recibo_core::effect::Effect;
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{CallRef, Labels, RunId, ScopeId, ToolCallId, ToolName, Trace};
use recibo_core::receipt::{IdempotencyKey, Token};
use recibo_core::record::{CheckMark, Record as CoreRecord};
use recibo_core::status::{
    AttemptStatus, CallState, CheckAnswer, DecisionKind, OutcomeStatus, Reason, ResolvedAs,
    SettledBy,
};
use recibo_core::time::Time;

use super::*;
use crate::problem::{Code, Problem};
use crate::word::{Timestamp, Word};

pub(crate) fn call_ref() -> CallRef {
    CallRef {
        run_id: RunId::parse("run_82f").unwrap(),
        tool_call_id: ToolCallId::parse("call_17").unwrap(),
    }
}

pub(crate) fn core_record() -> CoreRecord {
    let at = Time::parse("2026-09-13T02:00:00Z").unwrap();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    CoreRecord {
        call: call_ref(),
        tool: ToolName::parse("lookup").unwrap(),
        attempt: 2,
        status: AttemptStatus::Ok,
        started_at: at,
        duration_ms: Some(842),
        finished_at: Some(at.plus_ms(850)),
        recorded_at: at,
        input_hash: InputHash::of_canonical("1"),
        output_hash: Some(OutputHash::of_text("x")),
        output_summary: Some(r#"{"a":12345678901234567890123,"z":1}"#.to_owned()),
        error_class: None,
        token: Some(Token { epoch: 7, digest: [0; 32] }),
        scope_id: ScopeId::parse("sc_1").unwrap(),
        effect: Effect::ReadOnly,
        idempotency_key: key(),
        operation_key: None,
        message_id: None,
        labels: Labels::parse([("team".to_owned(), "blue".to_owned())]).unwrap(),
        trace: Some(Trace::parse(traceparent).unwrap()),
        provider_ref: None,
        lease_expires_at: None,
        outcomes: vec![OutcomeMark {
            seq: 18,
            at,
            status: OutcomeStatus::Ok,
            late: false,
            answered: false,
        }],
        started_seq: 17,
        finished_seq: Some(18),
        redacted: false,
        late: false,
        settled_by: Some(SettledBy::StatusCheck),
        checks: vec![CheckMark {
            answer: CheckAnswer::ExecutedOk,
            source: "bank".into(),
            at,
            seq: 19,
            counted: true,
        }],
    }
}

fn key() -> IdempotencyKey {
    IdempotencyKey::derive("default", "run_82f", "call_17")
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// The top-level member names of a JSON object, in order.
fn names(text: &str) -> Vec<String> {
    let (mut names, mut depth, mut rest) = (Vec::new(), 0, text);
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        match rest.as_bytes()[at] {
            b'"' => {
                let inner = &rest[at + 1..];
                let end = inner.find('"').unwrap();
                if depth == 1 && inner[end + 1..].starts_with(':') {
                    names.push(inner[..end].to_owned());
                }
                rest = &inner[end + 1..];
                continue;
            }
            b'{' | b'[' => depth += 1,
            _ => depth -= 1,
        }
        rest = &rest[at + 1..];
    }
    names
}

const RECORD: &str = "run_id tool_call_id tool attempt status started_at duration_ms finished_at \
    recorded_at input_hash output_hash output_summary error_class token scope_id effect \
    idempotency_key operation_key message_id labels trace_id span_id provider_ref \
    lease_expires_at outcomes seq redacted late settled_by checks swept";

#[test]
fn a_record_has_the_members_of_the_contract_in_their_order() {
    let text = json(&Record::from_core(&core_record()));
    assert_eq!(names(&text).join(" "), RECORD);
    for part in [
        r#""status":"ok","started_at":"2026-09-13T02:00:00.000Z","duration_ms":842,"#,
        r#""output_summary":{"a":12345678901234567890123,"z":1},"error_class":null,"#,
        r#""labels":{"team":"blue"},"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","#,
        r#""outcomes":[{"status":"ok","at":"2026-09-13T02:00:00.000Z","seq":18,"late":false}],"#,
        r#""seq":{"started":17,"finished":18},"redacted":false,"late":false,"settled_by":"status_check","checks":[{"answer":"executed_ok","source":"bank","at":"2026-09-13T02:00:00.000Z","seq":19,"counted":true}],"swept":null}"#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let back: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(json(&back), text);
}

#[test]
fn flattened_answers_are_written_and_read_back() {
    let outcome = json(&OutcomeAnswer::from_core(&core_record(), true));
    assert_eq!(
        names(&outcome).join(" "),
        format!("{RECORD} replayed receipt_line no_token_reason")
    );
    assert!(outcome.contains(r#""receipt_line":"[receipt: zc-receipt-7-"#));
    let back: OutcomeAnswer = serde_json::from_str(&outcome).unwrap();
    assert_eq!(json(&back), outcome);

    let batch = BatchAnswer {
        results: vec![BatchResult::recorded(back), Problem::new(Code::InvalidId, "why").into()],
    };
    let text = json(&batch);
    assert!(text.starts_with(r#"{"results":[{"status":200,"record":{"run_id":"#), "{text}");
    assert!(text.contains(r#"{"status":400,"problem":{"type":"urn:recibo:problem:invalid_id","#));
    assert_eq!(json(&serde_json::from_str::<BatchAnswer>(&text).unwrap()), text);
}

#[test]
fn a_call_is_shown_with_its_attempts_and_its_decision() {
    let call = Call {
        run_id: "run_82f".into(),
        tool_call_id: "call_17".into(),
        tool: "lookup".into(),
        effect: Word(Effect::ReadOnly),
        state: Word(CallState::Ok),
        conflict: false,
        idempotency_key: key().to_string(),
        operation_key: None,
        input_hash: Some(InputHash::of_canonical("1").to_string()),
        terms: Terms { settle_ms: Some(5000), ..Terms::default() },
        attempts: vec![Record::from_core(&core_record())],
        resolutions: vec![ResolutionEntry {
            state: Word(ResolvedAs::Ok),
            reason: "seen".into(),
            at: Timestamp(Time::from_ms(1000)),
            by: Some("local".into()),
            seq: 4,
            corrects: None,
        }],
        version: 5,
    };
    let decision = decision(DecisionKind::Reuse, CallState::Ok, None);
    let text = json(&CallAnswer::from_core(call, &decision, Some(9)));
    assert_eq!(
        names(&text).join(" "),
        "run_id tool_call_id tool effect state conflict idempotency_key operation_key input_hash \
         terms attempts resolutions version decision reason retry_after_ms"
    );
    for part in [
        r#""terms":{"key_window_ms":null,"key_window_ends_at":null,"settle_ms":5000,"max_attempts":null,"is_error":null},"attempts":["#,
        r#""resolutions":[{"state":"ok","reason":"seen","at":"1970-01-01T00:00:01.000Z","by":"local","seq":4,"corrects":null}],"version":5"#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(
        text.ends_with(
            r#""version":5,"decision":"reuse","reason":"already_ok","retry_after_ms":9}"#
        )
    );
    assert_eq!(json(&serde_json::from_str::<CallAnswer>(&text).unwrap()), text);
}

fn decision(kind: DecisionKind, state: CallState, retry_after_ms: Option<u64>) -> Decision {
    Decision { kind, reason: Reason::AlreadyOk, state, retry_after_ms }
}

#[test]
fn advice_has_the_names_of_a_grant_without_the_lease() {
    const NAMES: &str = "decision reason run_id tool_call_id attempt state effect terms \
        idempotency_key input_hash started_at replayed twin";
    let advice = |decision: &Decision, record: Option<&CoreRecord>| {
        DecisionAnswer::from_core(&Decided {
            call: &call_ref(),
            key: &key(),
            decision,
            terms: record.map(|record| (record.effect, Terms::default())),
            record,
            input_hash: None,
            twin: None,
        })
    };
    let record = core_record();
    let reuse = decision(DecisionKind::Reuse, CallState::Ok, None);
    let text = json(&ClaimAnswer::Advice(Box::new(advice(&reuse, Some(&record)))));
    assert_eq!(names(&text).join(" "), format!("{NAMES} result_available hint record"));
    assert!(text.contains(r#""result_available":false,"hint":"#));
    let back: ClaimAnswer = serde_json::from_str(&text).unwrap();
    assert!(matches!(back, ClaimAnswer::Advice(_)));
    assert_eq!(json(&back), text);

    let keyed = CoreRecord { effect: Effect::Keyed, ..record.clone() };
    assert_eq!(advice(&reuse, Some(&keyed)).hint, None);
    let wait = decision(DecisionKind::Wait, CallState::InFlight, Some(7));
    let text = json(&advice(&wait, Some(&record)));
    assert_eq!(names(&text).join(" "), format!("{NAMES} retry_after_ms record"));
    let absent = decision(DecisionKind::Proceed, CallState::Absent, None);
    let text = json(&advice(&absent, None));
    assert!(text.contains(r#""attempt":null,"state":"absent""#), "{text}");
    assert!(text.ends_with(
        r#""input_hash":null,"started_at":null,"replayed":false,"twin":null,"record":null}"#
    ));
}

#[test]
fn a_grant_has_a_lease_and_never_shows_its_token_in_debug() {
    let granted = Granted {
        decision: Word(DecisionKind::Proceed),
        reason: Word(Reason::FirstAttempt),
        run_id: "run_82f".into(),
        tool_call_id: "call_17".into(),
        attempt: 1,
        state: Word(CallState::InFlight),
        effect: Word(Effect::Opaque),
        terms: Terms::default(),
        idempotency_key: key().to_string(),
        input_hash: InputHash::of_canonical("1").to_string(),
        started_at: Timestamp(Time::from_ms(1000)),
        lease: Lease {
            token: "s3cr3t".into(),
            duration_ms: 29_999,
            expires_at: Timestamp(Time::from_ms(31_000)),
        },
        replayed: true,
        twin: None,
    };
    assert!(!format!("{granted:?}").contains("s3cr3t"));
    let text = json(&ClaimAnswer::Granted(Box::new(granted)));
    assert_eq!(
        names(&text).join(" "),
        "decision reason run_id tool_call_id attempt state effect terms idempotency_key \
         input_hash started_at lease replayed twin"
    );
    assert!(text.contains(
        r#""lease":{"token":"s3cr3t","duration_ms":29999,"expires_at":"1970-01-01T00:00:31.000Z"},"replayed":true,"twin":null}"#
    ));
    let back: ClaimAnswer = serde_json::from_str(&text).unwrap();
    assert!(matches!(back, ClaimAnswer::Granted(_)));
    assert_eq!(json(&back), text);
}

#[test]
fn small_answers_have_their_members() {
    let created = ApiKeyCreated {
        id: "ak_1".into(),
        api_key: "rcb_MARK".into(),
        roles: vec![Word(crate::role::Role::Admin)],
        namespace: "default".into(),
        expires_at: None,
    };
    assert!(!format!("{created:?}").contains("MARK"));
    assert_eq!(
        json(&created),
        r#"{"id":"ak_1","api_key":"rcb_MARK","roles":["admin"],"namespace":"default"}"#
    );
    let by_state =
        ByState { in_flight: 1, unknown: 2, retryable: 3, ok: 4, terminal: 5, abandoned: 6 };
    assert_eq!(
        json(&by_state),
        r#"{"in_flight":1,"unknown":2,"retryable":3,"ok":4,"terminal":5,"abandoned":6}"#
    );
    let config = json(&ConfigAnswer::new("0.1.0"));
    assert!(config.starts_with(
        r#"{"version":"0.1.0","lease_ms":{"min":1000,"max":86400000,"default":60000},"#
    ));
}

#[test]
fn types_have_schemas() {
    use utoipa::PartialSchema;
    let record = json(&Record::schema());
    assert!(record.contains(r##""$ref":"#/components/schemas/AttemptStatus""##), "{record}");
    assert!(record.contains(r#""settled_by""#));
    let claim = json(&crate::request::ClaimRequest::schema());
    assert!(claim.contains(r#""additionalProperties":false"#), "{claim}");
    assert!(claim.contains(r#""required":["scope_id","claim_id","tool"]"#), "{claim}");
    let answer = json(&OutcomeAnswer::schema());
    assert!(answer.contains("allOf"), "{answer}");
}
