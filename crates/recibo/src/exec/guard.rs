//! A process beside the command that outlives a killed `exec`. An adapter promises that nothing
//! of it is sent after its lease; without the guard a `kill -9` of `exec` would leave a command
//! behind that knows of no lease.

use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use recibo_adapter::now_ms;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::time::sleep;

use crate::command::Done;
use crate::failure::Failure;

/// The hidden subcommand.
pub const NAME: &str = "exec-guard";
const RELEASE: &[u8] = b"done\n";
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The end of the guard's stdin that `exec` holds. When `exec` dies it closes by itself.
pub struct Guard(ChildStdin);

impl Guard {
    /// Starts a guard, before there is anything to guard.
    pub fn start() -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What kills the group of `exec` must not kill its guard.
            .process_group(0)
            .spawn()?;
        Ok(Self(child.stdin.take().expect("stdin is a pipe")))
    }

    /// Names the group to kill if `exec` dies, at the latest at this moment. Said again with a
    /// later one when the lease was renewed.
    pub async fn watch(&mut self, group: Pid, last_moment_ms: u64) {
        let line = format!("{} {last_moment_ms}\n", group.as_raw_nonzero());
        // A guard that is gone guards nothing; the command runs all the same.
        let _ = self.0.write_all(line.as_bytes()).await;
    }

    /// The command is over: nothing is to be killed any more.
    pub async fn release(mut self) {
        let _ = self.0.write_all(RELEASE).await;
    }
}

/// The guard's own life.
pub async fn run() -> Result<Done, Failure> {
    let order = std::io::stdin().as_fd().try_clone_to_owned().and_then(Receiver::from_owned_fd);
    let order = order.map_err(|_| not_for_people())?;
    let mut lines = BufReader::new(order).lines();
    let Ok(Some(order)) = lines.next_line().await else { return Ok(Done::silent()) };
    let Some((group, mut last_moment_ms)) = parse(&order) else {
        return Err(not_for_people());
    };
    loop {
        let left = Duration::from_millis(last_moment_ms.saturating_sub(now_ms()));
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { break };
                match parse(&line) {
                    Some((same, later_ms)) if same == group => last_moment_ms = later_ms,
                    _ => return Ok(Done::silent()),
                }
            }
            () = sleep(left.min(LOOK_EVERY)) => {
                if now_ms() >= last_moment_ms {
                    break;
                }
            }
        }
    }
    // It may be over already.
    let _ = kill_process_group(group, Signal::KILL);
    Ok(Done::silent())
}

fn not_for_people() -> Failure {
    Failure::usage("this command is for recibo itself")
}

fn parse(order: &str) -> Option<(Pid, u64)> {
    let (group, last_moment_ms) = order.split_once(' ')?;
    // Group 1 and below would be everybody.
    let group = group.parse().ok().filter(|group| *group > 1).and_then(Pid::from_raw)?;
    Some((group, last_moment_ms.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_of_its_own_is_ever_killed() {
        assert!(parse("4711 99").is_some());
        for bad in ["", "1 99", "0 99", "-5 99", "4711", "4711 x", "x 99"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
