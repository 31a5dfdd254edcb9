//! Claims.

use recibo_tests::api::Reply;
use serde_json::{Value, json};

use super::{Drive, Played, named, path_of, problem};
use crate::blackbox::compare::{self, Diff};
use crate::blackbox::model::{ClaimAsk, Decision, Retry, TWIN_WINDOW_MS, TwinAsk, Verdict};
use crate::blackbox::steps::ClaimStep;
use crate::blackbox::world::{Sent, Spec};

impl Drive {
    pub(super) fn claim(&mut self, step: &ClaimStep) -> Played {
        let (ask, body) = self.claim_ask(step);
        let verdicts = self.ledger.judge_claim(&ask);
        let reply = self.post(&format!("{}/attempts", path_of(&ask.key)), &body)?;
        let mut differences = Vec::new();
        for verdict in &verdicts {
            match self.hold_claim(&ask, verdict, &reply) {
                Ok(()) => return self.claimed(&ask, verdict, &reply),
                Err(found) => differences.push(found),
            }
        }
        Err(format!("{}\nclaim: {body}", differences.join("\nor ")))
    }

    /// The claim of a step, as the model and as the service get it.
    fn claim_ask(&self, step: &ClaimStep) -> (ClaimAsk, Value) {
        let mut spec = self.spec(step.call);
        if step.other_tool {
            spec.tool = "free/other";
        }
        if step.other_input {
            spec.order = 9;
        }
        if step.other_key {
            spec.operation_key = Some("op-other".to_owned());
        }
        let known = self.ledger.call(&spec.key);
        let usual = (!spec.has_rule()).then(|| known.map_or(spec.effect, |c| c.terms.effect));
        let brings = !spec.has_rule();
        let ask = ClaimAsk {
            key: spec.key.clone(),
            tool: spec.tool.to_owned(),
            input_hash: spec.input_hash(),
            twin_hash: self.world.twin_hash(&spec),
            claim_id: format!("claim-{}", step.claim),
            scope: self.scope_id(step.scope),
            effect: step.effect.or(usual),
            lease_ms: step.lease_ms,
            attempt: step.attempt.map(|attempt| self.number(&spec.key, attempt)),
            operation_key: spec.operation_key.clone(),
            terms: if brings { spec.terms } else { (None, None) },
            twins: TwinAsk {
                stop: step.stop,
                window_ms: step.window_ms.unwrap_or(TWIN_WINDOW_MS),
                knows: self.knows(&spec, &step.knows),
            },
        };
        let mut body = json!({
            "scope_id": ask.scope, "claim_id": ask.claim_id, "tool": ask.tool,
            "lease_ms": ask.lease_ms,
        });
        self.add_input(&mut body, &spec);
        let mut add = |name: &str, value: Value| {
            if !value.is_null() {
                body[name] = value;
            }
        };
        add("effect", json!(ask.effect));
        add("attempt", json!(ask.attempt));
        add("operation_key", json!(ask.operation_key));
        add("key_window_ms", json!(ask.terms.0));
        add("settle_ms", json!(ask.terms.1));
        add("twins", if step.stop { json!("stop") } else { Value::Null });
        add("twin_window_ms", json!(step.window_ms));
        add("knows", json!(ask.twins.knows));
        (ask, body)
    }

    /// What is sent of the arguments.
    pub(super) fn add_input(&self, body: &mut Value, spec: &Spec) {
        if spec.sent == Sent::Input {
            body["input"] = json!(spec.input());
            return;
        }
        body["input_hash"] = json!(spec.input_hash());
        if spec.sent == Sent::Hashes {
            body["twin_hash"] = json!(self.world.twin_hash(spec));
        }
    }

    /// Calls of the same run by their id or in full, others in full.
    fn knows(&self, spec: &Spec, calls: &[usize]) -> Vec<String> {
        let named = |call: &usize| {
            let key = &self.world.calls[*call].key;
            if key.run == spec.key.run && call.is_multiple_of(3) {
                key.id.clone()
            } else {
                format!("{}/{}", key.run, key.id)
            }
        };
        calls.iter().map(named).collect()
    }

    fn hold_claim(&self, ask: &ClaimAsk, verdict: &Verdict, reply: &Reply) -> Played {
        let mut diff = Diff::default();
        let (ledger, got) = (&self.ledger, &reply.json);
        let twin = ledger.shown_twin(&ask.key, &ask.tool, &ask.twin_hash);
        match verdict {
            Verdict::Refused(status, code) => {
                problem(&mut diff, &[(*status, code)], reply);
                self.hold_refusal(&mut diff, ask, code, got);
            }
            Verdict::Granted(grant) => {
                let status = if grant.replayed.is_some() { 200 } else { 201 };
                diff.eq("status", status, &json!(reply.status));
                compare::grant(&mut diff, ledger, ask, grant, got);
                compare::twin(&mut diff, ledger, twin, &got["twin"]);
            }
            Verdict::Advised(decision) => {
                diff.eq("status", 200, &json!(reply.status));
                compare::advice(&mut diff, ledger, &ask.key, decision, got);
                compare::twin(&mut diff, ledger, twin, &got["twin"]);
                retry_header(&mut diff, decision.retry, reply);
            }
            Verdict::Held(own, hold) => {
                let decision = Decision {
                    kind: hold.kind,
                    reasons: vec![hold.reason],
                    retry: hold.retry,
                    ..own.clone()
                };
                diff.eq("status", 200, &json!(reply.status));
                compare::advice(&mut diff, ledger, &ask.key, &decision, got);
                compare::twin(&mut diff, ledger, Some(hold.twin), &got["twin"]);
                retry_header(&mut diff, hold.retry, reply);
            }
        }
        named(diff, "a claim", reply)
    }

    /// What some refusals say beside their code.
    fn hold_refusal(&self, diff: &mut Diff, ask: &ClaimAsk, code: &str, got: &Value) {
        if code == "input_mismatch" {
            let call = self.ledger.call(&ask.key).expect("a known call");
            let first_seen = crate::blackbox::clock::text(call.recorded_at);
            diff.eq("first_seen_at", first_seen, &got["first_seen_at"]);
            diff.holds("hint", got["hint"].is_string(), got);
            let mut differs = Vec::new();
            if call.tool != ask.tool {
                differs.push("tool");
            }
            if call.input_hash != ask.input_hash {
                differs.push("input_hash");
            }
            diff.eq("differs", differs, &got["differs"]);
        }
        if code == "operation_key_taken" {
            let key = ask.operation_key.as_deref();
            let holder = self.ledger.holder(key, &ask.key).expect("another call");
            let named = json!({"run_id": holder.key.run, "tool_call_id": holder.key.id});
            diff.eq("holder", named, &got["holder"]);
            diff.eq("decision", self.ledger.decide_known(holder).kind, &got["decision"]);
        }
    }

    fn claimed(&mut self, ask: &ClaimAsk, verdict: &Verdict, reply: &Reply) -> Played {
        let twin = self.ledger.shown_twin(&ask.key, &ask.tool, &ask.twin_hash);
        if let Verdict::Granted(grant) = verdict
            && grant.replayed.is_none()
        {
            let token = reply.json["lease"]["token"].as_str().unwrap_or_default();
            self.ledger.granted(ask, grant, token);
            self.wrote();
        }
        // The answer showed the call, and its twin.
        let own = self.ledger.find(&ask.key);
        let shown = !matches!(verdict, Verdict::Refused(..));
        for index in [own, twin].into_iter().flatten().filter(|_| shown) {
            self.ledger.read(index);
        }
        Ok(())
    }
}

/// `Retry-After` says in whole seconds what the body says in milliseconds.
pub(super) fn retry_header(diff: &mut Diff, want: Retry, reply: &Reply) {
    let header = reply.headers.get("retry-after").and_then(|text| text.parse::<u64>().ok());
    let body = reply.json["retry_after_ms"].as_u64();
    let expected = match want {
        Retry::None => None,
        Retry::Exactly(_) | Retry::Within(..) => body.map(|ms| ms.div_ceil(1000)),
    };
    diff.eq("Retry-After", json!(expected), &json!(header));
}
