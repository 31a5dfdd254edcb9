//! The servers under load, each a process of its own: the release binary of the ledger, and
//! the bare server, which is this binary again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::failure::{Failure, Outcome, check};
use crate::http::{Target, member};

/// The release binary of the ledger: built here if none is named.
pub fn binary(named: Option<PathBuf>) -> Outcome<PathBuf> {
    if let Some(path) = named {
        return Ok(path);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => root.join("target"),
    };
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "recibo", "--bin", "recibo", "--target-dir"])
        .arg(&target)
        .current_dir(&root)
        .status()?;
    check(built.success(), || "recibo must build".into())?;
    Ok(target.join("release").join("recibo"))
}

/// A server process; killed when dropped.
pub struct Server {
    /// How to reach it.
    pub target: Target,
    child: Child,
}

impl Server {
    /// `recibo serve` on a folder, with default settings.
    pub fn recibo(binary: &Path, folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(binary);
        command.arg("serve").arg("--data").arg(folder).args(["--listen", "127.0.0.1:0"]);
        command.env("RECIBO_LOG", "warn");
        let mut server = Self::start(command, "recibo listening on http://")?;
        let key = std::fs::read_to_string(folder.join("admin.key"))?;
        server.target.api_key = key.trim_end().to_owned();
        Ok(server)
    }

    /// The bare server.
    pub fn bare() -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare");
        Self::start(command, "bare listening on http://")
    }

    fn start(mut command: Command, prefix: &str) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("a server without output"))?;
        BufReader::new(stdout).read_line(&mut line)?;
        let target = Target { address: String::new(), api_key: "none".into() };
        let mut server = Self { target, child };
        match line.trim_end().strip_prefix(prefix) {
            Some(address) => server.target.address = address.to_owned(),
            None => return Err(Failure::new(format!("a server said {line:?}"))),
        }
        Ok(server)
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Opens a scope; gives its id.
    pub async fn open_scope(&self) -> Outcome<String> {
        let mut conns = self.target.connect(1).await?;
        let request = self.target.post("/v1/scopes", "{}");
        Ok(member(conns[0].exchange(&request).await?, "scope_id")?.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
