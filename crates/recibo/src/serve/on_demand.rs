//! What is different about a service that was started on demand: it belongs to no terminal, waits
//! for a ledger that is just being closed, and ends once nobody needs it.

use std::fs::File;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

use recibo_server::App;
use recibo_store::Store;
use tokio::time::{Instant, interval, sleep};

use super::blocking;
use super::log::Bounded;
use crate::data::{self, Knobs};
use crate::failure::Failure;
use crate::service::{NoteGuard, Turn};

/// How long a ledger that another process has open is waited for: one that closes it, or reads it
/// with `--alone`.
const IN_USE_PATIENCE: Duration = Duration::from_secs(10);
const IN_USE_POLL: Duration = Duration::from_millis(10);
/// How long somebody who has read the note may take to connect.
const LAST_LOOK: Duration = Duration::from_millis(50);
/// How often the service looks whether it can still be found.
const FOUND_EVERY: Duration = Duration::from_secs(1);

/// Lets go of all that a process inherits from the one that has started it: of its terminal, and of
/// its files, which may be locks or ends of pipes. Only right at the start of the process, while
/// nothing of its own is open.
pub fn detach() {
    // By hand in a terminal it leads a group already, and stays in its session.
    let _ = rustix::process::setsid();
    let files = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
    let numbers = files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| file.file_name().to_str()?.parse().ok());
    let inherited: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // The one that has listed them is closed already.
        let _ = nix::unistd::close(number);
    }
    if let Ok(null) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// The starter has heard that the service is ready; from now on it may close its ends.
pub fn let_go_of_the_starter(log: &Bounded) {
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    log.take_stderr();
}

/// Opens the ledger, which whoever had it before may be about to close.
pub async fn open(folder: &Path, knobs: Knobs) -> Result<Store, Failure> {
    let deadline = Instant::now() + IN_USE_PATIENCE;
    loop {
        let path = folder.to_owned();
        match blocking(move || data::open_writable(&path, knobs)).await? {
            Err(Failure::InUse { .. }) if Instant::now() < deadline => sleep(IN_USE_POLL).await,
            // Also that another service was faster, which stays.
            result => return result,
        }
    }
}

/// Waits until nobody has been connected for so long, and withdraws the note. While the turn is held
/// nobody starts another service.
pub async fn idle(app: &App, folder: &Path, note: &NoteGuard, idle_exit: Duration) -> Turn {
    loop {
        app.until_no_client().await;
        tokio::select! {
            () = app.until_a_client() => {}
            () = sleep(idle_exit) => {
                if let Some(turn) = retire(app, folder, note).await {
                    tracing::info!("nobody is connected any more");
                    return turn;
                }
            }
        }
    }
}

/// Takes the note away, if nobody is on the way.
async fn retire(app: &App, folder: &Path, note: &NoteGuard) -> Option<Turn> {
    // An error, or somebody else's turn: it is tried again after another idle time.
    let turn = Turn::try_take(folder).ok()??;
    note.withdraw();
    let is_visited = tokio::time::timeout(LAST_LOOK, app.until_a_client()).await.is_ok();
    if !is_visited {
        return Some(turn);
    }
    if let Err(error) = note.leave_again() {
        tracing::error!(%error, "the note cannot be written; the service ends");
        return Some(turn);
    }
    None
}

/// Returns once others cannot find the service any more, or would find another ledger: a file of it
/// was taken away, the folder with it perhaps.
pub async fn is_lost(note: &NoteGuard) {
    let mut interval = interval(FOUND_EVERY);
    loop {
        interval.tick().await;
        if !note.is_found() {
            return;
        }
    }
}
