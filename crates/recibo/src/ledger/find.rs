//! Which ledger a command talks to: the service at an address, the service that runs on a data
//! folder, or the folder itself.

use std::path::Path;

use recibo_api::client::{Service, is_alive};
use zeroize::Zeroizing;

use super::embedded::Embedded;
use super::{Ledger, Transport};
use crate::cli::Target;
use crate::data::{self, Knobs};
use crate::failure::Failure;

/// What to do where there is no ledger yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// Make one: the command writes.
    Create,
    /// Fail: an empty ledger in a folder mistyped would look like a lost one.
    Fail,
}

/// Finds the ledger that the command line names.
pub async fn find(target: &Target, if_missing: IfMissing) -> Result<Ledger, Failure> {
    let given_key = target.api_key_file.as_deref().map(data::read_api_key).transpose()?;
    if let Some(url) = &target.url {
        let Some(api_key) = given_key else {
            return Err(Failure::usage("--url needs --api-key-file"));
        };
        return Ok(Ledger(Transport::Service(Service::at(url, &api_key)?)));
    }
    let folder = &target.data;
    if let Some(url) = running_service(folder).await {
        let api_key = match given_key {
            Some(api_key) => api_key,
            None => data::read_admin_key(folder)?,
        };
        return Ok(Ledger(Transport::Service(Service::nearby(&url, &api_key)?)));
    }
    if if_missing == IfMissing::Fail && !data::has_ledger(folder) {
        return Err(Failure::advised(
            format!("there is no ledger in {}", folder.display()),
            format!(
                "name its folder with --data, or start one: recibo serve --data {}",
                folder.display()
            ),
        ));
    }
    open_here(folder, given_key).await
}

/// The address of the service on a folder, if one runs. A file without a service is what a
/// killed one leaves behind.
async fn running_service(folder: &Path) -> Option<String> {
    let note = data::ServiceNote::read(folder)?;
    (note.is_running() && is_alive(&note.url).await).then_some(note.url)
}

async fn open_here(folder: &Path, given_key: Option<Zeroizing<String>>) -> Result<Ledger, Failure> {
    let path = folder.to_owned();
    let opened = tokio::task::spawn_blocking(move || data::open(&path, Knobs::default())).await;
    let store = opened.map_err(|error| Failure::said(error.to_string()))??;
    let api_key = match given_key {
        Some(api_key) => api_key,
        None => data::read_admin_key(folder)?,
    };
    Ok(Ledger(Transport::Embedded(Embedded::new(store, api_key))))
}
