//! Status checks, resolutions and renewals.

use recibo_tests::api::Reply;
use serde_json::{Value, json};

use super::{Drive, Played, named, path_of, problem};
use crate::blackbox::clock::ms_of;
use crate::blackbox::compare::{self, Diff};
use crate::blackbox::model::{Answer, CallKey, CheckVerdict, Event, Resolved, Retry};
use crate::blackbox::steps::{AttemptRef, CorrectsRef, TagRef, TokenRef};

/// A job of the service may append between two requests; a read tag is then stale.
const TRIES: usize = 5;

impl Drive {
    pub(super) fn check(
        &mut self,
        call: usize,
        attempt: AttemptRef,
        answer: Answer,
        age_ms: u64,
    ) -> Played {
        let key = self.acted_on(call);
        let number = self.number(&key, attempt);
        let verdict = self.ledger.judge_check(&key, number, answer, age_ms);
        let source = format!("asked at {}", self.ledger.now);
        let body = json!({"answer": answer, "source": source, "age_ms": age_ms});
        let path = format!("{}/attempts/{number}/status-checks", path_of(&key));
        let reply = self.post(&path, &body)?;
        let mut diff = Diff::default();
        match verdict {
            CheckVerdict::Refused(status, code) => problem(&mut diff, &[(status, code)], &reply),
            CheckVerdict::Taken { counted, retry } => {
                diff.eq("status", 200, &json!(reply.status));
                self.ledger.checked(&key, number, answer, &source, counted);
                self.wrote();
                self.hold_call(&mut diff, &key, retry, &reply);
            }
        }
        named(diff, &format!("check {body} of {key:?} {number}"), &reply)
    }

    pub(super) fn resolve(
        &mut self,
        call: usize,
        state: Resolved,
        tag: TagRef,
        corrects: Option<CorrectsRef>,
    ) -> Played {
        let key = self.acted_on(call);
        let corrects = corrects.and_then(|which| self.corrected(&key, which));
        let refusals = self.ledger.judge_resolution(&key, corrects);
        let reason = format!("said at {}", self.ledger.now);
        let mut body = json!({"state": state, "reason": reason});
        if let Some(seq) = corrects {
            body["corrects"] = json!(seq);
        }
        let reply = self.send_resolution(&key, tag, &body)?;
        let mut diff = Diff::default();
        match tag {
            TagRef::None if refusals.contains(&(404, "call_not_found")) => {
                problem(&mut diff, &[(428, "if_match_required"), refusals[0]], &reply);
            }
            TagRef::None => problem(&mut diff, &[(428, "if_match_required")], &reply),
            TagRef::Stale if refusals.contains(&(404, "call_not_found")) => {
                problem(&mut diff, &refusals, &reply);
            }
            TagRef::Stale => {
                let stale = [(412, "version_mismatch")];
                problem(&mut diff, &[&refusals[..], &stale].concat(), &reply);
            }
            TagRef::Fresh if !refusals.is_empty() => problem(&mut diff, &refusals, &reply),
            TagRef::Fresh => {
                diff.eq("status", 200, &json!(reply.status));
                // The version is the seq of the call's last event: this one.
                let seq = reply.json["version"].as_u64().unwrap_or_default();
                self.ledger.resolved(&key, state, &reason, corrects, seq);
                self.wrote();
                self.hold_call(&mut diff, &key, None, &reply);
            }
        }
        named(diff, &format!("resolution {body} of {key:?}"), &reply)
    }

    fn send_resolution(
        &mut self,
        key: &CallKey,
        tag: TagRef,
        body: &Value,
    ) -> Result<Reply, String> {
        let path = path_of(key);
        let text = body.to_string();
        for _ in 0..TRIES {
            let read = self.get(&path)?;
            let fresh = read.headers.get("etag").cloned().unwrap_or_else(|| "\"0\"".to_owned());
            let mut headers = vec![("content-type", "application/json")];
            match tag {
                TagRef::Fresh => headers.push(("if-match", &fresh)),
                TagRef::Stale => headers.push(("if-match", "\"999999999\"")),
                TagRef::None => {}
            }
            self.checks += 1;
            let sent =
                self.api().send("POST", &format!("{path}/resolution"), &headers, text.as_bytes());
            let reply = sent.map_err(|error| format!("resolution: {error}"))?;
            self.count("resolution", &reply);
            if reply.status != 412 || tag != TagRef::Fresh {
                return Ok(reply);
            }
        }
        Err(format!("a fresh ETag of {key:?} is stale {TRIES} times"))
    }

    /// The seq that a resolution names as the one it corrects. Where something was recorded
    /// since, or evidence decides only since that resolution settled the other attempts, the
    /// contract does not say whether the state rests on that resolution alone; no `corrects` is
    /// sent then.
    fn corrected(&self, key: &CallKey, which: CorrectsRef) -> Option<u64> {
        let call = self.ledger.call(key)?;
        let fold = self.ledger.fold(call);
        let mut seqs = call.events.iter().filter_map(|event| match event {
            Event::Resolved { seq, .. } => Some(*seq),
            _ => None,
        });
        match which {
            CorrectsRef::Wrong => Some(seqs.next()? + 1_000_000),
            CorrectsRef::First if seqs.clone().count() > 1 => seqs.next(),
            _ if fold.is_fixed_by_word => None,
            _ if !fold.is_resolved_last && fold.fixed.is_none() => None,
            _ => seqs.next_back(),
        }
    }

    pub(super) fn renew(
        &mut self,
        call: usize,
        attempt: AttemptRef,
        token: TokenRef,
        lease_ms: u64,
    ) -> Played {
        let key = self.acted_on(call);
        let number = self.number(&key, attempt);
        let token = self.lease_token(&key, number, token);
        let verdict = self.ledger.judge_renewal(&key, number, &token, lease_ms);
        let body = json!({"lease_token": token, "lease_ms": lease_ms});
        let reply = self.post(&format!("{}/attempts/{number}/lease", path_of(&key)), &body)?;
        let mut diff = Diff::default();
        match verdict {
            Err(refusal) => problem(&mut diff, &[refusal], &reply),
            Ok(ends) => {
                diff.eq("status", 200, &json!(reply.status));
                let shown = &reply.json["lease"]["expires_at"];
                let end = shown.as_str().and_then(ms_of).unwrap_or_default();
                diff.holds(&format!("the lease ends at {ends:?}"), ends.contains(&end), shown);
                if self.ledger.renewed(&key, number, end) {
                    self.wrote();
                }
            }
        }
        named(diff, &format!("renewal {body} of {key:?} {number}"), &reply)
    }

    /// Holds an answer that is a call and its decision against the model.
    pub(super) fn hold_call(
        &mut self,
        diff: &mut Diff,
        key: &CallKey,
        retry: Option<Retry>,
        reply: &Reply,
    ) {
        let index = self.ledger.find(key).expect("a known call");
        let call = &self.ledger.calls[index];
        let mut decision = self.ledger.decide_known(call);
        decision.retry = retry.unwrap_or(decision.retry);
        compare::call(diff, &self.ledger, call, &reply.json);
        compare::decision(diff, &decision, &reply.json);
        self.ledger.read(index);
    }
}
