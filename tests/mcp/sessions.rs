//! The same session with and without the proxy: equal, byte for byte, but for the receipts; and
//! every call has its record.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use recibo_tests::binary::{self, Server};
use serde_json::{Value, json};

use super::install;
use super::log::Log;

/// An official client: the newest one, or the one of the time of MCP 2025-06-18.
#[derive(Clone, Copy)]
enum Client {
    Python,
    Python2025,
    TypeScript,
    TypeScript2025,
}

const PAGE: &str = "<html><body><article><h1>Hallo</h1><p>A page.</p></article></body></html>";

/// A site with one page, as long as the test process lives; gives the page's address.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut line = String::new();
            let mut reader = BufReader::new(&stream);
            let is_read = reader.read_line(&mut line).is_ok();
            // A client that is answered before its whole head is read may lose the answer.
            let mut header = String::new();
            while is_read && reader.read_line(&mut header).is_ok_and(|_| header.len() > 2) {
                header.clear();
            }
            let (status, body) = match line.split(' ').nth(1) {
                Some("/page") => ("200 OK", PAGE),
                _ => ("404 Not Found", ""),
            };
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: text/html\r\n");
            let length = format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all([&head, &length, body].concat().as_bytes());
        }
    });
    format!("http://{address}/page")
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git").current_dir(folder).args(arguments).status();
    assert!(status.expect("git runs").success());
}

/// A folder for one session and its repetition: whatever a server says of its files is the same.
struct Stage {
    folder: tempfile::TempDir,
    page: String,
}

impl Stage {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), page: site() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command line of a server.
    fn server(&self, name: &str) -> Vec<PathBuf> {
        let module = |name: &str| vec![install::python(), "-m".into(), name.into()];
        match name {
            "git" | "time" => module(&format!("mcp_server_{name}")),
            "fetch" => [module("mcp_server_fetch"), vec!["--allow-private-ips".into()]].concat(),
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
        if server == "git" {
            std::fs::write(self.path("files").join("a.txt"), "one\n").expect("a file");
            git(&self.path("files"), &["init", "--quiet", "--initial-branch", "main"]);
        }
        let log = self.path(log);
        let mut command = match client {
            Client::Python => Command::new(install::python()),
            Client::Python2025 => Command::new(install::python_2025()),
            Client::TypeScript | Client::TypeScript2025 => Command::new("node"),
        };
        match client {
            Client::Python | Client::Python2025 => {
                command.arg(install::sources().join("drive.py"));
            }
            Client::TypeScript | Client::TypeScript2025 => {
                let is_newest = matches!(client, Client::TypeScript);
                command.arg(install::sources().join("drive.mjs")).arg(install::folder());
                command.arg(if is_newest { "newest" } else { "2025-06-18" });
            }
        }
        command.arg(server).arg(install::python()).arg(install::sources().join("tap.py"));
        let output = command
            .arg(&log)
            .args(before)
            .args(self.server(server))
            .env("TEST_FOLDER", self.path("files"))
            .env("TEST_PAGE", &self.page)
            .env("MEMORY_FILE_PATH", self.path("files").join("memory.jsonl"))
            // A commit is the same each time.
            .envs(["AUTHOR", "COMMITTER"].into_iter().flat_map(|who| {
                let of = |what: &str| format!("GIT_{who}_{what}");
                [(of("NAME"), "a"), (of("EMAIL"), "a@localhost"), (of("DATE"), "1700000000 +0000")]
            }))
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
        assert!(record["labels"]["mcp.client"].is_string(), "who asked is not known: {record}");
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
    python_client_and_sequential_thinking_server: Python, "sequential-thinking";
    python_client_and_git_server: Python, "git";
    python_client_and_time_server: Python, "time";
    python_client_and_fetch_server: Python, "fetch";
    python_client_and_examples_server: Python, "examples";
    python_2025_client_and_everything_server: Python2025, "everything";
    python_2025_client_and_filesystem_server: Python2025, "filesystem";
    python_2025_client_and_memory_server: Python2025, "memory";
    python_2025_client_and_sequential_thinking_server: Python2025, "sequential-thinking";
    python_2025_client_and_git_server: Python2025, "git";
    python_2025_client_and_time_server: Python2025, "time";
    python_2025_client_and_fetch_server: Python2025, "fetch";
    python_2025_client_and_examples_server: Python2025, "examples";
    typescript_client_and_everything_server: TypeScript, "everything";
    typescript_client_and_filesystem_server: TypeScript, "filesystem";
    typescript_client_and_memory_server: TypeScript, "memory";
    typescript_client_and_sequential_thinking_server: TypeScript, "sequential-thinking";
    typescript_client_and_git_server: TypeScript, "git";
    typescript_client_and_time_server: TypeScript, "time";
    typescript_client_and_fetch_server: TypeScript, "fetch";
    typescript_client_and_examples_server: TypeScript, "examples";
    typescript_2025_client_and_everything_server: TypeScript2025, "everything";
    typescript_2025_client_and_filesystem_server: TypeScript2025, "filesystem";
    typescript_2025_client_and_memory_server: TypeScript2025, "memory";
    typescript_2025_client_and_sequential_thinking_server: TypeScript2025, "sequential-thinking";
    typescript_2025_client_and_git_server: TypeScript2025, "git";
    typescript_2025_client_and_time_server: TypeScript2025, "time";
    typescript_2025_client_and_fetch_server: TypeScript2025, "fetch";
    typescript_2025_client_and_examples_server: TypeScript2025, "examples";
}
