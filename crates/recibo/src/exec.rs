//! `recibo exec`: the smallest adapter. It claims, runs a command, measures, classifies,
//! records, and prints the command's output with the receipt line.

mod child;
mod claim;
mod classify;
pub mod exit;
pub mod guard;
mod holders;
mod input;
mod lease;
mod receipt_file;
mod report;
pub mod signals;
mod stream;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use recibo_adapter::{
    CallSpec, DecisionAnswer, Grant, LedgerError, OnTwin, OutcomeAnswer, Permission, Scope,
    ScopeSpec,
};
use recibo_core::effect::Effect;
use recibo_core::status::{AttemptStatus, DecisionKind, Reason};
use recibo_core::visible::visible;

use crate::command::Done;
use crate::duration;
use crate::failure::Failure;
use crate::ledger::find_for_adapter;
use crate::target::Target;
use crate::timeline::list::shell;
use crate::timeline::{Verdict, advice};

use child::{End, Job, OUTPUT_BYTES_MAX};
use classify::Rules;
use receipt_file::ReceiptFile;
use signals::Signals;

/// Arguments of `exec`.
#[derive(clap::Args)]
#[command(after_help = exit::TABLE)]
pub struct Args {
    /// The run
    #[arg(long, value_name = "RUN")]
    run: String,
    /// The call: one per intended effect, the same for every retry of it
    #[arg(long, value_name = "CALL")]
    call: String,
    /// The tool
    #[arg(long, value_name = "TOOL")]
    tool: String,
    /// What the tool does to the world: read_only, idempotent, keyed, queryable or opaque
    /// [default: what the policy says, else opaque]
    #[arg(long, value_parser = effect)]
    effect: Option<Effect>,
    /// How long the outside service honours an idempotency key, e.g. 24h; for keyed tools that
    /// the policy has no rule for
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    key_window: Option<u64>,
    /// How long after an attempt's end the outside service's answer is final; for queryable
    /// tools that the policy has no rule for
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    settle: Option<u64>,
    /// While another call with the same tool and arguments may have taken effect, or is under
    /// way: run the command all the same (advise), or do not (stop)
    #[arg(long, value_name = "WORD", value_parser = on_twin, default_value = "advise")]
    twins: OnTwin,
    /// Kill the command after this time, e.g. 30s [default: it may run for 24h]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    timeout: Option<u64>,
    /// How long the ledger keeps others away; renewed while the command runs. If that fails, the
    /// command is killed shortly before the lease ends [default: the timeout and 15s, or 5m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    lease: Option<u64>,
    /// While another attempt is under way, wait this long for its end [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    wait: Option<u64>,
    /// The arguments of the call: JSON, else taken as a string; hashed, never stored
    /// [default: the command line as an array of strings]
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Exit codes of the command that mean success; one that is named nowhere means that
    /// nobody knows whether it took effect
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "0")]
    ok_exit: Vec<u8>,
    /// Exit codes that mean: it certainly had no effect and may be tried again
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    retryable_exit: Vec<u8>,
    /// Exit codes that mean: it certainly had no effect and must not be tried again
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    terminal_exit: Vec<u8>,
    /// The exit code where it is done already, so that a script that runs again need not fail
    #[arg(long, value_name = "N", default_value_t = exit::REUSE)]
    done_exit: u8,
    /// Pass the command's stdout on as it comes, instead of when it has ended; the receipt line
    /// follows at the end
    #[arg(long)]
    stream: bool,
    /// Write the record of the attempt into this file, as JSON; also of one that is done already.
    /// A file that is there is replaced once the record is whole
    #[arg(long, value_name = "FILE")]
    receipt_file: Option<PathBuf>,
    /// A name for the scope whose key signs the receipt
    #[arg(long, value_name = "TEXT")]
    scope_label: Option<String>,
    /// How long that key lives in a running service: so long the receipt verifies as `valid`,
    /// later as `recorded` [default: until the command is done]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    scope_ttl: Option<u64>,
    #[command(flatten)]
    pub target: Target,
    /// The command and its arguments. It gets RECIBO_IDEMPOTENCY_KEY, RECIBO_RUN_ID,
    /// RECIBO_TOOL_CALL_ID and RECIBO_ATTEMPT, and this process's stdin unless that is a
    /// terminal. Its stdout is printed once it has ended, and hashed, byte for byte; of more
    /// than 64 MiB the rest is dropped (with --stream it is printed, and not hashed)
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn effect(text: &str) -> Result<Effect, String> {
    Effect::parse(text).ok_or_else(|| {
        let words: Vec<_> = Effect::ALL.iter().map(|effect| effect.as_str()).collect();
        format!("one of {} is needed", words.join(", "))
    })
}

/// Reads the word of `--twins`.
pub fn on_twin(text: &str) -> Result<OnTwin, String> {
    let words = OnTwin::ALL.iter().copied();
    words.clone().find(|word| word.as_str() == text).ok_or_else(|| {
        let words: Vec<_> = words.map(OnTwin::as_str).collect();
        format!("one of {} is needed", words.join(", "))
    })
}

/// Runs a command as a tool call.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let rules = Rules {
        ok: args.ok_exit.clone(),
        retryable: args.retryable_exit.clone(),
        terminal: args.terminal_exit.clone(),
    };
    rules.check()?;
    let spec = spec(&args)?;
    let receipt_file = args.receipt_file.as_deref().map(ReceiptFile::prepare).transpose()?;
    let mut signals = Signals::listen()?;
    let ledger = find_for_adapter(&args.target).await.map_err(not_found)?;
    let label = args.scope_label.clone();
    let scope = ledger.scope(ScopeSpec { label, ttl: args.scope_ttl.map(Duration::from_millis) });
    let result = act(&scope, &args, &spec, &rules, receipt_file, &mut signals).await;
    if result.is_ok() && args.scope_ttl.is_none() {
        // A service holds a limited number of keys. If this fails, the scope's time ends it.
        let _ = scope.close().await;
    }
    ledger.close().await;
    result
}

fn spec(args: &Args) -> Result<CallSpec, Failure> {
    let input = match &args.input {
        Some(text) => text.clone(),
        None => input::from_command(&args.command)?,
    };
    let mut spec = CallSpec::new(&args.run, &args.call, &args.tool, &input)
        .map_err(|error| refused_input(&error))?;
    spec.effect = args.effect;
    spec.key_window = args.key_window.map(Duration::from_millis);
    spec.settle = args.settle.map(Duration::from_millis);
    spec.on_twin = args.twins;
    spec.lease = Duration::from_millis(lease::wanted_ms(args.lease, args.timeout)?);
    Ok(spec)
}

fn refused_input(error: &LedgerError) -> Failure {
    let pointer = match error {
        LedgerError::Refused(problem) => problem.extra.get("pointer"),
        LedgerError::Service(_) => None,
    };
    let place = pointer.and_then(|pointer| pointer.as_str());
    let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
    Failure::usage(format!("--input: {error}{place}"))
}

/// A ledger that cannot be found or opened is out of reach, unless it is there and refuses.
fn not_found(failure: Failure) -> Failure {
    match failure {
        Failure::Usage { .. } => failure,
        Failure::Refused { .. } => failure.with_exit_code(exit::REFUSED),
        _ => failure.with_exit_code(exit::UNREACHABLE),
    }
}

async fn act(
    scope: &Scope,
    args: &Args,
    spec: &CallSpec,
    rules: &Rules,
    receipt_file: Option<ReceiptFile>,
    signals: &mut Signals,
) -> Result<Done, Failure> {
    let grant = match claim::ask(scope, spec, args.wait.unwrap_or(0), signals).await? {
        Permission::Granted(grant) => grant,
        Permission::Refused(decision) => {
            tell_not_run(&decision);
            let exit_code = match decision.decision.0 {
                DecisionKind::Reuse => args.done_exit,
                decision => of_decision(decision),
            };
            if let (Some(file), Some(record)) = (receipt_file, &decision.record) {
                file.write(record);
            }
            return Ok(Done { text: String::new(), exit_code });
        }
    };
    let variables = variables(&grant);
    let job = Job {
        command: &args.command,
        variables: &variables,
        timeout_ms: args.timeout,
        grant: &grant,
        is_streamed: args.stream,
    };
    let ran = job.run(signals).await;
    if let End::SpawnFailed(why) = &ran.end {
        tell(&format!("cannot run {}: {why}", args.command[0].display()));
    }
    let class = rules.classify(&ran.end);
    if ran.output.dropped_bytes > 0 {
        let what = if args.stream { "not hashed" } else { "dropped" };
        tell(&format!(
            "the output is longer than {OUTPUT_BYTES_MAX} bytes: the last {} are {what}",
            ran.output.dropped_bytes
        ));
    }
    if let Some(holders) = &ran.left_behind {
        let names: Vec<_> = holders.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() { "a process".to_owned() } else { names.join(", ") };
        tell(&format!(
            "the command has left behind, with its stdout open: {names}; what is written there \
             from now on is lost"
        ));
    }
    let attempt = grant.attempt();
    let recorded = grant.finish(report::outcome(&class, &ran)).await;
    let receipt_line = recorded.as_ref().ok().and_then(|answer| answer.receipt_line.as_deref());
    if let Some(stream) = ran.stream {
        stream.finish().await;
    }
    let left_to_print = if args.stream { &[] } else { &ran.output.bytes[..] };
    print(left_to_print, ran.output.bytes.last().copied(), receipt_line);
    let answer = recorded.map_err(|error| report::lost(error, &args.run, &args.call))?;
    if let Some(file) = receipt_file {
        file.write(&answer.record);
    }
    if let Some(class_word) = &class.error_class {
        let status = class.status.as_str();
        tell(&format!("attempt {attempt} is recorded as {status} ({class_word})"));
    }
    let exit_code = match why_no_receipt(&answer) {
        Some(why) => {
            tell(&format!("the success is recorded, but without a receipt: {why}"));
            exit::NO_RECEIPT
        }
        None => classify::exit_code(class.status),
    };
    Ok(Done { text: String::new(), exit_code })
}

/// Why a success has no receipt, in words and as the ledger says it.
fn why_no_receipt(answer: &OutcomeAnswer) -> Option<String> {
    let is_ok = answer.record.status.0 == AttemptStatus::Ok;
    let reason = answer.no_token_reason.map(|reason| reason.0.as_str());
    (is_ok && answer.receipt_line.is_none()).then(|| {
        format!(
            "the key that was to sign is gone, and no other could be made ({})",
            reason.unwrap_or("no reason given")
        )
    })
}

fn tell_not_run(decision: &DecisionAnswer) {
    tell(&format!("not run: {}", advice(&Verdict::from(decision))));
    if let Some(hint) = &decision.hint {
        tell(&visible(hint));
    }
    let held_back = match decision.reason.0 {
        Reason::TwinUnknown | Reason::TwinInFlight | Reason::TwinOkLate => decision.twin.as_ref(),
        _ => None,
    };
    let (run, call) = match held_back {
        Some(twin) => {
            let (run, call) = (shell(&twin.run_id), shell(&twin.tool_call_id));
            let state = twin.state.0.as_str();
            tell(&format!("another call with this tool and input decides: {run} {call} ({state})"));
            (run, call)
        }
        None => (shell(&decision.run_id), shell(&decision.tool_call_id)),
    };
    tell(&format!("for more: recibo explain {run} {call}"));
}

fn variables(grant: &Grant) -> [(&'static str, String); 4] {
    [
        ("RECIBO_IDEMPOTENCY_KEY", grant.idempotency_key().to_owned()),
        ("RECIBO_RUN_ID", grant.run_id().to_owned()),
        ("RECIBO_TOOL_CALL_ID", grant.tool_call_id().to_owned()),
        ("RECIBO_ATTEMPT", grant.attempt().to_string()),
    ]
}

fn of_decision(decision: DecisionKind) -> u8 {
    match decision {
        DecisionKind::Wait => exit::WAIT,
        DecisionKind::Reuse => exit::REUSE,
        DecisionKind::CheckStatus => exit::CHECK_STATUS,
        // Permission has a lease; `proceed` without one is nothing to act upon.
        DecisionKind::Stop | DecisionKind::Proceed => exit::STOP,
    }
}

/// A line for people: stdout is the command's.
fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "recibo: {text}");
}

/// Prints what is left of the output, whose last byte was this one, and the receipt.
fn print(output: &[u8], last: Option<u8>, receipt_line: Option<&str>) {
    let mut stdout = std::io::stdout().lock();
    // Whoever closed the pipe has read enough; the outcome is recorded in any case.
    let _ = stdout.write_all(output);
    if last.is_some_and(|byte| byte != b'\n') {
        let _ = stdout.write_all(b"\n");
    }
    if let Some(line) = receipt_line {
        let _ = writeln!(stdout, "{line}");
    }
    let _ = stdout.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_have_exit_codes_and_none_is_success() {
        for (decision, code) in [
            (DecisionKind::Wait, 20),
            (DecisionKind::Reuse, 21),
            (DecisionKind::CheckStatus, 22),
            (DecisionKind::Stop, 23),
            (DecisionKind::Proceed, 23),
        ] {
            assert_eq!(of_decision(decision), code);
        }
    }
}
