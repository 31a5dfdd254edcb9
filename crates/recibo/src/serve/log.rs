//! The log of the service: on stderr, or in a file of the data folder that does not grow for ever.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use recibo_store::folder::LOG_FILE;
use tracing_subscriber::EnvFilter;

use crate::data;
use crate::failure::Failure;

/// Largest log file. The one before is kept beside it, so the log takes twice as much.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Where the log goes.
pub enum To {
    /// To whoever has started the service.
    Stderr,
    /// Into the data folder.
    File(Bounded),
}

/// Starts to log what passes a filter.
pub fn start(filter: Option<&str>, to: To) -> Result<(), Failure> {
    let rust_log = std::env::var("RUST_LOG").ok();
    let text = filter.or(rust_log.as_deref()).filter(|text| !text.is_empty()).unwrap_or("info");
    let filter = EnvFilter::try_new(text)
        .map_err(|error| Failure::usage(format!("`{text}` is no log filter: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    match to {
        To::Stderr => {
            let is_coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::io::stderr().is_terminal();
            builder.with_writer(io::stderr).with_ansi(is_coloured).init();
        }
        To::File(file) => builder.with_writer(move || file.clone()).with_ansi(false).init(),
    }
    Ok(())
}

/// A log file. Clones share it.
#[derive(Clone)]
pub struct Bounded(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Bounded {
    /// Opens the log of a data folder, to go on where it ends.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(LOG_FILE);
        let opened = append_to(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|error| data::cannot("write", &path, &error))?;
        Ok(Self(Arc::new(Mutex::new(Inner { path, file, bytes }))))
    }

    /// Sends what this process writes to stderr there too: the words of a panic.
    pub fn take_stderr(&self) {
        let inner = self.0.lock().expect("no holder panics");
        // If it fails, they are lost.
        let _ = rustix::stdio::dup2_stderr(&inner.file);
    }
}

impl Write for Bounded {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().expect("no holder panics");
        if inner.bytes >= LOG_BYTES_MAX {
            inner.begin_anew()?;
        }
        let written = inner.file.write(line)?;
        inner.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inner {
    fn begin_anew(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("log.old"))?;
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        let _ = rustix::stdio::dup2_stderr(&self.file);
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_takes_no_more_than_two_files() {
        let temp = tempfile::tempdir().unwrap();
        let size = |name: &str| fs::metadata(temp.path().join(name)).map_or(0, |meta| meta.len());
        let line = [b'x'; 1 << 16];
        for _ in 0..2 {
            // As often as it is opened.
            let mut log = Bounded::open(temp.path()).unwrap();
            for _ in 0..40 {
                log.write_all(&line).unwrap();
                assert!(size("service.log") <= LOG_BYTES_MAX + line.len() as u64);
            }
        }
        assert_eq!(size("service.log.old"), LOG_BYTES_MAX);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2);
    }
}
