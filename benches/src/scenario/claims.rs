//! Claim and outcome over HTTP, each answered after it is durable, beside the bare server and
//! PostgreSQL's single-row inserts.

use std::sync::Arc;

use super::{Bench, CONNECTIONS, POSTGRES_CLIENTS, spot_check};
use crate::failure::{Outcome, check};
use crate::http::{Conn, Target, drive, find, member};
use crate::peers::postgres::Postgres;
use crate::probe;
use crate::report::{Goal, Report};
use crate::service::Server;
use crate::workload::{Row, Samples, Workload};

/// What an adapter would send for one call, ready but for the lease token.
pub struct Call {
    /// Its attempts, one after the other.
    pub attempts: Vec<Attempt>,
}

/// One attempt of it.
pub struct Attempt {
    /// The claim.
    pub claim: Vec<u8>,
    /// Where the outcome goes.
    pub outcome_path: String,
    /// Its body but for the lease token.
    pub outcome_end: String,
}

/// Sizes of the answers, for the bare server to match.
#[derive(Clone, Copy)]
pub struct Answers {
    claim: usize,
    outcome: usize,
}

/// Renders rows for a server; attempts of a call stay together.
pub fn render(
    rows: &[Row],
    samples: &Samples,
    target: &Target,
    scope: &str,
    bare: Option<(&str, Answers)>,
) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for row in rows {
        let base = format!("/v1/runs/{}/calls/{}/attempts", row.run_id(), row.tool_call_id());
        let (claim_path, outcome_path) = match bare {
            None => (base.clone(), format!("{base}/{}/outcome", row.attempt)),
            Some((route, answers)) => {
                (format!("{route}/{}", answers.claim), format!("{route}/{}", answers.outcome))
            }
        };
        let mut outcome_end = String::from("\",");
        row.write_end(&mut outcome_end, samples);
        outcome_end.push('}');
        let claim = target.post(&claim_path, &row.claim(samples, scope));
        let attempt = Attempt { claim, outcome_path, outcome_end };
        let place = *places.entry((row.run, row.call)).or_insert(calls.len());
        match calls.get_mut(place) {
            Some(call) => call.attempts.push(attempt),
            None => calls.push(Call { attempts: vec![attempt] }),
        }
    }
    calls
}

/// Stands for a lease token where there is none; as long as a real one.
const NO_TOKEN: &str = "lt_0000000000000000000000000000000000000000000";

/// Does one call; gives the sizes of its answers.
pub async fn call(conn: &mut Conn, target: &Target, call: &Call, bare: bool) -> Outcome<Answers> {
    let mut answers = Answers { claim: 0, outcome: 0 };
    for attempt in &call.attempts {
        let granted = conn.exchange(&attempt.claim).await?;
        answers.claim = granted.len();
        let token = if bare { NO_TOKEN } else { member(granted, "token")? };
        let body = format!("{{\"lease_token\":\"{token}{}", attempt.outcome_end);
        let recorded = conn.exchange(&target.post(&attempt.outcome_path, &body)).await?;
        answers.outcome = recorded.len();
        check(bare || find(recorded, b"\"finished_at\":\"").is_some(), || {
            format!("no record: {}", String::from_utf8_lossy(recorded))
        })?;
    }
    Ok(answers)
}

/// Does many calls on all connections; gives requests per second.
pub async fn slice(
    conns: &mut Vec<Conn>,
    target: &Target,
    calls: Vec<Call>,
    bare: bool,
) -> Outcome<f64> {
    let requests: usize = calls.iter().map(|call| call.attempts.len() * 2).sum();
    let (calls, target) = (Arc::new(calls), Arc::new(target.clone()));
    let seconds = drive(conns, calls.len(), move |at, mut conn: Conn| {
        let (calls, target) = (calls.clone(), target.clone());
        async move {
            call(&mut conn, &target, &calls[at], bare).await?;
            Ok(conn)
        }
    })
    .await?;
    Ok(requests as f64 / seconds)
}

/// Single-row inserts per second.
async fn postgres_slice(
    sessions: &mut Vec<crate::peers::postgres::Session>,
    rows: Vec<Row>,
    samples: &Arc<Samples>,
) -> Outcome<f64> {
    let (count, rows, samples) = (rows.len(), Arc::new(rows), samples.clone());
    let seconds = drive(sessions, count, move |at, session| {
        let (rows, samples) = (rows.clone(), samples.clone());
        async move {
            session.insert_one(&rows[at], &samples).await?;
            Ok(session)
        }
    })
    .await?;
    Ok(count as f64 / seconds)
}

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let folder = bench.fresh("claims")?;
    probe::note_disk(report, &folder)?;
    let server = bench.serve(&folder)?;
    let bare = Server::bare()?;
    let postgres = Postgres::start(bench.work())?;
    bench.runtime.block_on(measure(bench, report, &server, &bare, postgres.as_ref()))?;
    probe::note_disk(report, &folder)?;
    Ok(())
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
    let mut workload = Workload::new(samples, 1);
    let mut conns = server.target.connect(CONNECTIONS).await?;
    let mut bare_conns = bare.target.connect(CONNECTIONS).await?;
    let mut sessions = match postgres {
        None => Vec::new(),
        Some(postgres) => {
            postgres.create_table().await?;
            postgres.sessions(POSTGRES_CLIENTS).await?
        }
    };
    // Warm, and learn how long answers are.
    let rows = workload.take_rows(2000);
    let warm = render(&rows, samples, &server.target, &scope, None);
    let answers = call(&mut conns[0], &server.target, &warm[0], false).await?;
    slice(&mut conns, &server.target, warm.into_iter().skip(1).collect(), false).await?;

    let (mut ledger, mut values, mut raws, mut inserts) = (vec![], vec![], vec![], vec![]);
    let (mut cpu, mut done) = (0.0, 0);
    for _ in 0..bench.sizes.slices {
        let rows = workload.take_rows(bench.sizes.claims);
        let calls = render(&rows, samples, &server.target, &scope, None);
        let before = probe::cpu_s_of(server.pid())?;
        ledger.push(slice(&mut conns, &server.target, calls, false).await?);
        cpu += probe::cpu_s_of(server.pid())? - before;
        done += rows.len() * 2;
        spot_check(&mut conns[0], server, &rows).await?;
        for (route, rates) in [("/one", &mut values), ("/one-raw", &mut raws)] {
            let calls = render(&rows, samples, &bare.target, &scope, Some((route, answers)));
            rates.push(slice(&mut bare_conns, &bare.target, calls, true).await?);
        }
        if postgres.is_some() {
            inserts.push(postgres_slice(&mut sessions, rows, samples).await?);
        }
    }
    let rate = report.figure("recibo, claim + outcome", "requests/s", &ledger);
    let value = report.figure("bare axum, JSON to values", "requests/s", &values);
    let raw = report.figure("bare axum, values left unparsed", "requests/s", &raws);
    report.value("CPU of the service", "us/request", cpu * 1e6 / done as f64);
    report.goal("recibo / bare axum", "x", rate / value, Goal::AtLeast(0.6));
    report.value("recibo / bare axum that leaves values unparsed", "x", rate / raw);
    if postgres.is_some() {
        let insert =
            report.figure("PostgreSQL, single-row inserts, 64 clients", "rows/s", &inserts);
        report.goal("recibo / PostgreSQL inserts", "x", rate / insert, Goal::AtLeast(2.0));
    } else {
        report.note("PostgreSQL: skipped, this machine has no initdb and postgres");
    }
    Ok(())
}
