//! Which ledger a command talks to: the service at an address, the service on a data folder, which
//! is started if none runs, or the folder itself.

use std::io::Write;
use std::path::Path;

use recibo_api::client::Service;
use recibo_api::{Action, Code, Problem, Roles};
use recibo_core::id::Namespace;
use recibo_store::{ReadOnlyCause, Store};
use zeroize::Zeroizing;

use super::embedded::Embedded;
use super::{Ledger, Transport};
use crate::data::{self, Knobs};
use crate::failure::Failure;
use crate::service::{self, Key, version};
use crate::target::Target;

/// What a command needs of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Read,
    /// To read what only an admin may.
    Administer,
    /// To write into one that is there, as an operator: an empty ledger in a folder mistyped would
    /// look like a lost one.
    Change,
    /// To write as an operator; where there is no ledger yet, one is made.
    Create,
}

/// Where a ledger is.
enum Place {
    /// Behind a service.
    Service(Service),
    /// In a store that was opened here, with the key of whoever asks.
    Here { store: Store, api_key: Zeroizing<String> },
}

/// What becomes of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    /// Written, if there is a ledger.
    Change,
    /// Written; a ledger is made where there is none.
    Make,
}

/// Finds the ledger that the command line names.
pub async fn find(target: &Target, purpose: Purpose) -> Result<Ledger, Failure> {
    let (key, access) = match purpose {
        Purpose::Read => (Key::Adapter, Access::Read),
        Purpose::Administer => (Key::Operator, Access::Read),
        Purpose::Change => (Key::Operator, Access::Change),
        Purpose::Create => (Key::Operator, Access::Make),
    };
    Ok(Ledger(match place(target, key, access).await? {
        Place::Service(service) => Transport::Service(service),
        Place::Here { store, api_key } => Transport::Embedded(Embedded::new(store, api_key)),
    }))
}

/// The same for an adapter: without a server in between where the store is opened here. While
/// outcomes get no answer it is looked for again, since a service may come back elsewhere.
pub async fn find_for_adapter(target: &Target) -> Result<recibo_adapter::Ledger, Failure> {
    let ledger = adapter_ledger(target, Access::Make).await?;
    let target = target.clone();
    Ok(ledger.with_finder(move || {
        let target = target.clone();
        Box::pin(async move { adapter_ledger(&target, Access::Change).await.ok() })
    }))
}

async fn adapter_ledger(
    target: &Target,
    access: Access,
) -> Result<recibo_adapter::Ledger, Failure> {
    match place(target, Key::Adapter, access).await? {
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

async fn place(target: &Target, key: Key, access: Access) -> Result<Place, Failure> {
    let given_key = target.api_key_file.as_deref().map(data::read_api_key).transpose()?;
    if let Some(url) = &target.url {
        let Some(api_key) = given_key else {
            return Err(Failure::usage("--url needs --api-key-file"));
        };
        return Ok(Place::Service(Service::at(url, &api_key)?));
    }
    let folder = &target.data;
    let key = given_key.map_or(key, Key::Given);
    if target.alone {
        return open_here(folder, &key, access).await;
    }
    if access != Access::Make {
        data::expect_ledger(folder)?;
    }
    match service::join_or_start(folder, &key).await {
        Ok(joined) => {
            if let Some(text) = version::difference(&joined.note, folder) {
                let _ = writeln!(anstream::stderr(), "recibo: {text}");
            }
            Ok(Place::Service(joined.service))
        }
        // A folder that cannot be written can be read all the same.
        Err(failure) if access == Access::Read => {
            open_here(folder, &key, access).await.map_err(|_| failure)
        }
        Err(failure) => Err(failure),
    }
}

async fn open_here(folder: &Path, key: &Key, access: Access) -> Result<Place, Failure> {
    let path = folder.to_owned();
    let opened = tokio::task::spawn_blocking(move || match access {
        Access::Read => data::open_read_only(&path, Knobs::default(), ReadOnlyCause::Asked),
        Access::Change => data::open_existing(&path, Knobs::default()),
        Access::Make => data::open(&path, Knobs::default()),
    });
    let opened = opened.await;
    let store = opened.map_err(|error| Failure::said(error.to_string()))??;
    match key.of_folder(folder) {
        Ok(api_key) => Ok(Place::Here { store, api_key }),
        Err(failure) => {
            // A panic in there has been printed.
            let _ = tokio::task::spawn_blocking(move || store.close()).await;
            Err(failure)
        }
    }
}
