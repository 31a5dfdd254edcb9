//! `recibo serve`: the service on a data folder, from the first line of its log to the last.

mod limits;
mod log;
mod on_demand;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recibo_api::client::UNIX;
use recibo_server::{App, Listeners, SecretPolicy, ServeError, Settings, serve};
use recibo_store::folder::{SERVICE_FILE, make_folder};
use recibo_store::{Config, OpenError, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::command::Done;
use crate::data::{self, Knobs};
use crate::duration;
use crate::failure::Failure;
use crate::service::{self, Key, READY, ServiceNote, Turn, version};

pub use on_demand::detach;

/// Arguments of `serve`.
#[derive(clap::Args)]
pub struct Args {
    /// The data folder; made if it is missing
    #[arg(long, value_name = "DIR", env = "RECIBO_DATA", default_value = "./recibo-data")]
    data: PathBuf,
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDR", env = "RECIBO_LISTEN", default_value = "127.0.0.1:7461")]
    listen: SocketAddr,
    /// What to log to stderr: error, warn, info, debug, trace, or a filter such as
    /// `info,recibo_server=debug` [default: RUST_LOG, else info]
    #[arg(long, value_name = "FILTER", env = "RECIBO_LOG")]
    log: Option<String>,
    /// Memory for pages of the ledger file, in MiB
    #[arg(long, value_name = "N", env = "RECIBO_CACHE_MIB", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..))]
    cache_mib: u32,
    /// Writes that may wait; more are answered 503
    #[arg(long, value_name = "N", env = "RECIBO_QUEUE_LEN", default_value_t = 8192,
          value_parser = clap::value_parser!(u32).range(1..))]
    queue_len: u32,
    /// What becomes of a claim whose labels hold a credential
    #[arg(long, value_name = "WORD", env = "RECIBO_SECRETS", default_value = "mask")]
    secrets: Secrets,
    /// Make another admin key and write it to DIR/admin.key; keys made before stay valid
    #[arg(long)]
    new_admin_key: bool,
    /// Serve the owner's processes only, on the socket in the data folder, and end when none is
    /// connected any more: how commands start the service that they need
    #[arg(long, conflicts_with_all = ["listen", "new_admin_key"])]
    pub on_demand: bool,
    /// After how long without a client a service ends that was started on demand, from 1s to 24h
    #[arg(long, value_name = "TIME", env = "RECIBO_IDLE_EXIT", value_parser = idle_exit_ms,
          default_value = "60s")]
    idle_exit: u64,
    #[command(flatten)]
    limits: limits::LimitArgs,
}

fn idle_exit_ms(text: &str) -> Result<u64, String> {
    match duration::parse_ms(text)? {
        ms @ 1_000..=86_400_000 => Ok(ms),
        _ => Err("from 1s to 24h".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Secrets {
    /// It is masked.
    Mask,
    /// The claim is refused.
    Refuse,
}

/// Runs the service until it is asked to stop.
pub async fn run(args: Args) -> Result<Done, Failure> {
    // What a service makes is for its owner alone, its socket too.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    match args.on_demand {
        true => run_on_demand(args).await,
        false => run_for_people(args).await,
    }
}

/// A service that a person or a supervisor has started. One that was started on demand gives way.
async fn run_for_people(args: Args) -> Result<Done, Failure> {
    log::start(args.log.as_deref(), log::To::Stderr)?;
    let descriptors = limits::raise_descriptors();
    let mut asked = Asked::listen()?;
    // Before another service ends for this one.
    let tcp = match bind(args.listen).await {
        Ok(tcp) => tcp,
        Err(failure) => return Err(runs_already(&args.data).await.unwrap_or(failure)),
    };
    let turn = service::take_over(&args.data).await?;
    let (folder, knobs) = (args.data.clone(), args.knobs());
    let store = blocking(move || data::open_as_far_as_possible(&folder, knobs)).await??;
    if let Some(cause) = store.read_only_cause() {
        tracing::error!(%cause, "the ledger is open for reading only; writes are answered 503");
    }
    let settings = args.settings(descriptors);
    let served = serve_people(&store, &args.data, settings, tcp, turn, &mut asked).await;
    ended(store, served).await
}

async fn serve_people(
    store: &Store,
    folder: &Path,
    settings: Settings,
    tcp: TcpListener,
    turn: Option<Turn>,
    asked: &mut Asked,
) -> Result<(), Failure> {
    let address = tcp
        .local_addr()
        .map_err(|error| Failure::said(format!("cannot see the own address: {error}")))?;
    let unix = match service::listen(&absolute(folder)?) {
        Ok(unix) => Some(unix),
        Err(error) => {
            tracing::warn!(%error, "no socket in the folder; clients there use the address");
            None
        }
    };
    let (unix, socket) = unix.unzip();
    let note = ServiceNote {
        url: reachable(address),
        pid: std::process::id(),
        version: Some(version::OWN.to_owned()),
        socket,
        on_demand: false,
    };
    let note = match note.leave(folder) {
        Ok(note) => Some(note),
        // Commands on the folder then read it themselves.
        Err(_) if store.read_only_cause().is_some() => None,
        Err(error) => return Err(unwritable(folder, &error)),
    };
    let app = App::new(store.clone(), settings, data::entropy());
    let url = format!("http://{address}");
    announce(&url);
    tracing::info!(%url, data = %folder.display(), events = store.size(), "listening");
    // Whoever waited for it finds this service.
    drop(turn);
    let over = async {
        asked.next().await;
        if let Some(note) = &note {
            note.withdraw();
        }
    };
    serve(Listeners { tcp: Some(tcp), unix }, app, over).await.map_err(stopped)
}

/// A service that a command has started which needed it, and which ends by itself.
async fn run_on_demand(args: Args) -> Result<Done, Failure> {
    let folder = absolute(&args.data)?;
    make_folder(&folder).map_err(|error| data::cannot("make", &folder, &error))?;
    let log = log::Bounded::open(&folder)?;
    log::start(args.log.as_deref(), log::To::File(log.clone()))?;
    let store = on_demand::open(&folder, args.knobs()).await?;
    let mut turn = None;
    let served = serve_on_demand(&store, &args, &folder, &log, &mut turn).await;
    let done = ended(store, served).await;
    // The next one is started once the ledger is closed.
    drop(turn);
    done
}

/// Takes the turn where nobody needs the service any more.
async fn serve_on_demand(
    store: &Store,
    args: &Args,
    folder: &Path,
    log: &log::Bounded,
    turn: &mut Option<Turn>,
) -> Result<(), Failure> {
    let descriptors = limits::raise_descriptors();
    let mut asked = Asked::listen()?;
    let (unix, socket) = service::listen(folder).map_err(|error| {
        Failure::advised(
            format!("no socket can be made for {}: {error}", folder.display()),
            "start a service there with `recibo serve`, or open the ledger with --alone",
        )
    })?;
    let url = format!("{UNIX}{}", socket.display());
    let note = ServiceNote {
        url: url.clone(),
        pid: std::process::id(),
        version: Some(version::OWN.to_owned()),
        socket: Some(socket),
        on_demand: true,
    };
    let note = note.leave(folder).map_err(|error| unwritable(folder, &error))?;
    let app = App::new(store.clone(), args.settings(descriptors), data::entropy());
    announce(&url);
    on_demand::let_go_of_the_starter(log);
    tracing::info!(%url, version = version::OWN, events = store.size(), "listening");
    let idle_exit = Duration::from_millis(args.idle_exit);
    let over = async {
        tokio::select! {
            () = asked.next() => note.withdraw(),
            taken = on_demand::idle(&app, folder, &note, idle_exit) => *turn = Some(taken),
            () = on_demand::is_lost(&note) => {
                tracing::warn!("files of the folder were taken away: the service ends");
            }
        }
    };
    serve(Listeners { tcp: None, unix: Some(unix) }, app.clone(), over).await.map_err(stopped)
}

impl Args {
    fn knobs(&self) -> Knobs {
        let config = Config {
            cache_bytes: (self.cache_mib as usize) << 20,
            queue_len_max: self.queue_len as usize,
        };
        Knobs { config, new_admin_key: self.new_admin_key }
    }

    fn settings(&self, descriptors: u64) -> Settings {
        let settings = Settings {
            secret_policy: match self.secrets {
                Secrets::Mask => SecretPolicy::Mask,
                Secrets::Refuse => SecretPolicy::Refuse,
            },
            limits: self.limits.limits(descriptors),
            ..Settings::default()
        };
        tracing::info!(descriptors, connections = settings.limits.connections, "limits");
        settings
    }
}

/// Closes the store, and says how the service has ended.
async fn ended(store: Store, served: Result<(), Failure>) -> Result<Done, Failure> {
    let has_failed = store.has_failed();
    blocking(move || store.close()).await?;
    served?;
    if has_failed {
        return Err(Failure::said("the ledger could not be written"));
    }
    tracing::info!("stopped");
    Ok(Done::silent())
}

fn stopped(error: ServeError) -> Failure {
    let detail = format!("the service stopped: {error}");
    Failure::advised(detail, "see its log; the next start reads what is true")
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Failure {
    data::cannot("write", &folder.join(SERVICE_FILE), error)
}

/// That a person has started a service on the folder, if so.
async fn runs_already(folder: &Path) -> Option<Failure> {
    let other = service::join(folder, &Key::Adapter).await.ok()??;
    (!other.note.on_demand).then(|| data::open_failure(folder, OpenError::InUse))
}

fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(folder).map_err(|error| data::cannot("find", folder, &error))
}

/// What asks the service to stop.
struct Asked {
    terminate: Signal,
    interrupt: Signal,
}

impl Asked {
    fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind)
                .map_err(|error| Failure::said(format!("cannot listen to signals: {error}")))
        };
        let (terminate, interrupt) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => tracing::info!("asked to stop (SIGTERM)"),
            _ = self.interrupt.recv() => tracing::info!("asked to stop (SIGINT)"),
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let detail = format!("cannot listen on {address}: {error}");
        match error.kind() {
            std::io::ErrorKind::AddrInUse => Failure::advised(
                detail,
                "another program listens there: give another --listen address (port 0 picks a \
                 free one)",
            ),
            _ => Failure::said(detail),
        }
    })
}

/// Where this machine reaches a service that listens on all addresses.
fn reachable(address: SocketAddr) -> String {
    let host = match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => "127.0.0.1".to_owned(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => "[::1]".to_owned(),
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    };
    format!("http://{host}:{}", address.port())
}

/// The one line on stdout, which tells whoever started the service that it is ready.
fn announce(url: &str) {
    let mut stdout = std::io::stdout().lock();
    // Whoever does not read it does not need it.
    let _ = writeln!(stdout, "{READY}{url}");
    let _ = stdout.flush();
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::said(format!("the service broke: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_all_addresses_is_reached_on_this_machine() {
        let cases = [
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("0.0.0.0:2", "http://127.0.0.1:2"),
            ("[::]:3", "http://[::1]:3"),
            ("[::1]:4", "http://[::1]:4"),
            ("10.1.2.3:5", "http://10.1.2.3:5"),
        ];
        for (address, url) in cases {
            assert_eq!(reachable(address.parse().unwrap()), url);
        }
    }
}
