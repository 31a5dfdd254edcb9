use super::*;

fn read(text: &str) -> Reading {
    Reading::of_call(text, &Members::of(text).unwrap())
}

fn success(text: &str) -> Success {
    match read(text) {
        Reading::Success(success) => success,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn one_text_item_is_hashed_as_its_text_and_all_else_as_canonical_json() {
    for (result, output) in [
        (r#"{"content":[{"type":"text","text":"a\n\u00e9"}]}"#, "a\né"),
        (
            r#"{"content":[{"text":"a","type":"text"}],"structuredContent":{"x":1.0}}"#,
            r#"{"content":[{"text":"a","type":"text"}],"structuredContent":{"x":1}}"#,
        ),
        (r#"{"_meta":{"a":1},"content":[{"text":"a","type":"text"}],"isError":false}"#, "a"),
        (
            r#"{"content":[{"text":"a","type":"text"}],"structuredContent":null,"resultType":"complete"}"#,
            "a",
        ),
        (r#"{"content":[ ]}"#, r#"{"content":[]}"#),
        (
            r#"{"b":1.0,"content":[{"type":"image","data":"AA=="}]}"#,
            r#"{"b":1,"content":[{"data":"AA==","type":"image"}]}"#,
        ),
        (
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            r#"{"content":[{"text":"a","type":"text"},{"text":"b","type":"text"}]}"#,
        ),
        // These have no canonical form.
        (r#"{"content":[],"n":1e999}"#, r#"{"content":[],"n":1e999}"#),
        (
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
        ),
    ] {
        let text = format!(r#"{{"id":1,"result":{result}}}"#);
        assert_eq!(success(&text).output, output, "{text}");
    }
}

#[test]
fn answers_that_are_no_success_are_classified() {
    use Effect::{Idempotent, Keyed, Opaque, Queryable, ReadOnly};
    use OutcomeStatus::{RetryableError, TerminalError, Unknown};
    let tool_error = r#"{"result":{"isError":true,"content":[]}}"#;
    let error = |code: &str| format!(r#"{{"error":{{"code":{code},"message":"m"}}}}"#);
    let late = r#"{"error":{"code":-32602,"message":"Tool x has an output schema but none came"}}"#;
    for (text, effect, status, class) in [
        (tool_error, ReadOnly, RetryableError, "tool_error"),
        (tool_error, Idempotent, Unknown, "tool_error"),
        (tool_error, Keyed, Unknown, "tool_error"),
        (tool_error, Queryable, Unknown, "tool_error"),
        (tool_error, Opaque, Unknown, "tool_error"),
        (&error("-32700"), Opaque, TerminalError, "rpc_32700"),
        (&error("-32600"), Opaque, TerminalError, "rpc_32600"),
        (&error("-32601"), Opaque, TerminalError, "rpc_32601"),
        (&error("-32602"), Opaque, TerminalError, "rpc_32602"),
        (late, Opaque, Unknown, "rpc_32602"),
        (&error("-32042"), Opaque, RetryableError, "rpc_32042"),
        (&error("-32021"), Opaque, TerminalError, "rpc_32021"),
        (&error("-32603"), Opaque, Unknown, "rpc_32603"),
        (&error("-32603"), ReadOnly, Unknown, "rpc_32603"),
        (&error("7"), Opaque, Unknown, "rpc_7"),
        (&error("1.5"), Opaque, Unknown, "rpc_error"),
        (r#"{"error":"x"}"#, Opaque, Unknown, "rpc_error"),
        (r#"{"error":{"code":-32602},"result":{}}"#, Opaque, Unknown, "unreadable_answer"),
        (r#"{"result":17}"#, Opaque, Unknown, "unreadable_answer"),
        (r#"{"result":{"isError":"true"}}"#, Opaque, Unknown, "unreadable_answer"),
        (r#"{"result":{"content":[],"IsError":true}}"#, Opaque, Unknown, "unreadable_answer"),
        (
            r#"{"result":{"isError":true,"content":[],"isError":false}}"#,
            Opaque,
            Unknown,
            "unreadable_answer",
        ),
        // M02
        (
            r#"{"result":{"resultType":"later","content":[]}}"#,
            Opaque,
            Unknown,
            "unknown_result_type",
        ),
        (r#"{"result":{"resultType":7,"content":[]}}"#, Opaque, Unknown, "unknown_result_type"),
        (r#"{"result":{"resultType":"task"}}"#, Opaque, Unknown, "unreadable_answer"),
    ] {
        let (is_status, is_class) = read(text).failure(effect, None);
        assert_eq!((is_status, is_class.as_str()), (status, class), "{text} {effect:?}");
    }
}

#[test]
fn m01_a_call_that_goes_on_is_no_outcome() {
    for task in [
        r#"{"id":1,"result":{"task":{"taskId":"t-1","status":"working"}}}"#,
        r#"{"id":1,"result":{"resultType":"task","taskId":"t-1","status":"working"}}"#,
        r#"{"id":1,"result":{"resultType":"task","taskId":"t-1","status":"working","content":[],
            "task":{"taskId":"t-1","status":"working"}}}"#,
    ] {
        assert_eq!(read(task), Reading::Task("t-1".into()), "{task}");
    }
    let input = r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    assert_eq!(read(input), Reading::InputRequired(Some("s".into())));
    // A result may be called anything.
    let named = r#"{"id":1,"result":{"task":{"taskId":"t-1"},"content":[]}}"#;
    assert!(matches!(read(named), Reading::Success(_)));
}

#[test]
fn m01_what_a_task_says_of_its_call() {
    let done = r#""status":"completed","result":{"content":[{"type":"text","text":"a"}]}"#;
    let bad = r#""status":"completed","result":{"content":[],"isError":true}"#;
    for (task, expected) in [
        (r#"{"taskId":"t","status":"working"}"#, "goes on"),
        (r#"{"taskId":"t","status":"input_required","inputRequests":{}}"#, "goes on"),
        (r#"{"taskId":"t","status":"completed"}"#, "goes on"),
        (&format!("{{{done}}}"), "success a"),
        (&format!(r#"{{"resultType":"complete","task":{{{done}}}}}"#), "success a"),
        (&format!("{{{bad}}}"), "unknown tool_error"),
        (
            r#"{"status":"completed","result":{"resultType":"later"}}"#,
            "unknown unknown_result_type",
        ),
        (
            r#"{"status":"completed","result":{"resultType":"task","taskId":"u"}}"#,
            "unknown unreadable_answer",
        ),
        (r#"{"status":"failed","error":{"code":-32602}}"#, "terminal_error rpc_32602"),
        (r#"{"status":"failed","error":{"code":-32603}}"#, "unknown rpc_32603"),
        (r#"{"status":"failed"}"#, "unknown task_failed"),
        (r#"{"status":"failed","result":{"content":[]}}"#, "unknown task_failed"),
        (r#"{"status":"cancelled"}"#, "unknown cancelled"),
        (r#"{"status":"working","Status":"completed"}"#, "unknown unreadable_answer"),
    ] {
        let say = |reading: Reading| match reading {
            Reading::Success(success) => format!("success {}", success.output),
            Reading::TaskGoesOn => "goes on".into(),
            reading => {
                let (status, class) = reading.failure(Effect::Opaque, None);
                format!("{} {class}", status.as_str())
            }
        };
        let text = format!(r#"{{"id":1,"result":{task}}}"#);
        assert_eq!(say(Reading::of_task(&text, &Members::of(&text).unwrap())), expected, "{task}");
        let text = format!(r#"{{"method":"notifications/tasks","params":{task}}}"#);
        assert_eq!(
            say(Reading::of_notice(&text, &Members::of(&text).unwrap())),
            expected,
            "{task}"
        );
    }
}

#[test]
fn m12_what_is_error_says_follows_the_effect_and_the_policy() {
    use OutcomeStatus::{RetryableError, TerminalError, Unknown};
    let failed = r#"{"id":1,"result":{"content":[],"isError":true}}"#;
    let both = [Some(IsError::NoEffect), Some(IsError::Unknown), None];
    for (effect, statuses) in [
        (Effect::ReadOnly, [RetryableError, RetryableError, RetryableError]),
        (Effect::Idempotent, [Unknown, Unknown, Unknown]),
        (Effect::Keyed, [TerminalError, Unknown, Unknown]),
        (Effect::Queryable, [TerminalError, Unknown, Unknown]),
        (Effect::Opaque, [TerminalError, Unknown, Unknown]),
    ] {
        let seen = both.map(|is_error| read(failed).failure(effect, is_error).0);
        assert_eq!(seen, statuses, "{effect:?}");
    }
}
