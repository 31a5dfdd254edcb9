//! Which ledger a command talks to: the service at an address, the service that runs on a data
//! folder, or the folder itself.

use std::path::Path;

use recibo_api::client::{Service, is_alive};
use recibo_api::{Action, Code, Problem, Roles};
use recibo_core::id::Namespace;
use recibo_store::{ReadOnlyCause, Store};
use zeroize::Zeroizing;

use super::embedded::Embedded;
use super::{Ledger, Transport};
use crate::data::{self, Knobs};
use crate::failure::Failure;
use crate::target::Target;

/// What a command needs of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it. Nothing in its folder is changed, and it need not be writable.
    Read,
    /// To write into one that is there: an empty ledger in a folder mistyped would look like a
    /// lost one.
    Change,
    /// To write; where there is no ledger yet, one is made.
    Create,
}

/// Where a ledger is.
enum Place {
    /// Behind a service.
    Service(Service),
    /// In a store that was opened here, with the key of whoever asks.
    Here { store: Store, api_key: Zeroizing<String> },
}

/// Finds the ledger that the command line names.
pub async fn find(target: &Target, purpose: Purpose) -> Result<Ledger, Failure> {
    Ok(Ledger(match place(target, purpose).await? {
        Place::Service(service) => Transport::Service(service),
        Place::Here { store, api_key } => Transport::Embedded(Embedded::new(store, api_key)),
    }))
}

/// The same for an adapter: without a server in between where the store is opened here. While
/// outcomes get no answer it is looked for again, since a service may come back elsewhere.
pub async fn find_for_adapter(
    target: &Target,
    purpose: Purpose,
) -> Result<recibo_adapter::Ledger, Failure> {
    let ledger = adapter_ledger(target, purpose).await?;
    let target = target.clone();
    Ok(ledger.with_finder(move || {
        let target = target.clone();
        Box::pin(async move { adapter_ledger(&target, Purpose::Change).await.ok() })
    }))
}

async fn adapter_ledger(
    target: &Target,
    purpose: Purpose,
) -> Result<recibo_adapter::Ledger, Failure> {
    match place(target, purpose).await? {
        Place::Service(service) => Ok(recibo_adapter::Ledger::http(service)),
        Place::Here { store, api_key } => match namespace(&store, &api_key) {
            Ok(namespace) => Ok(recibo_adapter::Ledger::embedded(store, namespace)),
            Err(problem) => {
                // A panic in there has been printed.
                let _ = tokio::task::spawn_blocking(move || store.close()).await;
                Err(problem.into())
            }
        },
    }
}

/// Where an adapter with this key writes.
fn namespace(store: &Store, api_key: &str) -> Result<Namespace, Problem> {
    let invalid = || Problem::new(Code::Unauthenticated, "the API key is not valid");
    let info = store.authenticate(api_key).ok_or_else(invalid)?;
    Roles::parse(&info.roles).ok_or_else(invalid)?.permit(Action::Claim)?;
    Ok(info.namespace.clone())
}

async fn place(target: &Target, purpose: Purpose) -> Result<Place, Failure> {
    let given_key = target.api_key_file.as_deref().map(data::read_api_key).transpose()?;
    if let Some(url) = &target.url {
        let Some(api_key) = given_key else {
            return Err(Failure::usage("--url needs --api-key-file"));
        };
        return Ok(Place::Service(Service::at(url, &api_key)?));
    }
    let folder = &target.data;
    if let Some(url) = running_service(folder).await {
        let api_key = match given_key {
            Some(api_key) => api_key,
            None => data::read_admin_key(folder)?,
        };
        return Ok(Place::Service(Service::nearby(&url, &api_key)?));
    }
    open_here(folder, given_key, purpose).await
}

/// The address of the service on a folder, if one runs. A file without a service is what a
/// killed one leaves behind.
async fn running_service(folder: &Path) -> Option<String> {
    let note = data::ServiceNote::read(folder)?;
    (note.is_running() && is_alive(&note.url).await).then_some(note.url)
}

async fn open_here(
    folder: &Path,
    given_key: Option<Zeroizing<String>>,
    purpose: Purpose,
) -> Result<Place, Failure> {
    let path = folder.to_owned();
    let opened = tokio::task::spawn_blocking(move || match purpose {
        Purpose::Read => data::open_read_only(&path, Knobs::default(), ReadOnlyCause::Asked),
        Purpose::Change => data::open_existing(&path, Knobs::default()),
        Purpose::Create => data::open(&path, Knobs::default()),
    });
    let opened = opened.await;
    let store = opened.map_err(|error| Failure::said(error.to_string()))??;
    let api_key = match given_key {
        Some(api_key) => api_key,
        None => data::read_admin_key(folder)?,
    };
    Ok(Place::Here { store, api_key })
}
