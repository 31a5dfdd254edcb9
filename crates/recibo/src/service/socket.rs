//! The socket of a service in its folder. Who may open it is trusted, so it is for its owner alone.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use recibo_core::hash::sha256;
use recibo_store::folder::{SOCKET_FILE, make_folder};
use tokio::net::UnixListener;

/// Longest path of a socket, in bytes: the system with the least room has 104, and its end.
const PATH_LEN_MAX: usize = 103;

/// Listens in the folder; where its path is too long, or its file system has no sockets, in the
/// runtime folder of this user. Only for the process that has the folder's store open: whatever
/// has the socket's name is stale then.
pub fn listen(folder: &Path) -> Result<(UnixListener, PathBuf)> {
    let here = folder.join(SOCKET_FILE);
    if here.as_os_str().len() <= PATH_LEN_MAX
        && let Ok(listener) = bind(&here)
    {
        return Ok((listener, here));
    }
    let elsewhere = runtime_folder()?.join(name_of(folder));
    Ok((bind(&elsewhere)?, elsewhere))
}

fn bind(path: &Path) -> Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // The process makes nothing for others (umask); this is for who has made the name before.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A name for the socket of a folder that has no room for it.
fn name_of(folder: &Path) -> String {
    let digest = sha256(&[folder.as_os_str().as_bytes()]);
    let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.sock")
}

/// Where sockets of this user's services are that have no room in their folders.
fn runtime_folder() -> Result<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let folder = match own {
        Some(folder) => Path::new(&folder).join("recibo"),
        None => Path::new("/tmp").join(format!("recibo-{}", rustix::process::geteuid().as_raw())),
    };
    make_folder(&folder)?;
    owned_alone(&folder)?;
    Ok(folder)
}

/// In a folder that others can write, one of them may have been there first.
fn owned_alone(folder: &Path) -> Result<()> {
    let meta = fs::symlink_metadata(folder)?;
    let is_mine = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if is_mine && meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("{} is not this user's alone (mode 0700)", folder.display());
    Err(Error::new(ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_could_enter_is_no_place_for_a_socket() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("recibo");
        make_folder(&folder).unwrap();
        owned_alone(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(owned_alone(&folder).is_err());
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(temp.path(), &link).unwrap();
        assert!(owned_alone(&link).is_err());
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(owned_alone(&file).is_err());
    }

    #[test]
    fn folders_have_names_of_their_own() {
        assert_ne!(name_of(Path::new("/a")), name_of(Path::new("/b")));
        assert_eq!(name_of(Path::new("/a")).len(), 21);
    }
}
