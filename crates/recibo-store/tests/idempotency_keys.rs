//! Calls are found by their idempotency key, also after the index went to disk and after a
//! restart.

use std::path::Path;
use std::sync::Arc;

use recibo_core::effect::{Effect, StatedTerms};
use recibo_core::event::Outcome;
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{CallRef, Labels, Namespace, RunId, ScopeId, ToolCallId, ToolName};
use recibo_core::plan::OneShot;
use recibo_core::receipt::IdempotencyKey;
use recibo_core::status::OutcomeStatus;
use recibo_core::time::Time;
use recibo_store::{Config, ManualClock, Snapshot, Store};

const NOW_MS: u64 = 1_700_000_000_000;

fn open(folder: &Path) -> Store {
    let mut counter = 0_u64;
    let entropy = Box::new(move |bytes: &mut [u8]| {
        for byte in bytes {
            counter = counter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (counter >> 56) as u8;
        }
    });
    Store::open(folder, Config::default(), Arc::new(ManualClock::at(NOW_MS)), entropy).unwrap()
}

fn call(n: u64) -> CallRef {
    CallRef {
        run_id: RunId::parse(&format!("run-{}", n / 50)).unwrap(),
        tool_call_id: ToolCallId::parse(&format!("call-{n}")).unwrap(),
    }
}

fn shot(n: u64, scope_id: &ScopeId) -> OneShot {
    OneShot {
        call: call(n),
        attempt: None,
        scope_id: scope_id.clone(),
        tool: ToolName::parse("mail").unwrap(),
        input_hash: InputHash::of_canonical(&n.to_string()),
        terms: StatedTerms::of(Some(Effect::Opaque)),
        operation_key: None,
        message_id: None,
        labels: Labels::default(),
        trace: None,
        started_at: Time::from_ms(NOW_MS),
        outcome: Outcome {
            status: OutcomeStatus::Ok,
            duration_ms: 1,
            output_hash: Some(OutputHash::of_text("sent")),
            output_summary: None,
            error_class: None,
            provider_ref: None,
            message_id: None,
            redacted: false,
            answered: false,
        },
        twin_hash: None,
    }
}

fn record(store: &Store, namespace: &Namespace, calls: std::ops::Range<u64>) {
    let scope = store.open_scope(namespace, None, 60_000).wait().unwrap().scope_id;
    for from in calls.clone().step_by(1000) {
        let shots = (from..calls.end.min(from + 1000)).map(|n| shot(n, &scope)).collect();
        for answer in store.record(namespace, shots).wait().unwrap() {
            answer.unwrap();
        }
    }
}

fn found(snapshot: &Snapshot, owner: &Namespace, asker: &Namespace, n: u64) -> Option<CallRef> {
    let call = call(n);
    let (run_id, id) = (call.run_id.as_str(), call.tool_call_id.as_str());
    let key = IdempotencyKey::derive(owner.as_str(), run_id, id);
    snapshot.call_by_key(asker, &key.to_string()).unwrap()
}

#[test]
fn a_call_is_found_by_its_key_from_memory_from_disk_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (Namespace::parse("own").unwrap(), Namespace::parse("other").unwrap());
    let mut size = 0;
    // A flush happens at 8,192 calls: before it, across it, after it.
    for more in [100, 8_000, 500] {
        let store = open(folder.path());
        record(&store, &own, size..size + more);
        let before = store.snapshot().unwrap();
        size += more;
        record(&store, &own, size..size + 10);
        for n in (0..size).step_by(37).chain([size - 1]) {
            assert_eq!(found(&before, &own, &own, n), Some(call(n)));
            assert_eq!(found(&before, &own, &other, n), None);
            assert_eq!(found(&before, &other, &other, n), None);
        }
        assert_eq!(found(&before, &own, &own, size), None, "newer than the snapshot");
        size += 10;
        let after = store.snapshot().unwrap();
        assert_eq!(found(&after, &own, &own, size - 1), Some(call(size - 1)));
        store.close();
    }
}
