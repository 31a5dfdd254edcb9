//! Wrong usage of the binary: exit 2, words on stderr, nothing on stdout, nothing made.

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
