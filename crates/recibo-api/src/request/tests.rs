use recibo_core::effect::{Policy, StatedTerms};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{CallRef, RunId, ToolCallId};
use recibo_core::plan::{Claim, OneShot, TwinRule};

use super::*;
use crate::body::read;
use crate::problem::{Code, Problem};
use crate::secrets::{SecretPolicy, refuse_claim, refuse_one_shot};

const KEY: &str = "AKIAQ7Q7Q7Q7Q7Q7Q7Q7";

fn call() -> CallRef {
    CallRef { run_id: RunId::parse("r").unwrap(), tool_call_id: ToolCallId::parse("t").unwrap() }
}

/// The members with those in `more` in place of equal ones; `-name` leaves one out.
fn body(base: &[(&str, &str)], more: &[(&str, &str)]) -> String {
    let mut members: Vec<(&str, &str)> = base.to_vec();
    for (name, value) in more {
        members.retain(|(known, _)| known != &name.trim_start_matches('-'));
        if !name.starts_with('-') {
            members.push((name, value));
        }
    }
    let members: Vec<_> = members.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
    format!("{{{}}}", members.join(","))
}

fn claim(more: &[(&str, &str)]) -> Result<Claim, Problem> {
    let base =
        [("scope_id", "\"s\""), ("claim_id", "\"c\""), ("tool", "\"t\""), ("input", "{\"a\":1}")];
    read::<ClaimRequest<'_>>(body(&base, more).as_bytes())?.parse(call(), &Policy::default())
}

fn outcome(more: &[(&str, &str)]) -> Result<OutcomeParams, Problem> {
    let base = [("lease_token", "\"l\""), ("status", "\"ok\""), ("duration_ms", "5")];
    read::<OutcomeRequest<'_>>(body(&base, more).as_bytes())?.parse(call(), 1)
}

fn one_shot(more: &[(&str, &str)]) -> Result<OneShot, Problem> {
    let base = [
        ("run_id", "\"r\""),
        ("tool_call_id", "\"t\""),
        ("scope_id", "\"s\""),
        ("tool", "\"t\""),
        ("status", "\"ok\""),
        ("started_at", "\"2026-09-13T04:00:00+02:00\""),
        ("duration_ms", "5"),
        ("input", "null"),
        ("output", "\"done\""),
    ];
    read::<OneShotRequest<'_>>(body(&base, more).as_bytes())?.parse(&Policy::default())
}

fn code<T>(result: Result<T, Problem>) -> Code {
    let problem = result.err().expect("it is refused");
    assert!(!problem.to_json().replace("/input/MARK", "").contains("MARK"), "{problem:?}");
    problem.code
}

#[test]
fn a_claim_has_defaults_and_null_means_not_given() {
    let plain = claim(&[]).unwrap();
    assert_eq!((plain.lease_ms, plain.attempt), (60_000, None));
    assert_eq!(plain.terms, StatedTerms::default());
    assert_eq!(plain.twins, TwinRule::advise());
    let nulls: Vec<_> = [
        "effect",
        "input_hash",
        "lease_ms",
        "attempt",
        "operation_key",
        "message_id",
        "labels",
        "traceparent",
        "key_window_ms",
        "settle_ms",
        "twins",
        "twin_window_ms",
        "twin_hash",
        "knows",
    ]
    .map(|name| (name, "null"))
    .to_vec();
    let with_nulls = claim(&nulls).unwrap();
    assert_eq!(format!("{plain:?}"), format!("{with_nulls:?}"));
    assert_eq!(claim(&[("input", "null")]).unwrap().input_hash, InputHash::of_canonical("null"));
    assert_eq!(
        claim(&[("input", " { \"b\" : 2.0, \"a\":1} ")]).unwrap().input_hash,
        InputHash::of_canonical(r#"{"a":1,"b":2}"#)
    );
}

#[test]
fn bad_claims_have_codes() {
    let hash = format!("\"{}\"", InputHash::of_canonical("1"));
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let long = format!("\"{}\"", "MARK".repeat(65));
    let many_known = format!("[{}]", vec!["\"a\""; 65].join(","));
    let cases: Vec<(&str, &str, Code)> = vec![
        ("-input", "", Code::InvalidRequest),
        ("input_hash", &hash, Code::InvalidRequest),
        ("input", "{\"MARK\":1,\"MARK\":1}", Code::DuplicateMember),
        ("input", "[1e999]", Code::NumberOutOfRange),
        ("input", "\"MARK\\ud800\"", Code::InvalidJson),
        ("input", &deep, Code::InvalidJson),
        ("scope_id", "\"MARK/\"", Code::InvalidId),
        ("claim_id", &long, Code::InvalidId),
        ("claim_id", "\"\"", Code::InvalidId),
        ("operation_key", "\"rk1_MARK\"", Code::InvalidId),
        ("message_id", "\"MARK é\"", Code::InvalidId),
        ("tool", "\"MARK\\n\"", Code::InvalidRequest),
        ("tool", "\"\"", Code::InvalidRequest),
        ("traceparent", "\"MARK\"", Code::InvalidRequest),
        ("labels", "{\"MARK\":\"a\\u0001b\"}", Code::InvalidRequest),
        ("lease_ms", "0", Code::InvalidRequest),
        ("lease_ms", "999", Code::InvalidRequest),
        ("lease_ms", "86400001", Code::InvalidRequest),
        ("twins", "\"MARK\"", Code::InvalidRequest),
        ("twin_window_ms", "9007199254740992", Code::InvalidRequest),
        ("key_window_ms", "-1", Code::InvalidRequest),
        ("settle_ms", "1.5", Code::InvalidRequest),
        ("twin_hash", &hash, Code::InvalidRequest),
        ("knows", "[\"MARK/a/b\"]", Code::InvalidId),
        ("knows", &many_known, Code::InvalidRequest),
        ("attempt", "0", Code::InvalidRequest),
    ];
    for (name, value, want) in cases {
        assert_eq!(code(claim(&[(name, value)])), want, "{name}: {value}");
    }
    assert!(claim(&[("-input", ""), ("input_hash", &hash)]).is_ok());
    for (name, value) in [("lease_ms", "1000"), ("lease_ms", "86400000"), ("attempt", "1")] {
        assert!(claim(&[(name, value)]).is_ok(), "{name}: {value}");
    }
    let bad = claim(&[("-input", ""), ("input_hash", "\"sha256:MARK\"")]);
    assert_eq!(code(bad), Code::InvalidRequest);
}

#[test]
fn an_outcome_needs_what_its_status_needs() {
    let given = ("output", "null");
    assert_eq!(
        outcome(&[given]).unwrap().report.outcome.output_hash,
        Some(OutputHash::of_text("null"))
    );
    let hash = format!("\"{}\"", OutputHash::of_text("x"));
    let error = ("error_class", "\"http.503\"");
    let refused: Vec<Vec<(&str, &str)>> = vec![
        vec![],
        vec![given, error],
        vec![given, ("output_hash", &hash)],
        vec![("status", "\"timeout\"")],
        vec![("status", "\"started\""), error],
        vec![("status", "\"timeout\""), ("error_class", "\"MARK!\"")],
        vec![given, ("duration_ms", "9007199254740992")],
        vec![given, ("output_summary", "[\"MARK\"]")],
        vec![given, ("output_summary", "\"MARK\"")],
    ];
    for more in refused {
        assert_eq!(code(outcome(&more)), Code::InvalidRequest, "{more:?}");
    }
    for status in ["timeout", "retryable_error", "terminal_error", "unknown"] {
        let status = format!("\"{status}\"");
        assert!(outcome(&[("status", &status), error]).is_ok());
    }
    assert!(outcome(&[given, ("error_class", "null")]).is_ok());
    assert_eq!(code(outcome(&[given, ("scope_id", "\"MARK/\"")])), Code::InvalidId);
    assert_eq!(code(outcome(&[given, ("provider_ref", "\"MARK/\"")])), Code::InvalidId);
}

#[test]
fn the_summary_is_the_callers_else_the_shape_else_nothing() {
    let summary = |more: &[(&str, &str)]| outcome(more).unwrap().report.outcome.output_summary;
    let hash = format!("\"{}\"", OutputHash::of_text("x"));
    assert_eq!(
        summary(&[("output", "{\"b\": 1}")]).as_deref(),
        Some(r#"{"bytes":7,"fields":["b"]}"#)
    );
    assert_eq!(
        summary(&[("output", "\"{\\\"b\\\":1}\""), ("output_summary", "null")]).as_deref(),
        Some(r#"{"bytes":7,"fields":["b"]}"#)
    );
    assert_eq!(summary(&[("output_hash", &hash)]), None);
    let given = ("output_summary", "{\"z\": 1.0, \"a\": 12345678901234567890123}");
    assert_eq!(
        summary(&[("output_hash", &hash), given]).as_deref(),
        Some(r#"{"a":12345678901234567890123,"z":1}"#)
    );
    let exact = |n: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(n - 8));
    assert!(outcome(&[("output", "1"), ("output_summary", &exact(2048))]).is_ok());
    assert_eq!(
        code(outcome(&[("output", "1"), ("output_summary", &exact(2049))])),
        Code::InvalidRequest
    );
}

#[test]
fn an_outcome_is_masked_and_never_refused() {
    let key = format!("\"{KEY}\"");
    let summary = format!("{{\"{KEY}\":\"{KEY}\"}}");
    let outcome = outcome(&[
        ("output", "1"),
        ("output_summary", &summary),
        ("provider_ref", &key),
        ("message_id", &key),
    ])
    .unwrap()
    .report
    .outcome;
    assert!(outcome.redacted);
    assert!(!format!("{outcome:?}").contains("AKIA"), "{outcome:?}");
    assert_eq!(outcome.provider_ref.as_deref(), Some("[REDACTED:aws_access_key]"));
}

#[test]
fn an_error_class_that_is_a_credential_is_replaced() {
    let class = format!("\"hf_{}\"", "a1".repeat(16));
    let params = outcome(&[("status", "\"unknown\""), ("error_class", &class)]).unwrap();
    let outcome = params.report.outcome;
    assert_eq!(outcome.error_class.unwrap().as_str(), "redacted");
    assert!(outcome.redacted);
}

#[test]
fn labels_are_masked_or_refused() {
    let labels = format!("{{\"{KEY}\":\"{KEY}\",\"{KEY}Z\":\"x\",\"a\":\"b\"}}");
    let masked = claim(&[("labels", &labels)]).unwrap();
    let pairs: Vec<_> = masked.labels.iter().collect();
    assert_eq!(
        pairs,
        [
            ("[REDACTED:aws_access_key]", "[REDACTED:aws_access_key]"),
            ("[REDACTED:aws_access_key] 2", "x"),
            ("a", "b"),
        ]
    );
    assert!(masked.redacted);
    let turned = format!("{{\"a\":\"b\",\"{KEY}Z\":\"x\",\"{KEY}\":\"{KEY}\"}}");
    assert_eq!(claim(&[("labels", &turned)]).unwrap().labels, masked.labels);
    assert_eq!(refuse_claim(&masked, SecretPolicy::Mask), Ok(()));
    let refused = refuse_claim(&masked, SecretPolicy::Refuse).unwrap_err();
    assert_eq!(refused.code, Code::SecretDetected);
    assert!(refused.detail.starts_with("labels "));
    let shot = one_shot(&[("labels", &labels)]).unwrap();
    assert!(shot.outcome.redacted);
    assert_eq!(refuse_one_shot(&shot), Ok(()));
}

#[test]
fn secrets_beside_their_names_are_masked_in_every_free_text() {
    let labels = r#"{"authorization":"Basic dXNlcjpwYXNz","password":"letmein","team":"a"}"#;
    let masked = claim(&[("labels", labels)]).unwrap();
    let pairs: Vec<_> = masked.labels.iter().collect();
    assert_eq!(
        pairs,
        [
            ("authorization", "Basic [REDACTED:basic_auth]"),
            ("password", "[REDACTED:password]"),
            ("team", "a"),
        ]
    );
    assert!(masked.redacted);
    assert!(refuse_claim(&masked, SecretPolicy::Refuse).is_err());
    let outcome = outcome(&[
        ("status", "\"unknown\""),
        ("error_class", "\"timeout\""),
        ("output_summary", r#"{"db":{"password":4711,"port":5432},"token_count":512}"#),
        ("provider_ref", "\"password=letmein\""),
        ("message_id", "\"m|client_secret=x7Kp2q9Z\""),
    ])
    .unwrap()
    .report
    .outcome;
    assert_eq!(
        outcome.output_summary.as_deref(),
        Some(r#"{"db":{"password":"[REDACTED:password]","port":5432},"token_count":512}"#)
    );
    assert_eq!(outcome.provider_ref.as_deref(), Some("password=[REDACTED:password]"));
    assert_eq!(outcome.message_id.as_deref(), Some("m|client_secret=[REDACTED:secret]"));
    assert!(outcome.redacted);
}

#[test]
fn ids_of_providers_are_not_taken_for_names_with_values() {
    for id in ["call_x|fc_y=", "auth:4f3a9b2c1d", "token:17:9f86d081", "password:reset:user-17"] {
        let claim = claim(&[("operation_key", &format!("\"{id}\""))]).unwrap();
        assert_eq!(refuse_claim(&claim, SecretPolicy::Mask), Ok(()), "{id}");
    }
}

#[test]
fn labels_that_grow_too_long_by_masking_are_covered_whole() {
    let value = "ab://:p@ ".repeat(220);
    let labels = format!("{{\"k\":\"{value}\",\"other\":\"stays\"}}");
    let claim = claim(&[("labels", &labels)]).unwrap();
    let pairs: Vec<_> = claim.labels.iter().collect();
    assert_eq!(pairs, [("k", "[REDACTED:url_password]"), ("other", "stays")]);
    assert!(claim.redacted);
}

#[test]
fn ids_that_hold_a_credential_are_refused_by_name() {
    let key = format!("\"{KEY}\"");
    for name in ["claim_id", "tool", "operation_key", "message_id"] {
        let claim = claim(&[(name, &key)]).unwrap();
        let problem = refuse_claim(&claim, SecretPolicy::Mask).unwrap_err();
        assert_eq!(problem.code, Code::SecretDetected);
        assert!(problem.detail.starts_with(name) && !problem.detail.contains("AKIA"));
    }
    for name in ["run_id", "tool_call_id", "tool", "operation_key"] {
        let shot = one_shot(&[(name, &key)]).unwrap();
        assert!(refuse_one_shot(&shot).unwrap_err().detail.starts_with(name));
    }
    let shot = one_shot(&[("message_id", &key)]).unwrap();
    assert_eq!(refuse_one_shot(&shot), Ok(()));
    assert_eq!(shot.outcome.message_id.as_deref(), Some("[REDACTED:aws_access_key]"));
}

#[test]
fn a_one_shot_is_a_claim_and_an_outcome() {
    let shot = one_shot(&[]).unwrap();
    assert_eq!(shot.started_at.to_string(), "2026-09-13T02:00:00.000Z");
    assert_eq!(shot.input_hash, InputHash::of_canonical("null"));
    assert_eq!(shot.outcome.output_hash, Some(OutputHash::of_text("done")));
    for (name, value, want) in [
        ("run_id", "\"MARK/\"", Code::InvalidId),
        ("started_at", "\"MARK\"", Code::InvalidRequest),
        ("started_at", "5", Code::InvalidRequest),
        ("-started_at", "", Code::InvalidRequest),
        ("-input", "", Code::InvalidRequest),
        ("-output", "", Code::InvalidRequest),
        ("claim_id", "\"MARK\"", Code::InvalidRequest),
        ("lease_ms", "1000", Code::InvalidRequest),
        ("attempt", "0", Code::InvalidRequest),
    ] {
        assert_eq!(code(one_shot(&[(name, value)])), want, "{name}: {value}");
    }
}

#[test]
fn a_bad_item_of_a_batch_fails_alone() {
    let good = concat!(
        r#"{"run_id":"r","tool_call_id":"t","scope_id":"s","tool":"t","status":"unknown","#,
        r#""started_at":"2026-09-13T02:00:00Z","duration_ms":5,"input":1,"error_class":"x"}"#
    );
    let text =
        format!(r#"{{"receipts":[{good},7,{{"MARK":"\ud800"}},{{"run_id":"MARK"}},{good}]}}"#);
    let batch = read::<BatchRequest<'_>>(text.as_bytes()).unwrap();
    let results: Vec<_> =
        batch.parse(&Policy::default()).map(|item| item.err().map(|p| p.code)).collect();
    let invalid = Some(Code::InvalidRequest);
    assert_eq!(results, [None, invalid, Some(Code::InvalidJson), invalid, None]);
}

#[test]
fn checks_resolutions_scopes_and_keys_have_rules() {
    let check = |text: &str| read::<CheckRequest>(text.as_bytes())?.parse(call(), 1);
    let good = check(r#"{"answer":"pending","source":"crm Bearer abcdefghijklmnopqrst"}"#).unwrap();
    assert_eq!((good.source.as_str(), good.redacted), ("crm Bearer [REDACTED:bearer_token]", true));
    assert_eq!(good.age_ms, 0);
    for bad in [
        r#"{"answer":"MARK","source":"x"}"#,
        r#"{"answer":"pending","source":""}"#,
        r#"{"answer":"pending"}"#,
        r#"{"answer":"pending","source":"x","age_ms":-1}"#,
        r#"{"answer":"pending","source":"x","age_ms":9007199254740992}"#,
    ] {
        assert_eq!(code(check(bad)), Code::InvalidRequest, "{bad}");
    }
    let resolve = |text: &str| read::<ResolutionRequest>(text.as_bytes())?.parse(call(), "key");
    assert!(resolve(r#"{"state":"abandoned","reason":"nobody knows"}"#).is_ok());
    for bad in [r#"{"state":"unknown","reason":"x"}"#, r#"{"state":"ok"}"#] {
        assert_eq!(code(resolve(bad)), Code::InvalidRequest, "{bad}");
    }
    let long = format!(r#"{{"state":"ok","reason":"{}"}}"#, "x".repeat(1025));
    assert_eq!(code(resolve(&long)), Code::InvalidRequest);
    let scope = |text: &str| ScopeRequest::read(text.as_bytes()).and_then(ScopeRequest::parse);
    assert_eq!(scope(r#"{"ttl_ms":1000}"#).unwrap().ttl_ms, 1000);
    for bad in [r#"{"ttl_ms":0}"#, r#"{"ttl_ms":2592000001}"#, r#"{"MARK":1}"#] {
        assert_eq!(code(scope(bad)), Code::InvalidRequest, "{bad}");
    }
    let key = |text: &str| read::<ApiKeyRequest>(text.as_bytes())?.parse();
    let two = key(r#"{"roles":["reconciler","adapter"],"namespace":"blue-1"}"#).unwrap();
    assert_eq!(two.roles.to_string(), "adapter,reconciler");
    for bad in [
        r#"{"roles":["root"],"namespace":"blue"}"#,
        r#"{"roles":[],"namespace":"blue"}"#,
        r#"{"roles":["admin","admin","admin","admin","admin","admin","admin"],"namespace":"blue"}"#,
        r#"{"role":"admin","namespace":"blue"}"#,
        r#"{"roles":["admin"],"namespace":"MARK"}"#,
        r#"{"roles":["admin"],"namespace":"blue","expires_in_ms":0}"#,
    ] {
        assert_eq!(code(key(bad)), Code::InvalidRequest, "{bad}");
    }
}
