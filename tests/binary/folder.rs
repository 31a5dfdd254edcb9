//! A data folder that lacks a part, that is somebody else's, or that cannot be written.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::SystemTime;

use recibo_tests::api::Api;
use recibo_tests::binary::{Server, path};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};

/// Commands that only read, on what the folders below hold.
fn reading<'a>(run: &'a str, call: &'a str, token: &'a str) -> Vec<Vec<&'a str>> {
    vec![
        vec!["run", run],
        vec!["run", run, "--json"],
        vec!["call", run, call],
        vec!["calls"],
        vec!["explain", run, call],
        vec!["unknown"],
        vec!["receipt", "verify", token],
        vec!["policy", "show"],
        vec!["api-key", "list"],
    ]
}

const TOKEN: &str = "zc-receipt-1796288280-o2fGGXq-WbSDu2m9_sbj3bcIUG8OMM14eFguWfPs6G8";

fn recibo(data: &Path, arguments: &[&str]) -> Output {
    run(Command::new(path()), data, arguments)
}

fn run(mut command: Command, data: &Path, arguments: &[&str]) -> Output {
    command.args(arguments).env("RECIBO_DATA", data).output().expect("the binary runs")
}

fn exec(data: &Path, call: &str) -> Output {
    recibo(data, &["exec", "--run", "r", "--call", call, "--tool", "t", "--", "true"])
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file with its bytes and its time.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let time = path.metadata().and_then(|meta| meta.modified()).expect("a time");
        (path.clone(), (std::fs::read(path).unwrap_or_default(), time))
    };
    std::fs::read_dir(folder).expect("a folder").map(entry).collect()
}

/// The same without what is no part of a ledger.
fn kept_files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut files = files(folder);
    files
        .retain(|path, _| !["service.log", "service.lock"].iter().any(|name| path.ends_with(name)));
    files
}

/// A copy of the ledger that format 1 left when it was killed.
fn killed_ledger(folder: &Path) -> PathBuf {
    let data = folder.join("data");
    std::fs::create_dir(&data).expect("a folder");
    for part in ["ledger.redb", "lease.key", "admin.key"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/format-1").join(part);
        std::fs::copy(from, data.join(part)).expect("a copy");
    }
    data
}

#[test]
fn reading_commands_change_no_byte_of_a_ledger_that_was_killed() {
    let temp = tempfile::tempdir().expect("a folder");
    let old = killed_ledger(temp.path());
    let data = temp.path().join("new");
    let server = Server::start(&data);
    let scope = server.api.scope();
    let open = server.api.claim("r", "open", &scope, "c", json!({"lease_ms": 3_600_000}));
    open.expect(201);
    let shot = json!({"run_id": "r", "tool_call_id": "c", "scope_id": scope, "tool": "t",
        "status": "ok", "started_at": "2026-09-13T02:00:00Z", "duration_ms": 1, "input": 1,
        "output": "x"});
    let token = server.api.post("/v1/receipts", &shot).expect(201).str("token").to_owned();
    server.kill();
    for (data, run, call, token) in [(old, "run_1", "ok", TOKEN), (data, "r", "c", &token)] {
        let mut before = files(&data);
        for command in reading(run, call, token) {
            let output = recibo(&data, &[&command[..], &["--alone"]].concat());
            assert_eq!(output.status.code(), Some(0), "{command:?}: {}", words(&output));
            assert!(!output.stdout.is_empty(), "{command:?}");
            assert!(files(&data) == before, "{command:?}");
            // A service that is started for it answers it too.
            let shared = recibo(&data, &command);
            assert_eq!(shared.status.code(), Some(0), "{command:?}: {}", words(&shared));
            assert_eq!(recibo(&data, &["stop"]).status.code(), Some(0));
            before = files(&data);
        }
    }
}

#[test]
fn a_ledger_that_is_gone_is_not_started_anew() {
    let temp = tempfile::tempdir().expect("a folder");
    for (name, damage) in [("missing", false), ("empty", true)] {
        let data = temp.path().join(name);
        assert_eq!(exec(&data, "c").status.code(), Some(0));
        assert_eq!(exec(&data, "c").status.code(), Some(21), "it is done already");
        assert_eq!(recibo(&data, &["stop"]).status.code(), Some(0));
        let ledger = data.join("ledger.redb");
        match damage {
            true => std::fs::write(&ledger, "").expect("it is there"),
            false => std::fs::remove_file(&ledger).expect("it is there"),
        }
        let before = kept_files(&data);
        let output = exec(&data, "c");
        assert_eq!(output.status.code(), Some(31), "{}", words(&output));
        assert!(output.stdout.is_empty());
        let served = recibo(&data, &["serve", "--listen", "127.0.0.1:0"]);
        let read = recibo(&data, &["calls", "--json"]);
        let resolve = ["resolve", "r", "c", "--as", "ok", "--reason", "x"];
        for output in [&served, &read, &recibo(&data, &resolve)] {
            assert_eq!(output.status.code(), Some(1), "{}", words(output));
        }
        for output in [output, served, read] {
            let words = words(&output);
            for part in ["ledger.redb", name, "backup", "recibo init --fresh"] {
                assert!(words.contains(part), "{part}: {words}");
            }
            if !output.stdout.is_empty() {
                let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
                assert_eq!(document["code"], "command_failed");
            }
        }
        assert!(kept_files(&data) == before);
    }
}

#[test]
fn init_makes_a_ledger_and_puts_an_old_one_aside_only_when_it_is_told_to() {
    let temp = tempfile::tempdir().expect("a folder");
    let data = temp.path().join("a/data");
    assert_eq!(recibo(&data, &["init"]).status.code(), Some(0));
    assert_eq!(exec(&data, "c").status.code(), Some(0));
    assert_eq!(recibo(&data, &["stop"]).status.code(), Some(0));
    let before = files(&data);
    let again = recibo(&data, &["init"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(words(&again).contains("--fresh"), "{}", words(&again));
    assert!(files(&data) == before);

    let server = Server::start(&data);
    let held = recibo(&data, &["init", "--fresh"]);
    assert_eq!(held.status.code(), Some(1), "{}", words(&held));
    assert!(words(&held).contains("a service runs"), "{}", words(&held));
    assert_eq!(server.stop(), Some(0));

    // Of a ledger that is lost, what is left is put aside.
    std::fs::remove_file(data.join("ledger.redb")).expect("it is there");
    let key = std::fs::read(data.join("lease.key")).expect("a key");
    let fresh = recibo(&data, &["init", "--fresh"]);
    let said = String::from_utf8_lossy(&fresh.stdout).into_owned();
    assert_eq!(fresh.status.code(), Some(0), "{}", words(&fresh));
    for word in ["archive-", "receipts", "open attempts", "retry"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let aside = std::fs::read_dir(&data).expect("a folder").filter_map(Result::ok);
    let aside = aside.map(|entry| entry.path()).find(|path| path.is_dir()).expect("an archive");
    assert_eq!(std::fs::read(aside.join("lease.key")).expect("a key"), key);
    assert_eq!(exec(&data, "c").status.code(), Some(0), "the new ledger knows no call");
    let json = recibo(&data, &["init", "--fresh", "--json"]);
    let document: Value = serde_json::from_slice(&json.stdout).expect("a document");
    let archive = Path::new(document["archive"].as_str().expect("a place"));
    assert!(archive.join("ledger.redb").exists(), "{document}");
}

/// The binary as a user who may not write to the folder: somebody else where the tests run as
/// root, who may write everywhere; else this user, whom the modes bind.
fn without_permission(folder: &Path) -> Command {
    let is_root = std::fs::metadata("/proc/self").expect("a process").uid() == 0;
    if !is_root {
        return Command::new(path());
    }
    // The target folder may be in a place that nobody else can enter.
    let binary = folder.join("recibo");
    if !binary.exists() && std::fs::hard_link(path(), &binary).is_err() {
        std::fs::copy(path(), &binary).expect("a copy");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(binary);
    command
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
}

/// Waits for the line that says that it is ready; gives its address.
fn serve(mut command: Command, data: &Path) -> (Child, Api) {
    let mut child = command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("RECIBO_DATA", data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("readable output");
    let url = line.trim_end().strip_prefix("recibo listening on ").map(str::to_owned);
    let Some(url) = url else {
        let _ = child.kill();
        panic!("no service: {}", words(&child.wait_with_output().expect("it ends")));
    };
    let key = std::fs::read_to_string(data.join("admin.key")).expect("an admin key");
    (child, Api::new(&url, key.trim_end()))
}

/// It reads, refuses writes with this word, says so, and ends well.
fn serves_reads_only((child, api): (Child, Api), why: &str) {
    api.get("/v1/calls").expect(200);
    api.get("/livez").expect(200);
    let ready = api.get("/readyz");
    assert_eq!(ready.problem(), (503, "read_only"));
    assert!(ready.str("detail").contains(why), "{}", ready.text);
    assert_eq!(api.post("/v1/scopes", &json!({})).problem(), (503, "read_only"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert!(words(&output).contains("open for reading only"), "{}", words(&output));
    assert!(words(&output).contains(why), "{}", words(&output));
}

#[test]
fn another_users_folder_is_read_or_permission_is_denied() {
    let temp = tempfile::tempdir().expect("a folder");
    set_mode(temp.path(), 0o755);
    let data = killed_ledger(temp.path());
    for part in ["ledger.redb", "lease.key", "admin.key"] {
        set_mode(&data.join(part), 0o444);
    }
    set_mode(&data, 0o555);
    let before = files(&data);
    for command in reading("run_1", "ok", TOKEN) {
        let output = run(without_permission(temp.path()), &data, &command);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", words(&output));
    }
    serves_reads_only(serve(without_permission(temp.path()), &data), "may not be written");
    let arguments = ["exec", "--run", "r", "--call", "c", "--tool", "t", "--", "true"];
    let output = run(without_permission(temp.path()), &data, &arguments);
    assert_eq!(output.status.code(), Some(31), "{}", words(&output));
    assert!(words(&output).contains("permission denied"), "{}", words(&output));
    assert!(files(&data) == before);

    set_mode(&data, 0o000);
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for command in [&["calls", "--json"][..], &["explain", "r", "c"], &serve, &["init"]] {
        let output = run(without_permission(temp.path()), &data, command);
        let words = words(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {words}");
        assert!(words.contains("permission denied"), "{command:?}: {words}");
        assert!(words.contains(data.to_str().expect("text")), "{command:?}: {words}");
        assert!(words.contains("belongs to user"), "{command:?}: {words}");
        assert!(!words.contains("no ledger"), "{command:?}: {words}");
    }
    set_mode(&data, 0o755);
    assert!(files(&data) == before);
}

#[test]
fn on_a_full_disk_the_ledger_is_served_for_reading() {
    let temp = tempfile::tempdir().expect("a folder");
    let data = temp.path().join("data");
    assert_eq!(exec(&data, "c").status.code(), Some(0));
    assert_eq!(recibo(&data, &["stop"]).status.code(), Some(0));
    let ledger = std::fs::read(data.join("ledger.redb")).expect("a file");
    // A limit on the size of files is a full disk that needs no mount.
    let limited = || {
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""]).arg(path());
        limited
    };
    serves_reads_only(serve(limited(), &data), "its disk is full");
    // Commands read it themselves, and say why they cannot write.
    assert_eq!(run(limited(), &data, &["call", "r", "c"]).status.code(), Some(0));
    let arguments = ["exec", "--run", "r", "--call", "d", "--tool", "t", "--", "true"];
    let refused = run(limited(), &data, &arguments);
    assert_eq!(refused.status.code(), Some(31), "{}", words(&refused));
    for part in ["can only be read: its disk is full", "make room"] {
        assert!(words(&refused).contains(part), "{}", words(&refused));
    }
    assert!(std::fs::read(data.join("ledger.redb")).expect("a file") == ledger);
    for entry in std::fs::read_dir(&data).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        assert!(!name.contains("tmp") && !name.ends_with(".new"), "{name} was left behind");
    }
    assert_eq!(recibo(&data, &["call", "r", "c"]).status.code(), Some(0));
}
