//! Outcomes and one-shots.

use recibo_tests::api::Reply;
use serde_json::{Value, json};

use super::{Drive, Played, named, path_of, problem};
use crate::blackbox::clock::text;
use crate::blackbox::compare::{self, Diff};
use crate::blackbox::model::sha256;
use crate::blackbox::model::{CallKey, Outcome, OutcomeVerdict, ShotAsk, ShotVerdict, Status};
use crate::blackbox::steps::{OutcomeStep, ShotStep};

impl Drive {
    pub(super) fn outcome(&mut self, step: &OutcomeStep) -> Played {
        let key = self.acted_on(step.call);
        let number = self.number(&key, step.attempt);
        let token = self.lease_token(&key, number, step.token);
        let outcome = self.said(step.status, step.other, step.answered);
        let scope = step.scope.map(|scope| self.scope_id(scope));
        let mut body = json!({ "lease_token": token });
        self.add_outcome(&mut body, &outcome, step.other, step.answered);
        if let Some(scope) = &scope {
            body["scope_id"] = json!(scope);
        }
        let verdict = self.ledger.judge_outcome(&key, number, &token, &outcome, scope.as_deref());
        let path = format!("{}/attempts/{number}/outcome", path_of(&key));
        let reply = self.post(&path, &body)?;
        let mut diff = Diff::default();
        match verdict {
            OutcomeVerdict::Refused(status, code) => problem(&mut diff, &[(status, code)], &reply),
            OutcomeVerdict::Replayed => self.hold_recorded(&mut diff, &key, number, true, &reply),
            OutcomeVerdict::Taken { late, is_evidence, signers } => {
                let taken = signed(&mut diff, outcome, signers.first(), &reply);
                let is_lost = step.status == Status::Ok && !is_evidence && signers.is_empty();
                self.ledger.reported(&key, number, late, taken);
                self.wrote();
                self.hold_recorded(&mut diff, &key, number, false, &reply);
                if !is_evidence {
                    let reason = is_lost.then_some("scope_gone");
                    diff.eq("no_token_reason", json!(reason), &reply.json["no_token_reason"]);
                }
            }
        }
        named(diff, &format!("outcome {body} of {key:?} {number}"), &reply)
    }

    /// What a caller reports.
    fn said(&self, status: Status, other: bool, answered: Option<bool>) -> Outcome {
        let is_ok = status == Status::Ok;
        Outcome {
            status,
            duration_ms: self.ledger.now % 977,
            output_hash: is_ok.then(|| sha256(output(other))),
            error_class: (!is_ok).then(|| error_class(other).to_owned()),
            answered: answered == Some(true),
            token: None,
            signer: None,
        }
    }

    fn add_outcome(&self, body: &mut Value, said: &Outcome, other: bool, answered: Option<bool>) {
        body["status"] = json!(said.status);
        body["duration_ms"] = json!(said.duration_ms);
        if let Some(class) = &said.error_class {
            body["error_class"] = json!(class);
        } else if self.ledger.now.is_multiple_of(3) {
            body["output_hash"] = json!(said.output_hash);
        } else {
            body["output"] = json!(output(other));
        }
        if let Some(answered) = answered {
            body["answered"] = json!(answered);
        }
    }

    /// Holds the record in an answer against the model.
    fn hold_recorded(
        &mut self,
        diff: &mut Diff,
        key: &CallKey,
        number: u32,
        replayed: bool,
        reply: &Reply,
    ) {
        let index = self.ledger.find(key).expect("a known call");
        let call = &self.ledger.calls[index];
        let fold = self.ledger.fold(call);
        let attempt = fold.attempt(number).expect("a known attempt");
        diff.holds("status", matches!(reply.status, 200 | 201), &json!(reply.status));
        compare::record(diff, &self.ledger, call, attempt, &reply.json);
        diff.eq("replayed", replayed, &reply.json["replayed"]);
        let token = attempt.deciding().and_then(|(_, _, said)| said.token.clone());
        let line = token.map(|token| format!("[receipt: {token}]"));
        diff.eq("receipt_line", json!(line), &reply.json["receipt_line"]);
        self.ledger.read(index);
    }

    pub(super) fn shot(&mut self, step: &ShotStep) -> Played {
        let (ask, mut body) = match self.shots[step.call].clone().filter(|_| step.again) {
            Some((mut ask, body)) => {
                ask.scope = self.scope_id(step.scope);
                ask.attempt = None;
                (ask, body)
            }
            None => self.shot_ask(step),
        };
        body["scope_id"] = json!(ask.scope);
        if let Some(attempt) = ask.attempt {
            body["attempt"] = json!(attempt);
        }
        let verdicts = self.ledger.judge_shot(&ask);
        let reply = self.post("/v1/receipts", &body)?;
        let refused: Vec<(u16, &str)> = verdicts.iter().filter_map(refusal).collect();
        let mut diff = Diff::default();
        match &verdicts[0] {
            ShotVerdict::Refused(..) => problem(&mut diff, &refused, &reply),
            ShotVerdict::Replayed(attempt) => {
                diff.eq("status", 200, &json!(reply.status));
                self.hold_recorded(&mut diff, &ask.key, *attempt, true, &reply);
            }
            ShotVerdict::Recorded { attempt, terms, is_signed } => {
                diff.eq("status", 201, &json!(reply.status));
                let signer = Some(&ask.scope).filter(|_| *is_signed);
                let taken = signed(&mut diff, ask.outcome.clone(), signer, &reply);
                self.ledger.recorded(&ask, *terms, taken);
                self.wrote();
                self.hold_recorded(&mut diff, &ask.key, *attempt, false, &reply);
                body.as_object_mut().expect("an object").remove("attempt");
                self.shots[step.call] = Some((ask, body.clone()));
            }
        }
        named(diff, &format!("one-shot {body}"), &reply)
    }

    fn shot_ask(&self, step: &ShotStep) -> (ShotAsk, Value) {
        let spec = self.spec(step.call);
        let known = self.ledger.call(&spec.key);
        let usual = (!spec.has_rule()).then(|| known.map_or(spec.effect, |c| c.terms.effect));
        let ask = ShotAsk {
            key: spec.key.clone(),
            tool: spec.tool.to_owned(),
            input_hash: spec.input_hash(),
            twin_hash: self.world.twin_hash(&spec),
            scope: self.scope_id(step.scope),
            effect: step.effect.or(usual),
            attempt: step.attempt.map(|attempt| self.number(&spec.key, attempt)),
            operation_key: spec.operation_key.clone(),
            started_at: self.ledger.now - step.started_ms_ago,
            outcome: self.said(step.status, step.other, step.answered),
        };
        let mut body = json!({
            "run_id": spec.key.run, "tool_call_id": spec.key.id, "tool": spec.tool,
            "started_at": text(ask.started_at),
        });
        self.add_input(&mut body, &spec);
        self.add_outcome(&mut body, &ask.outcome, step.other, step.answered);
        if let Some(effect) = ask.effect {
            body["effect"] = json!(effect);
        }
        if let Some(key) = &ask.operation_key {
            body["operation_key"] = json!(key);
        }
        (ask, body)
    }
}

fn refusal(verdict: &ShotVerdict) -> Option<(u16, &'static str)> {
    match verdict {
        ShotVerdict::Refused(status, code) => Some((*status, *code)),
        _ => None,
    }
}

/// Notes the receipt of an answer in the outcome; whether there is one is compared.
fn signed(diff: &mut Diff, mut said: Outcome, signer: Option<&String>, reply: &Reply) -> Outcome {
    if let Some(scope) = signer {
        let token = reply.json["token"].as_str();
        let is_token = token.is_some_and(|token| token.starts_with("zc-receipt-"));
        diff.holds("a token", is_token, &reply.json["token"]);
        said.token = token.map(str::to_owned);
        said.signer = Some(scope.clone());
    }
    said
}

fn output(other: bool) -> &'static str {
    if other { "{\"done\": \"otherwise\"}" } else { "done" }
}

fn error_class(other: bool) -> &'static str {
    if other { "test.other" } else { "test" }
}
