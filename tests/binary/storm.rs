//! 64 threads, 1,000 claims each, 100 calls: one grant per attempt, and no gaps.

use std::collections::BTreeMap;
use std::sync::Mutex;

use recibo_tests::binary::Server;
use serde_json::{Value, json};

const THREADS: u64 = 64;
const CLAIMS: u64 = 1000;
const CALLS: u64 = 100;

#[test]
fn a_storm_of_claims_grants_every_attempt_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&folder.path().join("data"));
    let scope = server.api.scope();
    // Per call, the claim ids that were granted, in order of attempt.
    let grants: Mutex<BTreeMap<(u64, u64), Vec<String>>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (api, scope, grants) = (&server.api, &scope, &grants);
            threads.spawn(move || {
                // A walk over all calls that differs from thread to thread.
                let step = 2 * (thread % 25) + 1;
                for number in 0..CLAIMS {
                    let call = (thread + number * step) % CALLS;
                    let id = format!("{thread}-{number}");
                    let name = format!("call-{call}");
                    let reply = api.claim("storm", &name, scope, &id, json!({}));
                    match (reply.status, reply.at("decision").as_str()) {
                        (201, Some("proceed")) => {}
                        (200, Some("wait")) => continue,
                        (503, _) if reply.at("code") == "overloaded" => continue,
                        _ => panic!("{} {}", reply.status, reply.text),
                    }
                    let attempt = reply.at("attempt").as_u64().expect("a number");
                    grants.lock().expect("no panic").entry((call, attempt)).or_default().push(id);
                    // Known to have had no effect, so the next claim is granted again.
                    let failed = json!({
                        "lease_token": reply.at("lease")["token"], "status": "retryable_error",
                        "duration_ms": 1, "error_class": "busy",
                    });
                    api.report("storm", &name, attempt, failed).expect(200);
                }
            });
        }
    });
    let grants = grants.into_inner().expect("no panic");
    for call in 0..CALLS {
        let whole = server.api.whole("storm", &format!("call-{call}")).expect(200);
        let attempts = whole.at("attempts").as_array().expect("attempts");
        for (number, attempt) in (1..).zip(attempts) {
            assert_eq!(attempt["attempt"], json!(number), "no gaps");
            let granted = grants.get(&(call, number)).map(Vec::len);
            assert_eq!(granted, Some(1), "one grant for attempt {number} of call {call}");
        }
        let told = grants.keys().filter(|(of, _)| *of == call).count();
        assert_eq!(told, attempts.len(), "every grant is on record");
        assert_eq!(whole.at("conflict"), &Value::Bool(false));
    }
}
