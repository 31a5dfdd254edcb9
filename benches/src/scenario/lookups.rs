//! Decisions of random calls over HTTP, beside an empty axum answer and PostgreSQL's prepared
//! point selects.

use std::sync::Arc;

use super::{BATCH, Bench, CONNECTIONS, POSTGRES_CLIENTS};
use crate::failure::{Failure, Outcome, check};
use crate::http::{Conn, Target, drive, find};
use crate::peers::postgres::{Postgres, Session};
use crate::probe;
use crate::report::{Goal, Report};
use crate::service::Server;
use crate::workload::{Workload, mix, run_id, tool_call_id};

/// Calls by their numbers.
type Calls = Vec<((u32, u32), u32)>;

/// Looks random calls up; gives look-ups per second.
async fn slice(
    conns: &mut Vec<Conn>,
    target: &Target,
    calls: &Arc<Calls>,
    count: usize,
    seed: u64,
) -> Outcome<f64> {
    let (calls, target) = (calls.clone(), Arc::new(target.clone()));
    let seconds = drive(conns, count, move |at, mut conn: Conn| {
        let (calls, target) = (calls.clone(), target.clone());
        async move {
            let (run, call) = random(&calls, seed + at as u64);
            let path = format!("/v1/runs/{run}/calls/{call}/decision");
            let body = conn.exchange(&target.get(&path)).await?;
            check(find(body, b"\"first_attempt\"").is_none(), || {
                format!("{run} {call} is not known: {}", String::from_utf8_lossy(body))
            })?;
            Ok(conn)
        }
    })
    .await?;
    Ok(count as f64 / seconds)
}

async fn empty_slice(conns: &mut Vec<Conn>, target: &Target, count: usize) -> Outcome<f64> {
    let request = Arc::new(target.get("/empty"));
    let seconds = drive(conns, count, move |_, mut conn: Conn| {
        let request = request.clone();
        async move {
            conn.exchange(&request).await?;
            Ok(conn)
        }
    })
    .await?;
    Ok(count as f64 / seconds)
}

async fn postgres_slice(
    sessions: &mut Vec<Session>,
    calls: &Arc<Calls>,
    count: usize,
    seed: u64,
) -> Outcome<f64> {
    let calls = calls.clone();
    let seconds = drive(sessions, count, move |at, session| {
        let calls = calls.clone();
        async move {
            let (run, call) = random(&calls, seed + at as u64);
            let attempts = session.select(&run, &call).await?;
            check(attempts > 0, || format!("{run} {call} is not known"))?;
            Ok(session)
        }
    })
    .await?;
    Ok(count as f64 / seconds)
}

fn random(calls: &Calls, seed: u64) -> (String, String) {
    let (run, call) = calls[(mix(seed) % calls.len() as u64) as usize];
    (run_id(run), tool_call_id(run, call))
}

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let records = bench.sizes.lookup_records / BATCH * BATCH;
    let folder = bench.filled(records)?;
    let server = bench.serve(&folder)?;
    let bare = Server::bare()?;
    let postgres = Postgres::start(bench.work())?;
    bench.runtime.block_on(measure(bench, report, &server, &bare, postgres.as_ref(), records))
}

async fn fill(postgres: &Postgres, bench: &Bench, records: usize) -> Outcome<()> {
    let mut workload = Workload::new(&bench.samples, 0);
    let sessions = postgres.sessions(1).await?;
    let session = sessions.first().ok_or_else(|| Failure::new("no session"))?;
    for _ in 0..records / BATCH {
        session.insert_many(&workload.take_rows(BATCH), &bench.samples).await?;
    }
    Ok(())
}

async fn measure(
    bench: &Bench,
    report: &mut Report,
    server: &Server,
    bare: &Server,
    postgres: Option<&Postgres>,
    records: usize,
) -> Outcome<()> {
    let rows = Workload::new(&bench.samples, 0).take(records);
    let firsts = rows.filter(|row| row.attempt == 1);
    let calls: Arc<Calls> = Arc::new(firsts.map(|row| (row.run, row.call)).collect());
    let mut conns = server.target.connect(CONNECTIONS).await?;
    let mut bare_conns = bare.target.connect(CONNECTIONS).await?;
    let mut sessions = match postgres {
        None => Vec::new(),
        Some(postgres) => {
            postgres.create_table().await?;
            fill(postgres, bench, records).await?;
            postgres.sessions(POSTGRES_CLIENTS).await?
        }
    };
    if let Some(postgres) = postgres {
        let bytes = postgres.table_bytes().await? as f64 / records as f64;
        report.value("disk of PostgreSQL", "B/record", bytes);
    }
    let count = bench.sizes.lookups;
    slice(&mut conns, &server.target, &calls, count / 4, 1 << 40).await?;
    let (mut ledger, mut empty, mut selects) = (vec![], vec![], vec![]);
    let mut cpu = 0.0;
    for turn in 0..bench.sizes.slices {
        let seed = (turn * count) as u64;
        let before = probe::cpu_s_of(server.pid())?;
        ledger.push(slice(&mut conns, &server.target, &calls, count, seed).await?);
        cpu += probe::cpu_s_of(server.pid())? - before;
        empty.push(empty_slice(&mut bare_conns, &bare.target, count).await?);
        if postgres.is_some() {
            selects.push(postgres_slice(&mut sessions, &calls, count, seed).await?);
        }
    }
    let what = format!("recibo, decisions of random calls of {} k", records / 1000);
    let rate = report.figure(what, "requests/s", &ledger);
    let bare_rate = report.figure("bare axum, empty answers", "requests/s", &empty);
    let each = cpu * 1e6 / (count * bench.sizes.slices) as f64;
    report.value("CPU of the service", "us/request", each);
    report.goal("recibo / empty axum answer", "x", rate / bare_rate, Goal::AtLeast(0.6));
    if postgres.is_some() {
        let what = "PostgreSQL, prepared point selects, 64 clients";
        let select = report.figure(what, "selects/s", &selects);
        report.goal("recibo / PostgreSQL selects", "x", rate / select, Goal::AtLeast(1.3));
    } else {
        report.note("PostgreSQL: skipped, this machine has no initdb and postgres");
    }
    Ok(())
}
