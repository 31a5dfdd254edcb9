//! One-shot receipts in batches of 100 over HTTP, beside the bare server and PostgreSQL's
//! 100-row inserts.

use std::sync::Arc;

use super::{Bench, spot_check};
use crate::failure::{Outcome, check};
use crate::http::{Conn, drive};
use crate::peers::postgres::{Postgres, Session};
use crate::probe;
use crate::report::{Goal, Report};
use crate::service::Server;
use crate::workload::{Row, Samples, Workload};

/// Receipts in a request.
const LEN: usize = 100;
/// Connections, of HTTP and of PostgreSQL.
const CLIENTS: usize = 16;
/// One answer in so many is read whole.
const READ_EVERY: usize = 16;

fn body(rows: &[Row], samples: &Samples, scope: &str) -> String {
    let mut out = String::from("{\"receipts\":[");
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        row.write_one_shot(&mut out, samples, scope);
    }
    out.push_str("]}");
    out
}

/// Sends requests; gives receipts per second and the size of an answer.
async fn slice(conns: &mut Vec<Conn>, requests: Vec<Vec<u8>>, bare: bool) -> Outcome<f64> {
    let (count, requests) = (requests.len(), Arc::new(requests));
    let seconds = drive(conns, count, move |at, mut conn: Conn| {
        let requests = requests.clone();
        async move {
            let answer = conn.exchange(&requests[at]).await?;
            if !bare && at % READ_EVERY == 0 {
                let text = String::from_utf8_lossy(answer);
                let recorded = text.matches("\"status\":201").count();
                check(recorded == LEN, || format!("{recorded} of {LEN} recorded: {text}"))?;
            }
            Ok(conn)
        }
    })
    .await?;
    Ok((count * LEN) as f64 / seconds)
}

async fn postgres_slice(
    sessions: &mut Vec<Session>,
    rows: Vec<Row>,
    samples: &Arc<Samples>,
) -> Outcome<f64> {
    let (count, rows, samples) = (rows.len(), Arc::new(rows), samples.clone());
    let seconds = drive(sessions, count / LEN, move |at, session| {
        let (rows, samples) = (rows.clone(), samples.clone());
        async move {
            session.insert_many(&rows[at * LEN..(at + 1) * LEN], &samples).await?;
            Ok(session)
        }
    })
    .await?;
    Ok(count as f64 / seconds)
}

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let folder = bench.fresh("batches")?;
    probe::note_disk(report, &folder)?;
    let server = bench.serve(&folder)?;
    let bare = Server::bare()?;
    let postgres = Postgres::start(bench.work())?;
    bench.runtime.block_on(measure(bench, report, &server, &bare, postgres.as_ref()))
}

async fn measure(
    bench: &Bench,
    report: &mut Report,
    server: &Server,
    bare: &Server,
    postgres: Option<&Postgres>,
) -> Outcome<()> {
    let samples = &bench.samples;
    let scope = server.open_scope().await?;
    let mut workload = Workload::new(samples, 2);
    let mut conns = server.target.connect(CLIENTS).await?;
    let mut bare_conns = bare.target.connect(CLIENTS).await?;
    let mut sessions = match postgres {
        None => Vec::new(),
        Some(postgres) => {
            postgres.create_table().await?;
            postgres.sessions(CLIENTS).await?
        }
    };
    let path = "/v1/receipts:batch";
    let first = body(&workload.take_rows(LEN), samples, &scope);
    report.value("size of a request", "KiB", first.len() as f64 / 1024.0);
    let answer_bytes = conns[0].exchange(&server.target.post(path, &first)).await?.len();
    report.value("size of an answer", "KiB", answer_bytes as f64 / 1024.0);

    let (mut ledger, mut values, mut raws, mut inserts) = (vec![], vec![], vec![], vec![]);
    let (mut cpu, mut done) = (0.0, 0);
    for _ in 0..bench.sizes.slices {
        let rows = workload.take_rows(bench.sizes.batches * LEN);
        let bodies: Vec<_> = rows.chunks(LEN).map(|rows| body(rows, samples, &scope)).collect();
        let requests = bodies.iter().map(|body| server.target.post(path, body)).collect();
        let before = probe::cpu_s_of(server.pid())?;
        ledger.push(slice(&mut conns, requests, false).await?);
        cpu += probe::cpu_s_of(server.pid())? - before;
        done += rows.len();
        // A retry may have come before its first attempt, and got its number.
        let firsts: Vec<Row> = rows.iter().filter(|row| row.status() == "ok").copied().collect();
        let firsts: Vec<Row> = firsts.into_iter().filter(|row| row.attempt == 1).collect();
        spot_check(&mut conns[0], server, &firsts).await?;
        for (route, rates) in [("/batch", &mut values), ("/batch-raw", &mut raws)] {
            let path = format!("{route}/{answer_bytes}");
            let requests = bodies.iter().map(|body| bare.target.post(&path, body)).collect();
            rates.push(slice(&mut bare_conns, requests, true).await?);
        }
        if postgres.is_some() {
            inserts.push(postgres_slice(&mut sessions, rows, samples).await?);
        }
    }
    let rate = report.figure("recibo, batches of 100", "receipts/s", &ledger);
    let value = report.figure("bare axum, JSON to values", "receipts/s", &values);
    let raw = report.figure("bare axum, values left unparsed", "receipts/s", &raws);
    report.value("CPU of the service", "us/receipt", cpu * 1e6 / done as f64);
    report.goal("recibo / bare axum", "x", rate / value, Goal::AtLeast(0.5));
    report.value("recibo / bare axum that leaves values unparsed", "x", rate / raw);
    if postgres.is_some() {
        let insert = report.figure("PostgreSQL, 100-row inserts", "rows/s", &inserts);
        report.goal("recibo / PostgreSQL inserts", "x", rate / insert, Goal::AtLeast(1.5));
    } else {
        report.note("PostgreSQL: skipped, this machine has no initdb and postgres");
    }
    Ok(())
}
