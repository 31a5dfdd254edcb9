//! Scope keys are never on disk, neither raw nor in hex.

use std::sync::{Arc, Mutex};

use recibo_core::event::Outcome;
use recibo_core::hash::{OutputHash, hex};
use recibo_core::plan::Report;
use recibo_core::status::OutcomeStatus;
use recibo_tests::service::namespace;

use super::disk::BreakingDisk;
use super::failed_commits::{call, claim, open_with};

#[test]
fn no_scope_key_reaches_the_disk() {
    let drawn: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let (recorder, disk) = (drawn.clone(), BreakingDisk::default());
    let entropy = Box::new(move |bytes: &mut [u8]| {
        rand::fill(bytes);
        recorder.lock().expect("no holder panics").push(bytes.to_vec());
    });
    let store = open_with(disk.clone(), 4 << 20, entropy);
    let ns = namespace("default");
    for number in 0..5 {
        let scope = store.open_scope(&ns, None, 1_000_000).wait().expect("a scope").scope_id;
        let name = format!("c{number}");
        let answer = store.claim(&ns, claim(&name, "c", &scope)).wait().expect("a grant");
        let outcome = Outcome {
            status: OutcomeStatus::Ok,
            duration_ms: 1,
            output_hash: Some(OutputHash::of_text("x")),
            output_summary: None,
            error_class: None,
            provider_ref: None,
            message_id: None,
            redacted: false,
            answered: false,
        };
        let report = Report { call: call(&name), attempt: 1, outcome };
        let token = answer.lease_token.expect("a token");
        let record = store.report(&ns, report, token, None).wait().expect("taken").record;
        assert!(record.token.is_some(), "the key has signed");
        store.close_scope(&ns, &scope).wait().expect("closed");
    }
    store.close();
    let bytes = disk.bytes();
    let contains = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    let drawn = drawn.lock().expect("no holder panics");
    let keys: Vec<&Vec<u8>> = drawn.iter().filter(|bytes| bytes.len() == 32).collect();
    assert_eq!(keys.len(), 5);
    for key in keys {
        assert!(!contains(key) && !contains(hex(key).as_bytes()));
    }
    // Salts, drawn the same way, do stand there: the search would find a key.
    assert!(drawn.iter().any(|bytes| bytes.len() == 16 && contains(bytes)));
}
