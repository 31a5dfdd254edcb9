//! The proxy as a child process with the lenient server behind it: lines in, lines out, and what is
//! left in the ledger.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use recibo_adapter::now_ms;
use recibo_tests::binary::{self, Server};
use serde_json::{Value, json};

use super::install::sources;

/// Nothing takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with a ledger and the effects of the lenient server.
pub struct Stage(tempfile::TempDir);

/// What is left of a session.
pub struct Ended {
    /// The lines that were not read before.
    pub rest: Vec<String>,
    /// The proxy's stderr.
    pub stderr: String,
    /// The proxy's exit code.
    pub code: Option<i32>,
}

/// A running proxy.
pub struct Proxy {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: JoinHandle<String>,
}

impl Stage {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Starts the proxy on the folder, for the run `r`.
    pub fn start(&self, arguments: &[&str]) -> Proxy {
        self.start_with(arguments, "last")
    }

    /// The same with a server that picks the first or the last of several members.
    pub fn start_with(&self, arguments: &[&str], pick: &str) -> Proxy {
        let data = self.data();
        let mut words = vec!["--data", data.to_str().expect("a path of text")];
        words.extend(arguments);
        self.start_bare(&words, pick)
    }

    /// The same without a word about the ledger.
    pub fn start_bare(&self, arguments: &[&str], pick: &str) -> Proxy {
        self.spawn(&[&["--run", "r"], arguments].concat(), None, pick)
    }

    /// The proxy on the folder, for the run that the environment names, else that of this process.
    pub fn start_for_run(&self, run: Option<&str>, pick: &str) -> Proxy {
        let data = self.data();
        self.spawn(&["--data", data.to_str().expect("a path of text")], run, pick)
    }

    fn spawn(&self, arguments: &[&str], run: Option<&str>, pick: &str) -> Proxy {
        let server = sources().join("lenient.py");
        let child = Command::new(binary::path())
            .arg("mcp")
            .args(arguments)
            .env_remove("RECIBO_RUN_ID")
            .env("RECIBO_IDLE_EXIT", "2s")
            .envs(run.map(|run| ("RECIBO_RUN_ID", run)))
            .args(["--", "python3", "-S", "-E"])
            .arg(server)
            .arg(self.path("effects"))
            .arg(pick)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        Proxy::new(child)
    }

    /// The calls that the server ran.
    pub fn effects(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("effects")).unwrap_or_default();
        // The last line may be on its way.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| line.parse().unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// Returns once the server has run so many calls.
    pub fn wait_for_effects(&self, count: usize) {
        let deadline_ms = now_ms() + 60_000;
        while self.effects().len() < count {
            assert!(now_ms() < deadline_ms, "{count} effects never come");
            std::thread::yield_now();
        }
    }

    /// The calls that the ledger holds, in order.
    pub fn calls(&self) -> Vec<Value> {
        calls(&Server::start(&self.data()))
    }

    /// The newest attempt of each call: call id without the session, status, error class.
    pub fn outcomes(&self) -> Vec<String> {
        self.calls().iter().map(outcome).collect()
    }
}

/// The calls of the run `r`.
pub fn calls(server: &Server) -> Vec<Value> {
    let (mut calls, mut page) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/runs/r/calls?page_size=500{page}");
        let reply = server.api.get(&path);
        if reply.status == 404 {
            return calls;
        }
        let reply = reply.expect(200);
        calls.extend(reply.at("calls").as_array().expect("calls").clone());
        match reply.at("next_page_token").as_str() {
            Some(token) => page = format!("&page_token={token}"),
            None => return calls,
        }
    }
}

/// A call in one line.
pub fn outcome(call: &Value) -> String {
    let id = call["tool_call_id"].as_str().expect("an id");
    let id = id.split_once(':').map_or(id, |(_, id)| id);
    let record = call["attempts"].as_array().and_then(|all| all.last()).expect("an attempt");
    let class = record["error_class"].as_str().unwrap_or("-");
    format!("{id} {} {class}", record["status"].as_str().expect("a status"))
}

impl Proxy {
    fn new(mut child: Child) -> Self {
        let (say, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                if say.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let mut pipe = child.stderr.take().expect("a pipe");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = pipe.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        // Whoever has ended reads no more.
        let _ = self.stdin.as_mut().expect("it is open").write_all(bytes);
    }

    /// Writes a line.
    pub fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// The next line.
    #[track_caller]
    pub fn hear(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    /// The next line; `None` once the proxy has ended.
    pub fn hear_any(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        }
    }

    /// The next line as JSON.
    #[track_caller]
    pub fn hear_json(&self) -> Value {
        let line = self.hear();
        line.parse().unwrap_or_else(|_| panic!("{line}"))
    }

    /// Writes a line and gives the next one that comes.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.hear_json()
    }

    /// Waits for the end of the proxy; whether nothing more came from it.
    pub fn ends_silently(mut self) -> bool {
        let is_silent = self.lines.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Disconnected);
        self.child.wait().expect("it ends");
        is_silent
    }

    /// Ends the host's side and waits for the end.
    pub fn end(mut self) -> Ended {
        drop(self.stdin.take());
        let rest = self.lines.iter().collect();
        let code = self.child.wait().expect("it ends").code();
        Ended { rest, stderr: self.stderr.join().expect("no panic"), code }
    }
}

/// A tool call.
pub fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    let id = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// Another request.
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    let id = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// An answer line of the server to the call that it is said in.
pub fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":@ID@,"result":{result}}}"#)
}

/// The receipt in an answer.
pub fn receipt(answer: &Value) -> Option<&str> {
    let items = answer["result"]["content"].as_array()?;
    let texts = items.iter().filter_map(|item| item["text"].as_str());
    texts.filter_map(|text| text.strip_prefix("[receipt: ")?.strip_suffix(']')).next()
}
