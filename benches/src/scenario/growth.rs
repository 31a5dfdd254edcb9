//! The library while its ledger grows: a late window against an early one.

use std::time::Instant;

use super::{BATCH, Bench, insert_timed};
use crate::failure::Outcome;
use crate::peers::Peer;
use crate::peers::ledger::Ledger;
use crate::peers::raw_redb::RawRedb;
use crate::plot;
use crate::probe;
use crate::report::{Goal, Report};
use crate::workload::Workload;

/// Slices that make up a window.
const WINDOW: usize = 5;

/// Measures the scenario.
///
/// An empty raw redb takes a batch after every slice: it says how fast the disk is just then,
/// so that a slow spell of it is not taken for a slow ledger.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let (base, top) = (bench.sizes.growth_base, bench.sizes.growth_top);
    let folder = bench.filled_name(top);
    let mut ledger = Ledger::open(&folder)?;
    probe::note_disk(report, bench.work())?;
    let mut beside = RawRedb::create(&bench.fresh("growth-beside")?)?;
    let mut workload = Workload::new(&bench.samples, 0);
    let step = (base / 10 / BATCH).max(1) * BATCH;
    let (mut rates, mut cpus, mut disk) = (Vec::new(), Vec::new(), Vec::new());
    let start = Instant::now();
    for at in 1..=top / step {
        let rows = workload.take_rows(step);
        let before = probe::cpu_s();
        let rate = insert_timed(&mut ledger, &rows, &bench.samples)?;
        let cpu = (probe::cpu_s() - before) * 1e6 / rows.len() as f64;
        let size = (at * step) as f64;
        rates.push((size, rate));
        cpus.push((size, cpu));
        let few = &rows[..rows.len().min(10 * BATCH)];
        disk.push((size, insert_timed(&mut beside, few, &bench.samples)?));
    }
    report.note(format!("{top} records in {:.0} s", start.elapsed().as_secs_f64()));
    probe::note_disk(report, bench.work())?;
    let window = |points: &[(f64, f64)], end: usize| -> Vec<f64> {
        let until: Vec<f64> =
            points.iter().filter(|point| point.0 <= end as f64).map(|point| point.1).collect();
        until[until.len().saturating_sub(WINDOW)..].to_vec()
    };
    let mut medians = Vec::new();
    for end in [base, top] {
        let at = format!("at {} k", end / 1000);
        medians.push(report.figure(format!("recibo {at}"), "records/s", &window(&rates, end)));
        medians.push(report.figure(format!("CPU {at}"), "us/record", &window(&cpus, end)));
        let what = format!("a small raw redb beside it {at}");
        medians.push(report.figure(what, "records/s", &window(&disk, end)));
    }
    let [early, early_cpu, early_disk, late, late_cpu, late_disk] = medians[..] else {
        return Ok(());
    };
    let of = format!("{} k / {} k", top / 1000, base / 1000);
    report.goal(format!("window at {of}"), "x", late / early, Goal::AtLeast(0.8));
    let corrected = late / early * early_disk / late_disk;
    report.value(format!("the same, with the disk beside it taken out, {of}"), "x", corrected);
    report.value(format!("CPU per record, {of}"), "x", late_cpu / early_cpu);
    let lines = [("recibo".to_owned(), rates), ("a small raw redb beside it".to_owned(), disk)];
    plot::lines("growth", "Throughput while the ledger grows", "records", "records/s", &lines)?;
    let lines = [("recibo".to_owned(), cpus)];
    plot::lines("growth-cpu", "CPU while the ledger grows", "records", "us/record", &lines)?;
    Box::new(ledger).close()
}
