//! Wrong usage of the binary: exit 2, words on stderr, nothing on stdout, nothing made.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn wrong_usage_ends_with_2_and_makes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["dance"][..],
        &[],
        &["run"],
        &["serve", "--listen", "nowhere"],
        &["exec", "--run", "r", "--call", "c", "--tool", "t"],
        &["exec", "--run", "r", "--call", "c", "--tool", "t", "--effect", "none", "--", "true"],
        &["exec", "--run", "r", "--call", "c", "--tool", "t", "--lease", "0", "--", "true"],
        &[
            "exec",
            "--run",
            "r",
            "--call",
            "c",
            "--tool",
            "t",
            "--input",
            "{\"a\":1,\"a\":2}",
            "--",
            "true",
        ],
        &["resolve", "r", "c", "--as", "maybe", "--reason", "x"],
        &["api-key", "create", "--role", "king", "--namespace", "n"],
        &["run", "r", "--url", "http://127.0.0.1:1"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_recibo"))
            .args(arguments)
            .env("RECIBO_DATA", folder.path().join("data"))
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn what_is_not_there_is_said_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    for arguments in [&["run", "r"][..], &["call", "r", "c"], &["unknown"], &["policy", "show"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_recibo"))
            .args(arguments)
            .env("RECIBO_DATA", &data)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains("--data"), "{arguments:?}: {words}");
    }
    assert!(!data.exists(), "a reader makes no ledger");
}

fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_recibo")).args(arguments).output().expect("it runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
}

#[test]
fn help_is_on_commands_and_on_topics() {
    for (arguments, part) in [
        (&["help"][..], "Usage: recibo <COMMAND>"),
        (&["help", "exec"], "Exit codes:"),
        (&["help", "api-key", "create"], "Usage: recibo api-key create"),
        (&["help", "help"], "completions"),
        (&["help", "words"], "- **lease token**:"),
        (&["help", "completions", "fish"], "complete -c recibo"),
        (&["help", "man"], ".TH recibo 1"),
        (&["help", "man", "receipt", "verify"], ".TH recibo-receipt-verify 1"),
    ] {
        let (code, text) = said(arguments);
        assert_eq!(code, Some(0), "{arguments:?}");
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
    for arguments in [&["help", "dance"][..], &["help", "man", "dance"], &["help", "completions"]] {
        assert_eq!(said(arguments), (Some(2), String::new()), "{arguments:?}");
    }
}

/// `recibo 0.1.0 (abc1234def 2026-12-03)`; outside of a checkout, `recibo 0.1.0`.
#[test]
fn the_version_says_its_commit_where_there_is_one() {
    let (_, text) = said(&["--version"]);
    let rest = text.strip_prefix(concat!("recibo ", env!("CARGO_PKG_VERSION"))).expect("a version");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then_some(text)
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let top = git(&["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    if top.and_then(|top| top.canonicalize().ok()) != workspace.canonicalize().ok() {
        return assert_eq!(rest, "\n");
    }
    let head = git(&["rev-parse", "--short=10", "HEAD"]).expect("a commit");
    let (commit, day) = rest.trim().trim_matches(['(', ')']).split_once(' ').expect("two words");
    assert!(head == commit && day.len() == 10, "{rest}");
}

#[test]
fn m17_an_input_without_a_canonical_form_is_refused_with_the_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    for (input, place) in [(r#"{"a":{"b":1,"b":2}}"#, "at /a/b"), (r#"{"n":[1e999]}"#, "at /n/0")] {
        let output = Command::new(env!("CARGO_BIN_EXE_recibo"))
            .args(["exec", "--run", "r", "--call", "c", "--tool", "t", "--input", input])
            .args(["--", "touch"])
            .arg(folder.path().join("effect"))
            .env("RECIBO_DATA", &data)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(2));
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains(place), "{words}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
