//! The demo's service: a real process of this very program.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::failure::Failure;

/// A start or a stop that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running service. It is killed if it is dropped before it was stopped.
pub struct Service {
    child: Child,
    url: String,
    data: PathBuf,
}

/// This program.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::said(format!("where am I? {error}")))
}

impl Service {
    /// Starts a service on a new data folder and waits until it says that it is ready.
    pub async fn start(folder: &Path) -> Result<Self, Failure> {
        let data = folder.join("data");
        let log = std::fs::File::create(folder.join("service.log"))
            .map_err(|error| Failure::said(format!("no log: {error}")))?;
        let mut child = Command::new(program()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::said(format!("the service does not start: {error}")))?;
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(PATIENCE, lines.next_line()).await;
        let url = match &line {
            Ok(Ok(Some(line))) => line.strip_prefix("recibo listening on "),
            _ => None,
        };
        let url = url.ok_or_else(|| Failure::said("the service did not get ready"))?.to_owned();
        Ok(Self { child, url, data })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(mut self) -> Result<(), Failure> {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // It may have ended by itself; its exit code says so.
            let _ = kill_process(id, Signal::TERM);
        }
        match timeout(PATIENCE, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            _ => Err(Failure::said("the service did not stop in order")),
        }
    }
}
