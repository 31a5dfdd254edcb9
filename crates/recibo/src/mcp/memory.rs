//! What this proxy remembers for the model: successes that it was told of, and results that it
//! may not have seen. In memory only.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use recibo_adapter::{Record, ToldSuccesses};
use recibo_core::hash::OutputHash;

/// Results that are remembered, the newest.
const RESULTS_MAX: usize = 64;
/// Bytes of one that is remembered: more would fill the context of most models. All take 4 MiB.
const RESULT_BYTES_MAX: usize = 64 << 10;

/// What is remembered.
#[derive(Default)]
pub struct Memory {
    /// Late successes that the model of the newest run was told of.
    told: Mutex<Option<Arc<ToldSuccesses>>>,
    results: Mutex<VecDeque<(OutputHash, String)>>,
}

impl Memory {
    /// Late successes that the model of this run was told of. Another run is another session of the
    /// host, whose model has heard nothing.
    pub fn told(&self, run: &str) -> Arc<ToldSuccesses> {
        let mut told = self.told.lock().expect("no holder panics");
        match &*told {
            Some(told) if told.run_id() == run => told.clone(),
            _ => told.insert(Arc::new(ToldSuccesses::new(run))).clone(),
        }
    }

    /// The model of this run is told now of a late success: run and call.
    pub fn note(&self, run: &str, success: Option<(String, String)>) {
        if let Some((run_id, tool_call_id)) = success {
            self.told(run).note(&run_id, &tool_call_id);
        }
    }

    /// Remembers a result.
    pub fn keep(&self, output: &str) {
        if output.len() > RESULT_BYTES_MAX {
            return;
        }
        let mut results = self.results.lock().expect("no holder panics");
        if results.len() == RESULTS_MAX {
            results.pop_front();
        }
        results.push_back((OutputHash::of_text(output), output.to_owned()));
    }

    /// The result that a record is about.
    pub fn result(&self, record: &Record) -> Option<String> {
        let results = self.results.lock().expect("no holder panics");
        let is_it = |hash: &OutputHash| record.output_hash.as_deref() == Some(&hash.to_string());
        results.iter().find(|(hash, _)| is_it(hash)).map(|(_, output)| output.clone())
    }
}
