//! `recibo exec` on a ledger of its own: what it prints, what it records, how it ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use recibo_core::hash::OutputHash;
use serde_json::Value;

fn recibo(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_recibo"))
        .args(arguments)
        .env("RECIBO_DATA", data)
        .output()
        .expect("the binary runs")
}

fn exec(data: &Path, call: &str, options: &[&str], command: &[&str]) -> Output {
    let fixed = ["exec", "--run", "r", "--call", call, "--tool", "t"];
    recibo(data, &[&fixed, options, &["--"], command].concat())
}

fn record(data: &Path, call: &str) -> Value {
    let output = recibo(data, &["call", "r", call, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    document["attempts"].as_array().expect("attempts").last().expect("an attempt").clone()
}

#[test]
fn what_certainly_had_no_effect_and_what_may_have_had_one_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let fails = &["sh", "-c", "exit 3"][..];
    for (call, effect, command, code, status, error_class) in [
        ("a", "opaque", &["./no-such-program"][..], 11, "retryable_error", "spawn_failed"),
        ("b", "read_only", fails, 12, "unknown", "exit_3"),
        ("c", "idempotent", fails, 12, "unknown", "exit_3"),
        ("d", "opaque", fails, 12, "unknown", "exit_3"),
        // The ledger permits another try where repeating does no harm.
        ("b", "read_only", fails, 12, "unknown", "exit_3"),
        ("d", "opaque", fails, 23, "unknown", "exit_3"),
    ] {
        let output = exec(&data, call, &["--effect", effect], command);
        assert_eq!(output.status.code(), Some(code), "{call}: {output:?}");
        let record = record(&data, call);
        assert_eq!(record["status"], status, "{call}");
        assert_eq!(record["error_class"], error_class, "{call}");
    }
    assert_eq!(record(&data, "b")["attempt"], 2);
    assert_eq!(record(&data, "d")["attempt"], 1);
}

#[test]
fn output_is_printed_and_hashed_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let output = exec(&data, "a", &[], &["printf", "a\\377b\\n"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (printed, line) = output.stdout.split_at(4);
    assert_eq!(printed, b"a\xffb\n");
    assert!(line.starts_with(b"[receipt: zc-receipt-"), "{output:?}");
    let hash = OutputHash::of_bytes(b"a\xffb\n").to_string();
    assert_eq!(record(&data, "a")["output_hash"], hash);
}

#[test]
fn m13_what_the_command_leaves_behind_is_named_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    for (call, command, code, status) in [
        ("a", "sleep 600 2>/dev/null & echo $!", 0, "ok"),
        ("b", "sleep 600 2>/dev/null & echo $! && exit 3", 12, "unknown"),
    ] {
        let output = exec(&data, call, &["--timeout", "5m"], &["sh", "-c", command]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let stdout = String::from_utf8(output.stdout).expect("text");
        let pid = stdout.lines().next().expect("a line");
        // It goes on, so the end of `exec` did not wait for it.
        let killed = Command::new("kill").arg(pid).status().expect("kill runs");
        assert!(killed.success(), "{pid} is gone");
        let words = String::from_utf8(output.stderr).expect("text");
        assert!(words.contains(&format!("sleep (process {pid})")), "{words}");
        let record = record(&data, call);
        assert_eq!(record["status"], status);
        // The time of the command, not of what it left behind.
        assert!(record["duration_ms"].as_u64().expect("a duration") < 1500, "{record}");
    }
}

#[test]
fn a_stream_is_passed_on_as_it_comes_and_hashed_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let gate = folder.path().join("gate");
    let waits =
        format!("echo one; while ! test -e '{}'; do sleep 0.01; done; printf two", gate.display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_recibo"))
        .args(["exec", "--run", "r", "--call", "a", "--tool", "t", "--stream", "--", "sh", "-c"])
        .arg(&waits)
        .env("RECIBO_DATA", &data)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    // The command ends only after its first line was seen.
    assert_eq!(line(), "one");
    std::fs::write(&gate, "").expect("a file");
    assert_eq!(line(), "two");
    assert!(line().starts_with("[receipt: zc-receipt-"));
    assert!(child.wait().expect("it ends").success());
    assert_eq!(record(&data, "a")["output_hash"], OutputHash::of_text("one\ntwo").to_string());

    // Far more than the pipes hold, and a reader that goes.
    let much = &["sh", "-c", "yes | head -c 3000000"][..];
    let output = exec(&data, "b", &["--stream"], much);
    let (printed, line) = output.stdout.split_at(3_000_000);
    assert!(printed == b"y\n".repeat(1_500_000), "not what the command wrote");
    assert!(line.starts_with(b"[receipt: zc-receipt-"), "{line:?}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_recibo"))
        .args(["exec", "--run", "r", "--call", "c", "--tool", "t", "--stream", "--"])
        .args(much)
        .env("RECIBO_DATA", &data)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
    assert_eq!(record(&data, "b")["output_hash"], record(&data, "c")["output_hash"]);
}

#[test]
fn what_is_done_already_is_no_failure_where_the_script_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let file = folder.path().join("receipt.json");
    let options = ["--done-exit", "0", "--receipt-file", file.to_str().expect("text")];
    let read = || -> Value {
        let text = std::fs::read(&file).expect("a file");
        std::fs::remove_file(&file).expect("a file");
        serde_json::from_slice(&text).expect("a document")
    };
    assert_eq!(exec(&data, "a", &options, &["echo", "hi"]).status.code(), Some(0));
    let first = read();
    assert_eq!(first, record(&data, "a"));
    assert!(first["token"].is_string());
    let again = exec(&data, "a", &options, &["echo", "hi"]);
    assert_eq!((again.status.code(), again.stdout.is_empty()), (Some(0), true), "{again:?}");
    assert_eq!(read(), first);
    assert_eq!(exec(&data, "a", &[], &["echo", "hi"]).status.code(), Some(21));
    // A file that cannot be written is found before anything runs, and nothing is left over.
    let missing = folder.path().join("missing/receipt.json");
    let options = ["--receipt-file", missing.to_str().expect("text")];
    let output = exec(&data, "b", &options, &["touch", "effect"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(recibo(&data, &["call", "r", "b"]).status.code(), Some(1));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_second_one_gets_at_the_ledger_unless_the_first_one_is_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, options, code) in [("shared", &[][..], "0\n"), ("alone", &["--alone"], "31\n")] {
        let data = folder.path().join(name);
        let second = format!(
            "'{}' exec --run r --call b {} --tool t -- true >/dev/null; echo $?",
            env!("CARGO_BIN_EXE_recibo"),
            options.join(" "),
        );
        let output = exec(&data, "a", options, &["sh", "-c", &second]);
        assert!(output.stdout.starts_with(code.as_bytes()), "{name}: {output:?}");
    }
}
