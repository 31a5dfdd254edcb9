use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;

fn canonical(text: &str) -> Result<String, &'static str> {
    canonicalize(text.as_bytes()).map_err(|error| error.code())
}

#[test]
fn every_value_has_one_spelling() {
    let cases = [
        (" [ 1 , 2 ] ", "[1,2]"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e5", "0"),
        ("1.0", "1"),
        ("1e20", "100000000000000000000"),
        ("1E21", "1e+21"),
        ("1e-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("5e-324", "5e-324"),
        ("1e-400", "0"),
        ("-1.5e+3", "-1500"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (r#""\u0041\/\u00e9\ud83d\ude00\u007f""#, "\"A/é😀\u{7f}\""),
        (r#""\u0000\b\t\n\u000b\f\r\u001f\"\\""#, r#""\u0000\b\t\n\u000b\f\r\u001f\"\\""#),
        (r#"{"b":{"d":1,"c":2},"a":[]}"#, r#"{"a":[],"b":{"c":2,"d":1}}"#),
        (r#"{"":0,"a":{}}"#, r#"{"":0,"a":{}}"#),
        (r#"{"ab":1,"a":2}"#, r#"{"a":2,"ab":1}"#),
        (
            r#"{"\u000f":1,"\n":2,"\"":3,"\\":4,"!":5}"#,
            r#"{"\n":2,"\u000f":1,"!":5,"\"":3,"\\":4}"#,
        ),
        (
            "{\"\u{e000}\":1,\"\u{10000}\":2,\"\u{d7ff}\":3}",
            "{\"\u{d7ff}\":3,\"\u{10000}\":2,\"\u{e000}\":1}",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(canonical(text).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn what_is_not_json_is_refused() {
    let cases = [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "01",
        "-",
        "-01",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{}}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{1:1}",
        "'a'",
        "\"",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\n\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud83d\\ud83d\"",
        "1 2",
        "[] []",
        "\u{feff}1",
        "// x\n1",
        "1\u{a0}",
        "\u{0}",
    ];
    for text in cases {
        assert_eq!(canonical(text), Err("invalid_json"), "{text:?}");
    }
    assert_eq!(canonicalize(b"\"a\xff\"").unwrap_err().offset, 2);
}

#[test]
fn limits_hold_on_both_sides() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(canonical(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(canonical(&nested(DEPTH_MAX + 1)), Err("invalid_json"));
    assert_eq!(canonical(&"[".repeat(1_000_000)), Err("invalid_json"));
    let digits = "9".repeat(INTEGER_DIGITS_MAX);
    assert_eq!(canonical(&format!("-{digits}")), Ok(format!("-{digits}")));
    assert_eq!(canonical(&format!("{digits}9")), Err("number_out_of_range"));
    assert_eq!(canonical("1.8e308"), Err("number_out_of_range"));
    assert!(canonical("1.7976931348623157e308").is_ok());
}

#[test]
fn equal_names_are_found_in_any_order_and_spelling() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"a":1}"#,
        r#"{"b":1,"a":2,"c":3,"b":4}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"z":1,"\n":2,"\u000a":3}"#,
        r#"[{"x":{"é":1,"\u00e9":2}}]"#,
    ] {
        assert_eq!(canonical(text), Err("duplicate_member"), "{text}");
    }
    let error = canonicalize(br#"{"b":1,"a":2,"b":3}"#).unwrap_err();
    assert_eq!(error.offset, 13);
}

#[test]
fn a_syntax_error_outranks_the_other_faults() {
    assert_eq!(canonical(r#"{"a":1,"a":2"#), Err("invalid_json"));
    assert_eq!(canonical("[1e999,}"), Err("invalid_json"));
    assert_eq!(canonical(r#"[1e999,{"a":1,"a":2}]"#), Err("number_out_of_range"));
    assert_eq!(canonical(r#"[{"b":1,"a":2,"a":3},1e999]"#), Err("duplicate_member"));
}

#[test]
fn an_error_shows_nothing_of_the_text() {
    let error = canonicalize(br#"{"hunter2":1,"hunter2":2}"#).unwrap_err();
    assert_eq!(error.to_string(), "a member name occurs twice in one object (at byte 13)");
}

#[test]
fn only_a_string_has_a_string_value() {
    assert_eq!(string_value(br#" "a\n\u00e9\\" "#), Ok(Some("a\né\\".into())));
    assert_eq!(string_value(b"\"\""), Ok(Some("".into())));
    assert_eq!(string_value(b"[\"a\"]"), Ok(None));
    assert!(string_value(b"\"a\" 1").is_err());
}

/// Any value without fractions, whose names and strings provoke escapes and surrogates.
fn any_value() -> impl Strategy<Value = Value> {
    let text = "[a-c\"\\\\/\n\u{1}\u{e9}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,12}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let members = prop::collection::vec((text, inner.clone()), 0..8);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            members.prop_map(|list| Value::Object(list.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes a value with its members turned round, and space wherever it may stand.
fn write_loosely(out: &mut String, value: &Value, space: &str) {
    out.push_str(space);
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                write_loosely(out, item, space);
            }
            out.push_str(space);
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (name, item)) in members.iter().rev().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                write_loosely(out, &Value::from(name.as_str()), space);
                out.push_str(space);
                out.push(':');
                write_loosely(out, item, space);
            }
            out.push_str(space);
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
    out.push_str(space);
}

/// The order and escapes of the specification, written the slow way.
fn reference(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(reference).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            let each = members
                .iter()
                .map(|(n, v)| format!("{}:{}", Value::from(n.as_str()), reference(v)));
            format!("{{{}}}", each.collect::<Vec<_>>().join(","))
        }
        Value::Number(n) if n.is_f64() => {
            ryu_js::Buffer::new().format(n.as_f64().unwrap()).to_owned()
        }
        scalar => scalar.to_string(),
    }
}

proptest! {
    #[test]
    fn order_and_space_do_not_change_the_form(value in any_value(), space in "[ \n\r\t]{0,2}") {
        let want = reference(&value);
        let mut loose = String::new();
        write_loosely(&mut loose, &value, &space);
        prop_assert_eq!(canonical(&loose), Ok(want.clone()));
        prop_assert_eq!(canonical(&value.to_string()), Ok(want.clone()));
        prop_assert_eq!(canonical(&want), Ok(want));
    }

    #[test]
    fn escaped_and_plain_strings_agree(text in any::<String>()) {
        let mut written = String::new();
        write_string(&mut written, &text);
        prop_assert_eq!(&written, &Value::from(text.as_str()).to_string());
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        prop_assert_eq!(canonical(&format!("\"{escaped}\"")), Ok(written.clone()));
        prop_assert_eq!(string_value(written.as_bytes()), Ok(Some(text.as_str().into())));
    }

    #[test]
    fn validity_agrees_with_another_parser(text in r#"([\[\]{},: \n\-+.eE019"\\tud8]|true|null|"a"|\\u[0-9d-f]{4}){0,14}"#) {
        let theirs = serde_json::from_str::<Value>(&text);
        match canonical(&text) {
            Ok(ours) => {
                let theirs = theirs.map(|value| reference(&value));
                prop_assert!(theirs.is_ok(), "{}", text);
                prop_assert_eq!(canonical(&ours), Ok(ours));
            }
            Err("invalid_json") => prop_assert!(theirs.is_err(), "{}", text),
            Err("number_out_of_range") => prop_assert!(theirs.is_err(), "{}", text),
            Err(_) => {}
        }
    }

    #[test]
    fn what_is_read_for_names_is_what_has_a_form(text in r#"(\{("[ab]"|"\\u0061"):){0,3}([\[\]{},: \-+.eE019"\\tud8]|true|null|"a":|\\u[0-9d-f]{4}){0,14}"#) {
        prop_assert_eq!(top_names(&text, |_, _| {}).is_ok(), canonical(&text).is_ok(), "{}", text);
    }

    #[test]
    fn loose_objects_are_read_for_names(value in any_value(), space in "[ \n]{0,2}") {
        let mut loose = String::new();
        write_loosely(&mut loose, &value, &space);
        let mut names = Vec::new();
        prop_assert!(top_names(&loose, |name, _| names.push(name.into_owned())).is_ok());
        names.sort();
        if let Value::Object(members) = &value {
            let mut want: Vec<_> = members.keys().cloned().collect();
            want.sort();
            prop_assert_eq!(names, want);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(text) = canonicalize(&bytes) {
            prop_assert_eq!(canonical(&text), Ok(text));
        }
    }
}
