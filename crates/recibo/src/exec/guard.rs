//! A process beside the command that outlives a killed `exec`. An adapter promises that nothing
//! of it is sent after its lease; without the guard a `kill -9` of `exec` would leave a command
//! behind that knows of no lease.
//!
//! The command is born into the guard's process group: from its first moment the guard can end
//! it, however early `exec` dies.

use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use recibo_adapter::now_ms;
use rustix::process::{Pid, Signal, kill_current_process_group};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::time::sleep;

use super::signals::Signals;
use crate::command::Done;
use crate::failure::Failure;

/// The hidden subcommand.
pub const NAME: &str = "exec-guard";
const RELEASE: &[u8] = b"done\n";
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A guard that runs.
pub struct Guard {
    /// The end of its stdin that `exec` holds. When `exec` dies it closes by itself.
    orders: ChildStdin,
    group: Pid,
}

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
        let orders = child.stdin.take().expect("stdin is a pipe");
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { orders, group: group.expect("a process that was not waited for has an id") })
    }

    /// The process group that the command is to be born into.
    pub fn group(&self) -> Pid {
        self.group
    }

    /// Says at which moment the group is to be killed at the latest; it is if `exec` dies, too.
    /// Said again with a later one when the lease was renewed.
    pub async fn watch(&mut self, last_moment_ms: u64) {
        // A guard that is gone guards nothing; the command runs all the same.
        let _ = self.orders.write_all(format!("{last_moment_ms}\n").as_bytes()).await;
    }

    /// The command is over: nothing is to be killed any more.
    pub async fn release(mut self) {
        let _ = self.orders.write_all(RELEASE).await;
    }
}

/// The guard's own life.
pub async fn run() -> Result<Done, Failure> {
    // What is passed on to the command comes here too, and means the command.
    let _signals = Signals::listen()?;
    let orders = std::io::stdin().as_fd().try_clone_to_owned().and_then(Receiver::from_owned_fd);
    let orders = orders.map_err(|_| Failure::usage("this command is for recibo itself"))?;
    let mut lines = BufReader::new(orders).lines();
    let mut last_moment_ms = u64::MAX;
    loop {
        let left = Duration::from_millis(last_moment_ms.saturating_sub(now_ms()));
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { break };
                match line.parse() {
                    Ok(later_ms) => last_moment_ms = later_ms,
                    Err(_) => return Ok(Done::silent()),
                }
            }
            () = sleep(left.min(LOOK_EVERY)) => {
                if now_ms() >= last_moment_ms {
                    break;
                }
            }
        }
    }
    // Only where this process leads a group, as `exec` starts it: by hand it would end whoever
    // called.
    if rustix::process::getpgrp() == rustix::process::getpid() {
        let _ = kill_current_process_group(Signal::KILL);
    }
    Ok(Done::silent())
}
