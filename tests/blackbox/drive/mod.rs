//! Plays the steps of a history against the real service and the model, side by side.

mod claims;
mod outcomes;
mod reads;
mod settle;
mod time;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use recibo_tests::api::{Api, Reply, call_path};
use recibo_tests::binary::Server;
use serde_json::{Value, json};

use super::clock::{START_MS, TestClock};
use super::compare::Diff;
use super::model::{CallKey, Fold, Ledger, Scope, ShotAsk};
use super::steps::{AttemptRef, ScopeRef, Step, TokenRef};
use super::world::{CALLS, Spec, World};

/// How often an answer came.
pub type Tally = BTreeMap<String, u64>;

/// A difference between the service and the model.
pub type Played = Result<(), String>;

/// A service and what the model knows of it.
pub struct Drive {
    world: World,
    ledger: Ledger,
    clock: TestClock,
    /// The boot clock when the newest event was written.
    boot_ms_at_write: u64,
    /// Taken out only while it is down.
    server: Option<Server>,
    data: PathBuf,
    /// The newest one-shot of each call, and its body.
    shots: Vec<Option<(ShotAsk, Value)>>,
    /// How many answers were compared.
    pub checks: u64,
    /// What they were.
    pub tally: Tally,
}

impl Drive {
    /// Starts a service on an empty folder.
    pub fn new(seed: u64, folder: &Path) -> Result<Self, String> {
        let clock = TestClock::new(folder);
        let data = folder.join("data");
        let server = Server::start_by_clock(&data, clock.file())?;
        let mut ledger = Ledger::new();
        ledger.now = START_MS;
        ledger.last_write = START_MS;
        let mut drive = Self {
            world: World::new(seed),
            ledger,
            boot_ms_at_write: clock.boot_ms,
            clock,
            server: Some(server),
            data,
            shots: vec![None; CALLS],
            checks: 0,
            tally: Tally::default(),
        };
        drive.put_policy(0)?;
        drive.open_scope(None)?;
        Ok(drive)
    }

    /// Plays one step.
    pub fn step(&mut self, step: &Step) -> Played {
        self.tally("steps");
        match step {
            Step::Claim(step) => self.claim(step),
            Step::Outcome(step) => self.outcome(step),
            Step::Shot(step) => self.shot(step),
            Step::Check { call, attempt, answer, age_ms } => {
                self.check(*call, *attempt, *answer, *age_ms)
            }
            Step::Resolve { call, state, tag, corrects } => {
                self.resolve(*call, *state, *tag, *corrects)
            }
            Step::Renew { call, attempt, token, lease_ms } => {
                self.renew(*call, *attempt, *token, *lease_ms)
            }
            Step::Read(step) => self.read(*step),
            Step::Pass(ms) => self.pass(*ms),
            Step::PassTo { call, point, off } => self.pass_to(*call, *point, *off),
            Step::Wall(ms) => self.move_wall(*ms),
            Step::OpenScope { ttl_ms } => self.open_scope(*ttl_ms),
            Step::CloseScope(scope) => self.close_scope(*scope),
            Step::Policy(number) => self.put_policy(*number),
            Step::Bad(number) => self.bad(*number),
            Step::Restart { kill, down_ms, boot } => self.restart(*kill, *down_ms, *boot),
            Step::ReadAll => self.read_all(),
        }
    }

    fn api(&self) -> &Api {
        &self.server.as_ref().expect("it runs").api
    }

    /// Sends and counts; an answer that does not come is a difference.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<Reply, String> {
        self.checks += 1;
        let reply = self.api().try_call(method, path, body);
        let reply = reply.map_err(|error| format!("{method} {path}: {error}"))?;
        self.count(path, &reply);
        Ok(reply)
    }

    /// Counts an answer under its last word of the path and what it says.
    fn count(&mut self, path: &str, reply: &Reply) {
        let end = path.rsplit('/').next().unwrap_or_default();
        let is_word = !end.is_empty() && end.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        let what = match (reply.json["code"].as_str(), reply.json["reason"].as_str()) {
            (Some(code), _) => code.to_owned(),
            (_, Some(reason)) => {
                format!("{} {reason}", reply.json["decision"].as_str().unwrap_or_default())
            }
            _ => String::new(),
        };
        let is_again = reply.json["replayed"] == true;
        let again = if is_again { " replayed" } else { "" };
        let path = if is_word { end } else { "other" };
        let key = format!("{path} {}{again} {what}", reply.status);
        *self.tally.entry(key).or_default() += 1;
    }

    /// Counts something that is no answer.
    fn tally(&mut self, what: &str) {
        *self.tally.entry(format!("= {what}")).or_default() += 1;
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<Reply, String> {
        self.ask("POST", path, body)
    }

    fn get(&mut self, path: &str) -> Result<Reply, String> {
        self.ask("GET", path, &Value::Null)
    }

    /// Something was appended now.
    fn wrote(&mut self) {
        self.ledger.last_write = self.ledger.now;
        self.boot_ms_at_write = self.clock.boot_ms;
    }

    fn spec(&self, call: usize) -> Spec {
        self.world.calls[call].clone()
    }

    /// The call that a step is about which makes sense only for a known one: that call, or, so
    /// that few steps are idle, often one that is known instead.
    fn acted_on(&self, call: usize) -> CallKey {
        let key = &self.world.calls[call].key;
        let known = &self.ledger.calls;
        if self.ledger.find(key).is_some() || call.is_multiple_of(4) || known.is_empty() {
            return key.clone();
        }
        known[call % known.len()].key.clone()
    }

    fn fold(&self, key: &CallKey) -> Option<Fold> {
        self.ledger.call(key).map(|call| self.ledger.fold(call))
    }

    fn number(&self, key: &CallKey, attempt: AttemptRef) -> u32 {
        let newest = self.fold(key).map_or(0, |fold| fold.attempts.len() as u32);
        match attempt {
            AttemptRef::Newest => newest.max(1),
            AttemptRef::Older(back) => newest.saturating_sub(back).max(1),
            AttemptRef::Next => newest + 1,
        }
    }

    fn scope_id(&self, scope: ScopeRef) -> String {
        let all = &self.ledger.scopes;
        match scope {
            ScopeRef::Newest => all.last().expect("one is open").id.clone(),
            ScopeRef::Older(back) => all[all.len().saturating_sub(1 + back)].id.clone(),
            ScopeRef::Never => "sc_00000000-0000-7000-8000-000000000000".to_owned(),
        }
    }

    fn lease_token(&self, key: &CallKey, number: u32, token: TokenRef) -> String {
        let fold = self.fold(key);
        let of = |attempt: u32| {
            let attempt = fold.as_ref()?.attempt(attempt)?;
            Some(attempt.lease.as_ref()?.token.clone())
        };
        let found = match token {
            TokenRef::Own => of(number),
            TokenRef::Other => of(if number > 1 { number - 1 } else { number + 1 }),
            TokenRef::Wrong => None,
        };
        found.unwrap_or_else(|| "wrong".to_owned())
    }

    fn open_scope(&mut self, ttl_ms: Option<u64>) -> Played {
        let body = ttl_ms.map_or(json!({}), |ms| json!({ "ttl_ms": ms }));
        let reply = self.post("/v1/scopes", &body)?;
        let mut diff = Diff::default();
        diff.eq("status", 201, &json!(reply.status));
        diff.eq("opened_at", super::clock::text(self.ledger.now), &reply.json["opened_at"]);
        diff.eq("state", "open", &reply.json["state"]);
        self.opened(&reply, ttl_ms);
        named(diff, "opening a scope", &reply)
    }

    fn opened(&mut self, reply: &Reply, ttl_ms: Option<u64>) {
        self.ledger.scopes.push(Scope {
            id: reply.json["scope_id"].as_str().unwrap_or_default().to_owned(),
            expires_at: self.ledger.now + ttl_ms.unwrap_or(86_400_000),
            is_closed: false,
            is_gone: false,
        });
        self.wrote();
    }

    fn close_scope(&mut self, scope: ScopeRef) -> Played {
        let id = self.scope_id(scope);
        let state = self.ledger.scope_state(&id);
        let reply = self.ask("DELETE", &format!("/v1/scopes/{id}"), &Value::Null)?;
        let mut diff = Diff::default();
        match state {
            None => problem(&mut diff, &[(404, "scope_not_found")], &reply),
            // What closing one again answers is not said.
            Some(_) => diff.eq("status", 204, &json!(reply.status)),
        }
        if state == Some("open") {
            let scope = self.ledger.scopes.iter_mut().find(|scope| scope.id == id);
            scope.expect("it is known").is_closed = true;
            self.wrote();
        }
        named(diff, "closing a scope", &reply)?;
        // The newest scope is one that lives, else most claims would be refused.
        self.open_scope(None)
    }

    fn put_policy(&mut self, number: usize) -> Played {
        let body = json!({ "tools": self.world.policy(number) });
        let reply = self.ask("PUT", "/v1/effects/policy", &body)?;
        let mut diff = Diff::default();
        diff.eq("status", 200, &json!(reply.status));
        self.ledger.policy = self.world.policies[number].clone();
        self.wrote();
        named(diff, "setting the policy", &reply)
    }
}

/// The path of a call.
fn path_of(key: &CallKey) -> String {
    call_path(&key.run, &key.id)
}

/// Holds a refusal against the ones that are permitted.
fn problem(diff: &mut Diff, want: &[(u16, &str)], reply: &Reply) {
    let got = (reply.status, reply.json["code"].as_str().unwrap_or_default());
    diff.holds(&format!("the refusal is one of {want:?}"), want.contains(&got), &json!(got));
    let kind = reply.headers.get("content-type").map(String::as_str);
    diff.eq("content-type", "application/problem+json", &json!(kind));
}

/// The differences of an answer, with the answer.
fn named(diff: Diff, what: &str, reply: &Reply) -> Played {
    diff.result()
        .map_err(|found| format!("{what}: {found}\nanswer: {} {}", reply.status, reply.text))
}
