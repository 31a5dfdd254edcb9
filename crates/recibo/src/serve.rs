//! `recibo serve`: the service on a data folder, from the first line of its log to the last.

mod limits;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use recibo_server::{App, SecretPolicy, Settings, serve};
use recibo_store::{Config, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::command::Done;
use crate::data::{self, Knobs, ServiceNote};
use crate::failure::Failure;

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
    #[command(flatten)]
    limits: limits::LimitArgs,
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
    start_log(args.log.as_deref())?;
    let descriptors = limits::raise_descriptors();
    let mut terminate = on(SignalKind::terminate())?;
    let mut interrupt = on(SignalKind::interrupt())?;
    let config = Config {
        cache_bytes: (args.cache_mib as usize) << 20,
        queue_len_max: args.queue_len as usize,
    };
    let knobs = Knobs { config, new_admin_key: args.new_admin_key };
    let folder = args.data.clone();
    let store = blocking(move || data::open_as_far_as_possible(&folder, knobs)).await??;
    if let Some(cause) = store.read_only_cause() {
        tracing::error!(%cause, "the ledger is open for reading only; writes are answered 503");
    }
    if data::read_admin_key(&args.data).is_err() {
        tracing::warn!("admin.key is missing; --new-admin-key makes another key");
    }
    let asked = async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("asked to stop (SIGTERM)"),
            _ = interrupt.recv() => tracing::info!("asked to stop (SIGINT)"),
        }
    };
    let settings = Settings {
        secret_policy: match args.secrets {
            Secrets::Mask => SecretPolicy::Mask,
            Secrets::Refuse => SecretPolicy::Refuse,
        },
        limits: args.limits.limits(descriptors),
        ..Settings::default()
    };
    tracing::info!(descriptors, connections = settings.limits.connections, "limits");
    let result = listen(&store, settings, args.listen, &args.data, asked).await;
    let has_failed = store.has_failed();
    blocking(move || store.close()).await?;
    result?;
    if has_failed {
        return Err(Failure::said("the ledger could not be written"));
    }
    tracing::info!("stopped");
    Ok(Done::silent())
}

async fn listen(
    store: &Store,
    settings: Settings,
    address: SocketAddr,
    folder: &Path,
    asked: impl Future<Output = ()> + Send,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let detail = format!("cannot listen on {address}: {error}");
        match error.kind() {
            std::io::ErrorKind::AddrInUse => Failure::advised(
                detail,
                "another program listens there: give another --listen address (port 0 picks a \
                 free one)",
            ),
            _ => Failure::said(detail),
        }
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::said(format!("cannot see the own address: {error}")))?;
    let url = format!("http://{address}");
    let note = match ServiceNote::write(&reachable(address), folder) {
        Ok(note) => Some(note),
        // Commands on the folder then read it themselves.
        Err(_) if store.read_only_cause().is_some() => None,
        Err(failure) => return Err(failure),
    };
    let app = App::new(store.clone(), settings, data::entropy());
    announce(&url);
    tracing::info!(%url, data = %folder.display(), events = store.size(), "listening");
    let result = serve(listener, app, asked).await;
    drop(note);
    result.map_err(|error| {
        Failure::advised(
            format!("the service stopped: {error}"),
            "see the log above; the next start reads what is true",
        )
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
    let _ = writeln!(stdout, "recibo listening on {url}");
    let _ = stdout.flush();
}

fn start_log(filter: Option<&str>) -> Result<(), Failure> {
    let rust_log = std::env::var("RUST_LOG").ok();
    let text = filter.or(rust_log.as_deref()).filter(|text| !text.is_empty()).unwrap_or("info");
    let filter = EnvFilter::try_new(text)
        .map_err(|error| Failure::usage(format!("`{text}` is no log filter: {error}")))?;
    let is_coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured)
        .init();
    Ok(())
}

fn on(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Failure> {
    signal(kind).map_err(|error| Failure::said(format!("cannot listen to signals: {error}")))
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
