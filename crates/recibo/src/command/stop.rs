//! `recibo stop`: ends the service on a data folder.

use std::path::PathBuf;

use serde_json::json;

use super::Done;
use crate::data;
use crate::failure::Failure;
use crate::paint;
use crate::service::{self, Key, wait_for_turn};

/// Arguments of `stop`.
#[derive(clap::Args)]
pub struct Args {
    /// The data folder
    #[arg(long, value_name = "DIR", env = "RECIBO_DATA", default_value = "./recibo-data")]
    data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Asks the service to end and waits until it has: what is in flight is finished first.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let folder = &args.data;
    data::expect_ledger(folder)?;
    // Who starts one at this moment is waited for.
    let turn = wait_for_turn(folder).await?;
    let Some(joined) = service::join(folder, &Key::Adapter).await? else {
        return Ok(match args.json {
            true => Done::said(format!("{}\n", json!({"stopped": null}))),
            false => Done::said(format!("no service runs on {}\n", folder.display())),
        });
    };
    let pid = joined.pid();
    service::end(joined).await?;
    drop(turn);
    Ok(match args.json {
        true => Done::said(format!("{}\n", json!({"stopped": pid}))),
        false => Done::said(format!(
            "{}: the service on {} (process {pid}); a command that needs the ledger starts another \
             one\n",
            paint::good("stopped"),
            folder.display()
        )),
    })
}
