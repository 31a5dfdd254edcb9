use super::*;
use crate::request::{BatchRequest, ClaimRequest, OutcomeRequest, ScopeRequest};

const MARK: &str = "s3cr3t-MARK";

fn detail<'a, T: Deserialize<'a>>(body: &'a str) -> (Code, String) {
    let problem = read::<T>(body.as_bytes()).err().expect("the body is refused");
    let json = problem.to_json();
    assert!(!json.replace("/input/MARK", "").contains("MARK"), "{json}");
    (problem.code, problem.detail)
}

fn claim(members: &str) -> String {
    format!(r#"{{"scope_id":"s","claim_id":"c","tool":"t","input":1{members}}}"#)
}

#[test]
fn m17_the_pointer_leads_into_the_arguments_and_to_no_other_name_of_the_caller() {
    let credential = format!(r#"{{"input":{{"sk-{}":1e999}}}}"#, "a1B2".repeat(12));
    for (body, pointer) in [
        (r#"{"input":{"a":{"b":1,"b":2}}}"#, Some("/input/a/b")),
        (r#"{"input":"\ud800"}"#, Some("/input")),
        (r#"{"output":{"a":NaN}}"#, None),
        (r#"{"labels":{"a":1,"a":2}}"#, Some("/labels")),
        (r#"{"x":{"a":1,"a":2}}"#, None),
        (&credential, None),
        ("{", None),
    ] {
        let problem = read::<ClaimRequest>(body.as_bytes()).err().expect("the body is refused");
        assert_eq!(problem.extra.get("pointer").and_then(|at| at.as_str()), pointer, "{body}");
    }
}

#[test]
fn a_bad_body_has_a_code_and_says_where() {
    let cases: [(&str, Code, &str); 15] = [
        ("", Code::InvalidJson, "byte 0"),
        ("{", Code::InvalidJson, "byte 1"),
        ("\u{feff}{}", Code::InvalidJson, "byte 0"),
        (r#"{"claim_id":"MARK"} MARK"#, Code::InvalidJson, "byte 20"),
        (r#"{"claim_id":"MARK\ud800"}"#, Code::InvalidJson, "byte"),
        (r#"{"MARK\ud800":1}"#, Code::InvalidJson, "byte"),
        (r#"{"input":{"MARK":1,"MARK":2}}"#, Code::DuplicateMember, "byte"),
        (r#"{"tool":"MARK","tool":"MARK"}"#, Code::DuplicateMember, "byte 15"),
        (r#"{"labels":{"MARK":"a","MARK":"b"}}"#, Code::DuplicateMember, "byte"),
        (r#"{"lease_ms":1e999}"#, Code::NumberOutOfRange, "byte"),
        ("[]", Code::InvalidRequest, "JSON object"),
        (r#"["s","c","t"]"#, Code::InvalidRequest, "JSON object"),
        ("null", Code::InvalidRequest, "JSON object"),
        (r#""MARK""#, Code::InvalidRequest, "JSON object"),
        ("{}", Code::InvalidRequest, "a member is missing: `scope_id`"),
    ];
    for (body, code, says) in cases {
        let (got, detail) = detail::<ClaimRequest<'_>>(body);
        assert_eq!(got, code, "{body}");
        assert!(detail.contains(says), "{body}: {detail}");
    }
}

#[test]
fn a_member_of_the_wrong_type_is_named_and_its_value_is_not() {
    let cases = [
        (r#","MARK":1"#, "unknown member, expected one of `scope_id`"),
        (r#","missing field `MARK`":1"#, "unknown member, expected one of `scope_id`"),
        (r#","effect":"MARK""#, "`effect`: expected one of `read_only`, `idempotent`"),
        (r#","effect":", expected MARK""#, "`effect`: expected one of `read_only`"),
        (r#","effect":{"opaque":null}"#, "`effect`: expected one of"),
        (r#","lease_ms":"MARK""#, "`lease_ms`: expected an integer from 0"),
        (r#","lease_ms":-5"#, "`lease_ms`: expected an integer from 0"),
        (r#","lease_ms":1000.0"#, "`lease_ms`: expected an integer from 0"),
        (r#","lease_ms":1e3"#, "`lease_ms`: expected an integer from 0"),
        (r#","attempt":4294967296"#, "`attempt`: expected an integer from 1"),
        (r#","labels":{"MARK":5}"#, "`labels`: expected a string"),
        (r#","labels":{"tool":{"MARK":1}}"#, "`labels`: expected a string"),
        (r#","labels":["MARK"]"#, "`labels`: expected an object of at most 16"),
        (r#","operation_key":["MARK"]"#, "`operation_key`: expected a string"),
        (r#","traceparent":true"#, "`traceparent`: expected a string"),
    ];
    for (members, says) in cases {
        let (code, detail) = detail::<ClaimRequest<'_>>(&claim(members));
        assert_eq!(code, Code::InvalidRequest, "{members}");
        assert!(detail.contains(says), "{members}: {detail}");
        assert!(detail.contains(" at line 1 column "), "{detail}");
    }
    let (_, detail) = detail::<ClaimRequest<'_>>(r#"{"scope_id":null}"#);
    assert!(detail.contains("`scope_id`: expected a string"), "{detail}");
}

#[test]
fn no_member_leaks_when_another_one_is_wrong() {
    let text = ["lease_token", "output_hash", "error_class", "provider_ref", "message_id"];
    let mut members: Vec<String> =
        text.iter().map(|name| format!(r#""{name}":"{MARK}""#)).collect();
    members.push(format!(r#""output":{{"{MARK}":"{MARK}"}}"#));
    members.push(format!(r#""output_summary":{{"{MARK}":"{MARK}"}}"#));
    for end in [
        r#""status":"MARK","duration_ms":1}"#.to_owned(),
        r#""status":"ok","duration_ms":"MARK"}"#.to_owned(),
        format!(r#""{MARK}":1}}"#),
        format!(r#""status":"ok","duration_ms":1,"{MARK}""#),
    ] {
        detail::<OutcomeRequest<'_>>(&format!("{{{},{end}", members.join(",")));
    }
}

#[test]
fn lists_stop_at_their_limit() {
    let batch = |n: usize| format!(r#"{{"receipts":[{}]}}"#, vec!["0"; n].join(","));
    let read = |text: &str| read::<BatchRequest<'_>>(text.as_bytes()).map(|b| b.receipts.len());
    assert_eq!(read(&batch(0)), Ok(0));
    assert_eq!(read(&batch(1000)), Ok(1000));
    let (code, detail) = detail::<BatchRequest<'_>>(&batch(1001));
    assert_eq!(code, Code::InvalidRequest);
    assert!(detail.contains("`receipts`: expected an array of at most 1000"), "{detail}");
}

#[test]
fn an_empty_scope_body_asks_for_the_defaults() {
    for body in ["", "{}", r#"{"label":null,"ttl_ms":null}"#] {
        let scope = ScopeRequest::read(body.as_bytes()).and_then(ScopeRequest::parse).unwrap();
        assert_eq!((scope.label, scope.ttl_ms), (None, 86_400_000), "{body}");
    }
    assert!(ScopeRequest::read(b" ").is_err());
}
