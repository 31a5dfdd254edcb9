//! The file of `--receipt-file`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use recibo_api::answer::Record;

use super::tell;
use crate::failure::Failure;

/// A file that a record is to be written into. Until then its place is held by a file beside it,
/// so that a folder that cannot be written is found before anything runs.
pub struct ReceiptFile {
    path: PathBuf,
    beside: PathBuf,
    file: File,
}

impl ReceiptFile {
    /// # Errors
    /// Where no file can be made there.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::usage(format!("--receipt-file: cannot write {}: {error}", path.display()))
        };
        if path.is_dir() {
            return Err(cannot(std::io::ErrorKind::IsADirectory.into()));
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.new", std::process::id()));
        let beside = PathBuf::from(beside);
        let file = File::create_new(&beside).map_err(cannot)?;
        Ok(Self { path: path.to_owned(), beside, file })
    }

    /// Writes a record. The attempt is recorded in any case: a failure is told and changes no
    /// exit code.
    pub fn write(mut self, record: &Record) {
        let wrote =
            serde_json::to_vec(record).map_err(std::io::Error::from).and_then(|mut json| {
                json.push(b'\n');
                self.file.write_all(&json)?;
                self.file.sync_all()?;
                fs::rename(&self.beside, &self.path)
            });
        if let Err(error) = wrote {
            tell(&format!("the record could not be written to {}: {error}", self.path.display()));
        }
    }
}

impl Drop for ReceiptFile {
    fn drop(&mut self) {
        // It is not there any more if it was given its name.
        let _ = fs::remove_file(&self.beside);
    }
}
