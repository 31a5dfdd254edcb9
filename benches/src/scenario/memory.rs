//! Resident memory of the service with default settings, after it has read and written.

use std::sync::Arc;

use super::claims::{render, slice};
use super::{BATCH, Bench, CONNECTIONS};
use crate::failure::Outcome;
use crate::http::{Conn, drive};
use crate::probe;
use crate::report::{Goal, Report};
use crate::service::Server;
use crate::workload::{Workload, mix, run_id, tool_call_id};

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let records = bench.sizes.growth_top / BATCH * BATCH;
    let folder = bench.filled(records)?;
    let server = bench.serve(&folder)?;
    bench.runtime.block_on(measure(bench, report, &server, records))
}

async fn measure(
    bench: &Bench,
    report: &mut Report,
    server: &Server,
    records: usize,
) -> Outcome<()> {
    let resident = || probe::memory_mib(server.pid(), "VmRSS");
    report.value("resident after the start", "MiB", resident()?);
    let mut conns = server.target.connect(CONNECTIONS).await?;
    // Reads that touch every part of the file. A run has 20 calls on average.
    let target = Arc::new(server.target.clone());
    let runs = (records / 21).max(1) as u64;
    let lookups = bench.sizes.lookups * 2;
    drive(&mut conns, lookups, move |at, mut conn: Conn| {
        let target = target.clone();
        async move {
            let run = (0, (mix(at as u64) % runs) as u32);
            let call = (at % 10) as u32;
            let (run, call) = (run_id(run), tool_call_id(run, call));
            conn.exchange(&target.get(&format!("/v1/runs/{run}/calls/{call}/decision"))).await?;
            Ok(conn)
        }
    })
    .await?;
    report.value("resident after random look-ups", "MiB", resident()?);
    let scope = server.open_scope().await?;
    let rows = Workload::new(&bench.samples, 6).take_rows(bench.sizes.claims * 2);
    let calls = render(&rows, &bench.samples, &server.target, &scope, None);
    slice(&mut conns, &server.target, calls, false).await?;
    let what = format!("resident after writes too, at {} k", records / 1000);
    report.goal(what, "MiB", resident()?, Goal::AtMost(256.0));
    report.value("its highest", "MiB", probe::memory_mib(server.pid(), "VmHWM")?);
    report.note("the cache's share is `--cache-mib`, 128 MiB unless stated");
    Ok(())
}
