//! `recibo mcp`: a proxy between an MCP host and a server that speak over stdio. What passes is
//! not changed; a tool call becomes a claim, the call, and its outcome, and a result gets its
//! receipt as one more text item. Two promises rule it: no tool call reaches the server without a
//! record, and a receipt proves a success.

mod admission;
mod answer;
mod batch;
mod call;
mod call_id;
mod calls;
mod delivery;
mod follow;
mod hints;
mod host_run;
mod io;
mod loose;
mod memory;
mod message;
mod names;
mod placement;
mod process;
mod queue;
mod refusal;
mod reports;
mod run;
mod server;
mod session;
mod strict;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use recibo_adapter::OnTwin;
use recibo_core::id::{Labels, RunId, ToolCallId};
use recibo_core::limits;
use recibo_store::{Clock, SystemClock};
use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::command::Done;
use crate::duration;
use crate::exec::on_twin;
use crate::exec::signals::Signals;
use crate::failure::Failure;
use crate::target::Target;

use admission::Admission;
use io::Output;
use names::Names;
use placement::Placement;
use process::{FALL, Server};
use run::Run;
use session::{HostEnd, Session, Settings};

/// Longest name of a session: what follows it in a call id is at most a hash and a number.
const SESSION_LEN_MAX: usize = 128;
/// How long outcomes that are on their way are waited for at the end: as long as the ledger has for
/// one request.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// How long a host may take to read the lines of a server that has ended.
const SLOW_HOST: Duration = Duration::from_secs(20);

/// Arguments of `mcp`.
#[derive(clap::Args)]
pub struct Args {
    /// The run that the calls belong to [default: one for all proxies of the process that has
    /// started this one; without --tool-prefix only for those of the same server command; a
    /// second `initialize` begins another one]
    #[arg(long, value_name = "RUN", env = "RECIBO_RUN_ID")]
    run: Option<String>,
    /// What call ids begin with, before the id of the JSON-RPC request [default: a new UUID].
    /// Name one only where a host numbers its calls the same after a restart, so that it is
    /// known which were made before
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    session: Option<String>,
    /// What the names of tools begin with in the ledger, for instance `files/`
    #[arg(long, value_name = "PREFIX", default_value = "")]
    tool_prefix: String,
    /// Believe what the server says of its tools (readOnlyHint, idempotentHint) where the policy
    /// says nothing
    #[arg(long)]
    trust_annotations: bool,
    /// For how long the lease of a call is taken and, while the server works, renewed: after so
    /// long the ledger stops believing in a call whose proxy has died
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms, default_value = "10m")]
    lease: u64,
    /// How long a lease is renewed at most, up to 24h; what the server answers later is still
    /// recorded
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms, default_value = "24h")]
    renew_for: u64,
    /// What becomes of a call while another one with the same tool and arguments may have taken
    /// effect: `stop` does not run it, `advise` does
    #[arg(long, value_name = "WORD", value_parser = on_twin, default_value = "stop")]
    twins: OnTwin,
    /// Answer a call for the server after this time, as one that nobody knows the outcome of
    /// [default: the host decides]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    timeout: Option<u64>,
    /// How long another attempt at the same call is waited for
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms, default_value = "30s")]
    wait: u64,
    /// Where the receipt of a result goes
    #[arg(long, value_enum, default_value_t = Placement::Item)]
    receipt: Placement,
    /// A label of each call, besides the name and version of the host and of the server
    /// (mcp.client, mcp.server); may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = names::label)]
    label: Vec<(String, String)>,
    /// Let calls pass unrecorded while the ledger cannot be reached, instead of refusing them
    #[arg(long)]
    fail_open: bool,
    #[command(flatten)]
    pub target: Target,
    /// The server and its arguments; it gets RECIBO_RUN_ID
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn session_name(text: &str) -> Result<String, String> {
    // A colon ends it.
    if text.len() > SESSION_LEN_MAX || text.contains(':') || ToolCallId::parse(text).is_err() {
        return Err(format!(
            "1 to {SESSION_LEN_MAX} printable ASCII characters without space, '/' and ':'"
        ));
    }
    Ok(text.to_owned())
}

fn settings(args: &Args) -> Result<Settings, Failure> {
    if !(limits::LEASE_MS_MIN..=limits::LEASE_MS_MAX).contains(&args.lease) {
        return Err(Failure::usage("--lease must be from 1s to 24h"));
    }
    if args.renew_for > limits::LEASE_MS_MAX {
        return Err(Failure::usage("--renew-for must be at most 24h"));
    }
    if args.timeout == Some(0) {
        return Err(Failure::usage("a timeout of nothing leaves no time to answer"));
    }
    Labels::parse(args.label.iter().cloned())
        .map_err(|error| Failure::usage(format!("--label: {error}")))?;
    let session = match &args.session {
        Some(name) => call_id::Session::Named(name.clone()),
        None => call_id::Session::Drawn(new_id()),
    };
    let run = match &args.run {
        Some(run) => {
            RunId::parse(run).map_err(|error| Failure::usage(error.to_string()))?;
            Run::Named(run.clone())
        }
        None => {
            let of_host = host_run::id(&args.tool_prefix, &args.command);
            Run::Derived(of_host.unwrap_or_else(|| format!("mcp-{}", new_id())))
        }
    };
    Ok(Settings {
        run,
        session,
        tool_prefix: args.tool_prefix.clone(),
        lease: Duration::from_millis(args.lease),
        renew_for: Duration::from_millis(args.renew_for),
        on_twin: args.twins,
        wait: Duration::from_millis(args.wait),
        timeout: args.timeout.map(Duration::from_millis),
        receipt: args.receipt,
    })
}

/// A UUIDv7: sorts by time in lists.
fn new_id() -> String {
    let mut random = [0; 10];
    rand::fill(&mut random);
    let ms = SystemClock.wall_ms();
    uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid().to_string()
}

/// Runs a server behind the proxy until it ends; its exit code is this process's.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let settings = settings(&args)?;
    let signals = Signals::listen()?;
    let broken = |error| Failure::said(format!("no way to the host: {error}"));
    let (host, to_host) = (io::stdin().map_err(broken)?, io::stdout().map_err(broken)?);
    let admission = Arc::new(Admission::new(args.target, args.fail_open));
    admission.open().await?;
    let started = Server::start(&args.command, &[("RECIBO_RUN_ID", &settings.run.of(1))]).await;
    let (server, stdin, stdout) = match started {
        Ok(started) => started,
        Err(failure) => {
            admission.close().await;
            return Err(failure);
        }
    };
    let hints = args.trust_annotations.then(Default::default);
    let names = Names::new(args.label.into_iter().collect());
    let to_server = Output::new(Box::new(stdin));
    let (session, mut idle) =
        Session::new(settings, admission.clone(), hints, names, to_server, to_host);
    let mut from_host = tokio::spawn(session.clone().hear_host(host));
    let from_server = tokio::spawn(server::hear(session.clone(), io::reader(Box::new(stdout))));
    let (status, end) = until_ended(server, signals, &session, &mut from_host, from_server).await;
    session.calls.server_gone();
    // The host may never end its side.
    from_host.abort();
    drop(session);
    // What was sent is recorded before this process ends. Whoever is at work holds the session.
    let _ = timeout(LAST_WORDS, idle.recv()).await;
    admission.close().await;
    let exit_code = status.map(process::exit_code).map_err(|error| {
        Failure::said(format!("the end of the server could not be seen: {error}"))
    })?;
    let is_misframed = end == Some(HostEnd::Misframed);
    Ok(Done { text: String::new(), exit_code: if is_misframed { 1 } else { exit_code } })
}

/// Waits for the end of the server, and for what it has written.
async fn until_ended(
    mut server: Server,
    mut signals: Signals,
    session: &Session,
    from_host: &mut JoinHandle<HostEnd>,
    mut from_server: JoinHandle<()>,
) -> (std::io::Result<ExitStatus>, Option<HostEnd>) {
    let mut asked = 0;
    let mut end = None;
    let status = loop {
        let is_misframed = end == Some(HostEnd::Misframed);
        tokio::select! {
            status = server.ended() => break status,
            signal = signals.next() => {
                asked += 1;
                session.calls.host_gone();
                // Asked twice: no more patience.
                server.signal(if asked > 1 { Signal::KILL } else { signal });
            }
            ended = &mut *from_host, if end.is_none() => {
                end = Some(ended.unwrap_or(HostEnd::Closed));
            }
            // Its stdin has ended; a server that goes on has nobody to speak to.
            () = sleep(FALL), if is_misframed => {
                asked += 1;
                server.signal(if asked > 1 { Signal::KILL } else { Signal::TERM });
            }
        }
    };
    // What has left the group may hold stdout; it is not waited for. A host may read slowly: as
    // long as it takes lines, it gets them.
    let deadline = Instant::now() + SLOW_HOST;
    let mut taken = session.delivery.taken();
    while timeout(FALL, &mut from_server).await.is_err() {
        let before = std::mem::replace(&mut taken, session.delivery.taken());
        if before == taken || Instant::now() > deadline {
            break;
        }
    }
    from_server.abort();
    server.clear().await;
    (status, end)
}

/// A line for people: stdout is the protocol's.
fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "recibo: {text}");
}
