//! The scenarios, and what they share.

mod batches;
mod claims;
mod embedded;
mod exec;
mod growth;
mod latency;
mod lookups;
pub mod mcp;
mod memory;
mod overhead;
mod reopen;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::failure::{Outcome, check};
use crate::http::Conn;
use crate::peers::Peer;
use crate::peers::ledger::Ledger;
use crate::probe;
use crate::report::Report;
use crate::service::{self, Server};
use crate::sizes::Sizes;
use crate::workload::{Row, Samples, Workload};

/// Records in one write of the library.
pub const BATCH: usize = 1000;
/// Connections of most HTTP scenarios.
pub const CONNECTIONS: usize = 256;
/// Connections to PostgreSQL; more of them are slower.
pub const POSTGRES_CLIENTS: usize = 64;

/// What every scenario uses.
pub struct Bench {
    /// Calls to draw from.
    pub samples: Arc<Samples>,
    /// How much to measure.
    pub sizes: Sizes,
    /// Runs the load generator.
    pub runtime: Runtime,
    work: TempDir,
    named: Option<PathBuf>,
}

impl Bench {
    /// Reads the samples and makes a work folder.
    pub fn new(work: Option<PathBuf>, named: Option<PathBuf>, sizes: Sizes) -> Outcome<Self> {
        let parent = work.unwrap_or_else(std::env::temp_dir);
        std::fs::create_dir_all(&parent)?;
        let work = tempfile::Builder::new().prefix("recibo-bench-").tempdir_in(parent)?;
        let runtime = Runtime::new()?;
        Ok(Self { samples: Arc::new(Samples::read()?), sizes, runtime, work, named })
    }

    /// The folder that goes away with the bench.
    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// A folder of the bench; what an earlier scenario left there is gone.
    pub fn fresh(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.work().join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The service on a folder.
    pub fn serve(&self, folder: &Path) -> Outcome<Server> {
        Server::recibo(&service::binary(self.named.clone())?, folder)
    }

    /// A ledger of stream 0 with this many records, filled once for all scenarios.
    pub fn filled(&self, records: usize) -> Outcome<PathBuf> {
        let folder = self.filled_name(records);
        if !folder.exists() {
            let mut ledger = Ledger::open(&folder)?;
            let mut workload = Workload::new(&self.samples, 0);
            for _ in 0..records / BATCH {
                ledger.insert(&workload.take_rows(BATCH), &self.samples)?;
            }
            Box::new(ledger).close()?;
        }
        Ok(folder)
    }

    /// Where [`Bench::filled`] keeps it.
    pub fn filled_name(&self, records: usize) -> PathBuf {
        self.work().join(format!("filled-{records}"))
    }
}

/// A scenario.
#[derive(Clone, Copy)]
pub enum Scenario {
    /// Claim and outcome over HTTP.
    Claims,
    /// Batches over HTTP.
    Batches,
    /// The library against embedded peers.
    Embedded,
    /// The library while it grows.
    Growth,
    /// Decisions over HTTP.
    Lookups,
    /// How long claims take.
    Latency,
    /// The library without a disk.
    Overhead,
    /// Opening after a kill.
    Reopen,
    /// Resident memory.
    Memory,
    /// What the MCP proxy adds.
    Mcp,
    /// What `recibo exec` adds.
    Exec,
}

impl Scenario {
    /// In the order in which they run: `reopen` and `memory` use the ledger of `growth`.
    pub const ALL: [Self; 11] = [
        Self::Overhead,
        Self::Claims,
        Self::Batches,
        Self::Latency,
        Self::Lookups,
        Self::Embedded,
        Self::Growth,
        Self::Reopen,
        Self::Memory,
        Self::Mcp,
        Self::Exec,
    ];

    /// Its name in tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::Batches => "batches",
            Self::Embedded => "embedded",
            Self::Growth => "growth",
            Self::Lookups => "lookups",
            Self::Latency => "latency",
            Self::Overhead => "overhead",
            Self::Reopen => "reopen",
            Self::Memory => "memory",
            Self::Mcp => "mcp",
            Self::Exec => "exec",
        }
    }

    /// Measures it.
    pub fn run(self, bench: &Bench) -> Outcome<Report> {
        let mut report = Report::new(self.name());
        let before = probe::others_busy()?;
        match self {
            Self::Claims => claims::run(bench, &mut report),
            Self::Batches => batches::run(bench, &mut report),
            Self::Embedded => embedded::run(bench, &mut report),
            Self::Growth => growth::run(bench, &mut report),
            Self::Lookups => lookups::run(bench, &mut report),
            Self::Latency => latency::run(bench, &mut report),
            Self::Overhead => overhead::run(bench, &mut report),
            Self::Reopen => reopen::run(bench, &mut report),
            Self::Memory => memory::run(bench, &mut report),
            Self::Mcp => mcp::run(bench, &mut report),
            Self::Exec => exec::run(bench, &mut report),
        }?;
        let (before, after) = (before * 100.0, probe::others_busy()? * 100.0);
        report.note(format!("CPU that others used before and after: {before:.0} %, {after:.0} %"));
        Ok(report)
    }
}

/// Inserts rows in batches; gives records per second.
fn insert_timed(peer: &mut dyn Peer, rows: &[Row], samples: &Samples) -> Outcome<f64> {
    let start = Instant::now();
    for batch in rows.chunks(BATCH) {
        peer.insert(batch, samples)?;
    }
    let rate = rows.len() as f64 / start.elapsed().as_secs_f64();
    for row in rows.iter().step_by(rows.len().div_ceil(20)) {
        check(peer.holds(row)?, || format!("{} has lost {row:?}", peer.name()))?;
    }
    Ok(rate)
}

/// Asks the service for some of the rows that it has answered for.
async fn spot_check(conn: &mut Conn, server: &Server, rows: &[Row]) -> Outcome<()> {
    for row in rows.iter().step_by(rows.len().div_ceil(20)) {
        let (run, call) = (row.run_id(), row.tool_call_id());
        let path = format!("/v1/runs/{run}/calls/{call}/attempts/{}", row.attempt);
        let body = conn.exchange(&server.target.get(&path)).await?;
        let status = format!("\"status\":\"{}\"", row.status());
        check(crate::http::find(body, status.as_bytes()).is_some(), || {
            format!("{row:?} reads as {}", String::from_utf8_lossy(body))
        })?;
    }
    Ok(())
}

/// Fills a ledger, says so, and goes on writing until it is killed.
pub fn fill_until_killed(folder: &Path, stream: u32, records: usize, once: bool) -> Outcome<()> {
    let samples = Samples::read()?;
    let mut ledger = Ledger::open(folder)?;
    let mut workload = Workload::new(&samples, stream);
    for _ in 0..records / BATCH {
        ledger.insert(&workload.take_rows(BATCH), &samples)?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "filled")?;
    out.flush()?;
    if once {
        return Box::new(ledger).close();
    }
    loop {
        ledger.insert(&workload.take_rows(BATCH), &samples)?;
    }
}
