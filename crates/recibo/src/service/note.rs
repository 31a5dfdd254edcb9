//! The note that a service leaves in its folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

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
        let path = folder.join(SERVICE_FILE);
        let kept = [Some(folder.join(LEDGER_FILE)), self.socket.clone()];
        let kept = kept.map(|path| path.map(|path| (identity(&path), path)));
        let guard = NoteGuard { note: self, path, kept, is_left: AtomicBool::new(false) };
        guard.leave_again()?;
        Ok(guard)
    }
}

/// Takes the note away when the service ends, and its socket.
#[derive(Debug)]
pub struct NoteGuard {
    note: ServiceNote,
    path: PathBuf,
    /// The ledger file and the socket, as they were when the note was left.
    kept: [Option<(Identity, PathBuf)>; 2],
    /// Whether the note is there, as far as its service knows.
    is_left: AtomicBool,
}

/// Tells a file from one that has taken its place.
type Identity = Option<(u64, u64)>;

impl NoteGuard {
    /// Nobody finds the service any more.
    pub fn withdraw(&self) {
        self.is_left.store(false, Ordering::SeqCst);
        // Where the folder was taken away, the note may be that of the next service already.
        if self.is_own() {
            // One that stays is seen to be stale: its process is gone.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Leaves it after it was withdrawn.
    pub fn leave_again(&self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.note).expect("strings always have a JSON form");
        write_private(&self.path, text.as_bytes())?;
        self.is_left.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Whether others can still find the service, and in the folder the ledger that it has open:
    /// neither note nor socket nor ledger file was taken away. A note that was withdrawn was not.
    pub fn is_found(&self) -> bool {
        (self.is_own() || !self.is_left.load(Ordering::SeqCst))
            && self.kept.iter().flatten().all(|(known, path)| identity(path) == *known)
    }

    fn is_own(&self) -> bool {
        let text = fs::read(&self.path).ok();
        let note = text.and_then(|text| serde_json::from_slice::<ServiceNote>(&text).ok());
        note.is_some_and(|note| note.pid == self.note.pid)
    }
}

fn identity(path: &Path) -> Identity {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

impl Drop for NoteGuard {
    fn drop(&mut self) {
        self.withdraw();
        let [_, socket] = &self.kept;
        if let Some((_, path)) = socket.as_ref().filter(|(known, path)| identity(path) == *known) {
            let _ = fs::remove_file(path);
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
        assert!(ServiceNote::read(temp.path()).is_none() && guard.is_found());
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
    fn what_has_taken_the_place_of_a_service_stays_when_that_one_ends() {
        let temp = tempfile::tempdir().unwrap();
        let socket = temp.path().join("socket");
        let note = |pid| ServiceNote {
            url: String::new(),
            pid,
            version: None,
            socket: Some(socket.clone()),
            on_demand: true,
        };
        fs::write(&socket, "old").unwrap();
        let old = note(1).leave(temp.path()).unwrap();
        fs::rename(&socket, temp.path().join("aside")).unwrap();
        fs::write(&socket, "new").unwrap();
        let new = note(2).leave(temp.path()).unwrap();
        drop(old);
        assert!(new.is_found() && socket.exists());
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
