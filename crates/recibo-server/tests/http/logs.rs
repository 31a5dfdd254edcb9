//! What must never be logged, at no level.

use std::io::Write;
use std::sync::{Arc, Mutex};

use recibo_api::Role;
use serde_json::json;

use crate::harness::{Service, claim_body};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn arguments_results_keys_and_paths_are_never_logged() {
    let sink = Sink::default();
    let writer = sink.clone();
    // For all threads: the store and the blocking pool log too. Other tests of this binary
    // may write into it; they have other words.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let service = Service::start().await;
    let scope = service.scope().await;
    let mut claim = claim_body(&scope, "c", "opaque");
    claim["input"] = json!({"MARKARGUMENT": "MARKARGUMENT"});
    let path = "/v1/runs/MARKRUN/calls/t/attempts";
    let granted = service.ask(Role::Adapter, "POST", path).json(claim).send().await.expect(201);
    let lease_token = granted.body()["lease"]["token"].as_str().unwrap().to_owned();
    let outcome = json!({"lease_token": lease_token, "status": "ok", "duration_ms": 1,
        "output": "MARKRESULT", "output_summary": {"MARKSUMMARY": 1}});
    let path = format!("{path}/1/outcome");
    let done = service.ask(Role::Adapter, "POST", &path).json(outcome).send().await.expect(200);
    for bad in ["{\"MARKBAD\":1}", "MARKBAD"] {
        let ask = service.ask(Role::Adapter, "POST", &path).raw(bad);
        ask.header("content-type", "application/json").send().await.expect(400);
    }
    service.get("/v1/MARKPATH?MARKQUERY=1").await.expect(404);

    let log = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    assert!(!log.contains("MARK"), "{log}");
    assert!(!log.contains(&lease_token));
    for role in Role::ALL {
        assert!(!log.contains(service.key(*role)));
    }
    let receipt = format!("receipt generated tool=\"crm/lookup\" receipt={}", done.text("token"));
    assert_eq!(log.matches(&receipt).count(), 1, "{log}");
    let route = "route=\"/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/outcome\" status=200";
    assert!(log.contains(route), "{log}");
}
