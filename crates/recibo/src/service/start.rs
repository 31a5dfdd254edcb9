//! Starting a service on a folder: for the first process that needs one.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use recibo_store::folder::{LOG_FILE, make_folder};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::joined::Key;
use super::turn::{Turn, cannot_lock, kept};
use super::{END_PATIENCE, Joined, LOOK_EVERY, READY, end, join};
use crate::data;
use crate::failure::Failure;

/// How long a service may take to get ready.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How often a service is started that is gone again before it could be joined.
const STARTS_MAX: u32 = 5;
/// What a service takes from the environment of the process that starts it: its own settings, and
/// nothing that belongs to an agent.
const KEPT_VARIABLES: [&str; 5] =
    ["RUST_LOG", "RUST_BACKTRACE", "NO_COLOR", "XDG_RUNTIME_DIR", "TZ"];
const OWN_VARIABLES: &str = "RECIBO_";
/// What begins alike and is of a command.
const OF_COMMANDS: [&str; 3] = ["RECIBO_RUN_ID", "RECIBO_LISTEN", "RECIBO_DATA"];

/// Joins the service on a folder; starts one where none runs, and another one in place of an older
/// one that was started on demand. The folder is made if it is missing.
pub async fn join_or_start(folder: &Path, key: &Key) -> Result<Joined, Failure> {
    let deadline = Instant::now() + END_PATIENCE;
    let mut starts = 0;
    loop {
        if let Some(joined) = join(folder, key).await?.filter(is_fit) {
            return Ok(joined);
        }
        make_folder(folder).map_err(|error| data::cannot("make", folder, &error))?;
        match Turn::try_take(folder) {
            Ok(Some(turn)) => {
                match join(folder, key).await? {
                    // Another process was faster.
                    Some(joined) if is_fit(&joined) => return Ok(joined),
                    Some(older) => end(older).await?,
                    None => {}
                }
                if starts == STARTS_MAX {
                    return Err(gone_again(folder));
                }
                starts += 1;
                match start(folder).await {
                    // One that was started before, by a process that has died since, was faster.
                    Err(_) if joins(folder, key).await => {}
                    result => result?,
                }
                drop(turn);
            }
            Ok(None) if Instant::now() > deadline => return Err(kept(folder)),
            Ok(None) => sleep(LOOK_EVERY).await,
            Err(error) => return Err(cannot_lock(folder, &error)),
        }
    }
}

async fn joins(folder: &Path, key: &Key) -> bool {
    join(folder, key).await.is_ok_and(|joined| joined.is_some())
}

/// Whether it stays as it is: an older one gives way, if no person has started it.
fn is_fit(joined: &Joined) -> bool {
    !joined.note.on_demand || !super::version::is_older(joined.note.version.as_deref())
}

fn gone_again(folder: &Path) -> Failure {
    Failure::advised(
        format!("the service on {} ends as soon as it is started", folder.display()),
        format!("its log is {}", folder.join(LOG_FILE).display()),
    )
}

/// What a service that could not start says on stdout.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    hint: Option<String>,
}

/// Starts a service and waits until it is ready, or dead. It outlives this process.
async fn start(folder: &Path) -> Result<(), Failure> {
    let cannot = |cause: String| {
        Failure::advised(
            format!("cannot start a service on {}: {cause}", folder.display()),
            "--alone opens the ledger in this process; only one process at a time can",
        )
    };
    let folder = std::path::absolute(folder).map_err(|error| cannot(error.to_string()))?;
    let program = program().map_err(|error| cannot(error.to_string()))?;
    let kept = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        KEPT_VARIABLES.contains(&&*name)
            || name.starts_with(OWN_VARIABLES) && !OF_COMMANDS.contains(&&*name)
    });
    let mut child = Command::new(program)
        .args(["serve", "--on-demand", "--data"])
        .arg(&folder)
        .env_clear()
        .envs(kept)
        // It must not keep a file system busy that somebody wants to unmount.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot(error.to_string()))?;
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut said = String::new();
    let ready = timeout(START_PATIENCE, stdout.read_line(&mut said)).await;
    match ready {
        Ok(Ok(_)) if said.starts_with(READY) => return Ok(()),
        Ok(Ok(0)) => {
            let mut words = Vec::new();
            let mut stderr = child.stderr.take().expect("stderr is a pipe");
            let _ = timeout(START_PATIENCE, stderr.read_to_end(&mut words)).await;
            return match String::from_utf8_lossy(&words).trim() {
                // It was killed: whoever finds none starts another one.
                "" => Ok(()),
                words => Err(cannot(words.to_owned())),
            };
        }
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(cannot(error.to_string())),
        Err(_) => return Err(cannot("it does not get ready".to_owned())),
    }
    let _ = timeout(START_PATIENCE, stdout.read_to_string(&mut said)).await;
    match serde_json::from_str::<Problem>(&said) {
        Ok(Problem { code, detail, hint: Some(advice) }) if code == Failure::IN_USE => {
            Err(Failure::InUse { detail, advice })
        }
        Ok(Problem { detail, hint: Some(advice), .. }) => Err(Failure::advised(detail, advice)),
        Ok(Problem { detail, hint: None, .. }) => Err(Failure::said(detail)),
        Err(_) => Err(cannot(format!("its log is {}", folder.join(LOG_FILE).display()))),
    }
}

/// This program; where its file was replaced meanwhile, the one that runs.
fn program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let running = Path::new("/proc/self/exe");
    Ok(if program.exists() || !running.exists() { program } else { running.to_owned() })
}
