//! The data folder: the store in it, and the admin's API key. Everything in it is for its owner
//! alone.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use recibo_api::Role;
use recibo_core::id::Namespace;
use recibo_store::folder::{ADMIN_KEY_FILE, has_ledger};
use recibo_store::{
    Config, Entropy, OpenError, ReadOnlyCause, Store, SystemClock, api_key, write_private,
};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::service::ServiceNote;

/// What a service needs to find free at its start.
const ROOM_BYTES: usize = 1 << 20;
/// Longest API key file worth reading.
const API_KEY_BYTES_MAX: u64 = 4096;

/// How to open a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knobs {
    /// The store's own.
    pub config: Config,
    /// Make another admin key. Never done unasked: whoever deletes a file must not get a key
    /// for it.
    pub new_admin_key: bool,
}

/// Random bytes from the system, through a generator that is reseeded.
pub fn entropy() -> Entropy {
    Box::new(|bytes| rand::fill(bytes))
}

/// Opens the store of a data folder and sees to its admin key. Blocks.
pub fn open(folder: &Path, knobs: Knobs) -> Result<Store, Failure> {
    let store = try_open(folder, knobs).map_err(|error| open_failure(folder, error))?;
    with_admin_key(folder, store, knobs)
}

/// The same where there is room to write; a ledger without is left alone.
pub fn open_writable(folder: &Path, knobs: Knobs) -> Result<Store, Failure> {
    match room_to_write(folder).and_then(|()| try_open(folder, knobs)) {
        Ok(store) => with_admin_key(folder, store, knobs),
        Err(error) => Err(match error.read_only_cause() {
            Some(cause) => Failure::advised(
                format!("the ledger in {} can only be read: {cause}", folder.display()),
                "make room, or get the permission to write; commands that only read work",
            ),
            None => open_failure(folder, error),
        }),
    }
}

/// The same where there is a ledger already.
pub fn open_existing(folder: &Path, knobs: Knobs) -> Result<Store, Failure> {
    expect_ledger(folder)?;
    open(folder, knobs)
}

/// Refuses a folder without a ledger.
pub fn expect_ledger(folder: &Path) -> Result<(), Failure> {
    match has_ledger(folder) {
        Ok(true) => Ok(()),
        Ok(false) => Err(open_failure(folder, OpenError::NoLedger { folder: folder.to_owned() })),
        Err(error) => Err(open_failure(folder, error)),
    }
}

/// Opens the store of a data folder for reading. Nothing in the folder is changed.
pub fn open_read_only(folder: &Path, knobs: Knobs, cause: ReadOnlyCause) -> Result<Store, Failure> {
    try_read_only(folder, knobs, cause).map_err(|error| open_failure(folder, error))
}

/// Opens the store of a data folder, for reading only where it cannot be written.
pub fn open_as_far_as_possible(folder: &Path, knobs: Knobs) -> Result<Store, Failure> {
    let error = match room_to_write(folder).and_then(|()| try_open(folder, knobs)) {
        Ok(store) => return with_admin_key(folder, store, knobs),
        Err(error) => error,
    };
    let Some(cause) = error.read_only_cause() else { return Err(open_failure(folder, error)) };
    try_read_only(folder, knobs, cause).map_err(|other| match other {
        // None could be made: the first error says why.
        OpenError::NoLedger { .. } => open_failure(folder, error),
        other => open_failure(folder, other),
    })
}

/// A ledger that has room for nothing is better opened for reading than stopped by its first
/// write. The file grows by a megabyte or more at a time. Processes that start at the same
/// instant all look, so the file that is tried has no name.
fn room_to_write(folder: &Path) -> Result<(), OpenError> {
    if !has_ledger(folder)? {
        return Ok(());
    }
    let tried = || {
        let mut file = tempfile::tempfile_in(folder)?;
        file.write_all(&vec![0; ROOM_BYTES])?;
        file.sync_all()
    };
    tried().map_err(|source| OpenError::Io { path: folder.to_owned(), source })
}

fn try_open(folder: &Path, knobs: Knobs) -> Result<Store, OpenError> {
    Store::open(folder, knobs.config, Arc::new(SystemClock), entropy())
}

fn try_read_only(folder: &Path, knobs: Knobs, cause: ReadOnlyCause) -> Result<Store, OpenError> {
    Store::open_read_only(folder, knobs.config, Arc::new(SystemClock), entropy(), cause)
}

fn with_admin_key(folder: &Path, store: Store, knobs: Knobs) -> Result<Store, Failure> {
    if let Err(failure) = see_to_admin_key(folder, &store, knobs.new_admin_key) {
        store.close();
        return Err(failure);
    }
    Ok(store)
}

/// Why a ledger could not be opened, and what to do.
pub fn open_failure(folder: &Path, error: OpenError) -> Failure {
    let service = ServiceNote::read(folder).filter(ServiceNote::is_running);
    let name = folder.display();
    match error {
        OpenError::InUse if service.is_some() => Failure::advised(
            format!("a service runs on {name} already"),
            format!(
                "talk to it, without --alone; it is at {}",
                service.map(|note| note.url).unwrap_or_default()
            ),
        ),
        OpenError::InUse => Failure::InUse {
            detail: format!("another process has the ledger in {name} open"),
            advice:
                "wait until it is done, or start it without --alone; if it is a service, talk to \
                     it with --url and --api-key-file"
                    .into(),
        },
        OpenError::NoLedger { .. } => Failure::advised(
            format!("there is no ledger in {name}"),
            format!("name its folder with --data, or start one: recibo serve --data {name}"),
        ),
        error @ (OpenError::PartMissing { .. }
        | OpenError::PartDamaged { .. }
        | OpenError::PartForeign { .. }) => Failure::advised(
            format!("cannot open the ledger: {error}"),
            format!(
                "restore {name} from a backup; where there is none, \
                 `recibo init --fresh --data {name}` puts what is left aside and begins a new \
                 ledger, which has forgotten every call"
            ),
        ),
        OpenError::Io { path, source } => cannot("open", &path, &source),
        error => Failure::said(format!("cannot open the ledger in {name}: {}", chain(&error))),
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

fn see_to_admin_key(folder: &Path, store: &Store, is_new_asked: bool) -> Result<(), Failure> {
    let path = folder.join(ADMIN_KEY_FILE);
    if store.has_no_api_keys() {
        return first_admin_key(&path, store);
    }
    if is_new_asked { another_admin_key(&path, store) } else { Ok(()) }
}

/// The file comes first, the store's row second: after a crash in between the file is there and
/// its key is made known, and no key that nobody has is ever known.
fn first_admin_key(path: &Path, store: &Store) -> Result<(), Failure> {
    let bytes = match fs::symlink_metadata(path) {
        Ok(meta) => Some(meta.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(cannot("read", path, &error)),
    };
    let text = match bytes {
        // An older build could leave an empty one behind; no key was ever in it.
        None | Some(0) => {
            let text = new_admin_key();
            write_key(path, &text)?;
            text
        }
        Some(_) => read_api_key(path)?,
    };
    record(path, store, &text)
}

/// The new key is whole in a file of its own before the store knows it, and takes the place of
/// the old one after that: whenever this is cut off, `admin.key` holds a key that is known.
fn another_admin_key(path: &Path, store: &Store) -> Result<(), Failure> {
    let next = path.with_extension("key.next");
    let text = new_admin_key();
    write_key(&next, &text)?;
    record(&next, store, &text)?;
    fs::rename(&next, path).map_err(|error| cannot("replace", path, &error))
}

fn write_key(path: &Path, text: &str) -> Result<(), Failure> {
    write_private(path, format!("{text}\n").as_bytes())
        .map_err(|error| cannot("write", path, &error))
}

fn record(path: &Path, store: &Store, text: &str) -> Result<(), Failure> {
    let draft = draft_of(text).ok_or_else(|| no_api_key(path))?;
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
    let there = path.try_exists().map_err(|error| cannot("read", &path, &error))?;
    if !there {
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

/// What the system does not permit, and whose it is.
pub fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::PermissionDenied {
        return denied(what, path);
    }
    Failure::said(format!("cannot {what} {}: {error}", path.display()))
}

/// Says whose it is: the nearest folder or file above that can be looked at.
fn denied(what: &str, path: &Path) -> Failure {
    let owner = path.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Some((path, fs::metadata(path).ok()?.uid()))
    });
    let me = rustix::process::geteuid().as_raw();
    let whose = match owner {
        Some((place, uid)) => {
            format!("; {} belongs to user {uid}, and this is user {me}", place.display())
        }
        None => String::new(),
    };
    Failure::advised(
        format!("permission denied: cannot {what} {}{whose}", path.display()),
        "run the command as the owner, or let the owner give you the permission",
    )
}

#[cfg(test)]
mod tests;
