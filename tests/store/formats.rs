//! Ledgers of earlier formats: what they held is read, and goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recibo_core::event::Outcome;
use recibo_core::id::{CallRef, ErrorClass, RunId, ToolCallId};
use recibo_core::plan::Report;
use recibo_core::status::{CallState, OutcomeStatus};
use recibo_core::time::Time;
use recibo_store::{Config, ManualClock, OpenError, ReadOnlyCause, Store};
use recibo_tests::service::namespace;

/// A lease token that was given out before the file was made.
const LEASE_TOKEN: &str = "wYprE9V-BUNBlMlsEflG3OwVQC7cLW_8gA2difjGHcc";
const EVENTS: u64 = 13;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/format-1")
}

/// A copy of the folder that format 1 left.
fn copy(parts: &[&str]) -> tempfile::TempDir {
    let temp = tempfile::tempdir().expect("a folder");
    for part in parts {
        std::fs::copy(data().join(part), temp.path().join(part)).expect("a copy");
    }
    temp
}

/// Two minutes after the last event.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Time::parse("2026-12-03T09:00:00.000Z").expect("a time").ms()))
}

fn open(folder: &Path) -> Result<Store, OpenError> {
    Store::open(folder, Config::default(), clock(), Box::new(|bytes| rand::fill(bytes)))
}

fn open_read_only(folder: &Path) -> Result<Store, OpenError> {
    let entropy = Box::new(|bytes: &mut [u8]| rand::fill(bytes));
    Store::open_read_only(folder, Config::default(), clock(), entropy, ReadOnlyCause::Asked)
}

fn call(name: &str) -> CallRef {
    CallRef {
        run_id: RunId::parse("run_1").expect("an id"),
        tool_call_id: ToolCallId::parse(name).expect("an id"),
    }
}

fn holds_what_was_written(store: &Store) {
    let ns = namespace("default");
    let snapshot = store.snapshot().expect("a snapshot");
    for (name, state, attempts) in [
        ("ok", CallState::Ok, 1),
        ("unknown", CallState::Unknown, 1),
        ("retried", CallState::Ok, 2),
        ("open", CallState::InFlight, 1),
        ("shot", CallState::Ok, 1),
        ("late", CallState::InFlight, 1),
        ("never", CallState::Absent, 0),
    ] {
        let decision = snapshot.decision(&ns, &call(name)).expect("a decision").decision;
        assert_eq!(decision.state, state, "{name}");
        let view = snapshot.call(&ns, &call(name)).expect("a read");
        assert_eq!(view.map_or(0, |view| view.records.len()), attempts, "{name}");
    }
    assert_eq!(store.api_keys().len(), 2);
    let key = std::fs::read_to_string(data().join("admin.key")).expect("a key");
    assert!(store.authenticate(key.trim()).is_some());
}

fn file(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_default()
}

#[test]
fn a_ledger_of_format_1_is_read_where_it_lies_and_gets_its_id_when_it_is_written() {
    let temp = copy(&["ledger.redb", "lease.key", "admin.key"]);
    let folder = temp.path();
    let before = file(folder, "ledger.redb");
    let store = open_read_only(folder).expect("a store");
    holds_what_was_written(&store);
    store.close();
    drop(store);
    assert!(file(folder, "ledger.redb") == before && !folder.join("ledger.json").exists());

    let store = open(folder).expect("a store");
    holds_what_was_written(&store);
    assert!(store.size() >= EVENTS);
    let report = Report { call: call("open"), attempt: 1, outcome: unknown() };
    let ns = namespace("default");
    let answer = store.report(&ns, report, LEASE_TOKEN.into(), None).wait();
    answer.expect("a lease token of before is as good as then");
    store.close();
    drop(store);

    let id = String::from_utf8(file(folder, "ledger.json")).expect("text");
    assert!(id.starts_with("{\"ledger_id\":\"") && id.ends_with("\"complete\":true}\n"), "{id}");
    open(folder).expect("a whole ledger").close();
    assert_eq!(file(folder, "ledger.json"), id.as_bytes(), "the id is for ever");
    std::fs::remove_file(folder.join("ledger.json")).expect("it is there");
    let error = open(folder).err().expect("refused").to_string();
    assert!(error.starts_with("ledger.json is missing"), "{error}");
}

fn unknown() -> Outcome {
    Outcome {
        status: OutcomeStatus::Unknown,
        duration_ms: 5,
        output_hash: None,
        output_summary: None,
        error_class: ErrorClass::parse("cut_off").ok(),
        provider_ref: None,
        message_id: None,
        redacted: false,
        answered: false,
    }
}

#[test]
fn a_copy_of_half_a_folder_of_format_1_is_refused_by_name_and_stays_as_it_is() {
    for (parts, named) in [
        (&["lease.key", "admin.key"][..], "ledger.redb is missing"),
        (&["lease.key"], "ledger.redb is missing"),
        (&["admin.key"], "ledger.redb is missing"),
        (&["ledger.redb", "admin.key"], "lease.key is missing"),
        (&["ledger.redb"], "lease.key is missing"),
    ] {
        let temp = copy(parts);
        let before = file(temp.path(), "ledger.redb");
        for result in [open(temp.path()), open_read_only(temp.path())] {
            let error = result.err().expect("refused").to_string();
            assert!(error.starts_with(named), "{parts:?}: {error}");
        }
        assert!(file(temp.path(), "ledger.redb") == before, "{parts:?}");
        let count = std::fs::read_dir(temp.path()).expect("a folder").count();
        assert_eq!(count, parts.len(), "{parts:?}");
    }
}

#[test]
fn a_move_from_format_1_that_died_is_completed_and_forgets_no_part() {
    let mark = "{\"ledger_id\":\"000102030405060708090a0b0c0d0e0f\",\"complete\":false,\
                \"older\":true}\n";
    let temp = copy(&["ledger.redb", "lease.key", "admin.key"]);
    let folder = temp.path();
    std::fs::write(folder.join("ledger.json"), mark).expect("a file");
    holds_what_was_written(&open_read_only(folder).expect("a store"));
    open(folder).expect("a store").close();
    let id = String::from_utf8(file(folder, "ledger.json")).expect("text");
    assert_eq!(id, mark.replace("false,\"older\":true", "true"));
    // The same with the ledger file gone in between: then it is no first start.
    std::fs::write(folder.join("ledger.json"), mark).expect("a file");
    std::fs::remove_file(folder.join("ledger.redb")).expect("it is there");
    let error = open(folder).err().expect("refused").to_string();
    assert!(error.starts_with("ledger.redb is missing"), "{error}");
}
