//! A disk in memory that outlives the store on it, so that the store can be opened again.

use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, RwLock};

use redb::StorageBackend;

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<RwLock<Vec<u8>>>);

fn span(offset: u64, len: usize, size: usize) -> Result<Range<usize>, Error> {
    let start = usize::try_from(offset).ok();
    start
        .and_then(|start| Some(start..start.checked_add(len)?))
        .filter(|span| span.end <= size)
        .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "beyond the end of the disk"))
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.read().expect("no holder panics").len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let bytes = self.0.read().expect("no holder panics");
        out.copy_from_slice(&bytes[span(offset, out.len(), bytes.len())?]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let len = usize::try_from(len).expect("the test is small");
        self.0.write().expect("no holder panics").resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut bytes = self.0.write().expect("no holder panics");
        let span = span(offset, data.len(), bytes.len())?;
        bytes[span].copy_from_slice(data);
        Ok(())
    }
}
