//! Twins: other calls that do the same. Models retry under a new tool_call_id, so a claim can ask
//! to be held back while a twin may have taken effect.

use crate::call::Tip;
use crate::decision::Decision;
use crate::effect::Terms;
use crate::hash::InputHash;
use crate::id::{CallRef, NameError, RunId, ToolCallId};
use crate::status::{CallState, DecisionKind, Reason};
use crate::time::Time;

/// What becomes of a claim that has twins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTwin {
    /// It is told of them.
    #[default]
    Advise,
    /// It is held back while one of them may have taken effect.
    Stop,
}

/// How a claim is judged against its twins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwinRule {
    /// What becomes of the claim.
    pub on_twin: OnTwin,
    /// How long a twin of unknown outcome, or a late success, holds a claim back, in
    /// milliseconds.
    pub window_ms: u64,
    /// Late successes that the caller knows of.
    pub knows: Vec<Knows>,
    /// What calls of the tool share that do the same, where that is not the input hash.
    pub hash: Option<InputHash>,
}

impl OnTwin {
    /// Both, in the order of the contract.
    pub const ALL: &'static [Self] = &[Self::Advise, Self::Stop];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advise => "advise",
            Self::Stop => "stop",
        }
    }
}

impl TwinRule {
    /// Advice only.
    pub fn advise() -> Self {
        let window_ms = crate::limits::TWIN_WINDOW_MS_DEFAULT;
        Self { on_twin: OnTwin::Advise, window_ms, knows: Vec::new(), hash: None }
    }
}

/// A call that the caller knows the late success of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knows {
    /// Its run; `None` for the run of the claim.
    pub run_id: Option<RunId>,
    /// The call.
    pub tool_call_id: ToolCallId,
}

impl Knows {
    /// Reads `tool_call_id` or `run_id/tool_call_id`; ids hold no `/`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (run_id, tool_call_id) = match text.split_once('/') {
            Some((run_id, tool_call_id)) => (Some(RunId::parse(run_id)?), tool_call_id),
            None => (None, text),
        };
        Ok(Self { run_id, tool_call_id: ToolCallId::parse(tool_call_id)? })
    }
}

/// Another call that does the same, as the ledger has it.
#[derive(Clone, Debug)]
pub struct TwinKnown {
    /// That call.
    pub call: CallRef,
    /// What decisions need of it.
    pub tip: Tip,
}

/// Another call that does the same, as a claim is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// That call.
    pub call: CallRef,
    /// Its attempt that decides.
    pub attempt: u32,
    /// Its state.
    pub state: CallState,
}

impl Twin {
    fn of(known: &TwinKnown, now: Time) -> Self {
        let attempt = known.tip.ok_attempt.unwrap_or(known.tip.newest.number);
        Self { call: known.call.clone(), attempt, state: known.tip.state(now) }
    }
}

/// Of twins, the newest first, the one that matters most to who looks at the call: one of
/// unknown outcome, else one under way, else one that is done.
pub fn telling(twins: &[TwinKnown], now: Time) -> Option<Twin> {
    let rank = |twin: &&TwinKnown| match twin.tip.state(now) {
        CallState::Unknown => 0,
        CallState::InFlight => 1,
        CallState::Ok => 2,
        _ => 3,
    };
    let twin = twins.iter().min_by_key(rank).filter(|twin| rank(twin) < 3)?;
    Some(Twin::of(twin, now))
}

/// The advice that holds a claim back, and the twin that decided. `twins` come the newest first.
pub(super) fn hold_back(
    of: &CallRef,
    state: CallState,
    terms: &Terms,
    rule: &TwinRule,
    twins: &[TwinKnown],
    now: Time,
) -> Option<(Decision, Twin)> {
    if rule.on_twin == OnTwin::Advise || terms.effect.is_repeatable() {
        return None;
    }
    let judged = twins.iter().filter_map(|twin| Some((judge(of, rule, twin, now)?, twin)));
    // The first of equals is the newest: `min_by_key` keeps it.
    let ((_, kind, reason), twin) = judged.min_by_key(|((rank, ..), _)| *rank)?;
    let retry_after_ms = match kind {
        DecisionKind::Wait => twin.tip.newest.lease_expires_at().map(|end| end.ms_since(now)),
        _ => None,
    };
    Some((Decision { kind, reason, state, retry_after_ms }, Twin::of(twin, now)))
}

/// What one twin says, and how strong that is.
fn judge(
    of: &CallRef,
    rule: &TwinRule,
    twin: &TwinKnown,
    now: Time,
) -> Option<(u8, DecisionKind, Reason)> {
    let tip = &twin.tip;
    let state = tip.state(now);
    let is_recent = |since: Time| now.ms_since(since) < rule.window_ms;
    let is_open_question = tip.conflict || (state == CallState::Unknown && tip.is_unanswered(now));
    if is_open_question && is_recent(tip.aged_from) {
        return Some((0, DecisionKind::Stop, Reason::TwinUnknown));
    }
    if state == CallState::InFlight {
        return Some((1, DecisionKind::Wait, Reason::TwinInFlight));
    }
    let is_news = state == CallState::Ok && tip.ok_late_at.is_some_and(is_recent);
    let is_known = rule.knows.iter().any(|known| {
        known.tool_call_id == twin.call.tool_call_id
            && *known.run_id.as_ref().unwrap_or(&of.run_id) == twin.call.run_id
    });
    (is_news && !is_known).then_some((2, DecisionKind::Reuse, Reason::TwinOkLate))
}
