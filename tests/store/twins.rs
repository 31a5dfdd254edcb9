//! A claim hears of the newest call of its run that does the same, however long ago it was.

use std::sync::Arc;

use recibo_core::effect::{Effect, StatedTerms};
use recibo_core::event::Outcome;
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{CallRef, ClaimId, Labels, Namespace, RunId, ScopeId, ToolCallId, ToolName};
use recibo_core::plan::{Claim, OneShot, TwinRule};
use recibo_core::status::OutcomeStatus;
use recibo_core::time::Time;
use recibo_store::{Config, Store, SystemClock};

const CALLS: u64 = 3_000;

fn open(folder: &std::path::Path) -> Store {
    let entropy = Box::new(|bytes: &mut [u8]| rand::fill(bytes));
    Store::open(folder, Config::default(), Arc::new(SystemClock), entropy).expect("a store")
}

fn call(id: &str) -> CallRef {
    CallRef {
        run_id: RunId::parse("r").expect("an id"),
        tool_call_id: ToolCallId::parse(id).expect("an id"),
    }
}

fn tool() -> ToolName {
    ToolName::parse("mail").expect("a name")
}

fn shot(n: u64, scope_id: &ScopeId) -> OneShot {
    OneShot {
        call: call(&format!("c{n}")),
        attempt: None,
        scope_id: scope_id.clone(),
        tool: tool(),
        input_hash: InputHash::of_canonical(&n.to_string()),
        terms: StatedTerms::of(Some(Effect::Opaque)),
        operation_key: None,
        message_id: None,
        labels: Labels::default(),
        trace: None,
        started_at: Time::from_ms(1_700_000_000_000),
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

/// The twin that a first claim with this input is told of.
fn twin(store: &Store, namespace: &Namespace, scope_id: &ScopeId, id: &str, n: u64) -> String {
    let claim = Claim {
        call: call(id),
        claim_id: ClaimId::parse("c-1").expect("an id"),
        scope_id: scope_id.clone(),
        tool: tool(),
        input_hash: InputHash::of_canonical(&n.to_string()),
        terms: StatedTerms::of(Some(Effect::Opaque)),
        lease_ms: 60_000,
        attempt: None,
        operation_key: None,
        message_id: None,
        labels: Labels::default(),
        trace: None,
        redacted: false,
        twins: TwinRule::advise(),
    };
    let answer = store.claim(namespace, claim).wait().expect("an answer");
    answer.twin.map(|twin| twin.call.tool_call_id.to_string()).unwrap_or_default()
}

#[test]
fn a_twin_is_found_however_many_calls_came_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let namespace = Namespace::parse("default").expect("a name");
    let store = open(folder.path());
    let scope = store.open_scope(&namespace, None, 60_000).wait().expect("a scope").scope_id;
    for from in (0..CALLS).step_by(500) {
        let shots = (from..from + 500).map(|n| shot(n, &scope)).collect();
        for answer in store.record(&namespace, shots).wait().expect("an answer") {
            answer.expect("recorded");
        }
    }
    let asked = [0, 1, 254, 255, 256, 257, 300, 1_500, CALLS - 1];
    for n in asked {
        assert_eq!(twin(&store, &namespace, &scope, &format!("again-{n}"), n), format!("c{n}"));
    }
    // The newest of several, which is under way now; also after a restart.
    store.close();
    drop(store);
    let store = open(folder.path());
    let scope = store.open_scope(&namespace, None, 60_000).wait().expect("a scope").scope_id;
    for n in asked {
        let newest = twin(&store, &namespace, &scope, &format!("third-{n}"), n);
        assert_eq!(newest, format!("again-{n}"));
    }
    assert_eq!(twin(&store, &namespace, &scope, "new", CALLS), "");
    store.close();
}
