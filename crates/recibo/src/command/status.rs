//! `recibo status`: what runs on a data folder, who uses it, and how the ledger is.

use std::fs;
use std::path::Path;

use recibo_api::answer::StatusAnswer;
use recibo_core::visible::visible;
use serde_json::{Value, json};

use super::{Done, now, view};
use crate::failure::Failure;
use crate::layout;
use crate::ledger::{Answer, Ledger, Purpose, Request, find};
use crate::service::{self, Key, ServiceNote};
use crate::target::{Common, Target};
use crate::{data, duration};

/// Arguments of `status`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
}

/// Shows what runs. Starts nothing.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let Args { common } = args;
    let (note, ledger) = look(&common.target).await?;
    let answer = ledger.call(Request::get(&["status"])).await;
    ledger.close().await;
    let answer = answer?;
    let is_running = common.target.url.is_some() || note.is_some();
    let bytes = common.target.url.is_none().then(|| bytes_in(&common.target.data));
    if common.json {
        return document(&common.target, note.as_ref(), is_running, bytes, &answer);
    }
    let status: StatusAnswer = answer.read()?;
    let view = view(&common.target);
    let mut rows = match is_running {
        true => running(&status, note.as_ref(), &common.target),
        false => {
            let text = "none runs; a command that needs the ledger starts one";
            vec![("service", text.to_owned())]
        }
    };
    rows.push(("ledger", of_ledger(&status, bytes)));
    Ok(Done::said(layout::facts("", &rows, view.width)))
}

/// The service that was named or runs, else the ledger as it lies there.
async fn look(target: &Target) -> Result<(Option<ServiceNote>, Ledger), Failure> {
    if target.url.is_some() || target.alone {
        return Ok((None, find(target, Purpose::Read).await?));
    }
    data::expect_ledger(&target.data)?;
    let key = match &target.api_key_file {
        Some(path) => Key::Given(data::read_api_key(path)?),
        None => Key::Adapter,
    };
    if let Some(joined) = service::join(&target.data, &key).await? {
        return Ok((Some(joined.note), Ledger::from(joined.service)));
    }
    let here = Target { alone: true, ..target.clone() };
    Ok((None, find(&here, Purpose::Read).await?))
}

fn running(
    status: &StatusAnswer,
    note: Option<&ServiceNote>,
    target: &Target,
) -> Vec<(&'static str, String)> {
    let url = note.map(|note| note.url.as_str()).or(target.url.as_deref()).unwrap_or_default();
    let how = match note {
        Some(note) if note.on_demand => "runs on demand",
        _ => "runs",
    };
    let since = status.started_at.0;
    let age = duration::in_words(now().ms().saturating_sub(since.ms()));
    let mut clients: Vec<_> = status.clients.iter().map(|pid| client(*pid)).collect();
    // Who asks over TCP is one of them.
    let others =
        status.addresses.saturating_sub(u64::from(note.is_none_or(|note| note.socket.is_none())));
    match others {
        0 => {}
        1 => clients.push("1 address over TCP".to_owned()),
        n => clients.push(format!("{n} addresses over TCP")),
    }
    let clients = if clients.is_empty() { "none".to_owned() } else { clients.join(", ") };
    let mut how = format!(
        "{how}: process {}, version {}, since {since} ({age})",
        status.pid,
        visible(&status.version)
    );
    if status.read_only {
        how.push_str("; it serves reads only");
    }
    vec![("service", how), ("address", visible(url).into_owned()), ("clients", clients)]
}

/// A process as `ps` would show it, where the system tells.
fn client(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let program = words.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    // The words behind that may hold anything.
    let command = words.get(1).filter(|_| program == "recibo").map(|word| format!(" {word}"));
    match program {
        "" => format!("process {pid}"),
        _ => visible(&format!("{program}{} (process {pid})", command.unwrap_or_default()))
            .into_owned(),
    }
}

fn of_ledger(status: &StatusAnswer, bytes: Option<u64>) -> String {
    let events = match status.events {
        1 => "1 event".to_owned(),
        n => format!("{n} events"),
    };
    let size = bytes.map(|bytes| format!(", {}", size_in_words(bytes))).unwrap_or_default();
    format!("{events}{size}; {} in flight, {} unknown", status.in_flight, status.unknown)
}

fn size_in_words(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        1_048_576..1_073_741_824 => tenths(bytes, 1 << 20, "MiB"),
        _ => tenths(bytes, 1 << 30, "GiB"),
    }
}

fn tenths(bytes: u64, unit: u64, name: &str) -> String {
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

/// What the files of the folder take on disk, archives not counted.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    let metas = files.flatten().filter_map(|file| file.metadata().ok());
    metas.filter(fs::Metadata::is_file).map(|meta| meta.len()).sum()
}

/// The service's own answer and what only this side knows.
fn document(
    target: &Target,
    note: Option<&ServiceNote>,
    is_running: bool,
    bytes: Option<u64>,
    answer: &Answer,
) -> Result<Done, Failure> {
    let mut document =
        json!({"running": is_running, "on_demand": note.is_some_and(|n| n.on_demand)});
    let members = document.as_object_mut().expect("an object");
    let url = note.map(|note| note.url.clone()).or_else(|| target.url.clone());
    members.insert("url".to_owned(), json!(url));
    members.insert("bytes".to_owned(), json!(bytes));
    let status: Value = answer.parse()?;
    for (name, value) in status.as_object().into_iter().flatten() {
        // A ledger that was only looked at has no service.
        let is_of_service =
            ["version", "pid", "started_at", "clients", "addresses"].contains(&name.as_str());
        let value = if is_of_service && !is_running { Value::Null } else { value.clone() };
        members.insert(name.clone(), value);
    }
    Ok(Done::said(format!("{document}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 KiB"),
            (1, "1 KiB"),
            (1_048_576, "1.0 MiB"),
            (1_625_293, "1.5 MiB"),
            (5_476_083_303, "5.1 GiB"),
        ] {
            assert_eq!(size_in_words(bytes), text);
        }
    }
}
