//! How long a claim takes at several loads, beside what one `fdatasync` takes.
//!
//! Requests come at fixed times, whatever became of those before. A latency counts from when a
//! request was due, so that a stall is seen by everybody whom it would have hit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::claims::{Attempt, Call, render, slice};
use super::{Bench, CONNECTIONS};
use crate::failure::{Failure, Outcome};
use crate::http::{Conn, Target, member};
use crate::plot;
use crate::probe;
use crate::report::{Goal, Report, quantile};
use crate::service::Server;
use crate::workload::Workload;

/// Loads, as parts of full load.
const LOADS: [f64; 5] = [0.1, 0.25, 0.5, 0.7, 0.9];
/// Times that half of full load is measured.
const HALF_TIMES: usize = 3;

/// Claims and outcomes in turns, at a rate. Gives the sorted latencies of the claims, in ms.
async fn open_loop(
    conns: &mut Vec<Conn>,
    target: &Target,
    calls: Vec<Call>,
    rate: f64,
) -> Outcome<Vec<f64>> {
    let attempts: Vec<Attempt> = calls.into_iter().flat_map(|call| call.attempts).collect();
    let total = attempts.len() * 2;
    let due = Arc::new(Semaphore::new(0));
    let (next, next_claim) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (attempts, target) = (Arc::new(attempts), Arc::new(target.clone()));
    let start = Instant::now() + Duration::from_millis(20);
    let tasks: Vec<_> = conns
        .drain(..)
        .map(|mut conn| {
            let (due, next, next_claim) = (due.clone(), next.clone(), next_claim.clone());
            let (attempts, target) = (attempts.clone(), target.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                let mut open: Option<(usize, String)> = None;
                loop {
                    due.acquire().await?.forget();
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= total {
                        return Ok::<_, Failure>((conn, latencies));
                    }
                    let scheduled = start + Duration::from_secs_f64(at as f64 / rate);
                    if let Some((claimed, token)) = open.take() {
                        let attempt = &attempts[claimed];
                        let body = format!("{{\"lease_token\":\"{token}{}", attempt.outcome_end);
                        conn.exchange(&target.post(&attempt.outcome_path, &body)).await?;
                        continue;
                    }
                    let claimed = next_claim.fetch_add(1, Ordering::Relaxed);
                    let Some(attempt) = attempts.get(claimed) else { continue };
                    let granted = conn.exchange(&attempt.claim).await?;
                    latencies.push(scheduled.elapsed().as_secs_f64() * 1e3);
                    open = Some((claimed, member(granted, "token")?.to_owned()));
                }
            })
        })
        .collect();
    let pace = due.clone();
    let connections = tasks.len();
    // tokio's timers are a millisecond coarse; a thread's sleep is not.
    std::thread::spawn(move || {
        let mut released = 0;
        while released < total {
            let elapsed = Instant::now().saturating_duration_since(start).as_secs_f64();
            let reached = ((elapsed * rate) as usize).min(total);
            pace.add_permits(reached - released);
            released = reached;
            std::thread::sleep(Duration::from_secs_f64(0.5 / rate));
        }
        // Lets everybody see that it is over.
        pace.add_permits(connections);
    });
    let mut all = Vec::new();
    for task in tasks {
        let (conn, latencies) = task.await??;
        conns.push(conn);
        all.extend(latencies);
    }
    all.sort_by(f64::total_cmp);
    Ok(all)
}

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let folder = bench.fresh("latency")?;
    let server = bench.serve(&folder)?;
    bench.runtime.block_on(measure(bench, report, &server))
}

async fn measure(bench: &Bench, report: &mut Report, server: &Server) -> Outcome<()> {
    let samples = &bench.samples;
    let scope = server.open_scope().await?;
    let mut workload = Workload::new(samples, 4);
    let mut conns = server.target.connect(CONNECTIONS).await?;
    let mut full = Vec::new();
    for _ in 0..3 {
        let rows = workload.take_rows(bench.sizes.claims);
        let calls = render(&rows, samples, &server.target, &scope, None);
        full.push(slice(&mut conns, &server.target, calls, false).await?);
    }
    let full = report.figure("full load, claim + outcome", "requests/s", &full);
    let (mut p50s, mut p99s) = (Vec::new(), Vec::new());
    let (mut half_p50, mut half_p99, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for load in LOADS {
        for _ in 0..if load == 0.5 { HALF_TIMES } else { 1 } {
            let rate = full * load;
            let rows = workload
                .by_ref()
                .filter(|row| row.status() == "ok" && row.attempt == 1)
                .take((rate * bench.sizes.latency_s / 2.0) as usize)
                .collect::<Vec<_>>();
            let calls = render(&rows, samples, &server.target, &scope, None);
            let disk = probe::disk(bench.work())?;
            let latencies = open_loop(&mut conns, &server.target, calls, rate).await?;
            let (p50, p99) = (quantile(&latencies, 0.5), quantile(&latencies, 0.99));
            report.note(format!(
                "{:.0} % of full load, {rate:.0} requests/s: claim p50 {p50:.2} ms, p99 {p99:.2} ms, \
                 p99.9 {:.2} ms; one fdatasync before it p50 {:.3} ms, p99 {:.3} ms",
                load * 100.0,
                quantile(&latencies, 0.999),
                disk.p50_ms,
                disk.p99_ms,
            ));
            p50s.push((rate, p50));
            p99s.push((rate, p99));
            if load == 0.5 {
                half_p50.push(p50);
                half_p99.push(p99);
                bounds.push(p99 / (5.0 * disk.p50_ms + 1.0));
            }
        }
    }
    report.figure("claim at half of full load, p50", "ms", &half_p50);
    report.figure("claim at half of full load, p99", "ms", &half_p99);
    let part = report.figure("p99 / (5 fdatasync + 1 ms)", "x", &bounds);
    report.goal("p99 at half of full load / (5 fdatasync + 1 ms)", "x", part, Goal::AtMost(1.0));
    let lines = [("p50".to_owned(), p50s), ("p99".to_owned(), p99s)];
    plot::lines("latency", "Latency of a claim against load", "requests/s", "ms", &lines)
}
