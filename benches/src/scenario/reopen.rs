//! How long a large ledger takes to open after `kill -9` in the middle of writing.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{BATCH, Bench};
use crate::failure::{Failure, Outcome, check};
use crate::peers::Peer;
use crate::peers::ledger::Ledger;
use crate::probe;
use crate::report::{Goal, Report};
use crate::workload::Workload;

/// Kills.
const TIMES: u32 = 5;

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let records = bench.sizes.growth_top / BATCH * BATCH;
    let folder = bench.filled(records)?;
    probe::note_disk(report, bench.work())?;
    let mut times = Vec::new();
    for turn in 0..TIMES {
        // Each turn writes runs of its own: the stream of a ledger that is full is 0.
        let stream = 0x40 + turn;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["fill", "--records", "20000", "--stream", &stream.to_string(), "--data"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("a child without output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        // Somewhere in a batch, each time elsewhere.
        std::thread::sleep(Duration::from_millis(150 + u64::from(turn) * 7));
        child.kill()?;
        child.wait()?;
        check(line.trim() == "filled", || "the child did not fill the ledger".into())?;
        let start = Instant::now();
        let mut ledger = Ledger::open(&folder)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let rows = Workload::new(&bench.samples, stream).take_rows(20_000);
        for row in rows.iter().step_by(500) {
            check(ledger.holds(row)?, || format!("the kill lost {row:?}"))?;
        }
        Box::new(ledger).close()?;
    }
    let what = format!("open after kill -9 at {} k, with opening a scope", records / 1000);
    let open = report.figure(what, "ms", &times);
    report.goal("open after kill -9", "ms", open, Goal::AtMost(50.0));
    Ok(())
}
