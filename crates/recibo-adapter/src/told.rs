//! Late successes that the model was told of.

use std::collections::VecDeque;
use std::sync::Mutex;

use recibo_api::answer::Twin;
use recibo_core::limits;

/// Calls that the model knows to have succeeded late: they hold nothing back any more. The newest
/// 64 are remembered, as many as a claim may name in `knows`.
pub struct ToldSuccesses {
    run_id: String,
    entries: Mutex<VecDeque<String>>,
}

impl ToldSuccesses {
    /// Of the calls of this run, and of what they are told of other runs.
    pub fn new(run_id: impl Into<String>) -> Self {
        Self { run_id: run_id.into(), entries: Mutex::default() }
    }

    /// The run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The model is told now that this call has succeeded.
    pub fn note(&self, run_id: &str, tool_call_id: &str) {
        let entry = match run_id == self.run_id {
            true => tool_call_id.to_owned(),
            false => format!("{run_id}/{tool_call_id}"),
        };
        let mut entries = self.entries.lock().expect("no holder panics");
        entries.retain(|known| *known != entry);
        entries.push_back(entry);
        // One that was forgotten is told once more, which costs a turn and no effect.
        if entries.len() > limits::KNOWS_MAX {
            entries.pop_front();
        }
    }

    /// As [`crate::CallSpec::knows`] takes them.
    pub fn entries(&self) -> Vec<String> {
        self.entries.lock().expect("no holder panics").iter().cloned().collect()
    }

    /// A twin's run; services of before twins had runs name none.
    pub(crate) fn run_of<'a>(&'a self, twin: &'a Twin) -> &'a str {
        if twin.run_id.is_empty() { &self.run_id } else { &twin.run_id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_successes_that_were_told_are_known() {
        let told = ToldSuccesses::new("r");
        told.note("r", "t:0");
        told.note("other", "t:0");
        told.note("r", "t:0");
        assert_eq!(told.entries(), ["other/t:0", "t:0"]);
        for i in 0..limits::KNOWS_MAX {
            told.note("r", &format!("c{i}"));
        }
        let entries = told.entries();
        assert_eq!((entries.len(), entries[0].as_str()), (limits::KNOWS_MAX, "c0"));
    }
}
