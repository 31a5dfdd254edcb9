//! What `recibo exec` adds to a command that does nothing: where it finds a service, where it starts
//! one, and where it opens the ledger itself.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Bench;
use crate::failure::{Outcome, check};
use crate::probe;
use crate::report::{Goal, Report, median};
use crate::service;

/// The goals: added to the bare command.
const FOUND_GOAL_MS: f64 = 20.0;
const STARTED_GOAL_MS: f64 = 150.0;
/// Commands of a slice.
const COMMANDS: usize = 20;

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let folder = bench.fresh("exec")?;
    probe::note_disk(report, &folder)?;
    let binary = service::binary(bench.named.clone())?;
    let slices = bench.sizes.slices;
    let mut bench =
        Exec { binary: &binary, data: &folder.join("data"), alone: &folder.join("alone"), next: 0 };
    let (mut bare_ms, mut found_ms, mut started_ms, mut alone_ms) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    bench.run(Way::Find)?;
    for _ in 0..slices {
        let mut of = |way: Way| -> Outcome<f64> {
            let mut times = Vec::with_capacity(COMMANDS);
            for _ in 0..COMMANDS {
                times.push(bench.run(way)?);
            }
            times.sort_by(f64::total_cmp);
            Ok(median(&times))
        };
        bare_ms.push(of(Way::Bare)?);
        found_ms.push(of(Way::Find)?);
        started_ms.push(of(Way::Start)?);
        alone_ms.push(of(Way::Alone)?);
    }
    bench.stop()?;
    let bare = report.figure("the bare command, median", "ms", &bare_ms);
    let found = report.figure("exec that finds a service, median", "ms", &found_ms);
    let started = report.figure("exec that starts a service, median", "ms", &started_ms);
    report.figure("exec --alone, median", "ms", &alone_ms);
    report.goal(
        "added by exec that finds a service",
        "ms",
        found - bare,
        Goal::AtMost(FOUND_GOAL_MS),
    );
    report.goal(
        "added by exec that starts a service",
        "ms",
        started - bare,
        Goal::AtMost(STARTED_GOAL_MS),
    );
    report.note(
        "the command is `true`; each call is two commits and starts a guard beside the command",
    );
    Ok(())
}

#[derive(Clone, Copy)]
enum Way {
    Bare,
    Find,
    Start,
    Alone,
}

struct Exec<'a> {
    binary: &'a Path,
    data: &'a Path,
    /// No service ever runs on this one.
    alone: &'a Path,
    next: usize,
}

impl Exec<'_> {
    /// Milliseconds of one command.
    fn run(&mut self, way: Way) -> Outcome<f64> {
        self.next += 1;
        let mut command = match way {
            Way::Bare => Command::new("true"),
            Way::Find => self.exec(self.data, &[]),
            Way::Start => {
                self.stop()?;
                self.exec(self.data, &[])
            }
            Way::Alone => self.exec(self.alone, &["--alone"]),
        };
        let start = Instant::now();
        let status = command.stdout(Stdio::null()).status()?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        check(status.success(), || format!("the command ended with {status}"))?;
        Ok(ms)
    }

    fn exec(&self, data: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.args(["exec", "--run", "bench", "--call", &self.next.to_string(), "--tool", "t"]);
        command.arg("--data").arg(data).args(options).args(["--", "true"]);
        command
    }

    /// Ends the service, so that the next command starts one.
    fn stop(&self) -> Outcome<()> {
        let mut command = Command::new(self.binary);
        let status =
            command.args(["stop", "--data"]).arg(self.data).stdout(Stdio::null()).status()?;
        check(status.success(), || format!("the service was not stopped: {status}"))
    }
}
