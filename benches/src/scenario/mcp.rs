//! What the MCP proxy adds to a tool call, through the service that it starts and with a ledger of
//! its own: a server that answers at once, with and without the proxy before it, one call after the
//! other.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::Bench;
use crate::failure::{Failure, Outcome, check};
use crate::probe;
use crate::report::{Goal, Report, median, quantile};
use crate::service;

/// The goal: added to the median call.
const GOAL_MS: f64 = 1.0;
/// Calls before anything is measured.
const WARM_UP: usize = 50;

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let folder = bench.fresh("mcp")?;
    probe::note_disk(report, &folder)?;
    let binary = service::binary(bench.named.clone())?;
    let mut direct = Session::start(echo()?)?;
    let mut proxied = Session::start(proxy(&binary, &folder.join("data"), &["--alone"])?)?;
    let mut shared = Session::start(proxy(&binary, &folder.join("shared"), &[])?)?;
    let (mut direct_ms, mut proxied_ms, mut added, mut tail) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut shared_ms, mut shared_added) = (Vec::new(), Vec::new());
    for _ in 0..bench.sizes.slices {
        let direct = direct.slice(bench.sizes.mcp_calls, false)?;
        let proxied = proxied.slice(bench.sizes.mcp_calls, true)?;
        let shared = shared.slice(bench.sizes.mcp_calls, true)?;
        added.push(median(&proxied) - median(&direct));
        shared_added.push(median(&shared) - median(&direct));
        shared_ms.push(median(&shared));
        direct_ms.push(median(&direct));
        proxied_ms.push(median(&proxied));
        tail.push(quantile(&proxied, 0.99));
    }
    report.figure("tools/call, no proxy, median", "ms", &direct_ms);
    report.figure("tools/call, proxy with --alone, median", "ms", &proxied_ms);
    report.figure("tools/call, proxy with --alone, p99", "ms", &tail);
    report.figure("tools/call, proxy and service, median", "ms", &shared_ms);
    report.figure("added by proxy and service, median", "ms", &shared_added);
    let added = report.figure("added by the proxy with --alone, median", "ms", &added);
    report.goal("added per tools/call, embedded ledger", "ms", added, Goal::AtMost(GOAL_MS));
    report.note("each call is two commits, one after the other: the claim and the outcome");
    proxied.end()?;
    shared.end()?;
    direct.end()
}

/// The server's own life: it echoes the id, and nothing else.
pub fn serve() -> Outcome<()> {
    let (stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.lines() {
        let line = line?;
        let id = line.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next());
        let id = id.ok_or_else(|| Failure::new("a request without an id"))?;
        writeln!(
            stdout,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"done"}}]}}}}"#
        )?;
        stdout.flush()?;
    }
    Ok(())
}

fn echo() -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("mcp-server");
    Ok(command)
}

fn proxy(binary: &Path, data: &Path, options: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(binary);
    command.arg("mcp").arg("--data").arg(data).args(options).arg("--");
    command.arg(std::env::current_exe()?).arg("mcp-server");
    Ok(command)
}

struct Session {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next_id: usize,
}

impl Session {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| Failure::new("a server without pipes"))?;
        let mut session = Self { child, input, output: BufReader::new(output).lines(), next_id: 0 };
        for _ in 0..WARM_UP {
            session.call()?;
        }
        Ok(session)
    }

    /// Sorted milliseconds of so many calls.
    fn slice(&mut self, calls: usize, has_receipts: bool) -> Outcome<Vec<f64>> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            let answer = self.call()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            check(answer.contains("[receipt: zc-receipt-") == has_receipts, || {
                format!("not the answer that was to come: {answer}")
            })?;
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }

    fn call(&mut self) -> Outcome<String> {
        self.next_id += 1;
        let id = self.next_id;
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\
             \"echo\",\"arguments\":{{\"customer\":{id},\"text\":\"a short argument\"}}}}}}\n"
        );
        self.input.write_all(request.as_bytes())?;
        let answer = self.output.next().ok_or_else(|| Failure::new("the server has ended"))?;
        Ok(answer?)
    }

    fn end(self) -> Outcome<()> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait()?;
        check(status.success(), || format!("the server ended with {status}"))
    }
}
