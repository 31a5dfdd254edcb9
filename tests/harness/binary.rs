//! The real binary as a child process: started, spoken to, killed.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::api::Api;

/// The binary of this test run: built by `cargo test --workspace`, since a test of its own
/// package needs it too. Where only some packages are tested it may be missing or older than
/// the sources; then it is built here, so that a test never runs a stale one.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let test = std::env::current_exe().expect("the test has a path");
        // target/PROFILE/deps/test
        let folder = test.ancestors().nth(2).expect("a target folder").to_owned();
        let binary = folder.join("recibo");
        if !is_newer_than_sources(&binary) {
            build(&folder);
        }
        binary
    })
}

fn is_newer_than_sources(binary: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    let Some(built) = modified(binary) else { return false };
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let is_source = path.extension().is_some_and(|end| end == "rs" || end == "toml");
            if path.is_dir() {
                folders.push(path);
            } else if is_source && modified(&path).is_none_or(|time| time > built) {
                return false;
            }
        }
    }
    true
}

fn build(folder: &Path) {
    let profile = folder.file_name().and_then(|name| name.to_str()).expect("a profile");
    let profile = if profile == "debug" { "dev" } else { profile };
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "recibo", "--bin", "recibo"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(folder.parent().expect("a target folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the binary must build");
}

/// A running `recibo serve`.
pub struct Server {
    /// A client with the admin key.
    pub api: Api,
    child: Child,
}

impl Server {
    /// Starts on a folder and waits for the line that says it is ready. The log goes to
    /// `FOLDER.log`.
    pub fn start(folder: &Path) -> Self {
        Self::start_logging(folder, "info")
    }

    /// The same with another log level.
    pub fn start_logging(folder: &Path, level: &str) -> Self {
        Self::start_as(Command::new(path()), folder, level)
    }

    /// The same with so many file descriptors, and so many that it may ask for.
    pub fn start_with_descriptors(folder: &Path, soft: u32, hard: u32) -> Self {
        let limits = format!("ulimit -S -n {soft} && ulimit -H -n {hard} && exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).arg(path());
        Self::start_as(command, folder, "info")
    }

    /// Starts with a clock that the test moves: a file with boot id, boot clock and wall clock
    /// (ms), which debug builds read at each look at the clock.
    pub fn start_by_clock(folder: &Path, clock: &Path) -> Result<Self, String> {
        let mut command = Command::new(path());
        command.env("RECIBO_TEST_CLOCK", clock);
        Self::try_start(command, folder, "warn")
    }

    fn start_as(command: Command, folder: &Path, level: &str) -> Self {
        Self::try_start(command, folder, level)
            .unwrap_or_else(|output| panic!("no service: {output}"))
    }

    fn try_start(mut command: Command, folder: &Path, level: &str) -> Result<Self, String> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log_file(folder))
            .expect("a log file");
        let mut child = command
            .arg("serve")
            .arg("--data")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0"])
            .env("RECIBO_LOG", level)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("readable output");
        let Some(url) = line.trim_end().strip_prefix("recibo listening on ") else {
            let mut rest = String::new();
            let _ = stdout.read_to_string(&mut rest);
            let _ = child.wait();
            return Err(line + &rest);
        };
        let key = std::fs::read_to_string(folder.join("admin.key")).expect("an admin key");
        Ok(Self { api: Api::new(url, key.trim_end()), child })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// SIGTERM; gives the exit code.
    pub fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the log of the service on a folder goes.
pub fn log_file(folder: &Path) -> PathBuf {
    folder.with_extension("log")
}
