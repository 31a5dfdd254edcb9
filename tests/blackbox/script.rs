//! A history as a text that can be played again, and made shorter where it fails.

use std::fmt;

use super::drive::{Drive, Tally};
use super::steps::{Step, generate};

/// How often a failing history is played again to make it shorter.
const REPLAYS_MAX: usize = 80;

/// A seed, which makes the world, and the steps.
#[derive(Clone)]
pub struct Script {
    pub seed: u64,
    pub steps: Vec<Step>,
}

/// What a history without a difference was compared by.
#[derive(Default)]
pub struct Passed {
    pub checks: u64,
    pub tally: Tally,
}

/// A difference, and the history that led to it.
pub struct Failure {
    script: Script,
    /// The step that showed it; `None`: the start did.
    at: Option<usize>,
    difference: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the service and the contract differ (seed {}):", self.script.seed)?;
        writeln!(f, "{}", self.difference)?;
        writeln!(f, "--- the history; play it with RECIBO_MODEL_SCRIPT=FILE ---")?;
        let len = self.at.map_or(0, |at| at + 1);
        let shown = Script { seed: self.script.seed, steps: self.script.steps[..len].to_vec() };
        write!(f, "{}", shown.text())
    }
}

impl Script {
    /// The history of a seed.
    pub fn generate(seed: u64, len: usize) -> Self {
        Self { seed, steps: generate(seed, len) }
    }

    /// The seed, then a step on each line.
    fn text(&self) -> String {
        let step = |step| serde_json::to_string(step).expect("a step is JSON");
        let lines: Vec<String> = self.steps.iter().map(step).collect();
        format!("{}\n{}\n", self.seed, lines.join("\n"))
    }

    /// Reads what a failure printed.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let seed = lines.next().and_then(|line| line.trim().parse().ok()).expect("a seed first");
        let step = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        Self { seed, steps: lines.map(step).collect() }
    }

    /// Plays it on a service of its own.
    pub fn play(&self) -> Result<Passed, Failure> {
        let failed = |at, difference| Failure { script: self.clone(), at, difference };
        let folder = tempfile::tempdir().expect("a folder");
        let mut drive =
            Drive::new(self.seed, folder.path()).map_err(|found| failed(None, found))?;
        for (at, step) in self.steps.iter().enumerate() {
            drive.step(step).map_err(|found| failed(Some(at), found))?;
        }
        Ok(Passed { checks: drive.checks, tally: drive.tally })
    }

    /// The same; a failure is that of a shorter history.
    pub fn play_and_shrink(&self) -> Result<Passed, Failure> {
        let mut failure = match self.play() {
            Ok(passed) => return Ok(passed),
            Err(failure) => failure,
        };
        let mut replays = 0;
        let mut chunk = failure.at.unwrap_or(0) / 2;
        while chunk > 0 {
            let mut from = 0;
            while let Some(shorter) = failure.without(from, chunk) {
                replays += 1;
                if replays > REPLAYS_MAX {
                    return Err(failure);
                }
                match shorter.play() {
                    Err(found) if found.kind() == failure.kind() => failure = found,
                    _ => from += chunk,
                }
            }
            chunk /= 2;
        }
        Err(failure)
    }
}

impl Passed {
    /// Adds another history.
    pub fn add(&mut self, other: Self) {
        self.checks += other.checks;
        for (answer, count) in other.tally {
            *self.tally.entry(answer).or_default() += count;
        }
    }
}

impl Failure {
    /// The history up to the difference, without some steps before it.
    fn without(&self, from: usize, chunk: usize) -> Option<Script> {
        let at = self.at.filter(|at| from + chunk <= *at)?;
        let mut steps = self.script.steps[..=at].to_vec();
        steps.drain(from..from + chunk);
        Some(Script { seed: self.script.seed, steps })
    }

    /// What differs, without the values: a shorter history must show the same kind.
    fn kind(&self) -> String {
        let line = self.difference.lines().next().unwrap_or_default();
        let words = line.split("the contract says").next().unwrap_or_default();
        words.rsplit(": ").nth(1).unwrap_or(words).to_owned()
    }
}
