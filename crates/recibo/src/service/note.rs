//! The note that a service leaves in its folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use recibo_store::folder::{LEDGER_FILE, SERVICE_FILE};
use recibo_store::write_private;
use serde::{Deserialize, Serialize};

/// Where a running service can be reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServiceNote {
    /// Its address: `http://ADDR:PORT`, or `unix:PATH` where it listens on its socket only.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Its version. Older services do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its socket, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Whether it was started by a command that needed it, and ends by itself.
    #[serde(default)]
    pub on_demand: bool,
}

impl ServiceNote {
    /// Reads the note of a folder; `None` where there is none, or none that is whole.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(SERVICE_FILE)).ok()?).ok()
    }

    /// Whether its process lives.
    pub fn is_running(&self) -> bool {
        !super::is_gone(self.pid)
    }

    /// Leaves the note. Only who has the store open may: no other service can run then.
    pub fn leave(self, folder: &Path) -> std::io::Result<NoteGuard> {
        let ledger = folder.join(LEDGER_FILE);
        let identity = identity(&ledger);
        let guard = NoteGuard { note: self, path: folder.join(SERVICE_FILE), ledger, identity };
        guard.leave_again()?;
        Ok(guard)
    }
}

/// Takes the note away when the service ends, and its socket.
#[derive(Debug)]
pub struct NoteGuard {
    note: ServiceNote,
    path: PathBuf,
    ledger: PathBuf,
    /// That of the ledger file when the note was left.
    identity: Option<(u64, u64)>,
}

impl NoteGuard {
    /// Nobody finds the service any more.
    pub fn withdraw(&self) {
        // A note that stays is seen to be stale: its process is gone.
        let _ = fs::remove_file(&self.path);
    }

    /// Leaves it after it was withdrawn.
    pub fn leave_again(&self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.note).expect("strings always have a JSON form");
        write_private(&self.path, text.as_bytes())
    }

    /// Whether others can still find the service, and in the folder the ledger that it has open:
    /// neither note nor socket nor ledger file was taken away.
    pub fn is_found(&self) -> bool {
        if identity(&self.ledger) != self.identity {
            return false;
        }
        let note: Option<ServiceNote> =
            fs::read(&self.path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        note.is_some_and(|note| note.pid == self.note.pid)
            && self.note.socket.as_ref().is_none_or(|socket| socket.exists())
    }
}

/// Tells a file from one that has taken its place.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

impl Drop for NoteGuard {
    fn drop(&mut self) {
        self.withdraw();
        if let Some(socket) = &self.note.socket {
            let _ = fs::remove_file(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_note_is_for_its_owner_and_goes_with_its_service() {
        let temp = tempfile::tempdir().unwrap();
        let socket = temp.path().join("socket");
        fs::write(&socket, "").unwrap();
        let note = ServiceNote {
            url: "http://127.0.0.1:1".into(),
            pid: std::process::id(),
            version: None,
            socket: Some(socket.clone()),
            on_demand: false,
        };
        let path = temp.path().join(SERVICE_FILE);
        let guard = note.leave(temp.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(ServiceNote::read(temp.path()).unwrap().is_running() && guard.is_found());
        guard.withdraw();
        assert!(ServiceNote::read(temp.path()).is_none() && !guard.is_found());
        guard.leave_again().unwrap();
        // Another service's note is no way to this one.
        let text = fs::read_to_string(&path).unwrap();
        let other = ServiceNote { pid: u32::MAX, ..ServiceNote::read(temp.path()).unwrap() };
        fs::write(&path, serde_json::to_string(&other).unwrap()).unwrap();
        assert!(!guard.is_found() && !other.is_running());
        fs::write(&path, text).unwrap();
        assert!(guard.is_found());
        // Nor is another ledger in its place.
        fs::write(temp.path().join(LEDGER_FILE), "").unwrap();
        assert!(!guard.is_found());
        drop(guard);
        assert!(!path.exists() && !socket.exists());
    }

    #[test]
    fn the_note_of_an_older_service_is_read() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join(SERVICE_FILE), r#"{"url":"http://127.0.0.1:1","pid":7}"#)
            .unwrap();
        let note = ServiceNote::read(temp.path()).unwrap();
        assert_eq!((note.pid, note.on_demand, note.socket), (7, false, None));
    }
}
