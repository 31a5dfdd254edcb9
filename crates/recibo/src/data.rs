//! The data folder: the store in it, the admin's API key, and the note of a running service.
//! Everything in it is for its owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recibo_api::Role;
use recibo_core::id::Namespace;
use recibo_store::{Config, Entropy, LEDGER_FILE, OpenError, Store, SystemClock, api_key};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::failure::Failure;

/// The admin's API key and a line feed.
const ADMIN_KEY_FILE: &str = "admin.key";
/// Where the service of this folder can be reached, while it runs.
const SERVICE_FILE: &str = "service.json";
/// Longest API key file worth reading.
const API_KEY_BYTES_MAX: u64 = 4096;

/// How to open a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knobs {
    /// The store's own.
    pub config: Config,
    /// Make another admin key where the first one is lost. Never done unasked: whoever deletes
    /// a file must not get a key for it.
    pub new_admin_key: bool,
}

/// Random bytes from the system, through a generator that is reseeded.
pub fn entropy() -> Entropy {
    Box::new(|bytes| rand::fill(bytes))
}

/// Whether a folder holds a ledger.
pub fn has_ledger(folder: &Path) -> bool {
    folder.join(LEDGER_FILE).exists()
}

/// Opens the store of a data folder and sees to its admin key. Blocks.
pub fn open(folder: &Path, knobs: Knobs) -> Result<Store, Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| cannot("make", folder, &error))?;
    let clock = Arc::new(SystemClock);
    let store = Store::open(folder, knobs.config, clock, entropy())
        .map_err(|error| open_failure(folder, error))?;
    if let Err(failure) = see_to_admin_key(folder, &store, knobs.new_admin_key) {
        store.close();
        return Err(failure);
    }
    Ok(store)
}

fn open_failure(folder: &Path, error: OpenError) -> Failure {
    let service = ServiceNote::read(folder).filter(ServiceNote::is_running);
    let folder = folder.display();
    match error {
        OpenError::InUse if service.is_some() => Failure::advised(
            format!("a service runs on {folder} already"),
            format!("talk to it; it is at {}", service.map(|note| note.url).unwrap_or_default()),
        ),
        OpenError::InUse => Failure::advised(
            format!("another process has the ledger in {folder} open"),
            "wait until it is done; if it is a service, talk to it with --url and --api-key-file",
        ),
        error => Failure::said(format!("cannot open the ledger in {folder}: {}", chain(&error))),
    }
}

/// An error and its causes, without repeating what a transparent layer says twice.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The file comes first, the store's row second: after a crash in between the file is there and
/// its key is made known, and no key that nobody has is ever known.
fn see_to_admin_key(folder: &Path, store: &Store, is_new_asked: bool) -> Result<(), Failure> {
    let path = folder.join(ADMIN_KEY_FILE);
    let text = match fs::symlink_metadata(&path) {
        Ok(_) if !store.has_no_api_keys() => return Ok(()),
        Ok(_) => read_api_key(&path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !store.has_no_api_keys() && !is_new_asked {
                return Ok(());
            }
            let text = new_admin_key();
            write_new(&path, format!("{}\n", *text).as_bytes())
                .and_then(|()| File::open(folder)?.sync_all())
                .map_err(|error| cannot("write", &path, &error))?;
            text
        }
        Err(error) => return Err(cannot("read", &path, &error)),
    };
    let draft = draft_of(&text).ok_or_else(|| no_api_key(&path))?;
    store.create_api_key(draft).wait().map_err(|error| {
        Failure::said(format!("cannot record the admin key: {}", chain(&error)))
    })?;
    Ok(())
}

fn new_admin_key() -> Zeroizing<String> {
    let mut random = Zeroizing::new([0; 48]);
    rand::fill(&mut *random);
    let (text, _) = api_key::make(&random, Role::Admin.as_str(), default_namespace(), None);
    Zeroizing::new(text)
}

/// What the store keeps of an admin key.
fn draft_of(text: &str) -> Option<api_key::ApiKeyDraft> {
    let (id, secret) = text.strip_prefix("rcb_")?.split_once('_')?;
    Some(api_key::ApiKeyDraft {
        id: id.to_owned(),
        digest: recibo_core::hash::sha256(&[secret.as_bytes()]),
        roles: Role::Admin.as_str().to_owned(),
        namespace: default_namespace(),
        expires_ms: None,
    })
}

fn default_namespace() -> Namespace {
    Namespace::parse("default").expect("a good name")
}

/// Reads the admin key of a data folder.
pub fn read_admin_key(folder: &Path) -> Result<Zeroizing<String>, Failure> {
    let path = folder.join(ADMIN_KEY_FILE);
    if !path.exists() {
        return Err(Failure::advised(
            format!("the admin key {} is missing", path.display()),
            "put it back, give another key with --api-key-file, or start the service once with \
             `recibo serve --new-admin-key`",
        ));
    }
    read_api_key(&path)
}

/// Reads an API key from a file.
pub fn read_api_key(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let size = fs::metadata(path).map_err(|error| cannot("read", path, &error))?.len();
    if size > API_KEY_BYTES_MAX {
        return Err(no_api_key(path));
    }
    let text = fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
    let text = Zeroizing::new(text);
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(no_api_key(path));
    }
    Ok(Zeroizing::new(key.to_owned()))
}

fn no_api_key(path: &Path) -> Failure {
    Failure::said(format!("{} does not hold an API key", path.display()))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::said(format!("cannot {what} {}: {error}", path.display()))
}

/// A file that did not exist, for its owner alone, on disk when this returns.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Where a running service can be reached.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServiceNote {
    /// Its address.
    pub url: String,
    /// Its process.
    pub pid: u32,
}

impl ServiceNote {
    /// Reads the note of a folder; `None` where there is none, or none that is whole.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(SERVICE_FILE)).ok()?).ok()
    }

    /// Whether its process lives.
    pub fn is_running(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        // Not permitted means that somebody else's process has the number.
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }

    /// Leaves a note. Only who has the store open may: no other service can run then.
    pub fn write(url: &str, folder: &Path) -> Result<NoteGuard, Failure> {
        let path = folder.join(SERVICE_FILE);
        let fresh = folder.join(format!("{SERVICE_FILE}.new"));
        let note = Self { url: url.to_owned(), pid: std::process::id() };
        let text = serde_json::to_string(&note).expect("strings always have a JSON form");
        let _ = fs::remove_file(&fresh);
        write_new(&fresh, text.as_bytes())
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(|error| cannot("write", &path, &error))?;
        Ok(NoteGuard(path))
    }
}

/// Takes the note away when the service ends.
#[derive(Debug)]
pub struct NoteGuard(PathBuf);

impl Drop for NoteGuard {
    fn drop(&mut self) {
        // A note that stays is seen to be stale: its process is gone.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
