//! The ledger itself as a library, on a disk or in memory.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recibo_core::id::{CallRef, Namespace, RunId, ScopeId, ToolCallId};
use recibo_store::{Config, Entropy, Store, SystemClock};
use redb::backends::InMemoryBackend;

use super::Peer;
use crate::failure::{Failure, Outcome, check};
use crate::workload::{End, Row, Samples};

/// An open ledger with a scope.
pub struct Ledger {
    store: Store,
    namespace: Namespace,
    scope_id: ScopeId,
    folder: PathBuf,
}

impl Ledger {
    /// Opens the ledger of a folder, or makes it.
    pub fn open(folder: &Path) -> Outcome<Self> {
        let clock = Arc::new(SystemClock);
        let store = Store::open(folder, Config::default(), clock, entropy()?)?;
        Self::with(store, folder)
    }

    /// An empty one that no disk slows down.
    pub fn in_memory() -> Outcome<Self> {
        let (disk, clock) = (InMemoryBackend::new(), Arc::new(SystemClock));
        let store = Store::on_disk(disk, Config::default(), clock, entropy()?, [7; 32])?;
        Self::with(store, Path::new(""))
    }

    fn with(store: Store, folder: &Path) -> Outcome<Self> {
        let namespace = Namespace::parse("default")?;
        let ttl_ms = recibo_core::limits::SCOPE_TTL_MS_DEFAULT;
        let opened = store.open_scope(&namespace, None, ttl_ms).wait()?;
        Ok(Self { store, namespace, scope_id: opened.scope_id, folder: folder.to_owned() })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The namespace that everything is written to.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The scope that signs.
    pub fn scope_id(&self) -> &ScopeId {
        &self.scope_id
    }
}

impl Peer for Ledger {
    fn name(&self) -> &'static str {
        "recibo"
    }

    fn insert(&mut self, rows: &[Row], samples: &Samples) -> Outcome<()> {
        let shots = rows.iter().map(|row| row.one_shot(samples, &self.scope_id));
        let shots = shots.collect::<Result<Vec<_>, _>>()?;
        let answers = self.store.record(&self.namespace, shots).wait()?;
        for (row, answer) in rows.iter().zip(&answers) {
            let record = match answer {
                Ok(answer) if !answer.replayed => &answer.record,
                other => return Err(Failure::new(format!("a one-shot got {other:?}"))),
            };
            let is_right =
                record.attempt == row.attempt && record.token.is_some() == (row.end == End::Ok);
            check(is_right, || format!("a one-shot became {record:?}"))?;
        }
        check(answers.len() == rows.len(), || "an answer is missing".into())
    }

    fn holds(&mut self, row: &Row) -> Outcome<bool> {
        let call = CallRef {
            run_id: RunId::parse(&row.run_id())?,
            tool_call_id: ToolCallId::parse(&row.tool_call_id())?,
        };
        let snapshot = self.store.snapshot()?;
        Ok(matches!(snapshot.attempt(&self.namespace, &call, row.attempt)?, Some(Some(_))))
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.store.close();
        Ok(())
    }
}

/// Random bytes from the system, drawn a page at a time.
fn entropy() -> Outcome<Entropy> {
    let mut source = File::open("/dev/urandom")?;
    let (mut page, mut used) = ([0; 4096], 4096);
    Ok(Box::new(move |bytes: &mut [u8]| {
        if used + bytes.len() > page.len() {
            source.read_exact(&mut page).expect("the system gives random bytes");
            used = 0;
        }
        bytes.copy_from_slice(&page[used..used + bytes.len()]);
        used += bytes.len();
    }))
}
