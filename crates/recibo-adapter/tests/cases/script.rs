//! A ledger that follows a script: real HTTP/1.1 on loopback, one request per connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::case::{Exchange, Table};

const CALL: &str = "/v1/runs/r/calls/t:1";

/// What has happened so far.
#[derive(Default)]
struct Log {
    played: usize,
    /// The values of `$names`.
    names: BTreeMap<String, String>,
    wrong: Vec<String>,
}

pub struct Ledger {
    pub url: String,
    /// How many exchanges were played.
    pub played: watch::Receiver<usize>,
    log: Arc<Mutex<Log>>,
    planned: usize,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Ledger {
    pub async fn start(table: &Table, exchanges: &[Exchange]) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let log = Arc::new(Mutex::new(Log::default()));
        let script: Vec<_> =
            exchanges.iter().map(|exchange| (exchange.clone(), answer(table, exchange))).collect();
        let planned = script.len();
        let seen = log.clone();
        let (playing, played) = watch::channel(0);
        let open_scope = open_scope(table);
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some((head, body)) = read(&mut stream).await else { continue };
                let said = {
                    let mut seen = seen.lock().expect("no panic");
                    match seen.is_about_a_scope(&script, &head) {
                        true => Some((200, open_scope.clone())),
                        false => seen.take(&script, &head, &body),
                    }
                };
                let played = seen.lock().expect("no panic").played;
                playing.send_replace(played);
                // Without an answer the connection just ends.
                if let Some((status, body)) = said {
                    let _ = stream.write_all(response(status, &body).as_bytes()).await;
                }
            }
        });
        Ok(Self { url: format!("http://{address}"), played, log, planned, serving })
    }

    /// What went otherwise than planned.
    pub fn check(&self) -> Result<(), String> {
        let log = self.log.lock().expect("no panic");
        if let Some(wrong) = log.wrong.first() {
            return Err(wrong.clone());
        }
        if log.played != self.planned {
            return Err(format!("{} of {} exchanges were played", log.played, self.planned));
        }
        Ok(())
    }
}

/// Status and body of an exchange's answer; `None`: no answer.
fn answer(table: &Table, exchange: &Exchange) -> Option<(u16, String)> {
    let name = exchange.answer.as_ref()?;
    let answer = table.answers.get(name).unwrap_or_else(|| panic!("no answer {name}"));
    let mut body = answer.body.clone();
    if let Some(with) = &exchange.with {
        merge(&mut body, with);
    }
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Some((exchange.status.unwrap_or(answer.status), body))
}

fn merge(body: &mut Value, with: &Value) {
    match (body, with) {
        (Value::Object(body), Value::Object(with)) => {
            for (name, value) in with {
                merge(body.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (body, with) => *body = with.clone(),
    }
}

/// A scope that lives.
fn open_scope(table: &Table) -> String {
    table.answers["scope"].body.to_string()
}

impl Log {
    /// Whether this only asks for a scope's state, and the exchange in turn is another one.
    fn is_about_a_scope(&self, script: &[(Exchange, Option<(u16, String)>)], head: &str) -> bool {
        let in_turn = script.get(self.played).map(|(exchange, _)| exchange.request.as_str());
        head.starts_with("GET /v1/scopes/") && in_turn != Some(head)
    }

    fn take(
        &mut self,
        script: &[(Exchange, Option<(u16, String)>)],
        head: &str,
        body: &str,
    ) -> Option<(u16, String)> {
        let Some((exchange, answer)) = script.get(self.played) else {
            self.wrong.push(format!("not planned: {head}"));
            return Some((500, String::new()));
        };
        self.played += 1;
        let wanted = exchange.request.replacen("CALL", CALL, 1);
        if head != wanted {
            self.wrong.push(format!("{wanted} was planned, {head} came"));
        }
        if let Some(wanted) = &exchange.body {
            let body = serde_json::from_str(body).unwrap_or(Value::Null);
            if let Err(wrong) = self.compare(wanted, Some(&body), "body") {
                self.wrong.push(format!("{head}: {wrong}"));
            }
        }
        answer.clone()
    }

    fn compare(&mut self, wanted: &Value, got: Option<&Value>, at: &str) -> Result<(), String> {
        match (wanted, got) {
            (Value::String(mark), got) if mark == "-" => match got {
                None => Ok(()),
                Some(_) => Err(format!("{at} must not be there")),
            },
            (Value::String(name), Some(Value::String(got))) if name.starts_with('$') => {
                let is_taken =
                    self.names.iter().any(|(other, value)| other != name && value == got);
                let known = self.names.entry(name.clone()).or_insert_with(|| got.clone());
                if known == got && !is_taken { Ok(()) } else { Err(format!("{at} is not {name}")) }
            }
            (Value::Object(wanted), Some(Value::Object(got))) => {
                wanted.iter().try_for_each(|(name, value)| {
                    self.compare(value, got.get(name), &format!("{at}.{name}"))
                })
            }
            (wanted, Some(got)) if wanted == got => Ok(()),
            (wanted, got) => Err(format!("{at} is {got:?} instead of {wanted}")),
        }
    }
}

/// Method and decoded path, and the body.
async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let whole = end + 4 + length.unwrap_or(0);
    while bytes.len() < whole {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let mut words = head.lines().next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let path = target.split('?').next()?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let body = String::from_utf8(bytes[end + 4..].to_vec()).ok()?;
    Some((format!("{method} {path}"), body))
}

fn response(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Scripted\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
