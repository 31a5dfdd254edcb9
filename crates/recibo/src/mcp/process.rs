//! The server as a process: a group of its own, its end, and that it ends with this process.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::exec::guard::Guard;
use crate::failure::Failure;

/// A server that runs.
pub struct Server {
    child: Child,
    group: Pid,
    guard: Option<Guard>,
}

impl Server {
    /// Starts it. Its stderr is this process's.
    pub async fn start(
        command: &[OsString],
        variables: &[(&str, &str)],
    ) -> Result<(Self, ChildStdin, ChildStdout), Failure> {
        let (program, arguments) = command.split_first().expect("a command has a program");
        // If there is none, a server still reads the end of its stdin when this process dies.
        let guard = Guard::start().ok();
        let mut child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(guard.as_ref().map_or(0, |guard| guard.group().as_raw_nonzero().get()))
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::said(format!("cannot run {}: {error}", program.display())))?;
        let own = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let own = own.expect("a process that was not waited for has an id");
        let group = guard.as_ref().map_or(own, Guard::group);
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        Ok((Self { child, group, guard }, stdin, stdout))
    }

    /// Waits for its end. Nothing is lost if this is dropped.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Passes a signal on to all of it.
    pub fn signal(&self, signal: Signal) {
        // It may have ended just now.
        let _ = kill_process_group(self.group, signal);
    }

    /// Kills what is left of the process group.
    pub async fn clear(self) {
        self.signal(Signal::KILL);
        if let Some(guard) = self.guard {
            guard.release().await;
        }
    }
}

/// The exit code that passes a server's end on, as a shell does it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// How long what is left of a server that has ended may hold its stdout.
pub const FALL: Duration = Duration::from_secs(2);
