//! The README's session with curl, against the service, as somebody pastes it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A service on `recibo-data` in a folder.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_recibo"))
            .args(["serve", "--data", "recibo-data", "--listen", "127.0.0.1:0"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("recibo listening on ").expect("an address").to_owned();
        Self { child, url }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All shell blocks of a section.
fn blocks(readme: &str, section: &str) -> String {
    let text = readme.split(section).nth(1).expect("the section is there");
    let text = text.split("\n## ").next().unwrap_or_default();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect()
}

#[test]
fn the_session_with_curl_can_be_pasted_twice() {
    let readme = include_str!("../../../README.md");
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(folder.path());
    let session = blocks(readme, "\n## A session with curl\n");
    // An interactive zsh takes a comment for a command.
    assert!(session.lines().all(|line| !line.trim_start().starts_with('#')), "{session}");
    let session = session.replace("http://127.0.0.1:7461", &service.url);
    assert!(session.contains(&service.url) && session.contains("curl"), "{session}");
    let mut runs = 0;
    for shell in ["sh", "bash", "zsh"] {
        let pasted = format!("{session}\n{session}");
        let output = Command::new(shell).args(["-c", &pasted]).current_dir(folder.path()).output();
        let output = match output {
            // Not every machine has every shell.
            Err(_) if shell != "sh" => continue,
            output => output.expect("the shell runs"),
        };
        let text = String::from_utf8(output.stdout).expect("it is text");
        assert!(output.stderr.is_empty(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        runs += 2;
        for (part, count) in [
            (r#""receipt_line":"[receipt: zc-receipt-"#, 2),
            (r#""decision":"reuse""#, 2),
            (r#""verdict":"valid""#, 2),
            (r#""mismatches":["output"]"#, 2),
            (r#""code":"#, 0),
        ] {
            assert_eq!(text.matches(part).count(), count, "{shell}: {part}\n{text}");
        }
    }
    let calls = Command::new(env!("CARGO_BIN_EXE_recibo"))
        .args(["calls", "--data", "recibo-data"])
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    let calls = String::from_utf8(calls.stdout).expect("it is text");
    assert_eq!(calls.matches("call_17").count(), runs, "{calls}");
}
