//! A disk that fails when told to, in both ways in which disks fail.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

/// What the failing sync did before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing reached the disk.
    NotStored,
    /// Everything did.
    Stored,
}

#[derive(Debug, Default)]
struct State {
    /// What the process sees.
    cached: Vec<u8>,
    /// What is left after a crash.
    durable: Vec<u8>,
    /// Syncs that still succeed before the fault.
    fault: Option<(u32, Fault)>,
    /// Nothing works after a fault, as on a disk that is gone.
    is_broken: bool,
    /// Reads so far.
    reads: u64,
}

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct BreakingDisk(Arc<Mutex<State>>);

impl BreakingDisk {
    /// Lets the sync after `good` more fail.
    pub fn fail_after(&self, good: u32, fault: Fault) {
        self.0.lock().expect("no holder panics").fault = Some((good, fault));
    }

    /// Reads so far.
    pub fn reads(&self) -> u64 {
        self.0.lock().expect("no holder panics").reads
    }

    /// Everything that is on it.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no holder panics").cached.clone()
    }

    /// What a machine finds that was switched off and on: the durable bytes on a good disk.
    pub fn after_crash(&self) -> Self {
        let state = self.0.lock().expect("no holder panics");
        let bytes = state.durable.clone();
        Self(Arc::new(Mutex::new(State {
            cached: bytes.clone(),
            durable: bytes,
            ..State::default()
        })))
    }
}

fn broken() -> Error {
    Error::other("the disk is gone")
}

impl StorageBackend for BreakingDisk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.lock().expect("no holder panics").cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let mut state = self.0.lock().expect("no holder panics");
        state.reads += 1;
        let start = usize::try_from(offset).map_err(|_| broken())?;
        let bytes = state.cached.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or(Error::from(ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut state = self.0.lock().expect("no holder panics");
        if state.is_broken {
            return Err(broken());
        }
        state.cached.resize(usize::try_from(len).map_err(|_| broken())?, 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        let mut state = self.0.lock().expect("no holder panics");
        if state.is_broken {
            return Err(broken());
        }
        match &mut state.fault {
            Some((0, fault)) => {
                if *fault == Fault::Stored {
                    state.durable = state.cached.clone();
                }
                state.is_broken = true;
                return Err(broken());
            }
            Some((good, _)) => *good -= 1,
            None => {}
        }
        state.durable = state.cached.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut state = self.0.lock().expect("no holder panics");
        if state.is_broken {
            return Err(broken());
        }
        let start = usize::try_from(offset).map_err(|_| broken())?;
        let bytes = state.cached.get_mut(start..start + data.len());
        bytes.ok_or(Error::from(ErrorKind::UnexpectedEof))?.copy_from_slice(data);
        Ok(())
    }
}
