//! A real ledger in a folder of its own: embedded, or behind the service.

use std::path::Path;
use std::sync::Arc;

use recibo_adapter::{Ledger, Service};
use recibo_core::id::{CallRef, Namespace, RunId, ToolCallId};
use recibo_server::{App, Settings};
use recibo_store::{Config, Store, SystemClock, api_key};

use crate::case::Case;
use crate::play;

pub struct World {
    store: Store,
    _folder: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        let store = self.store.clone();
        // Closing blocks, which the runtime's threads must not.
        let _ = std::thread::spawn(move || store.close()).join();
    }
}

impl World {
    pub fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let store = open(folder.path())?;
        Ok(Self { store, _folder: folder })
    }

    pub fn embedded(&self) -> Ledger {
        Ledger::embedded(self.store.clone(), namespace()).with_retry_policy(play::RETRY_POLICY)
    }

    /// Starts the service; it ends with the test's runtime.
    pub async fn serve(&self) -> Result<String, String> {
        let listener =
            tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let app =
            App::new(self.store.clone(), Settings::default(), Box::new(|bytes| rand::fill(bytes)));
        tokio::spawn(recibo_server::serve(listener, app, std::future::pending()));
        Ok(format!("http://{address}"))
    }

    pub fn over_http(&self, url: &str, role: &str) -> Result<Ledger, String> {
        let mut random = [0; 48];
        rand::fill(&mut random);
        let (key, draft) = api_key::make(&random, role, namespace(), None);
        // Waiting blocks, which the runtime's threads must not.
        let store = self.store.clone();
        let made = std::thread::spawn(move || store.create_api_key(draft).wait()).join();
        made.expect("no panic").map_err(|e| e.to_string())?;
        let service = Service::nearby(url, &key).map_err(|e| e.to_string())?;
        Ok(Ledger::http(service).with_retry_policy(play::RETRY_POLICY))
    }

    pub async fn play(
        &self,
        case: &Case,
        ledger: Ledger,
        reconciler: Option<Ledger>,
    ) -> Result<(), String> {
        play::play(case, &ledger, reconciler, None).await?;
        ledger.idle().await;
        let recorded = case.recorded.as_ref().expect("real cases say what is recorded");
        play::same("what is recorded", &self.recorded()?, recorded)
    }

    fn recorded(&self) -> Result<Vec<String>, String> {
        let call = CallRef {
            run_id: RunId::parse("r").expect("an id"),
            tool_call_id: ToolCallId::parse("t:1").expect("an id"),
        };
        let snapshot = self.store.snapshot().map_err(|e| e.to_string())?;
        let view = snapshot.call(&namespace(), &call).map_err(|e| e.to_string())?;
        let view = view.ok_or("the call is not known")?;
        Ok(view.records.iter().map(|record| record.status.as_str().to_owned()).collect())
    }
}

fn open(folder: &Path) -> Result<Store, String> {
    let config = Config { cache_bytes: 4 << 20, ..Config::default() };
    let entropy = Box::new(|bytes: &mut [u8]| rand::fill(bytes));
    Store::open(folder, config, Arc::new(SystemClock), entropy).map_err(|e| e.to_string())
}

fn namespace() -> Namespace {
    Namespace::parse("default").expect("a namespace")
}
