//! `kill -9` under load: every answered write is there afterwards.

use std::sync::atomic::{AtomicU64, Ordering};

use recibo_tests::api::{Api, call_path};
use recibo_tests::binary::Server;
use serde_json::{Value, json};

const KILLS: usize = 20;
const CLIENTS: u64 = 8;
/// A kill comes after so many answers of a round, different each time.
const ANSWERS_BETWEEN_KILLS: u64 = 37;

/// What a client was answered, and must find again.
enum Answered {
    Granted { call: String },
    Finished { call: String, record: Value },
    Recorded { call: String, record: Value },
}

#[test]
fn no_answered_write_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut journal: Vec<Answered> = Vec::new();
    for round in 0..KILLS {
        let server = Server::start(&data);
        check(&server.api, &journal);
        let answers = AtomicU64::new(0);
        let target = ANSWERS_BETWEEN_KILLS + 11 * round as u64;
        let pid = server.pid().to_string();
        let new: Vec<Answered> = std::thread::scope(|threads| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (api, answers) = (server.api.clone(), &answers);
                    threads.spawn(move || load(&api, round, client, answers))
                })
                .collect();
            while answers.load(Ordering::SeqCst) < target {
                std::thread::yield_now();
            }
            let killed = std::process::Command::new("kill").args(["-9", &pid]).status();
            assert!(killed.expect("kill runs").success());
            clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
        });
        assert!(new.len() as u64 >= target);
        journal.extend(new);
    }
    let server = Server::start(&data);
    check(&server.api, &journal);
    let finished = journal.iter().filter(|a| matches!(a, Answered::Finished { .. })).count();
    assert!(finished > KILLS, "the load reports outcomes too: {finished}");
}

/// Writes until the service is gone; gives what was answered.
fn load(api: &Api, round: usize, client: u64, answers: &AtomicU64) -> Vec<Answered> {
    let mut journal = Vec::new();
    let Ok(scope) = api.try_call("POST", "/v1/scopes", &json!({})) else { return journal };
    let scope = scope.str("scope_id").to_owned();
    for number in 0.. {
        let call = format!("{client}-{round}-{number}");
        let count = || answers.fetch_add(1, Ordering::SeqCst);
        if number % 3 == 2 {
            let shot = json!({
                "run_id": "r", "tool_call_id": call, "scope_id": scope, "tool": "t", "input": 1,
                "status": "ok", "output": call, "duration_ms": 1, "started_at": "2026-09-13T02:00:00Z",
            });
            let Ok(reply) = api.try_call("POST", "/v1/receipts", &shot) else { break };
            let record = plain(reply.expect(201).json);
            journal.push(Answered::Recorded { call, record });
            count();
            continue;
        }
        let path = format!("{}/attempts", call_path("r", &call));
        let claim = json!({"scope_id": scope, "claim_id": "c", "tool": "t", "input": 1});
        let Ok(granted) = api.try_call("POST", &path, &claim) else { break };
        let token = granted.expect(201).at("lease")["token"].clone();
        journal.push(Answered::Granted { call: call.clone() });
        count();
        let ok = json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": call});
        let Ok(reply) = api.try_call("POST", &format!("{path}/1/outcome"), &ok) else { break };
        let record = plain(reply.expect(200).json);
        journal.push(Answered::Finished { call, record });
        count();
    }
    journal
}

fn plain(mut record: Value) -> Value {
    let members = record.as_object_mut().expect("a record");
    members.remove("replayed");
    members.remove("receipt_line");
    members.remove("no_token_reason");
    record
}

fn check(api: &Api, journal: &[Answered]) {
    for answered in journal {
        let (call, record) = match answered {
            Answered::Granted { call } => (call, None),
            Answered::Finished { call, record } | Answered::Recorded { call, record } => {
                (call, Some(record))
            }
        };
        let path = format!("{}/attempts/1", call_path("r", call));
        let found = api.get(&path).expect(200);
        if let Some(record) = record {
            assert_eq!(found.json, *record);
        }
    }
}
