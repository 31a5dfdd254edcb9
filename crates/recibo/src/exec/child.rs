//! Running the command: its own process group, its output, its end.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use recibo_adapter::{Grant, LeaseEnd, RENEW_FOR_MAX, now_ms};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use super::guard::Guard;
use super::holders::{self, Holder};
use super::signals::Signals;
use super::stream::Stream;

/// The clock is looked at this often: a machine that has slept must not find the command
/// running beyond its lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the pieces of a killed group may take to fall.
const FALL: Duration = Duration::from_secs(2);
/// How long what the command has left behind may go on writing once the command has ended.
const LINGER: Duration = Duration::from_millis(1500);

/// Bytes of stdout that are kept: far more than a model reads, and little enough to hold. The
/// rest is read, so that the command can go on, and dropped.
pub const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Exited(u8),
    /// By a signal that did not come through here.
    Signalled(i32),
    /// By a signal that came through here.
    Interrupted(i32),
    /// It was killed at the end of its time.
    TimedOut,
    /// Its end could not be observed.
    Lost,
    /// It never began: the system would not run it.
    SpawnFailed(String),
    /// It never began: too little was left of its time.
    TooLate,
    /// It never began: a signal came first.
    NotBegun,
}

/// A command and the end of its time.
pub struct Job<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// Variables to set.
    pub variables: &'a [(&'static str, String)],
    /// How long it may run; without one, as long as its lease can be renewed.
    pub timeout_ms: Option<u64>,
    /// The permission to run it: its lease is renewed meanwhile.
    pub grant: &'a Grant,
    /// Whether its stdout is passed on as it comes.
    pub is_streamed: bool,
}

/// What became of a command.
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub output: Output,
    /// How long it ran.
    pub duration_ms: u64,
    /// The processes that it left behind with its stdout open, as far as they can be seen; `None`
    /// if its stdout was read to the end.
    pub left_behind: Option<Vec<Holder>>,
    /// What of its stdout is not passed on yet, if it is passed on as it comes.
    pub stream: Option<Stream>,
}

/// What a command wrote to stdout.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The beginning, at most [`OUTPUT_BYTES_MAX`].
    pub bytes: Vec<u8>,
    /// How much came after it.
    pub dropped_bytes: u64,
}

impl Output {
    fn cut(&mut self, bytes_max: usize) {
        self.dropped_bytes += self.bytes.len().saturating_sub(bytes_max) as u64;
        self.bytes.truncate(bytes_max);
    }
}

impl Job<'_> {
    /// Runs the command. It is over once the process has ended and its stdout is read; what still
    /// holds its stdout then, a daemon that it has started for instance, is left alone.
    pub async fn run(&self, signals: &mut Signals) -> Ran {
        let not_run = |end| Ran {
            end,
            output: Output::default(),
            duration_ms: 0,
            left_behind: None,
            stream: None,
        };
        if signals.has_come().await {
            return not_run(End::NotBegun);
        }
        // If there is no guard, the command is still watched from here.
        let mut guard = Guard::start().ok();
        let began_ms = now_ms();
        if !self.grant.may_send() {
            return not_run(End::TooLate);
        }
        let own_end = self.timeout_ms.map_or(u64::MAX, |ms| began_ms.saturating_add(ms));
        let mut running = match self.start(guard.as_ref()) {
            Ok(running) => running,
            Err(error) => return not_run(End::SpawnFailed(error.to_string())),
        };
        let at_most = match self.timeout_ms {
            Some(ms) => self.grant.since_asked().saturating_add(Duration::from_millis(ms)),
            None => RENEW_FOR_MAX,
        };
        let mut end = EndOfTime { own_end, lease: self.grant.lease_end() };
        // Once the lease is long enough, or could not be renewed, its end is what counts.
        let renewing = async {
            self.grant.keep_renewed(at_most).await;
            std::future::pending::<Infallible>().await
        };
        let end = tokio::select! {
            biased;
            end = running.watch(&mut end, guard.as_mut(), signals) => end,
            never = renewing => match never {},
        };
        if let Some(guard) = guard {
            guard.release().await;
        }
        let left_behind = (!running.is_read).then(|| holders::of(&running.stdout));
        let ended_ms = running.ended_ms.unwrap_or_else(now_ms);
        let duration_ms = ended_ms.saturating_sub(began_ms);
        Ran { end, output: running.output, duration_ms, left_behind, stream: running.stream }
    }

    fn start(&self, guard: Option<&Guard>) -> std::io::Result<Running> {
        let (program, arguments) = self.command.split_first().expect("a command has a program");
        // A process group of its own may not read from the terminal; it would be stopped.
        let is_terminal = std::io::stdin().is_terminal();
        let mut child = Command::new(program)
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(if is_terminal { Stdio::null() } else { Stdio::inherit() })
            .stdout(Stdio::piped())
            .process_group(guard.map_or(0, |guard| guard.group().as_raw_nonzero().get()))
            .spawn()?;
        let own = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let own = own.expect("a process that was not waited for has an id");
        let group = guard.map_or(own, Guard::group);
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let output = Output::default();
        Ok(Running {
            child,
            group,
            stdout,
            output,
            stream: self.is_streamed.then(Stream::new),
            status: None,
            ended_ms: None,
            is_read: false,
        })
    }
}

/// When a command must be over.
struct EndOfTime {
    /// The end of its own time.
    own_end: u64,
    /// The end of its lease.
    lease: LeaseEnd,
}

impl EndOfTime {
    fn left(&self) -> Duration {
        let end = self.own_end.min(self.lease.last_moment_ms());
        Duration::from_millis(end.saturating_sub(now_ms()))
    }
}

struct Running {
    child: Child,
    group: Pid,
    stdout: ChildStdout,
    output: Output,
    stream: Option<Stream>,
    status: Option<std::io::Result<ExitStatus>>,
    ended_ms: Option<u64>,
    is_read: bool,
}

impl Running {
    async fn watch(
        &mut self,
        end: &mut EndOfTime,
        mut guard: Option<&mut Guard>,
        signals: &mut Signals,
    ) -> End {
        let mut interrupted = None;
        if let Some(guard) = &mut guard {
            guard.watch(end.lease.last_moment_ms()).await;
        }
        while !self.is_over() {
            let left = match self.linger_left() {
                Some(left) if left.is_zero() => break,
                Some(left) => left,
                None => end.left(),
            };
            if left.is_zero() {
                self.kill().await;
                return interrupted.map_or(End::TimedOut, End::Interrupted);
            }
            tokio::select! {
                biased;
                () = self.step() => {}
                signal = signals.next() => {
                    if interrupted.replace(signal.as_raw()).is_some() {
                        // Asked twice: no more patience.
                        self.kill().await;
                        return End::Interrupted(signal.as_raw());
                    }
                    // It may have ended just now.
                    let _ = kill_process_group(self.group, signal);
                }
                () = end.lease.moved() => {
                    if let Some(guard) = &mut guard {
                        guard.watch(end.lease.last_moment_ms()).await;
                    }
                }
                () = sleep(left.min(LOOK_EVERY)) => {}
            }
        }
        if let Some(signal) = interrupted {
            return End::Interrupted(signal);
        }
        match &self.status {
            Some(Ok(status)) => end_of(*status),
            _ => End::Lost,
        }
    }

    fn is_over(&self) -> bool {
        self.status.is_some() && self.is_read
    }

    /// How long its stdout is still read; `None` while the command runs.
    fn linger_left(&self) -> Option<Duration> {
        let since = now_ms().saturating_sub(self.ended_ms?);
        Some(LINGER.saturating_sub(Duration::from_millis(since)))
    }

    /// Waits for the process to end or to write. Nothing is lost if this is dropped.
    async fn step(&mut self) {
        let has_ended = self.status.is_some();
        let read_before = self.output.bytes.len();
        let is_full = self.stream.as_ref().is_some_and(Stream::is_full) && !has_ended;
        let is_waiting = self.stream.as_ref().is_some_and(Stream::is_waiting);
        let pass_on = async {
            match &mut self.stream {
                Some(stream) => stream.pass_on().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = self.child.wait(), if !has_ended => {
                self.status = Some(status);
                self.ended_ms = Some(now_ms());
            }
            () = pass_on, if is_waiting => {}
            n = self.stdout.read_buf(&mut self.output.bytes), if !self.is_read && !is_full => {
                if let Some(stream) = &mut self.stream {
                    stream.push(&self.output.bytes[read_before..]);
                }
                self.output.cut(OUTPUT_BYTES_MAX);
                self.is_read = !matches!(n, Ok(n) if n > 0);
            }
        }
    }

    /// Kills the whole group and takes what it has written.
    async fn kill(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        let fall = async {
            while !self.is_over() {
                self.step().await;
            }
        };
        // What has left the group may hold stdout; it is not waited for.
        let _ = timeout(FALL, fall).await;
    }
}

fn end_of(status: ExitStatus) -> End {
    match (status.code().and_then(|code| u8::try_from(code).ok()), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => End::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_beginning_is_kept_and_the_rest_counted() {
        let mut output = Output::default();
        for (part, bytes, dropped_bytes) in [("ab", "ab", 0), ("cde", "abcd", 1), ("fg", "abcd", 3)]
        {
            output.bytes.extend_from_slice(part.as_bytes());
            output.cut(4);
            assert_eq!(output, Output { bytes: bytes.into(), dropped_bytes });
        }
    }
}
