//! `recibo exec` and time: leases that outlive their process, commands that outlive a lease, and
//! what the caller knows of the outside service.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn recibo(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_recibo"))
        .args(arguments)
        .env("RECIBO_DATA", data)
        .output()
        .expect("the binary runs")
}

fn exec(data: &Path, call: &str, options: &[&str], command: &[&str]) -> Output {
    let fixed = ["exec", "--run", "r", "--call", call, "--tool", "t", "--input", "1"];
    recibo(data, &[&fixed, options, &["--"], command].concat())
}

fn attempts(data: &Path, call: &str) -> Vec<Value> {
    let output = recibo(data, &["call", "r", call, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    document["attempts"].as_array().expect("attempts").clone()
}

fn in_new_folder<T>(act: impl FnOnce(&Path) -> T) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    act(&folder.path().join("data"))
}

/// Each look opens the ledger anew, which must neither shorten nor renew the lease. The waiting
/// is the ledger's, with an end in sight: 3 s, and some for a slow machine.
#[test]
fn a_killed_exec_is_waited_for_until_its_lease_is_over_then_the_effect_decides() {
    let killed_and_repeated = |effect: &'static str| {
        in_new_folder(|data| {
            let options = &["--effect", effect, "--lease", "3s", "--wait", "1500ms"];
            let first = exec(data, "a", options, &["sh", "-c", "kill -9 $PPID; sleep 61"]);
            assert_eq!(first.status.code(), None, "{first:?}");
            let mut codes = Vec::new();
            for _ in 0..10 {
                let code = exec(data, "a", options, &["true"]).status.code().expect("a code");
                codes.push(code);
                if code != 20 {
                    break;
                }
            }
            codes
        })
    };
    let looks = [("opaque", 23), ("queryable", 22), ("read_only", 0)].map(|(effect, code)| {
        (effect, code, std::thread::spawn(move || killed_and_repeated(effect)))
    });
    for (effect, code, look) in looks {
        let codes = look.join().expect("no panic");
        assert_eq!(codes.first(), Some(&20), "{effect}: {codes:?}");
        assert_eq!(codes.last(), Some(&code), "{effect}: {codes:?}");
        assert!(codes.len() <= 4, "{effect}: {codes:?}");
    }
}

/// The guard knows the command from its first moment. What `exec` leaves behind holds its stderr
/// open, so the end of that is the end of all of it.
#[test]
fn a_command_ends_with_exec_however_early_that_is_killed() {
    in_new_folder(|data| {
        let trace = data.with_file_name("trace");
        for call in ["a", "b", "c", "d"] {
            let script = format!("kill -9 $PPID; sleep 2; touch '{}'", trace.display());
            exec(data, call, &[], &["sh", "-c", &script]);
            assert!(!trace.exists(), "the command went on without exec");
        }
    });
}

#[test]
fn a_command_may_outlast_its_lease_which_is_renewed() {
    let run = |options: &'static [&'static str]| {
        std::thread::spawn(move || {
            in_new_folder(|data| {
                let output = exec(data, "a", options, &["sh", "-c", "sleep 2; echo done"]);
                (output, attempts(data, "a").pop().expect("an attempt"))
            })
        })
    };
    let unbounded = run(&["--lease", "1s"]);
    let bounded = run(&["--lease", "1s", "--timeout", "1500ms"]);

    let (output, record) = unbounded.join().expect("no panic");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.starts_with(b"done\n[receipt: zc-receipt-"), "{output:?}");
    assert_eq!((&record["status"], &record["late"]), (&"ok".into(), &false.into()));

    let (output, record) = bounded.join().expect("no panic");
    assert_eq!(output.status.code(), Some(13), "{output:?}");
    assert_eq!(record["status"], "timeout");
    let took = record["duration_ms"].as_u64().expect("a duration");
    assert!(took >= 1500, "the timeout counts, not the lease: {took} ms");
}

#[test]
fn the_terms_of_the_caller_hold_where_the_policy_has_no_rule() {
    in_new_folder(|data| {
        let fails = &["sh", "-c", "exit 3"];
        for (call, options, again) in [
            ("a", &["--effect", "keyed"][..], 23),
            ("b", &["--effect", "keyed", "--key-window", "1h"][..], 0),
        ] {
            assert_eq!(exec(data, call, options, fails).status.code(), Some(12));
            let output = exec(data, call, options, &["true"]);
            assert_eq!(output.status.code(), Some(again), "{call}: {output:?}");
        }
        let options = ["--effect", "queryable", "--settle", "5s"];
        exec(data, "c", &options, fails);
        let output = recibo(data, &["call", "r", "c", "--json"]);
        let call: Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(call["terms"]["settle_ms"], 5000);
    });
}

#[test]
fn with_stop_a_call_that_does_the_same_holds_the_command_back() {
    in_new_folder(|data| {
        assert_eq!(exec(data, "a", &[], &["sh", "-c", "exit 3"]).status.code(), Some(12));
        let held = exec(data, "b", &["--twins", "stop"], &["true"]);
        assert_eq!(held.status.code(), Some(23), "{held:?}");
        let why = String::from_utf8_lossy(&held.stderr);
        assert!(why.contains("stop (twin_unknown)"), "{why}");
        assert!(why.contains("decides: r a (unknown)"), "{why}");
        assert!(why.contains("recibo explain r a\n"), "{why}");
        // A person who names a new call means a new one.
        assert_eq!(exec(data, "b", &[], &["true"]).status.code(), Some(0));
        assert_eq!(exec(data, "c", &["--twins", "maybe"], &["true"]).status.code(), Some(2));
    });
}
