//! The commands for people on a ledger of their own: what they print, and how they end.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn recibo(data: &Path, arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_recibo"))
        .args(arguments)
        .env("RECIBO_DATA", data)
        .env("COLUMNS", "60")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A command that does not read its stdin may have ended already.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("the binary ends")
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    format!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
}

/// A call that printed something; its receipt line.
fn receipt(data: &Path, call: &str, printed: &str) -> String {
    let fixed =
        ["exec", "--run", "r", "--call", call, "--tool", "t", "--", "printf", "%s", printed];
    let output = recibo(data, &fixed, "");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    stdout.lines().last().expect("a receipt line").to_owned()
}

#[test]
fn a_receipt_is_compared_with_a_json_value_or_with_an_exact_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let of_json = receipt(&data, "json", r#"{"a":1,"b":[2]}"#);
    let of_text = receipt(&data, "text", "{\"a\": 1}\n");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.display().to_string()
    };
    let spaced = file("spaced.json", "{ \"b\": [2],\n \"a\": 1.0 }\n");
    let exact = file("exact.txt", "{\"a\": 1}\n");
    let string = file("string.json", r#""{\"a\": 1}\n""#);
    let broken = file("broken.json", "{\"a\":1");
    for (line, options, stdin, code, word) in [
        (&of_json, &["--output-json", &spaced][..], "", 0, "recorded"),
        (&of_json, &["--output-json", "-"], "{\"b\":[2],\"a\":1}", 0, "recorded"),
        (&of_json, &["--output-json", "-"], "{\"b\":[3],\"a\":1}", 1, "mismatch"),
        (&of_json, &["--output-file", &spaced], "", 1, "mismatch"),
        (&of_text, &["--output-file", &exact], "", 0, "recorded"),
        (&of_text, &["--output-file", "-"], "{\"a\": 1}\n", 0, "recorded"),
        (&of_text, &["--output-file", "-"], "{\"a\": 1}", 1, "mismatch"),
        (&of_text, &["--output-json", &string], "", 0, "recorded"),
        (&of_text, &["--output-json", &broken], "", 1, "error: "),
        (&of_text, &["--output-file", &exact, "--output-json", &spaced], "", 2, "error: "),
        (&of_text, &["--input-file", "-", "--output-json", "-"], "", 2, "only one `-`"),
        (&"-".to_owned(), &[], &of_text, 0, "recorded"),
    ] {
        let arguments = [&["receipt", "verify", line.as_str()][..], options].concat();
        let output = recibo(&data, &arguments, stdin);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {}", text(&output));
        assert!(text(&output).contains(word), "{options:?}: {}", text(&output));
    }
    let output = text(&recibo(&data, &["receipt", "verify", &of_text], ""));
    assert!(output.contains("level:   recorded (the ledger says so,"), "{output}");
}

#[test]
fn a_run_as_json_has_its_calls_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    for call in ["a", "b"] {
        receipt(&data, call, "x");
    }
    let document = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&recibo(&data, arguments, "").stdout).expect("a document")
    };
    let run = document(&["run", "r", "--json"]);
    assert_eq!((&run["run_id"], &run["calls"]), (&"r".into(), &2.into()));
    let calls = run["call_list"].as_array().expect("the calls");
    let expected = ["a", "b"].map(|call| document(&["call", "r", call, "--json"]));
    assert_eq!(calls, &expected);
}

#[test]
fn the_width_of_a_page_is_that_of_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    receipt(&data, "a-call-with-a-name-that-is-rather-long", "x");
    for arguments in [
        &["explain", "r", "a-call-with-a-name-that-is-rather-long"][..],
        &["run", "r"],
        &["calls"],
        &["call", "r", "a-call-with-a-name-that-is-rather-long"],
        &["unknown"],
    ] {
        let output = recibo(&data, arguments, "");
        let text = String::from_utf8(output.stdout).expect("it is text");
        for line in text.lines().filter(|line| line.chars().count() > 60) {
            let longest = line.split_whitespace().map(str::len).max();
            assert!(longest > Some(45), "{arguments:?}: {line}");
        }
    }
}

#[test]
fn who_gave_no_key_is_not_asked_for_its_namespace() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    receipt(&data, "a", "x");
    let key = data.join("admin.key").display().to_string();
    for (options, is_named) in [(&[][..], false), (&["--api-key-file", &key], true)] {
        for command in [&["run", "other"][..], &["explain", "other", "a"]] {
            let output = text(&recibo(&data, &[command, options].concat(), ""));
            assert_eq!(output.contains("namespace"), is_named, "{output}");
        }
    }
}
