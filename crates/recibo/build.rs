//! Says which commit is built, for `recibo --version`. Without git, or outside of a checkout of
//! this project, nothing is said.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit().map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo:rustc-env=RECIBO_COMMIT={commit}");
}

/// `abc1234def 2026-12-03`: the commit and its day in UTC.
fn commit() -> Option<String> {
    // A copy without a history of its own may lie in the checkout of another project.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if Path::new(&top).canonicalize().ok()? != workspace.canonicalize().ok()? {
        return None;
    }
    watch();
    git(&["log", "-1", "--abbrev=10", "--date=format-local:%Y-%m-%d", "--format=%h %cd"])
}

/// Cargo looks again when another commit is checked out. A file that is not there would make it
/// build each time.
fn watch() {
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        let path = git(&["rev-parse", "--git-path", name]).filter(|_| !name.is_empty());
        if let Some(path) = path.filter(|path| Path::new(path).is_file()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TZ", "UTC0")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
