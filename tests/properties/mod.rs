//! Random operations on the real store and on a plain list of events side by side: both must
//! answer the same, read the same and log the same, also across restarts, and the log must
//! hash to what its lines say.
//!
//! `PROPTEST_CASES` sets the number of runs.

mod book;
mod disk;
mod drive;
mod op;
mod request;
mod settle;

use drive::Drive;
use op::Op;
use proptest::prelude::*;

fn cases() -> u32 {
    let named = std::env::var("PROPTEST_CASES").ok();
    named.and_then(|cases| cases.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_store_answers_as_its_events_and_the_rules_say(
        policy in 0..op::policies().len(),
        ops in prop::collection::vec(op::op(), 1..60),
    ) {
        let mut drive = Drive::new();
        for call in [0, 3] {
            drive.step(&Op::SetPolicy { call, policy });
        }
        for op in &ops {
            drive.step(op);
        }
        drive.reopen(0, false);
    }
}
