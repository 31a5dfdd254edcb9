//! Tool names could hold format characters once. What was stored then is still read.

use std::sync::Arc;

use recibo_core::effect::{Effect, StatedTerms};
use recibo_core::event::Outcome;
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{CallRef, Labels, Namespace, RunId, ToolCallId, ToolName};
use recibo_core::plan::OneShot;
use recibo_core::status::OutcomeStatus;
use recibo_core::time::Time;
use recibo_store::{Config, ManualClock, Store};

const NOW_MS: u64 = 1_700_000_000_000;

#[test]
fn a_call_of_a_tool_with_a_hidden_character_in_its_name_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let namespace = Namespace::parse("own").unwrap();
    let tool = ToolName::stored("pay\u{202e}tnem").unwrap();
    assert!(ToolName::parse(tool.as_str()).is_err());
    let entropy = Box::new(|bytes: &mut [u8]| bytes.fill(7));
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let store = Store::open(folder.path(), Config::default(), clock, entropy).unwrap();
    let call = CallRef {
        run_id: RunId::parse("r").unwrap(),
        tool_call_id: ToolCallId::parse("t").unwrap(),
    };
    let shot = OneShot {
        call: call.clone(),
        attempt: None,
        scope_id: store.open_scope(&namespace, None, 60_000).wait().unwrap().scope_id,
        tool: tool.clone(),
        input_hash: InputHash::of_canonical("1"),
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
    };
    store.record(&namespace, vec![shot]).wait().unwrap().pop().unwrap().unwrap();
    let snapshot = store.snapshot().unwrap();
    let receipts = snapshot.receipts(&namespace, &call.run_id, None, 0, 9).unwrap().unwrap().lines;
    assert_eq!(receipts[0].tool, tool);
    assert!(snapshot.call(&namespace, &call).unwrap().is_some());
    store.close();
}
