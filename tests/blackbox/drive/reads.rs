//! Reads, and requests that must be refused.

use recibo_tests::api::encode;
use serde_json::{Value, json};

use super::claims::retry_header;
use super::{Drive, Played, named, path_of, problem};
use crate::blackbox::compare::{self, Diff};
use crate::blackbox::model::{CallKey, idempotency_key, sha256};
use crate::blackbox::steps::ReadStep;
use crate::blackbox::world::Spec;

const RUNS: [&str; 2] = ["run_0", "run_1"];

impl Drive {
    pub(super) fn read(&mut self, step: ReadStep) -> Played {
        match step {
            ReadStep::Decision(call) => self.read_decision(&self.acted_on(call), ""),
            ReadStep::Poll(call) => self.read_decision(&self.acted_on(call), "?wait_ms=0"),
            ReadStep::Batch => self.read_all(),
            ReadStep::Call(call) => self.read_call(&self.acted_on(call)),
            ReadStep::Attempt(call, attempt) => {
                let key = self.acted_on(call);
                let number = self.number(&key, attempt);
                self.read_attempt(&key, number)
            }
            ReadStep::Key(call) => {
                let key = self.acted_on(call);
                let named = idempotency_key("default", &key.run, &key.id);
                let holder = self.ledger.find(&key);
                self.read_key(&named, holder)
            }
            ReadStep::OperationKey(call) => {
                let Some(named) = self.spec(call).operation_key else { return Ok(()) };
                let mut calls = self.ledger.calls.iter();
                let holder = calls.position(|c| c.operation_key.as_ref() == Some(&named));
                self.read_key(&named, holder)
            }
            ReadStep::Receipts(call) => self.read_receipts(&self.acted_on(call)),
            ReadStep::Run(run) => self.read_run(RUNS[run]),
            ReadStep::Scope(scope) => {
                let id = self.scope_id(scope);
                let reply = self.get(&format!("/v1/scopes/{id}"))?;
                let mut diff = Diff::default();
                match self.ledger.scope_state(&id) {
                    None => problem(&mut diff, &[(404, "scope_not_found")], &reply),
                    // A key whose time was over when its process ended is both.
                    Some(state) => {
                        let got = reply.json["state"].as_str().unwrap_or_default();
                        let is_over = got == "closed" && state == "gone";
                        diff.holds(
                            &format!("state is {state}"),
                            got == state || is_over,
                            &json!(got),
                        );
                    }
                }
                named(diff, "a scope", &reply)
            }
        }
    }

    /// Compares everything that there is.
    pub(super) fn read_all(&mut self) -> Played {
        for run in RUNS {
            self.read_calls(run)?;
            self.read_run(run)?;
        }
        let is_known = |spec: &&Spec| self.ledger.find(&spec.key).is_some();
        let (known, absent): (Vec<_>, Vec<_>) = self.world.calls.iter().partition(is_known);
        let all = known.iter().chain(absent.first()).map(|spec| spec.key.clone());
        for key in all.collect::<Vec<_>>() {
            self.read_decision(&key, "")?;
        }
        Ok(())
    }

    fn read_decision(&mut self, key: &CallKey, query: &str) -> Played {
        let reply = self.get(&format!("{}/decision{query}", path_of(key)))?;
        let decision = self.ledger.decide(key);
        let mut diff = Diff::default();
        diff.eq("status", 200, &json!(reply.status));
        compare::advice(&mut diff, &self.ledger, key, &decision, &reply.json);
        retry_header(&mut diff, decision.retry, &reply);
        if let Some(index) = self.ledger.find(key) {
            self.ledger.read(index);
        }
        named(diff, &format!("the decision of {key:?}"), &reply)
    }

    fn read_call(&mut self, key: &CallKey) -> Played {
        let reply = self.get(&path_of(key))?;
        let mut diff = Diff::default();
        match self.ledger.find(key) {
            None => problem(&mut diff, &[(404, "call_not_found")], &reply),
            Some(index) => {
                let call = &self.ledger.calls[index];
                compare::call(&mut diff, &self.ledger, call, &reply.json);
                self.ledger.read(index);
            }
        }
        named(diff, &format!("{key:?}"), &reply)
    }

    fn read_attempt(&mut self, key: &CallKey, number: u32) -> Played {
        let reply = self.get(&format!("{}/attempts/{number}", path_of(key)))?;
        let mut diff = Diff::default();
        match self.ledger.find(key) {
            None => problem(&mut diff, &[(404, "call_not_found")], &reply),
            Some(index) => {
                let call = &self.ledger.calls[index];
                match self.ledger.fold(call).attempt(number) {
                    None => problem(&mut diff, &[(404, "attempt_not_found")], &reply),
                    Some(attempt) => {
                        compare::record(&mut diff, &self.ledger, call, attempt, &reply.json);
                    }
                }
                self.ledger.read(index);
            }
        }
        named(diff, &format!("attempt {number} of {key:?}"), &reply)
    }

    fn read_key(&mut self, key: &str, holder: Option<usize>) -> Played {
        let reply = self.get(&format!("/v1/idempotency/{}", encode(key)))?;
        let mut diff = Diff::default();
        match holder {
            None => problem(&mut diff, &[(404, "key_not_found")], &reply),
            Some(index) => {
                diff.eq("status", 200, &json!(reply.status));
                let named = self.ledger.calls[index].key.clone();
                self.hold_call(&mut diff, &named, None, &reply);
            }
        }
        named(diff, &format!("the call of key {key}"), &reply)
    }

    /// The receipts of a call: held, and as good as their keys.
    fn read_receipts(&mut self, key: &CallKey) -> Played {
        let Some(fold) = self.fold(key) else { return Ok(()) };
        for attempt in fold.attempts {
            let Some((_, _, said)) = attempt.deciding() else { continue };
            let Some(token) = said.token.clone() else { continue };
            let lives = said.signer.as_deref().is_some_and(|scope| self.ledger.can_sign(scope));
            let hash = said.output_hash.clone();
            let other = sha256("never said");
            let verdict = if lives { "valid" } else { "recorded" };
            for (output_hash, verdict) in [(hash, verdict), (Some(other), "mismatch")] {
                let body = json!({"token": token, "output_hash": output_hash});
                let reply = self.post("/v1/receipts:verify", &body)?;
                let mut diff = Diff::default();
                diff.eq("verdict", verdict, &reply.json["verdict"]);
                let number = &reply.json["record"]["attempt"];
                diff.eq("record.attempt", attempt.number, number);
                named(diff, &format!("verify {body}"), &reply)?;
            }
            let reply = self.get(&format!("/v1/receipts/{token}"))?;
            let mut diff = Diff::default();
            let call = self.ledger.call(key).expect("a known call");
            compare::record(&mut diff, &self.ledger, call, &attempt, &reply.json);
            named(diff, &format!("the receipt {token}"), &reply)?;
        }
        Ok(())
    }

    fn read_run(&mut self, run: &str) -> Played {
        let reply = self.get(&format!("/v1/runs/{run}"))?;
        let mut diff = Diff::default();
        if self.ledger.calls.iter().any(|call| call.key.run == run) {
            compare::summary(&mut diff, &self.ledger, run, &reply.json);
            self.shown(run);
        } else {
            problem(&mut diff, &[(404, "run_not_found")], &reply);
        }
        named(diff, &format!("run {run}"), &reply)
    }

    fn read_calls(&mut self, run: &str) -> Played {
        let reply = self.get(&format!("/v1/runs/{run}/calls?page_size=500"))?;
        let mut diff = Diff::default();
        let calls: Vec<_> = self.ledger.calls.iter().filter(|call| call.key.run == run).collect();
        if calls.is_empty() {
            problem(&mut diff, &[(404, "run_not_found")], &reply);
            return named(diff, &format!("the calls of {run}"), &reply);
        }
        let listed = reply.json["calls"].as_array().map_or(&[] as &[Value], Vec::as_slice);
        diff.eq("calls", calls.len(), &json!(listed.len()));
        for (call, got) in calls.iter().zip(listed) {
            let mut one = Diff::default();
            compare::call(&mut one, &self.ledger, call, got);
            one.result()
                .map_err(|found| format!("listed {:?}: {found}\nanswer: {got}", call.key))?;
        }
        self.checks += calls.len() as u64;
        self.shown(run);
        named(diff, &format!("the calls of {run}"), &reply)
    }

    /// An answer has shown all calls of a run.
    fn shown(&mut self, run: &str) {
        for index in 0..self.ledger.calls.len() {
            if self.ledger.calls[index].key.run == run {
                self.ledger.read(index);
            }
        }
    }

    /// Requests that are refused for their shape, or in every state.
    pub(super) fn bad(&mut self, number: usize) -> Played {
        let scope = self.scope_id(crate::blackbox::steps::ScopeRef::Newest);
        let claim = |more: Value| {
            let mut body = json!({
                "scope_id": scope, "claim_id": "bad", "tool": "t", "input": {}, "lease_ms": 1000,
            });
            for (name, value) in more.as_object().expect("an object") {
                body[name] = value.clone();
            }
            body
        };
        let attempts = "/v1/runs/run_0/calls/bad/attempts";
        let keyed = json!({"tools": [{"match": "x", "effect": "keyed"}]});
        let (method, path, body, want) = match number {
            0 => ("POST", attempts, claim(json!({"lease_ms": 999})), (400, "invalid_request")),
            1 => {
                ("POST", attempts, claim(json!({"lease_ms": 86_400_001})), (400, "invalid_request"))
            }
            2 => ("POST", attempts, claim(json!({"more": 1})), (400, "invalid_request")),
            3 => {
                let both = claim(json!({"input_hash": sha256("{}")}));
                ("POST", attempts, both, (400, "invalid_request"))
            }
            4 => ("GET", "/v1/runs/run_0/calls/bad", Value::Null, (404, "call_not_found")),
            5 => (
                "GET",
                "/v1/runs/run_0/calls/bad/decision?more=1",
                Value::Null,
                (400, "invalid_query"),
            ),
            6 => ("POST", attempts, claim(json!({"claim_id": "a/b"})), (400, "invalid_id")),
            _ => ("PUT", "/v1/effects/policy", keyed, (422, "policy_invalid")),
        };
        let reply = self.ask(method, path, &body)?;
        let mut diff = Diff::default();
        problem(&mut diff, &[want], &reply);
        named(diff, &format!("{method} {path} {body}"), &reply)
    }
}
