//! Small files of a data folder: each is there whole or not at all, for its owner alone, and on
//! disk when the write returns. A file written in place would be empty after a power loss.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes a file that only its owner can read, in place of one that may be there. Not for two
/// writers of the same file at once.
///
/// # Errors
/// What the system says. The file is then as it was.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = fresh_name(path);
    remove_if_there(&fresh)?;
    let mut file = create_private(&fresh)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| put_in_place(&fresh, path)) {
        // On a full disk half a file would take the last room. If it stays, it harms nobody.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    Ok(())
}

/// The name that a file has until it is whole.
pub(crate) fn fresh_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Gives a whole and synced file its name.
pub(crate) fn put_in_place(fresh: &Path, path: &Path) -> io::Result<()> {
    fs::rename(fresh, path)?;
    sync_folder(parent(path))
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A new file that only its owner can read.
///
/// # Errors
/// What the system says; a file that is there is an error.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a folder for its owner alone, and the ones above it that are missing. Each new name is
/// made durable in the folder that holds it.
///
/// # Errors
/// What the system says.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    make_folder(parent(path))?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another process was faster; whatever else has this name is found by who uses it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(parent(path)),
    }
}

/// Makes the names in a folder durable, not only the bytes behind them.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_what_a_crash_left_is_no_obstacle() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/file");
        make_folder(path.parent().unwrap()).unwrap();
        fs::write(fresh_name(&path), "half").unwrap();
        write_private(&path, b"first").unwrap();
        write_private(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert!(!fresh_name(&path).exists());
        #[cfg(unix)]
        for (path, mode) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
            let meta = fs::metadata(path).unwrap();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777, mode);
        }
    }

    #[test]
    fn a_write_that_fails_leaves_the_file_as_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        write_private(&path, b"first").unwrap();
        fs::create_dir(fresh_name(&path)).unwrap();
        write_private(&path, b"second").unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }
}
