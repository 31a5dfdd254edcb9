//! Where the stories are played: what is said, what is expected, and the hands that do it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use recibo_api::answer::{ClaimAnswer, DecisionAnswer, OutcomeAnswer, ScopeAnswer};
use serde_json::{Value, json};
use tokio::process::Command;

use super::service::program;
use crate::failure::Failure;
use crate::ledger::{Ledger, Request};
use crate::timeline::{Verdict, advice};
use crate::{demo, paint};

/// The run that all stories belong to.
pub const RUN: &str = "run_82f";

/// The stage.
pub struct Stage {
    /// The ledger, over HTTP.
    pub ledger: Ledger,
    folder: PathBuf,
    data: PathBuf,
    surprises: u32,
}

impl Stage {
    /// An empty stage.
    pub fn new(ledger: Ledger, folder: &Path, data: &Path) -> Self {
        Self { ledger, folder: folder.to_owned(), data: data.to_owned(), surprises: 0 }
    }

    /// How many things ended otherwise than expected.
    pub fn surprises(&self) -> u32 {
        self.surprises
    }

    /// A story begins.
    pub fn title(&self, text: &str) {
        self.say(&format!("\n{}", paint::strong(text)));
    }

    /// Says a line at once: the reader watches.
    pub fn say(&self, text: &str) {
        anstream::println!("{text}");
    }

    /// Says what happened, and whether it is what a careful person expects.
    pub fn expect<T: PartialEq + std::fmt::Display>(&mut self, what: &str, seen: T, expected: T) {
        if seen == expected {
            self.say(&format!("  {} {what}: {seen}", paint::good("✓")));
        } else {
            self.surprises += 1;
            self.say(&format!("  {} {what}: {seen}, expected {expected}", paint::bad("✗")));
        }
    }

    /// Says what the ledger advised.
    pub fn expect_advice(&mut self, who: &str, seen: &DecisionAnswer, expected: &str) {
        self.expect(who, seen.decision.0.as_str(), expected);
        self.say(&format!("      {}", advice(&Verdict::from(seen))));
    }

    /// A file that a tool leaves its effects in.
    pub fn effects_file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// How many effects a tool has left.
    pub fn effects(&self, name: &str) -> usize {
        // No file means no effect.
        let text = std::fs::read_to_string(self.effects_file(name)).unwrap_or_default();
        text.lines().count()
    }

    /// Runs `recibo exec` as a process of its own.
    pub async fn exec(
        &self,
        call: &str,
        tool: &str,
        effect: &str,
        tool_arguments: &[&OsStr],
    ) -> Result<Output, Failure> {
        let program = program()?;
        Command::new(&program)
            .args(["exec", "--run", RUN, "--call", call, "--tool", tool, "--effect", effect])
            .arg("--data")
            .arg(&self.data)
            .args(["--timeout", "10s", "--input", "{\"ticket\":17}", "--"])
            .arg(&program)
            .arg(demo::tool::NAME)
            .args(tool_arguments)
            .stdin(Stdio::null())
            .output()
            .await
            .map_err(|error| Failure::said(format!("exec does not start: {error}")))
    }

    /// Opens a scope.
    pub async fn scope(&self) -> Result<String, Failure> {
        let request = Request::post(&["scopes"], &json!({"label": "demo"}));
        Ok(self.ledger.call(request).await?.read::<ScopeAnswer>()?.scope_id)
    }

    /// Claims an attempt as an adapter does.
    pub async fn claim(&self, scope_id: &str, call: &str, n: u32) -> Result<ClaimAnswer, Failure> {
        let body = json!({
            "scope_id": scope_id,
            "claim_id": format!("demo-{n}"),
            "tool": "create_task",
            "effect": "opaque",
            "input": {"ticket": 17, "title": "call the customer back"},
        });
        let path = ["runs", RUN, "calls", call, "attempts"];
        self.ledger.call(Request::post(&path, &body)).await?.read()
    }

    /// Reports an outcome as an adapter does.
    pub async fn report(&self, call: &str, outcome: &Value) -> Result<OutcomeAnswer, Failure> {
        let path = ["runs", RUN, "calls", call, "attempts", "1", "outcome"];
        self.ledger.call(Request::post(&path, outcome)).await?.read()
    }
}
