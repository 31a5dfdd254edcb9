//! A ledger file that is only read: what the engine writes (a repair after a kill, a migration, a
//! clean shutdown) stays in memory and is gone with it.
//!
//! The locks are shared ones. A writer anywhere holds its own exclusively, so it is noticed;
//! readers do not notice each other.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::Bound;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use crate::error::OpenError;

/// What is changed at once. A page of the engine; any size would be right.
const PAGE_BYTES: u64 = 4096;

/// The file below, and what would have been written to it.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: FileBackend,
    changes: RwLock<Changes>,
}

#[derive(Debug)]
struct Changes {
    len: u64,
    /// From here on the file below no longer counts: the space was cut off and may have come back
    /// as zeros.
    file_len: u64,
    pages: HashMap<u64, Box<[u8]>>,
}

impl Overlay {
    /// Over a file that this process needs to be able to read, no more.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let open = || {
            let file = File::open(path)?;
            let len = file.metadata()?.len();
            Ok((file, len))
        };
        let (file, len) = open().map_err(|source| OpenError::io(path, source))?;
        let file = FileBackend::new(file).map_err(OpenError::from)?;
        let changes = Changes { len, file_len: len, pages: HashMap::new() };
        Ok(Self { file, changes: RwLock::new(changes) })
    }
}

impl Changes {
    /// What reads as if it were in the file: its bytes, then zeros.
    fn read_below(&self, file: &FileBackend, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let there = self.file_len.saturating_sub(offset).min(out.len() as u64);
        let (bytes, zeros) = out.split_at_mut(usize::try_from(there).map_err(Error::other)?);
        zeros.fill(0);
        if bytes.is_empty() { Ok(()) } else { file.read(offset, bytes) }
    }

    fn check(&self, offset: u64, len: usize) -> Result<(), Error> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The parts of a span by page: the page, where the part begins in it, and the part of the span.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let left = len.checked_sub(done).filter(|left| *left > 0)?;
        let at = offset + done as u64;
        let begin = (at % PAGE_BYTES) as usize;
        let part = left.min(PAGE_BYTES as usize - begin);
        let range = done..done + part;
        done += part;
        Some((at / PAGE_BYTES, begin, range))
    })
}

// A page is changed whole or not at all, so a panic elsewhere leaves nothing half done.
impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.changes.read().unwrap_or_else(PoisonError::into_inner).len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        changes.check(offset, out.len())?;
        changes.read_below(&self.file, offset, out)?;
        for (page, begin, range) in parts(offset, out.len()) {
            if let Some(bytes) = changes.pages.get(&page) {
                let end = begin + range.len();
                out[range].copy_from_slice(&bytes[begin..end]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        if len < changes.len {
            changes.file_len = changes.file_len.min(len);
            changes.pages.retain(|page, _| page * PAGE_BYTES < len);
            let cut = (len % PAGE_BYTES) as usize;
            if let Some(bytes) = changes.pages.get_mut(&(len / PAGE_BYTES)) {
                bytes[cut..].fill(0);
            }
        }
        changes.len = len;
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        changes.check(offset, data.len())?;
        for (page, begin, range) in parts(offset, data.len()) {
            if !changes.pages.contains_key(&page) {
                let mut bytes = vec![0; PAGE_BYTES as usize].into_boxed_slice();
                changes.read_below(&self.file, page * PAGE_BYTES, &mut bytes)?;
                changes.pages.insert(page, bytes);
            }
            if let Some(bytes) = changes.pages.get_mut(&page) {
                bytes[begin..begin + range.len()].copy_from_slice(&data[range]);
            }
        }
        Ok(())
    }

    fn close(&self) -> Result<(), Error> {
        self.file.close()
    }

    fn try_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(from, to)
    }

    fn try_lock_shared_range(
        &self,
        from: Bound<u64>,
        to: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(from, to)
    }

    fn unlock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(from, to)
    }

    fn query_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random reads, writes and cuts, beside a plain vector.
    #[test]
    fn an_overlay_reads_as_if_everything_had_been_written() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        let mut model: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        let before = model.clone();
        std::fs::write(temp.path(), &model).unwrap();
        let overlay = Overlay::open(temp.path()).unwrap();
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (state >> 33) as usize % below.max(1)
        };
        for step in 0..4_000 {
            let at = draw(model.len());
            let len = draw(9_000).min(model.len() - at);
            match draw(10) {
                0 => {
                    let len = draw(40_000);
                    overlay.set_len(len as u64).unwrap();
                    model.resize(len, 0);
                }
                1..5 => {
                    let data = vec![step as u8; len];
                    overlay.write(at as u64, &data).unwrap();
                    model[at..at + len].copy_from_slice(&data);
                }
                _ => {
                    let mut out = vec![7; len];
                    overlay.read(at as u64, &mut out).unwrap();
                    assert!(out == model[at..at + len], "step {step}");
                }
            }
            assert_eq!(overlay.len().unwrap(), model.len() as u64);
        }
        assert!(overlay.read(model.len() as u64, &mut [0]).is_err());
        assert!(overlay.write(u64::MAX, &[0]).is_err());
        assert!(std::fs::read(temp.path()).unwrap() == before, "the file is as it was");
    }
}
