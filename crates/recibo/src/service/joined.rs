//! Joining the service that runs on a folder.

use std::path::Path;

use recibo_api::client::{Service, is_alive};
use tokio::net::UnixStream;
use zeroize::Zeroizing;

use super::ServiceNote;
use crate::data;
use crate::failure::Failure;

/// A service that runs, and a way to it.
pub struct Joined {
    /// What it says of itself.
    pub note: ServiceNote,
    /// The way. On a socket it holds a connection.
    pub service: Service,
}

/// What a process asks a service with.
#[derive(Clone)]
pub enum Key {
    /// A key that was given.
    Given(Zeroizing<String>),
    /// None where the socket needs none, else the folder's admin key.
    Adapter,
    /// The folder's admin key.
    Operator,
}

impl Key {
    /// The key to use without a socket, or in a store that is opened here.
    pub fn of_folder(&self, folder: &Path) -> Result<Zeroizing<String>, Failure> {
        match self {
            Self::Given(key) => Ok(key.clone()),
            Self::Adapter | Self::Operator => data::read_admin_key(folder),
        }
    }

    fn of_socket(&self, folder: &Path) -> Result<Option<Zeroizing<String>>, Failure> {
        match self {
            Self::Adapter => Ok(None),
            _ => self.of_folder(folder).map(Some),
        }
    }
}

impl Joined {
    /// Its process: of a socket the one that listens, whatever the note says.
    pub fn pid(&self) -> u32 {
        self.peer_pid().unwrap_or(self.note.pid)
    }

    fn peer_pid(&self) -> Option<u32> {
        let stream = self.service.presence()?.try_clone().ok()?;
        stream.set_nonblocking(true).ok()?;
        let peer = UnixStream::from_std(stream).ok()?.peer_cred().ok()?;
        u32::try_from(peer.pid()?).ok()
    }
}

/// The service on a folder, if one runs. A note without a service is what a killed one leaves
/// behind.
pub async fn join(folder: &Path, key: &Key) -> Result<Option<Joined>, Failure> {
    let Some(note) = ServiceNote::read(folder) else { return Ok(None) };
    if let Some(socket) = &note.socket {
        let key = key.of_socket(folder)?;
        if let Ok(service) = Service::on_socket(socket, key.as_ref().map(|key| key.as_str())) {
            return Ok(Some(Joined { note, service }));
        }
    }
    // A socket can be lost where temporary files are cleared away.
    if note.url.starts_with("http") && note.is_running() && is_alive(&note.url).await {
        let service = Service::nearby(&note.url, &key.of_folder(folder)?)?;
        return Ok(Some(Joined { note, service }));
    }
    Ok(None)
}
