//! Asking a service to end.

use std::fs;
use std::path::Path;

use recibo_store::folder::make_folder;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::{Instant, sleep};

use super::{END_PATIENCE, Joined, Key, LOOK_EVERY, Turn, join, wait_for_turn};
use crate::failure::Failure;

/// Asks a service to end and waits until its process is gone. What is in flight is finished first.
pub async fn end(service: Joined) -> Result<(), Failure> {
    let pid = service.pid();
    let cannot = |cause: String| {
        Failure::advised(
            format!("cannot end the service (process {pid}): {cause}"),
            "end it as the user who runs it",
        )
    };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| cannot("its process id is none".to_owned()))?;
    // The connection is held up to here: the number is still that of the service.
    match kill_process(process, Signal::TERM) {
        Err(error) if error != rustix::io::Errno::SRCH => return Err(cannot(error.to_string())),
        _ => {}
    }
    drop(service);
    let deadline = Instant::now() + END_PATIENCE;
    while !is_gone(pid) {
        if Instant::now() > deadline {
            return Err(cannot("it was asked to, and does not".to_owned()));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Before somebody opens the ledger of a folder for longer: a service that was started on demand ends,
/// and nobody starts another one while the turn is held. `None` in a folder that cannot be written.
pub async fn take_over(folder: &Path) -> Result<Option<Turn>, Failure> {
    if make_folder(folder).is_err() || Turn::try_take(folder).is_err() {
        return Ok(None);
    }
    let turn = wait_for_turn(folder).await?;
    match join(folder, &Key::Adapter).await {
        Ok(Some(other)) if other.note.on_demand => end(other).await?,
        // Whoever has the ledger open is named where it cannot be opened.
        _ => {}
    }
    Ok(Some(turn))
}

/// Whether a process is no more, or only waits for its parent to take note of its end.
pub fn is_gone(pid: u32) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    match test_kill_process(process) {
        Ok(()) => {
            // The state stands behind the name, which is in parentheses and may hold any.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
            matches!(state, Some('Z' | 'X'))
        }
        // Not permitted means that somebody else's process has the number.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_nobody_has_waited_for_is_gone_all_the_same() {
        assert!(!is_gone(std::process::id()));
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(!is_gone(child.id()));
        drop(child.stdin.take());
        while !is_gone(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_gone(child.id()) && is_gone(0) && is_gone(u32::MAX));
    }
}
