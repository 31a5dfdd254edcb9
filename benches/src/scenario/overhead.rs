//! What a record costs where no disk is: the library on memory, and the parts of the core.

use std::hint::black_box;
use std::time::Instant;

use recibo_core::decision::Moment;
use recibo_core::effect::{Policy, StatedTerms};
use recibo_core::event::{Event, Owner};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{CallRef, ClaimId, Labels, Namespace, RunId, ScopeId, ToolCallId, ToolName};
use recibo_core::plan::{self, Claim, OneShot, Place, RecordKnown, ScopeKnown, Signer, TwinRule};
use recibo_core::receipt::{ScopeKey, SignedFields};
use recibo_core::time::Time;
use recibo_core::tree::{Frontier, leaf_hash};

use super::{BATCH, Bench};
use crate::failure::{Failure, Outcome, check};
use crate::peers::Peer;
use crate::peers::ledger::Ledger;
use crate::probe;
use crate::report::{Goal, Report};
use crate::workload::{Row, Workload};

/// Measures the scenario.
pub fn run(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let (mut shots, mut shots_cpu, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut ledger = Ledger::in_memory()?;
    let mut workload = Workload::new(&bench.samples, 5);
    for _ in 0..bench.sizes.slices {
        let rows = workload.take_rows(bench.sizes.overhead);
        let (start, cpu) = (Instant::now(), probe::cpu_s());
        for batch in rows.chunks(BATCH) {
            ledger.insert(batch, &bench.samples)?;
        }
        shots.push(start.elapsed().as_secs_f64() * 1e6 / rows.len() as f64);
        shots_cpu.push((probe::cpu_s() - cpu) * 1e6 / rows.len() as f64);
        let rows: Vec<Row> = workload.take_rows(bench.sizes.overhead / 2);
        let rows: Vec<Row> = rows.into_iter().filter(|row| row.attempt == 1).collect();
        let start = Instant::now();
        for batch in rows.chunks(BATCH / 2) {
            claim_and_report(&ledger, batch, bench)?;
        }
        calls.push(start.elapsed().as_secs_f64() * 1e6 / rows.len() as f64);
    }
    let each = report.figure("one-shot, library on memory", "us/call", &shots);
    report.figure("one-shot, library on memory, CPU of all threads", "us/call", &shots_cpu);
    let both = report.figure("claim + outcome, library on memory", "us/call", &calls);
    report.goal("sign + record, one-shot", "us/call", each, Goal::AtMost(5.0));
    report.value("sign + record, claim and outcome together", "us/call", both);
    core(bench, report, &workload.take_rows(bench.sizes.overhead))
}

fn claim_and_report(ledger: &Ledger, rows: &[Row], bench: &Bench) -> Outcome<()> {
    let (store, namespace) = (ledger.store(), ledger.namespace());
    let mut pending = Vec::with_capacity(rows.len());
    for row in rows {
        let claim = Claim {
            call: CallRef {
                run_id: RunId::parse(&row.run_id())?,
                tool_call_id: ToolCallId::parse(&row.tool_call_id())?,
            },
            claim_id: ClaimId::parse("c-1")?,
            scope_id: ledger.scope_id().clone(),
            tool: ToolName::parse(row.tool(&bench.samples))?,
            input_hash: row.sample(&bench.samples).input_hash,
            terms: StatedTerms::of(Some(row.effect(&bench.samples))),
            lease_ms: 60_000,
            attempt: None,
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            redacted: false,
            twins: TwinRule::advise(),
        };
        pending.push(store.claim(namespace, claim));
    }
    let mut reports = Vec::with_capacity(rows.len());
    for (row, pending) in rows.iter().zip(pending) {
        let granted = pending.wait()?;
        let token = granted.lease_token.ok_or_else(|| Failure::new("a claim without a lease"))?;
        let shot = row.one_shot(&bench.samples, ledger.scope_id())?;
        let report = plan::Report { call: shot.call, attempt: 1, outcome: shot.outcome };
        reports.push(store.report(namespace, report, token, None));
    }
    for report in reports {
        check(!report.wait()?.replayed, || "an outcome was known already".into())?;
    }
    Ok(())
}

/// The parts that need no store, each by itself.
fn core(bench: &Bench, report: &mut Report, rows: &[Row]) -> Outcome<()> {
    let samples = &bench.samples;
    let scope_id = ScopeId::parse("sc_0000000000000000000000000000")?;
    let (namespace, policy) = (Namespace::parse("default")?, Policy::default());
    let key = ScopeKey::new(&mut [7; 32]);
    let now = Time::from_ms(1_790_000_000_000);
    let mut each = |what: &str, count: usize, work: &mut dyn FnMut() -> Outcome<()>| {
        let mut times = Vec::new();
        for _ in 0..bench.sizes.slices {
            let start = Instant::now();
            work()?;
            times.push(start.elapsed().as_secs_f64() * 1e6 / count as f64);
        }
        report.figure(what, "us", &times);
        Ok::<(), Failure>(())
    };
    let shots: Vec<OneShot> =
        rows.iter().map(|row| row.one_shot(samples, &scope_id)).collect::<Result<_, _>>()?;
    let known = RecordKnown {
        policy: &policy,
        call: None,
        same: None,
        holder: None,
        scope: ScopeKnown::Open(Signer { scope_id: &scope_id, key: &key }),
    };
    let moment = Moment { now, key_windows_void_until: None };
    let mut planned = Vec::new();
    each("core: make a draft from texts", rows.len(), &mut || {
        rows.iter().try_for_each(|row| {
            black_box(row.one_shot(samples, &scope_id)?);
            Ok(())
        })
    })?;
    each("core: decide and sign a one-shot", shots.len(), &mut || {
        planned.clear();
        for shot in &shots {
            let place = Place { seq: planned.len() as u64, moment };
            let decided = plan::record(&place, &namespace, shot, &known);
            let decided = decided.map_err(|refusal| Failure::new(format!("{refusal:?}")))?;
            planned.extend(decided.plan.bodies);
        }
        Ok(())
    })?;
    let input_hash = InputHash::of_canonical("{}");
    let output_hash = OutputHash::of_text("done");
    each("core: of that, sign", shots.len(), &mut || {
        for (seq, shot) in shots.iter().enumerate() {
            black_box(key.sign(&SignedFields {
                tool: shot.tool.as_str(),
                input_hash: &input_hash,
                output_hash: &output_hash,
                timestamp: seq as u64,
                namespace: namespace.as_str(),
                run_id: shot.call.run_id.as_str(),
                tool_call_id: shot.call.tool_call_id.as_str(),
                attempt: 1,
                scope_id: scope_id.as_str(),
            }));
        }
        Ok(())
    })?;
    let events: Vec<Event> = planned
        .drain(..)
        .enumerate()
        .map(|(seq, body)| {
            let seq = seq as u64;
            let owner = Some(Owner { namespace: namespace.clone(), nseq: seq });
            Event { seq, at: now, owner, salt: [3; 16], body }
        })
        .collect();
    let mut lines = Vec::new();
    each("core: render the line", events.len(), &mut || {
        lines = events.iter().map(recibo_core::line::render).collect();
        Ok(())
    })?;
    each("core: hash it into the tree", lines.len(), &mut || {
        let mut tree = Frontier::new();
        for line in &lines {
            tree.push(leaf_hash(line.as_bytes()), |_, _, _| {});
        }
        black_box(tree.root());
        Ok(())
    })?;
    let bytes: usize = samples.calls().iter().map(|call| call.input.len()).sum();
    let mean = bytes / samples.calls().len();
    let what = format!("core: canonical form and hash of arguments, {mean} bytes on average");
    each(&what, samples.calls().len(), &mut || {
        for call in samples.calls() {
            black_box(InputHash::of_json(call.input.as_bytes()).map_err(Failure::of)?);
        }
        Ok(())
    })?;
    let bytes: usize = samples.calls().iter().map(|call| call.output.len()).sum();
    let mean = bytes / samples.calls().len();
    let what = format!("core: text and hash of a result, {mean} bytes on average");
    each(&what, samples.calls().len(), &mut || {
        for call in samples.calls() {
            black_box(OutputHash::of_json(call.output.as_bytes()).map_err(Failure::of)?);
        }
        Ok(())
    })
}
