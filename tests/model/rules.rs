//! The rules under check: the real ones of the core, or the real ones with one fault.

use recibo_core::call::{Attempt, Call};
use recibo_core::decision::{Decision, Moment, decide};
use recibo_core::effect::{Effect, Policy, Rule, StatedTerms, Terms, TwinScope};
use recibo_core::event::{Body, Facts, Finished, Outcome};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{
    CallRef, ClaimId, ErrorClass, Labels, Namespace, RunId, ScopeId, ToolCallId, ToolName,
};
use recibo_core::plan::{
    self, Check, Claim, ClaimKnown, Claimed, KnownCall, Place, Refusal, ReportKnown, Resolution,
    ScopeKnown, Signer, TwinRule,
};
use recibo_core::receipt::ScopeKey;
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs};
use recibo_core::time::Time;

use super::world::{LEASE, SETTLE, WINDOW};

/// One broken promise: of the rules, or of those who rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An attempt whose lease ended counts as one without effect.
    ExpiredIsRetryable,
    /// The rules do not wait until "not executed" is final; the world still needs that time.
    NoSettleTime,
    /// Adapters send although their lease is over.
    SendsAfterLease,
    /// A report is booked on the newest attempt, whoever makes it.
    NoFence,
}

/// The rules of one call, and all that they need besides its events.
pub struct Rules {
    /// Effect of the call.
    pub effect: Effect,
    /// What is broken, if anything is.
    pub fault: Option<Fault>,
    namespace: Namespace,
    scope_id: ScopeId,
    key: ScopeKey,
    claim: Claim,
    ok: Outcome,
}

impl Rules {
    /// The rules as they are.
    pub fn of(effect: Effect) -> Self {
        let claim = Claim {
            call: CallRef {
                run_id: RunId::parse("run").expect("an id"),
                tool_call_id: ToolCallId::parse("call").expect("an id"),
            },
            claim_id: ClaimId::parse("claim").expect("an id"),
            scope_id: ScopeId::parse("scope").expect("an id"),
            tool: ToolName::parse("tool").expect("a name"),
            input_hash: InputHash::of_canonical("{}"),
            terms: StatedTerms::default(),
            lease_ms: LEASE,
            attempt: None,
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            redacted: false,
            twins: TwinRule::advise(),
        };
        let ok = Outcome {
            status: OutcomeStatus::Ok,
            duration_ms: 1,
            output_hash: Some(OutputHash::of_text("done")),
            output_summary: None,
            error_class: None,
            provider_ref: None,
            message_id: None,
            redacted: false,
            answered: false,
        };
        Self {
            effect,
            fault: None,
            namespace: Namespace::parse("default").expect("a name"),
            scope_id: claim.scope_id.clone(),
            key: ScopeKey::new(&mut [7; 32]),
            claim,
            ok,
        }
    }

    /// The terms that the call's first attempt freezes.
    pub fn terms(&self) -> Terms {
        let settle_ms = if self.fault == Some(Fault::NoSettleTime) { 0 } else { SETTLE };
        Terms { key_window_ms: Some(WINDOW), settle_ms: Some(settle_ms), ..Terms::of(self.effect) }
    }

    /// What the table says.
    pub fn decision(&self, call: Option<&Call>, now: Time) -> Decision {
        let terms = self.terms();
        decide(call.map(|call| (&call.tip, &terms)), &moment(now))
    }

    /// A claim; `claimed` is the attempt that its claim id got before.
    pub fn claim(
        &self,
        call: Option<&Call>,
        now: Time,
        claimed: Option<u32>,
    ) -> Result<Claimed, Refusal> {
        let known = call.map(|call| self.known(self.as_the_fault_sees_it(call, now)));
        let policy = Policy { rules: vec![Rule::new("*", self.terms())] };
        let known = ClaimKnown {
            policy: &policy,
            call: known.as_ref(),
            claimed,
            holder: None,
            scope: ScopeKnown::Open(Signer { scope_id: &self.scope_id, key: &self.key }),
            twins: &[],
        };
        plan::claim(&place(now), &self.claim, &known)
    }

    /// An outcome; the call after it, or `None` for one that was reported before.
    pub fn report(
        &self,
        call: &Call,
        now: Time,
        attempt: u32,
        status: OutcomeStatus,
    ) -> Result<Option<Call>, Refusal> {
        let attempt = match self.fault {
            Some(Fault::NoFence) => call.tip.attempts(),
            _ => attempt,
        };
        let said: Vec<Outcome> = call
            .attempt(attempt)
            .map(|attempt| attempt.outcomes.iter().map(|mark| self.outcome(mark.status)).collect())
            .unwrap_or_default();
        let known = self.known(call.clone());
        let report =
            plan::Report { call: self.claim.call.clone(), attempt, outcome: self.outcome(status) };
        let known = ReportKnown {
            call: Some(&known),
            lease_token_is_right: true,
            outcomes: &said,
            signer: None,
        };
        Ok(plan::report(&place(now), &self.namespace, &report, &known)?.plan.call)
    }

    /// A status check that was made at `asked_at`.
    pub fn check(
        &self,
        call: &Call,
        now: Time,
        attempt: u32,
        answer: CheckAnswer,
        asked_at: Time,
    ) -> Result<Option<Call>, Refusal> {
        let check = Check {
            call: self.claim.call.clone(),
            attempt,
            answer,
            source: String::new(),
            age_ms: now.ms_since(asked_at),
            provider_ref: None,
            redacted: false,
        };
        Ok(plan::check(&place(now), &check, Some(&self.known(call.clone())))?.plan.call)
    }

    /// An operator's word.
    pub fn resolve(
        &self,
        call: &Call,
        now: Time,
        state: ResolvedAs,
    ) -> Result<Option<Call>, Refusal> {
        let resolution = Resolution {
            call: self.claim.call.clone(),
            state,
            reason: String::new(),
            redacted: false,
            by: String::new(),
            corrects: None,
        };
        Ok(plan::resolve(&place(now), &resolution, Some(&self.known(call.clone())), true)?.call)
    }

    /// The background job.
    pub fn expire(&self, call: &Call, now: Time) -> Option<Call> {
        plan::expire(&place(now), &self.claim.call, &self.known(call.clone()))?.call
    }

    /// With [`Fault::ExpiredIsRetryable`], a lease that ended without an outcome is booked as an
    /// error before the claim is decided.
    fn as_the_fault_sees_it(&self, call: &Call, now: Time) -> Call {
        let mut call = call.clone();
        let newest: &Attempt = &call.tip.newest;
        let ended = newest.outcomes.is_empty() && newest.settled.is_none() && !newest.is_live(now);
        if self.fault == Some(Fault::ExpiredIsRetryable) && ended {
            let finished = Body::Finished(Finished {
                call: self.claim.call.clone(),
                attempt: newest.number,
                outcome: self.outcome(OutcomeStatus::RetryableError),
                late: true,
                receipt: None,
            });
            let mut slot = Some(call);
            recibo_core::call::apply(&mut slot, 1, now, &finished);
            call = slot.expect("the call is still there");
        }
        call
    }

    fn outcome(&self, status: OutcomeStatus) -> Outcome {
        if status == OutcomeStatus::Ok {
            return self.ok.clone();
        }
        let error_class = Some(ErrorClass::parse("test").expect("a class"));
        Outcome { status, output_hash: None, error_class, ..self.ok.clone() }
    }

    fn known(&self, call: Call) -> KnownCall {
        let facts = Facts {
            tool: self.claim.tool.clone(),
            input_hash: self.claim.input_hash,
            terms: self.terms(),
            operation_key: None,
            message_id: None,
            labels: Labels::default(),
            trace: None,
            redacted: false,
            twin_hash: None,
            twin_scope: TwinScope::Run,
        };
        KnownCall { facts, call }
    }
}

/// Sequence numbers are names here: no rule compares them.
fn place(now: Time) -> Place {
    Place { seq: 1, moment: moment(now) }
}

fn moment(now: Time) -> Moment {
    Moment { now, key_windows_void_until: None }
}
