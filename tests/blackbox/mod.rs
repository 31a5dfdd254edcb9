//! A black-box model of the service over HTTP: random histories of about 12 calls, played
//! against the real binary and against a model that is written from the contract alone
//! (`model/`), with kills and restarts on the same boot and on others. After each step the answer
//! is compared with the model's, and every few steps all that there is.
//!
//! Time stands still unless a step moves it: debug builds of the binary read their clocks from a
//! file (`clock.rs`). So comparisons are exact. Only the service's background job runs by real
//! time; what it appends must make no difference.
//!
//! - `just model` runs 100,000 checks; `RECIBO_MODEL_CHECKS=5000 cargo test -p recibo-tests
//!   blackbox` any other number. Without it a short form runs.
//! - A failure names its seed and prints the history, made shorter, as a script. Play the seed
//!   again with `RECIBO_MODEL_SEED=17`, the script with `RECIBO_MODEL_SCRIPT=FILE`.

mod clock;
mod compare;
mod drive;
mod model;
mod script;
mod steps;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use script::{Failure, Passed, Script};

/// Steps of one history, without the reads between them.
const STEPS: usize = 70;

/// Checks of the short form.
const CHECKS_SHORT: u64 = 4000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

#[test]
fn the_service_answers_as_the_contract_says() {
    if let Some(file) = std::env::var_os("RECIBO_MODEL_SCRIPT") {
        let text = std::fs::read_to_string(file).expect("a script");
        return report(Script::parse(&text).play().map(|_| ()));
    }
    if let Some(seed) = number("RECIBO_MODEL_SEED") {
        return report(Script::generate(seed, STEPS).play_and_shrink().map(|_| ()));
    }
    let wanted = number("RECIBO_MODEL_CHECKS").unwrap_or(CHECKS_SHORT);
    let next = AtomicU64::new(0);
    let (passed, failure) = (Mutex::new(Passed::default()), Mutex::new(None));
    let is_done = || {
        passed.lock().expect("whole").checks >= wanted || failure.lock().expect("whole").is_some()
    };
    let play = || {
        while !is_done() {
            let script = Script::generate(next.fetch_add(1, Ordering::SeqCst), STEPS);
            match script.play_and_shrink() {
                Ok(one) => passed.lock().expect("whole").add(one),
                Err(found) => *failure.lock().expect("whole") = Some(found),
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(play);
        }
    });
    let passed = passed.into_inner().expect("whole");
    for (answer, count) in &passed.tally {
        println!("{count:>7} {answer}");
    }
    println!("{} checks in {} histories", passed.checks, next.into_inner());
    report(failure.into_inner().expect("whole").map_or(Ok(()), Err));
}

fn report(played: Result<(), Failure>) {
    if let Err(failure) = played {
        panic!("{failure}");
    }
}
