//! The benches of the ledger: one workload, several peers, one table.
//!
//! `recibo-bench short` takes under five minutes, `recibo-bench full` as long as it needs;
//! a scenario by its name runs alone. See README.md beside this crate.

mod bare;
mod failure;
mod http;
mod peers;
mod plot;
mod probe;
mod report;
mod scenario;
mod service;
mod sizes;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Outcome;
use crate::scenario::{Bench, Scenario};

/// Measures the ledger against its peers.
#[derive(Parser)]
struct Args {
    /// The release binary of the ledger [default: built here]
    #[arg(long, global = true)]
    recibo: Option<PathBuf>,
    /// Where data folders go [default: the system's temporary folder]
    #[arg(long, global = true)]
    work: Option<PathBuf>,
    /// Sizes of the full form, for a scenario that runs alone
    #[arg(long, global = true)]
    full: bool,
    /// Largest ledger, in records, instead of the form's own
    #[arg(long, global = true)]
    records: Option<usize>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Everything, in under five minutes
    Short,
    /// Everything, at the sizes of the goals
    Full,
    /// Claim and outcome over HTTP, 256 connections
    Claims,
    /// One-shot receipts in batches of 100 over HTTP
    Batches,
    /// The library in batches of 1,000, and its disk use
    Embedded,
    /// The library while the ledger grows
    Growth,
    /// Decisions of random calls over HTTP, 256 connections
    Lookups,
    /// How long a claim takes at several loads
    Latency,
    /// What a record costs without a disk
    Overhead,
    /// Opening after kill -9
    Reopen,
    /// Resident memory of the service
    Memory,
    /// What the MCP proxy adds to a tool call
    Mcp,
    /// What `recibo exec` adds to a command
    Exec,
    /// Only writes into a ledger until killed, for `perf` and the like
    #[command(hide = true)]
    Fill {
        /// Its folder
        #[arg(long)]
        data: PathBuf,
        /// Which stream of the workload
        #[arg(long, default_value_t = 0)]
        stream: u32,
        /// Ends after `--records`
        #[arg(long)]
        once: bool,
    },
    /// The bare server
    #[command(hide = true)]
    Bare,
    /// The MCP server of `mcp`
    #[command(hide = true)]
    McpServer,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("the bench stopped: {failure:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Outcome<()> {
    let scenarios = match args.what {
        What::Short | What::Full => Scenario::ALL.to_vec(),
        What::Claims => vec![Scenario::Claims],
        What::Batches => vec![Scenario::Batches],
        What::Embedded => vec![Scenario::Embedded],
        What::Growth => vec![Scenario::Growth],
        What::Lookups => vec![Scenario::Lookups],
        What::Latency => vec![Scenario::Latency],
        What::Overhead => vec![Scenario::Overhead],
        What::Reopen => vec![Scenario::Reopen],
        What::Memory => vec![Scenario::Memory],
        What::Mcp => vec![Scenario::Mcp],
        What::Exec => vec![Scenario::Exec],
        What::Fill { data, stream, once } => {
            let records = args.records.unwrap_or(0);
            return scenario::fill_until_killed(&data, stream, records, once);
        }
        What::McpServer => return scenario::mcp::serve(),
        What::Bare => return tokio::runtime::Runtime::new()?.block_on(bare::serve()),
    };
    let mut sizes = match args.full || matches!(args.what, What::Full) {
        true => sizes::FULL,
        false => sizes::SHORT,
    };
    if let Some(records) = args.records {
        sizes.limit_to(records);
    }
    let bench = Bench::new(args.work, args.recibo, sizes)?;
    let mut reports = Vec::new();
    for scenario in scenarios {
        eprintln!("{}", scenario.name());
        let report = scenario.run(&bench)?;
        report.write()?;
        reports.push(report);
    }
    report::print(&reports);
    Ok(())
}
