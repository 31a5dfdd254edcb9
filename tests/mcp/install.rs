//! The servers and clients of the tests, installed once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Sources of servers and drivers.
pub fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/mcp"))
}

/// Where they are installed; installs them first where that is missing or out of date.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp");
        let status = Command::new(sources().join("install")).arg(&folder).status();
        assert!(status.expect("a shell").success(), "tests/mcp/install failed");
        folder
    })
}

/// The Python that has the newest official library and the servers from PyPI.
pub fn python() -> PathBuf {
    folder().join("venv/bin/python")
}

/// The Python that has the official library of the time of MCP 2025-06-18.
pub fn python_2025() -> PathBuf {
    folder().join("venv-2025-06-18/bin/python")
}

/// A server from npm, by the end of its name.
pub fn npm_server(name: &str) -> PathBuf {
    folder().join(format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
}
