//! `recibo exec` and a service that loses its keys: no receipt is lost in silence.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// A service on a folder; ends with this.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_recibo"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("readable output");
        let url = line.trim_end().strip_prefix("recibo listening on ").expect("a line").to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The command of a test may have killed it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn recibo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recibo"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

fn exec(options: &[&str], target: &[&str], script: &str) -> Output {
    let fixed = ["exec", "--run", "r", "--call", "a", "--tool", "t", "--input", "1"];
    recibo(&[&fixed, options, target, &["--", "sh", "-c", script]].concat())
}

/// What `recibo receipt verify` says of the receipt that was printed.
fn verdict(output: &Output, target: &[&str]) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let token =
        text.rsplit_once("[receipt: ").expect("a receipt").1.trim_end().trim_end_matches(']');
    let verified = recibo(&[&["receipt", "verify", token, "--json"], target].concat());
    let document: Value = serde_json::from_slice(&verified.stdout).expect("a document");
    document["verdict"].as_str().expect("a verdict").to_owned()
}

#[test]
fn the_key_is_wiped_when_the_command_is_done_unless_it_is_to_live() {
    for (options, expected) in [(&[][..], "recorded"), (&["--scope-ttl", "1h"][..], "valid")] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let _server = Server::start(&data);
        let target = ["--data", data.to_str().expect("a path")];
        let output = exec(options, &target, "echo done");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(verdict(&output, &target), expected, "{options:?}");
    }
}

/// The service comes back at its old address while the command runs: no request fails, and yet
/// the key is gone.
#[test]
fn a_success_gets_its_receipt_although_its_scope_went_with_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let key = data.join("admin.key");
    let target = ["--url", &server.url, "--api-key-file", key.to_str().expect("a path")];
    let address = server.url.trim_start_matches("http://");
    let (log, pid) = (folder.path().join("log"), folder.path().join("pid"));
    let script = format!(
        "kill -9 {}; '{}' serve --data '{}' --listen {address} >'{log}' 2>&1 </dev/null & \
         echo $! >'{}'; until grep -q listening '{log}'; do :; done; echo done",
        server.child.id(),
        env!("CARGO_BIN_EXE_recibo"),
        data.display(),
        pid.display(),
        log = log.display(),
    );
    let output = exec(&["--scope-ttl", "1h"], &target, &script);
    let verdict = (output.status.code() == Some(0)).then(|| verdict(&output, &target));
    let pid = std::fs::read_to_string(pid).expect("a process id");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(verdict.as_deref(), Some("valid"));
}

/// A ledger that grants, loses the key, and makes no other.
fn ledger_without_keys() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let table = include_str!("../../../api/adapter-cases.json");
        let table: Value = serde_json::from_str(table).expect("JSON");
        let answer = |name: &str| table["answers"][name]["body"].clone();
        let mut is_open = false;
        while let Ok((mut stream, _)) = listener.accept() {
            let head = read_request(&mut stream);
            let (status, body) = match head.as_str() {
                "POST /v1/scopes" if is_open => {
                    (429, json!({"status": 429, "code": "scope_limit"}))
                }
                "POST /v1/scopes" => (201, answer("scope")),
                head if head.starts_with("GET /v1/scopes/") => {
                    let mut scope = answer("scope");
                    scope["state"] = "gone".into();
                    (200, scope)
                }
                head if head.ends_with("/attempts") => (201, answer("granted")),
                head if head.ends_with("/outcome") => {
                    let mut record = answer("recorded_ok");
                    record["token"] = Value::Null;
                    record["receipt_line"] = Value::Null;
                    record["no_token_reason"] = "scope_gone".into();
                    (200, record)
                }
                _ => (204, Value::Null),
            };
            is_open |= head == "POST /v1/scopes";
            let body = body.to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Scripted\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

/// Method and path.
fn read_request(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).expect("a request");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().expect("a length");
            }
            _ => {}
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    first.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_success_that_nothing_could_sign_has_its_own_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, "rk_x").expect("a file");
    let target = ["--url", &ledger_without_keys(), "--api-key-file", key.to_str().expect("a path")];
    let output = exec(&[], &target, "echo done");
    assert_eq!(output.status.code(), Some(14), "{output:?}");
    assert_eq!(output.stdout, b"done\n");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.contains("(scope_gone)"), "{why}");
}
