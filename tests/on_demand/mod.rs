//! One folder and any number of processes: the service that the first of them starts.

mod faults;
mod many;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::channel;
use std::time::Duration;

use recibo_adapter::now_ms;
use recibo_tests::binary::path;
use serde_json::Value;

/// Longer than anybody should ever have to wait.
const PATIENCE_MS: u64 = 60_000;

/// The binary on a folder, whose service ends after 2 s without a client.
fn command(data: &Path) -> Command {
    on(Command::new(path()), data)
}

fn on(mut command: Command, data: &Path) -> Command {
    command.env("RECIBO_DATA", data).env("RECIBO_IDLE_EXIT", "2s").env_remove("RECIBO_RUN_ID");
    command
}

fn recibo(data: &Path, arguments: &[&str]) -> Output {
    command(data).args(arguments).output().expect("the binary runs")
}

fn exec(data: &Path, call: &str) -> Command {
    let mut command = command(data);
    command.args(["exec", "--run", "r", "--call", call, "--tool", "t", "--", "echo", call]);
    command
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn fails(output: &Output, code: i32, parts: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

/// What `recibo status` says.
#[track_caller]
fn status(data: &Path) -> Value {
    serde_json::from_str(&succeeds(&recibo(data, &["status", "--json"]))).expect("a document")
}

/// The processes that serve a folder.
fn services(data: &Path) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let serves = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.get(1).is_some_and(|word| word == "serve")
            && words.iter().any(|word| Path::new(&**word) == data)
    };
    pids.filter(serves).collect()
}

/// Returns once something holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline_ms = now_ms() + PATIENCE_MS;
    while !holds() {
        assert!(now_ms() < deadline_ms, "never: {what}");
        pause(5);
    }
}

/// Lets others go on for a while.
fn pause(ms: u64) {
    let (_say, hear) = channel::<()>();
    // Nobody says anything.
    let _ = hear.recv_timeout(Duration::from_millis(ms));
}

fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill runs").success(), "{signal} {pid}");
}

/// A folder of its own, with no ledger in it yet.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().expect("a folder");
    let data = temp.path().join("data");
    (temp, data)
}
