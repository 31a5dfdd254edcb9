//! The library in batches of 1,000 beside embedded peers, all at the same size, and the disk
//! that each takes.

use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableHandle};

use super::{Bench, insert_timed};
use crate::failure::Outcome;
use crate::peers::Peer;
use crate::peers::fjall::Fjall;
use crate::peers::ledger::Ledger;
use crate::peers::raw_redb::RawRedb;
use crate::peers::sqlite::Sqlite;
use crate::plot;
use crate::probe;
use crate::report::{Goal, Report};
use crate::workload::Workload;

/// Records of a slice at first, and where slices become larger.
const SMALL: usize = 20_000;
const SMALL_UNTIL: usize = 200_000;
/// Slices that make up a figure.
const WINDOW: usize = 5;

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let folder = bench.fresh("embedded")?;
    probe::note_disk(report, &folder)?;
    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(Ledger::open(&folder.join("recibo"))?),
        Box::new(RawRedb::create(&folder.join("redb"))?),
        Box::new(Sqlite::create(&folder.join("sqlite"))?),
        Box::new(Fjall::create(&folder.join("fjall"))?),
    ];
    let records = bench.sizes.embedded;
    let mut workload = Workload::new(&bench.samples, 3);
    let mut lines: Vec<plot::Line> =
        peers.iter().map(|peer| (peer.name().to_owned(), Vec::new())).collect();
    let mut size = 0;
    while size < records {
        let step = if size < SMALL_UNTIL { SMALL } else { (records / 15).max(SMALL) };
        let rows = workload.take_rows(step.min(records - size));
        size += rows.len();
        for (peer, (_, points)) in peers.iter_mut().zip(&mut lines) {
            let rate = insert_timed(peer.as_mut(), &rows, &bench.samples)?;
            points.push((size as f64, rate));
            // What one writes back late does not slow the next.
            probe::settle(peer.folder())?;
        }
    }
    probe::note_disk(report, &folder)?;
    rates(report, &lines, records);
    plot::lines(
        "embedded",
        "Throughput against ledger size, batches of 1,000, durable",
        "records",
        "records/s",
        &lines,
    )?;
    disk(report, peers, records)
}

fn rates(report: &mut Report, lines: &[plot::Line], records: usize) {
    let mut medians = Vec::new();
    for at in [100_000, records] {
        for (name, points) in lines {
            let until: Vec<f64> =
                points.iter().filter(|point| point.0 <= at as f64).map(|point| point.1).collect();
            let window = &until[until.len().saturating_sub(WINDOW)..];
            let what = format!("{name} at {} k", at / 1000);
            medians.push(report.figure(what, "records/s", window));
        }
    }
    let [small, small_raw, _, _, large, large_raw, sqlite, fjall] = medians[..] else { return };
    let at = format!("at {} k", records / 1000);
    report.goal("recibo / raw redb at 100 k", "x", small / small_raw, Goal::AtLeast(0.5));
    report.value(format!("recibo / raw redb {at}"), "x", large / large_raw);
    report.goal(format!("recibo / SQLite {at}"), "x", large / sqlite, Goal::AtLeast(5.0));
    report.goal(format!("recibo / fjall {at}"), "x", large / fjall, Goal::AtLeast(2.0));
}

/// Blocks that files take once closed, per record.
fn disk(report: &mut Report, peers: Vec<Box<dyn Peer>>, records: usize) -> Outcome<()> {
    for peer in peers {
        let (name, folder) = (peer.name(), peer.folder().to_owned());
        peer.close()?;
        let bytes = probe::allocated_bytes(&folder)? as f64 / records as f64;
        let what = format!("disk of {name}");
        if name == "recibo" {
            report.goal(what, "B/record", bytes, Goal::AtMost(500.0));
            let file = folder.join(recibo_store::LEDGER_FILE);
            note_tables(report, &Database::open(file)?, records)?;
        } else {
            report.value(what, "B/record", bytes);
        }
    }
    Ok(())
}

/// Where the ledger's bytes are.
fn note_tables(report: &mut Report, db: &Database, records: usize) -> Outcome<()> {
    let per_record = |bytes: u64| bytes as f64 / records as f64;
    let txn = db.begin_read()?;
    for handle in txn.list_tables()? {
        let name = handle.name().to_owned();
        let stats = txn.open_untyped_table(handle)?.stats()?;
        let stored = per_record(stats.stored_bytes());
        if stored >= 1.0 {
            report.note(format!(
                "table {name}: stored {stored:.0}, page metadata {:.0}, unused in pages {:.0} \
                 B/record, height {}",
                per_record(stats.metadata_bytes()),
                per_record(stats.fragmented_bytes()),
                stats.tree_height(),
            ));
        }
    }
    drop(txn);
    let txn = db.begin_write()?;
    let stats = txn.stats()?;
    let pages = per_record(stats.allocated_pages() * stats.page_size() as u64);
    report.note(format!("pages in use {pages:.0} B/record; the rest of the file is free pages"));
    Ok(txn.abort()?)
}
