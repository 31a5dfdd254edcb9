//! A commit that fails: whether it happened is not known, so nobody is told that it did, the
//! ledger stops, and the next start reads what is true.

use std::sync::Arc;

use recibo_core::effect::StatedTerms;
use recibo_core::hash::InputHash;
use recibo_core::id::{CallRef, ClaimId, Labels, RunId, ScopeId, ToolCallId, ToolName};
use recibo_core::plan::{Claim, TwinRule};
use recibo_core::status::CallState;
use recibo_store::{Config, Entropy, ManualClock, Store, WriteError};
use recibo_tests::service::{START_MS, namespace};

use super::disk::{BreakingDisk, Fault};

pub fn open(disk: BreakingDisk) -> Store {
    open_with(disk, 4 << 20, Box::new(|bytes: &mut [u8]| rand::fill(bytes)))
}

pub fn open_with(disk: BreakingDisk, cache_bytes: usize, entropy: Entropy) -> Store {
    let clock = Arc::new(ManualClock::at(START_MS));
    let config = Config { cache_bytes, ..Config::default() };
    Store::on_disk(disk, config, clock, entropy, [9; 32]).expect("a store")
}

pub fn call(name: &str) -> CallRef {
    CallRef {
        run_id: RunId::parse("r").expect("an id"),
        tool_call_id: ToolCallId::parse(name).expect("an id"),
    }
}

pub fn claim(name: &str, claim_id: &str, scope_id: &ScopeId) -> Claim {
    Claim {
        call: call(name),
        claim_id: ClaimId::parse(claim_id).expect("an id"),
        scope_id: scope_id.clone(),
        tool: ToolName::parse("t").expect("a name"),
        input_hash: InputHash::of_canonical("{}"),
        terms: StatedTerms::default(),
        lease_ms: 60_000,
        attempt: None,
        operation_key: None,
        message_id: None,
        labels: Labels::default(),
        trace: None,
        redacted: false,
        twins: TwinRule::advise(),
    }
}

/// Makes the sync after `good` others fail in the commit of a claim; gives what a restart finds.
fn fail(good: u32, fault: Fault) -> CallState {
    let disk = BreakingDisk::default();
    let store = open(disk.clone());
    let ns = namespace("default");
    let scope = store.open_scope(&ns, None, 1_000_000).wait().expect("a scope").scope_id;
    store.claim(&ns, claim("before", "c", &scope)).wait().expect("a grant");
    disk.fail_after(good, fault);

    let answer = store.claim(&ns, claim("during", "c", &scope)).wait();
    assert!(matches!(answer, Err(WriteError::Stopped)), "{answer:?}");
    assert!(!store.is_serving() && store.has_failed());
    let after = store.claim(&ns, claim("after", "c", &scope)).wait();
    assert!(matches!(after, Err(WriteError::Stopped)), "{after:?}");
    drop(store);

    let store = open(disk.after_crash());
    let snapshot = store.snapshot().expect("a snapshot");
    let state =
        |name: &str| snapshot.decision(&ns, &call(name)).expect("a decision").decision.state;
    assert_eq!(state("before"), CallState::InFlight, "what was answered is there");
    assert_eq!(state("after"), CallState::Absent);
    let head = snapshot.log_head().expect("a head");
    let is_there = state("during") == CallState::InFlight;
    assert_eq!(head.size, 2 + u64::from(is_there), "all of the batch, or nothing");
    state("during")
}

#[test]
fn a_failed_commit_stops_the_ledger_and_loses_nothing_answered() {
    // A two-phase commit syncs twice: its data, and then the header that makes it count.
    assert_eq!(fail(0, Fault::NotStored), CallState::Absent);
    assert_eq!(fail(0, Fault::Stored), CallState::Absent);
    assert_eq!(fail(1, Fault::NotStored), CallState::Absent);
    assert_eq!(fail(1, Fault::Stored), CallState::InFlight);
}
