//! `recibo mcp`: a proxy between an MCP host and a server that speak over stdio. What passes is
//! not changed; a tool call becomes a claim, the call, and its outcome, and a result gets its
//! receipt as one more text item.

mod answer;
mod batch;
mod call;
mod call_id;
mod calls;
mod desk;
mod hints;
mod io;
mod message;
mod process;
mod refusal;
mod session;
mod turn;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use recibo_core::id::{RunId, ToolCallId};
use recibo_core::limits;
use recibo_store::{Clock, SystemClock};
use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::command::Done;
use crate::duration;
use crate::exec::signals::Signals;
use crate::failure::Failure;
use crate::target::Target;

use desk::Desk;
use io::Output;
use process::{FALL, Server};
use session::{Session, Settings};

/// Longest name of a session: what follows it in a call id is at most a hash.
const SESSION_LEN_MAX: usize = 128;
/// How long outcomes that are on their way are waited for at the end: as long as they are tried.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// Arguments of `mcp`.
#[derive(clap::Args)]
pub struct Args {
    /// The run that the calls belong to [default: one for this session]
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
    /// How long a call may stay open before the ledger stops believing in it; what the server
    /// answers later is still recorded
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms, default_value = "10m")]
    lease: u64,
    /// Answer a call for the server after this time, as one that nobody knows the outcome of
    /// [default: the host decides]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms)]
    timeout: Option<u64>,
    /// How long another attempt at the same call is waited for
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ms, default_value = "30s")]
    wait: u64,
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
    if args.timeout == Some(0) {
        return Err(Failure::usage("a timeout of nothing leaves no time to answer"));
    }
    let session = args.session.clone().unwrap_or_else(new_id);
    let run = args.run.clone().unwrap_or_else(|| format!("mcp-{}", new_id()));
    RunId::parse(&run).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Settings {
        run,
        session,
        tool_prefix: args.tool_prefix.clone(),
        lease: Duration::from_millis(args.lease),
        wait: Duration::from_millis(args.wait),
        timeout: args.timeout.map(Duration::from_millis),
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
    let desk = Arc::new(Desk::new(args.target, args.fail_open));
    desk.open().await?;
    let started = Server::start(&args.command, &[("RECIBO_RUN_ID", &settings.run)]).await;
    let (server, stdin, stdout) = match started {
        Ok(started) => started,
        Err(failure) => {
            desk.close().await;
            return Err(failure);
        }
    };
    let hints = args.trust_annotations.then(Default::default);
    let to_server = Output::new(Box::new(stdin));
    let (session, mut idle) = Session::new(settings, desk.clone(), hints, to_server, to_host);
    let from_host = tokio::spawn(session.clone().hear_host(host));
    let from_server = tokio::spawn(session.clone().hear_server(io::reader(Box::new(stdout))));
    let status = until_ended(server, signals, from_server).await;
    session.calls.server_gone();
    // The host may never end its side.
    from_host.abort();
    let _ = from_host.await;
    drop(session);
    // What was sent is recorded before this process ends. Whoever is at work holds the session.
    let _ = timeout(LAST_WORDS, idle.recv()).await;
    desk.close().await;
    let exit_code = status.map(process::exit_code).map_err(|error| {
        Failure::said(format!("the end of the server could not be seen: {error}"))
    })?;
    Ok(Done { text: String::new(), exit_code })
}

/// Waits for the end of the server, and for what it has written.
async fn until_ended(
    mut server: Server,
    mut signals: Signals,
    mut from_server: JoinHandle<()>,
) -> std::io::Result<ExitStatus> {
    let mut asked = 0;
    let status = loop {
        tokio::select! {
            status = server.ended() => break status,
            signal = signals.next() => {
                asked += 1;
                // Asked twice: no more patience.
                server.signal(if asked > 1 { Signal::KILL } else { signal });
            }
        }
    };
    // What has left the group may hold stdout; it is not waited for.
    let _ = timeout(FALL, &mut from_server).await;
    from_server.abort();
    server.clear().await;
    status
}

/// A line for people: stdout is the protocol's.
fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "recibo: {text}");
}
