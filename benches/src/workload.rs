//! The canonical workload: the same stream of finished calls for the ledger and for its peers.
//!
//! 64 runs live at a time, 20 calls each on average (10 to 30), 50 tools. 2 % of the calls fail
//! and are tried again as attempt 2, right away; 1 % end in a timeout. Arguments and results
//! are real ones. A stream is the same in every run of the bench.

use std::fmt::Write as _;
use std::path::Path;

use recibo_core::effect::{Effect, StatedTerms};
use recibo_core::event::Outcome;
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{
    CallRef, ErrorClass, Labels, NameError, RunId, ScopeId, ToolCallId, ToolName,
};
use recibo_core::plan::OneShot;
use recibo_core::receipt::IdempotencyKey;
use recibo_core::status::OutcomeStatus;
use recibo_core::time::Time;
use serde::Deserialize;

use crate::failure::{Failure, Outcome as Done};

/// Runs that live at a time.
pub const RUNS_LIVE: usize = 64;
/// Tools.
pub const TOOLS: usize = 50;
/// When the first call started; a call starts a millisecond after the one before.
const START_MS: u64 = 1_790_000_000_000;

/// One real call: its arguments as JSON, its result as text.
pub struct Sample {
    /// The arguments, JSON.
    pub input: String,
    /// The result, written as a JSON string.
    pub output: String,
    /// Hash of the arguments.
    pub input_hash: InputHash,
    /// Hash of the result.
    pub output_hash: OutputHash,
}

/// What calls are drawn from.
pub struct Samples {
    calls: Vec<Sample>,
    tools: Vec<(String, Effect)>,
}

#[derive(Deserialize)]
struct Line {
    tool: String,
    arguments: String,
    result: String,
}

impl Samples {
    /// Reads the calls that the tests use too.
    pub fn read() -> Done<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/airline-calls.ndjson");
        let text = std::fs::read_to_string(path)?;
        let (mut calls, mut names) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let line: Line = serde_json::from_str(line)?;
            calls.push(Sample {
                input_hash: InputHash::of_json(line.arguments.as_bytes()).map_err(Failure::of)?,
                output_hash: OutputHash::of_text(&line.result),
                output: serde_json::to_string(&line.result)?,
                input: line.arguments,
            });
            if !names.contains(&line.tool) {
                names.push(line.tool);
            }
        }
        let effects = [Effect::ReadOnly, Effect::ReadOnly, Effect::Queryable, Effect::Opaque];
        let tools = (0..TOOLS)
            .map(|no| {
                let name = format!("airline-{}/{}", no / names.len(), names[no % names.len()]);
                (name, effects[no % effects.len()])
            })
            .collect();
        Ok(Self { calls, tools })
    }

    /// All of them.
    pub fn calls(&self) -> &[Sample] {
        &self.calls
    }
}

/// How a call of the workload ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It succeeds.
    Ok,
    /// It fails and is tried again.
    Retryable,
    /// It ends in a timeout.
    Timeout,
}

/// One finished attempt.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which stream, and which run of it.
    pub run: (u32, u32),
    /// Which call of the run.
    pub call: u32,
    /// 1, or 2 for a retry.
    pub attempt: u32,
    /// How it ended.
    pub end: End,
    tool: usize,
    sample: usize,
    /// By the caller's clock, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it took.
    pub duration_ms: u64,
}

impl Row {
    /// The run's id.
    pub fn run_id(&self) -> String {
        run_id(self.run)
    }

    /// The call's id, as long as a real provider's.
    pub fn tool_call_id(&self) -> String {
        tool_call_id(self.run, self.call)
    }

    /// The tool.
    pub fn tool<'a>(&self, samples: &'a Samples) -> &'a str {
        &samples.tools[self.tool].0
    }

    /// Its effect.
    pub fn effect(&self, samples: &Samples) -> Effect {
        samples.tools[self.tool].1
    }

    /// Arguments and result.
    pub fn sample<'a>(&self, samples: &'a Samples) -> &'a Sample {
        &samples.calls[self.sample]
    }

    /// The status, in the contract's word.
    pub fn status(&self) -> &'static str {
        match self.end {
            End::Ok => "ok",
            End::Retryable => "retryable_error",
            End::Timeout => "timeout",
        }
    }

    /// The key that recibo derives, for the peers to keep too.
    pub fn idempotency_key(&self) -> [u8; 32] {
        *IdempotencyKey::derive("default", &self.run_id(), &self.tool_call_id()).as_bytes()
    }

    /// As the library takes it.
    pub fn one_shot(&self, samples: &Samples, scope: &ScopeId) -> Result<OneShot, NameError> {
        let sample = self.sample(samples);
        let is_ok = self.end == End::Ok;
        Ok(OneShot {
            call: CallRef {
                run_id: RunId::parse(&self.run_id())?,
                tool_call_id: ToolCallId::parse(&self.tool_call_id())?,
            },
            attempt: None,
            scope_id: scope.clone(),
            tool: ToolName::parse(self.tool(samples))?,
            input_hash: sample.input_hash,
            terms: StatedTerms::of(Some(self.effect(samples))),
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            started_at: Time::from_ms(self.started_ms),
            outcome: Outcome {
                answered: false,
                status: match self.end {
                    End::Ok => OutcomeStatus::Ok,
                    End::Retryable => OutcomeStatus::RetryableError,
                    End::Timeout => OutcomeStatus::Timeout,
                },
                duration_ms: self.duration_ms,
                output_hash: is_ok.then_some(sample.output_hash),
                output_summary: None,
                error_class: match self.end {
                    End::Ok => None,
                    _ => Some(ErrorClass::parse("upstream.busy")?),
                },
                provider_ref: None,
                message_id: None,
                redacted: false,
            },
            twin_hash: None,
        })
    }

    /// As `POST /v1/receipts` takes it.
    pub fn write_one_shot(&self, out: &mut String, samples: &Samples, scope: &str) {
        let at = Time::from_ms(self.started_ms);
        let _ = write!(
            out,
            r#"{{"run_id":"{}","tool_call_id":"{}","scope_id":"{scope}","started_at":"{at}","tool":"{}","effect":"{}","input":{},"#,
            self.run_id(),
            self.tool_call_id(),
            self.tool(samples),
            self.effect(samples).as_str(),
            self.sample(samples).input,
        );
        self.write_end(out, samples);
        out.push('}');
    }

    /// As the claim of the call takes it.
    pub fn claim(&self, samples: &Samples, scope: &str) -> String {
        format!(
            r#"{{"scope_id":"{scope}","claim_id":"c-{}-{}","tool":"{}","effect":"{}","input":{}}}"#,
            self.call,
            self.attempt,
            self.tool(samples),
            self.effect(samples).as_str(),
            self.sample(samples).input,
        )
    }

    /// The members of an outcome but for the lease token.
    pub fn write_end(&self, out: &mut String, samples: &Samples) {
        let _ = write!(out, r#""status":"{}","duration_ms":{},"#, self.status(), self.duration_ms);
        let _ = match self.end {
            End::Ok => write!(out, r#""output":{}"#, self.sample(samples).output),
            _ => write!(out, r#""error_class":"upstream.busy""#),
        };
    }
}

/// Id of a run.
pub fn run_id((stream, run): (u32, u32)) -> String {
    format!("run_{stream:02x}_{:08x}", mix(u64::from(run)) as u32 ^ run.rotate_left(16))
        + &format!("_{run}")
}

/// Id of a call.
pub fn tool_call_id((stream, run): (u32, u32), call: u32) -> String {
    let random = mix((u64::from(run) << 24) ^ u64::from(call) ^ (u64::from(stream) << 56));
    format!("call_{random:016x}{call:08x}")
}

struct Run {
    no: u32,
    next_call: u32,
    calls_left: u32,
    retry: Option<Row>,
}

/// An endless stream of rows.
pub struct Workload {
    stream: u32,
    state: u64,
    calls: usize,
    live: Vec<Run>,
    next_run: u32,
    now_ms: u64,
}

impl Workload {
    /// The stream of this number.
    pub fn new(samples: &Samples, stream: u32) -> Self {
        let mut this = Self {
            stream,
            state: u64::from(stream) + 1,
            calls: samples.calls.len(),
            live: Vec::new(),
            next_run: 0,
            now_ms: START_MS,
        };
        for _ in 0..RUNS_LIVE {
            let run = this.new_run();
            this.live.push(run);
        }
        this
    }

    fn new_run(&mut self) -> Run {
        let no = self.next_run;
        self.next_run += 1;
        let calls_left = 10 + self.below(21) as u32;
        Run { no, next_call: 0, calls_left, retry: None }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(self.state) % bound as u64) as usize
    }

    /// The next rows.
    pub fn take_rows(&mut self, count: usize) -> Vec<Row> {
        self.by_ref().take(count).collect()
    }
}

impl Iterator for Workload {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.now_ms += 1;
        let at = self.below(RUNS_LIVE);
        if let Some(failed) = self.live[at].retry.take() {
            let started_ms = self.now_ms;
            return Some(Row { attempt: 2, end: End::Ok, started_ms, ..failed });
        }
        let end = match self.below(100) {
            0 | 1 => End::Retryable,
            2 => End::Timeout,
            _ => End::Ok,
        };
        let (tool, sample) = (self.below(TOOLS), self.below(self.calls));
        let duration_ms = 5 + self.below(1000) as u64;
        let run = &mut self.live[at];
        let (call, started_ms) = (run.next_call, self.now_ms);
        let run_key = (self.stream, run.no);
        let row =
            Row { run: run_key, call, attempt: 1, end, tool, sample, started_ms, duration_ms };
        run.next_call += 1;
        run.calls_left -= 1;
        if end == End::Retryable {
            run.retry = Some(row);
        } else if run.calls_left == 0 {
            self.live[at] = self.new_run();
        }
        // A run whose last call is tried again gets one call more.
        self.live[at].calls_left = self.live[at].calls_left.max(1);
        Some(row)
    }
}

/// SplitMix64's finalizer.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
