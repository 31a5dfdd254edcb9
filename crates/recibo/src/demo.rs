//! `recibo demo`: the stories that the ledger is for, played with a real service, real HTTP and
//! real processes as tools. It ends by counting side effects, which is what counts.

mod service;
mod stage;
mod stories;
pub mod tool;

use crate::command::Done;
use crate::failure::Failure;
use crate::ledger::{Purpose, find};
use crate::paint;
use crate::target::Target;

use service::Service;
use stage::Stage;

/// Arguments of `demo`.
#[derive(clap::Args)]
pub struct Args {
    /// Keep the data folder and the service's log, and say where they are
    #[arg(long)]
    keep: bool,
}

/// Plays all stories; exit code 1 if anything ends otherwise than a careful person expects.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let temp = tempfile::Builder::new()
        .prefix("recibo-demo-")
        .disable_cleanup(args.keep)
        .tempdir()
        .map_err(|error| Failure::said(format!("no temporary folder: {error}")))?;
    let service = Service::start(temp.path()).await?;
    let target =
        Target { data: service.data().to_owned(), url: None, api_key_file: None, alone: false };
    let ledger = find(&target, Purpose::Change).await?;
    let mut stage = Stage::new(ledger, temp.path(), service.data());
    stage.say(&format!("The service listens on {}, its data is in a new folder.", service.url()));
    let played = stories::play(&mut stage).await;
    let stopped = service.stop().await;
    played?;
    stopped?;
    if args.keep {
        stage.say(&format!("\nKept: {}", temp.path().display()));
    }
    let text = match stage.surprises() {
        0 => format!("\n{}\n", paint::good("Everything ended as a careful person expects.")),
        n => format!("\n{}\n", paint::bad(&format!("{n} things ended otherwise."))),
    };
    Ok(Done { text, exit_code: u8::from(stage.surprises() > 0) })
}
