//! The same session with and without the proxy: equal, byte for byte, but for the receipts; and
//! every call has its record.

use std::path::{Path, PathBuf};
use std::process::Command;

use recibo_tests::binary::{self, Server};
use serde_json::{Value, json};

use super::install;
use super::log::Log;

#[derive(Clone, Copy)]
enum Client {
    Python,
    TypeScript,
}

/// A folder for one session and its repetition: whatever a server says of its files is the same.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command line of a server.
    fn server(&self, name: &str) -> Vec<PathBuf> {
        match name {
            "examples" => {
                let server = install::sources().join("server.py");
                vec![install::python(), server, self.path("effects")]
            }
            "filesystem" => vec!["node".into(), install::npm_server(name), self.path("files")],
            _ => vec!["node".into(), install::npm_server(name)],
        }
    }

    /// Plays a session; `before` stands before the server's command line.
    fn play(&self, client: Client, server: &str, log: &str, before: &[PathBuf]) -> Log {
        for folder in ["files", "effects"] {
            let path = self.path(folder);
            if path.is_dir() {
                std::fs::remove_dir_all(&path).expect("an old folder");
            }
        }
        std::fs::create_dir(self.path("files")).expect("a folder");
        let log = self.path(log);
        let mut command = match client {
            Client::Python => {
                let mut command = Command::new(install::python());
                command.arg(install::sources().join("drive.py"));
                command
            }
            Client::TypeScript => {
                let mut command = Command::new("node");
                command.arg(install::sources().join("drive.mjs")).arg(install::folder());
                command
            }
        };
        command.arg(server).arg(install::python()).arg(install::sources().join("tap.py"));
        let output = command
            .arg(&log)
            .args(before)
            .args(self.server(server))
            .env("TEST_FOLDER", self.path("files"))
            .env("MEMORY_FILE_PATH", self.path("files").join("memory.jsonl"))
            .env_remove("RECIBO_RUN_ID")
            .output()
            .expect("the client runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Log::read(&log)
    }

    fn proxy(&self) -> Vec<PathBuf> {
        let words = ["mcp", "--run", "session", "--data"].map(PathBuf::from);
        let mut before = vec![binary::path().to_owned()];
        before.extend(words);
        before.extend([self.path("data"), "--".into()]);
        before
    }
}

/// Plays a session twice and compares; gives what passed through the proxy.
fn compare(stage: &Stage, client: Client, server: &str) -> Log {
    let direct = stage.play(client, server, "direct", &[]);
    let proxied = stage.play(client, server, "proxied", &stage.proxy());
    assert_eq!(direct.sent, proxied.sent);
    assert_eq!(direct.got.len(), proxied.got.len());
    for (direct, proxied) in direct.got.iter().zip(&proxied.got) {
        assert!(direct == proxied, "\n{direct:.600}\n{proxied:.600}");
    }
    assert!(direct.receipts.is_empty());
    proxied
}

/// Every call has its record, which says what the client saw.
fn check_records(data: &Path, log: &Log) {
    let server = Server::start(data);
    let api = &server.api;
    let page = api.call("GET", "/v1/runs/session/calls?page_size=500", &Value::Null).expect(200);
    let calls = page.at("calls").as_array().expect("calls").clone();
    let sent = log.calls();
    assert_eq!(calls.len(), sent.len());
    for id in sent {
        let ending = format!(":{id}");
        let call = calls
            .iter()
            .find(|call| call["tool_call_id"].as_str().expect("an id").ends_with(&ending));
        let call = call.unwrap_or_else(|| panic!("no call for {id}"));
        let record = &call["attempts"][0];
        let receipt = log.receipts.iter().find(|receipt| receipt.id == id);
        let answer = log.answer(&id);
        match receipt {
            Some(receipt) => {
                assert_eq!(record["status"], "ok");
                assert_eq!(record["token"], receipt.token.as_str());
                assert_eq!(record["output_hash"], receipt.output_hash.as_str());
                let verify = json!({"token": receipt.token, "output_hash": receipt.output_hash});
                let verdict = api.call("POST", "/v1/receipts:verify", &verify).expect(200);
                // The proxy has ended, and its key with it.
                assert_eq!(verdict.str("verdict"), "recorded");
            }
            None if answer["result"]["isError"] == true => {
                assert_eq!(record["status"], "unknown", "{call}");
                assert_eq!(record["error_class"], "tool_error");
            }
            None if answer.is_null() => {
                assert_eq!(record["status"], "unknown", "{call}");
                assert_eq!(record["error_class"], "cancelled");
            }
            None => {
                assert_eq!(record["status"], "terminal_error", "{call} {answer}");
            }
        }
    }
}

fn session(client: Client, server: &str) {
    let stage = Stage::new();
    let log = compare(&stage, client, server);
    assert!(!log.receipts.is_empty());
    check_records(&stage.path("data"), &log);
}

macro_rules! sessions {
    ($($name:ident: $client:ident, $server:literal;)+) => {
        $(#[test]
        fn $name() {
            session(Client::$client, $server);
        })+
    };
}

sessions! {
    python_client_and_everything_server: Python, "everything";
    python_client_and_filesystem_server: Python, "filesystem";
    python_client_and_memory_server: Python, "memory";
    python_client_and_python_server: Python, "examples";
    typescript_client_and_everything_server: TypeScript, "everything";
    typescript_client_and_filesystem_server: TypeScript, "filesystem";
    typescript_client_and_memory_server: TypeScript, "memory";
    typescript_client_and_python_server: TypeScript, "examples";
}
