//! Stored events: version byte, leaf hash, then the event without what its place says already.
//!
//! An event of version 2 is one of version 1 followed by the members that version 1 has no place
//! for. What needs none of them is stored as version 1 still: most events do not.

use bincode::{BorrowDecode, Decode, Encode};
use recibo_core::effect::{Effect, IsError, Policy, Rule, Terms, TwinScope};
use recibo_core::event::{
    Body, Facts, Finished, Outcome, Receipt, Recorded, Resolved, Restarted, ScopeOpened, Started,
    StatusChecked,
};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{
    CallRef, ClaimId, ErrorClass, Labels, MessageId, OperationKey, RunId, ScopeId, ToolCallId,
    ToolName, Trace,
};
use recibo_core::receipt::Token;
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs, ScopeEnd};
use recibo_core::time::Time;
use recibo_core::tree::Hash;

use super::{CONFIG, CodecError, VERSION, VERSION_2, append};
use crate::scope_id;

const WHAT: &str = "event";
const BROKEN: CodecError = CodecError { what: WHAT };
/// Version byte and leaf hash.
const PREFIX_LEN: usize = 1 + 32;

/// The namespace number of events of the whole ledger.
const OF_THE_LEDGER: u32 = u32::MAX;

/// An event as stored: its number is the key, its namespace a number.
#[derive(Clone)]
pub(crate) struct StoredEvent {
    pub(crate) at: Time,
    /// `None` for an event of the whole ledger.
    pub(crate) owner: Option<StoredOwner>,
    /// The event of the same call before this one, so that a call's story can be walked.
    pub(crate) before: Option<u64>,
    pub(crate) salt: [u8; 16],
    pub(crate) body: Body,
}

/// Whose an event is, and its place among the events of that namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredOwner {
    pub(crate) namespace_no: u32,
    pub(crate) nseq: u64,
}

#[derive(Encode, BorrowDecode)]
struct Frame<'a> {
    namespace_no: u32,
    nseq: u64,
    at_ms: u64,
    before: Option<u64>,
    salt: [u8; 16],
    body: StoredBody<'a>,
}

#[derive(Encode, BorrowDecode)]
enum StoredBody<'a> {
    ScopeOpened {
        scope: StoredScope<'a>,
        label: Option<&'a str>,
        expires_ms: u64,
    },
    ScopeClosed {
        scope: StoredScope<'a>,
        end: u8,
    },
    Started {
        at: StoredAttempt<'a>,
        facts: StoredFacts<'a>,
        claim: &'a str,
        scope: StoredScope<'a>,
        lease_ms: u64,
    },
    Finished {
        at: StoredAttempt<'a>,
        outcome: StoredOutcome<'a>,
        late: bool,
        receipt: Option<StoredReceipt<'a>>,
    },
    Recorded {
        at: StoredAttempt<'a>,
        facts: StoredFacts<'a>,
        scope: StoredScope<'a>,
        started_ms: u64,
        outcome: StoredOutcome<'a>,
        digest: Option<[u8; 32]>,
    },
    LeaseExpired {
        at: StoredAttempt<'a>,
    },
    LeaseExtended {
        at: StoredAttempt<'a>,
        lease_ms: u64,
    },
    StatusChecked {
        at: StoredAttempt<'a>,
        answer: u8,
        source: &'a str,
        age_ms: u64,
        provider_ref: Option<&'a str>,
        settles: bool,
        redacted: bool,
    },
    Resolved {
        at: StoredAttempt<'a>,
        state: u8,
        reason: &'a str,
        redacted: bool,
    },
    PolicySet {
        rules: Vec<StoredRule<'a>>,
    },
    Restarted {
        last_ms: u64,
        key_windows_void: bool,
    },
}

/// What version 2 adds. Members that an event does not have are `None`, `false` or empty.
#[derive(Default, PartialEq, Encode, BorrowDecode)]
struct Added<'a> {
    answered: bool,
    is_error: Option<u8>,
    twin_hash: Option<[u8; 32]>,
    twin_scope: u8,
    by: Option<&'a str>,
    corrects: Option<u64>,
    /// One per rule of a policy; none at all if no rule has anything.
    rules: Vec<AddedRule<'a>>,
}

#[derive(Default, PartialEq, Encode, BorrowDecode)]
struct AddedRule<'a> {
    is_error: Option<u8>,
    twin_by: Vec<&'a str>,
    twin_scope: u8,
}

/// Scope ids are made here, so nearly all are 16 bytes; a caller may name another.
#[derive(Encode, BorrowDecode)]
enum StoredScope<'a> {
    Made([u8; 16]),
    Other(&'a str),
}

#[derive(Encode, BorrowDecode)]
struct StoredAttempt<'a> {
    run_id: &'a str,
    tool_call_id: &'a str,
    attempt: u32,
}

#[derive(Encode, BorrowDecode)]
struct StoredFacts<'a> {
    tool: &'a str,
    input_hash: [u8; 32],
    terms: StoredTerms,
    operation_key: Option<&'a str>,
    message_id: Option<&'a str>,
    labels: Vec<(&'a str, &'a str)>,
    trace: Option<([u8; 16], [u8; 8])>,
    redacted: bool,
}

#[derive(Encode, BorrowDecode)]
struct StoredTerms {
    effect: u8,
    key_window_ms: Option<u64>,
    settle_ms: Option<u64>,
    max_attempts: Option<u32>,
}

#[derive(Encode, BorrowDecode)]
struct StoredOutcome<'a> {
    status: u8,
    duration_ms: u64,
    output_hash: Option<[u8; 32]>,
    output_summary: Option<&'a str>,
    error_class: Option<&'a str>,
    provider_ref: Option<&'a str>,
    message_id: Option<&'a str>,
    redacted: bool,
}

#[derive(Encode, BorrowDecode)]
struct StoredReceipt<'a> {
    scope: StoredScope<'a>,
    digest: [u8; 32],
}

#[derive(Encode, BorrowDecode)]
struct StoredRule<'a> {
    pattern: &'a str,
    terms: StoredTerms,
}

/// Appends the bytes of an event. The second of a token is the second of its event, so only the digest
/// is kept.
pub(crate) fn encode_event(bytes: &mut Vec<u8>, leaf: &Hash, event: &StoredEvent) {
    let added = added(&event.body);
    let is_first_version = added == Added::default();
    bytes.push(if is_first_version { VERSION } else { VERSION_2 });
    bytes.extend_from_slice(leaf);
    let owner = event.owner.unwrap_or(StoredOwner { namespace_no: OF_THE_LEDGER, nseq: 0 });
    let frame = Frame {
        namespace_no: owner.namespace_no,
        nseq: owner.nseq,
        at_ms: event.at.ms(),
        before: event.before,
        salt: event.salt,
        body: to_stored(&event.body),
    };
    append(bytes, &frame);
    if !is_first_version {
        append(bytes, &added);
    }
}

/// Reads the bytes of an event.
pub(crate) fn decode_event(bytes: &[u8]) -> Result<StoredEvent, CodecError> {
    leaf_of(bytes)?;
    let rest = &bytes[PREFIX_LEN..];
    let (frame, used): (Frame<'_>, usize) =
        bincode::borrow_decode_from_slice(rest, CONFIG).map_err(|_| BROKEN)?;
    let rest = &rest[used..];
    let (added, used): (Added<'_>, usize) = match bytes[0] {
        VERSION => (Added::default(), 0),
        _ => bincode::borrow_decode_from_slice(rest, CONFIG).map_err(|_| BROKEN)?,
    };
    if used != rest.len() {
        return Err(BROKEN);
    }
    let at = Time::from_ms(frame.at_ms);
    Ok(StoredEvent {
        at,
        owner: (frame.namespace_no != OF_THE_LEDGER)
            .then_some(StoredOwner { namespace_no: frame.namespace_no, nseq: frame.nseq }),
        before: frame.before,
        salt: frame.salt,
        body: from_stored(frame.body, added, at).ok_or(BROKEN)?,
    })
}

/// The leaf hash of a stored event.
pub(crate) fn leaf_of(bytes: &[u8]) -> Result<Hash, CodecError> {
    match bytes {
        [VERSION | VERSION_2, rest @ ..] => rest.first_chunk::<32>().copied().ok_or(BROKEN),
        _ => Err(BROKEN),
    }
}

/// Namespace number and time of a stored event, without reading the rest: for searches. The
/// number of an event of the whole ledger is that of no namespace.
pub(crate) fn namespace_of(bytes: &[u8]) -> Result<(u32, Time), CodecError> {
    #[derive(Decode)]
    struct Start {
        namespace_no: u32,
        _nseq: u64,
        at_ms: u64,
    }
    leaf_of(bytes)?;
    let (start, _): (Start, usize) =
        bincode::decode_from_slice(&bytes[PREFIX_LEN..], CONFIG).map_err(|_| BROKEN)?;
    Ok((start.namespace_no, Time::from_ms(start.at_ms)))
}

/// An event that follows none of its own call, or nothing: without reading the rest of others.
pub(crate) fn decode_if_first(bytes: &[u8]) -> Result<Option<StoredEvent>, CodecError> {
    #[derive(Decode)]
    struct Start {
        _namespace_no: u32,
        _nseq: u64,
        _at_ms: u64,
        before: Option<u64>,
    }
    leaf_of(bytes)?;
    let (start, _): (Start, usize) =
        bincode::decode_from_slice(&bytes[PREFIX_LEN..], CONFIG).map_err(|_| BROKEN)?;
    if start.before.is_some() { Ok(None) } else { decode_event(bytes).map(Some) }
}

fn to_stored(body: &Body) -> StoredBody<'_> {
    match body {
        Body::ScopeOpened(e) => StoredBody::ScopeOpened {
            scope: scope(&e.scope_id),
            label: e.label.as_deref(),
            expires_ms: e.expires_at.ms(),
        },
        Body::ScopeClosed { scope_id, end } => {
            StoredBody::ScopeClosed { scope: scope(scope_id), end: index_of(ScopeEnd::ALL, end) }
        }
        Body::Started(e) => StoredBody::Started {
            at: attempt(&e.call, e.attempt),
            facts: facts(&e.facts),
            claim: e.claim_id.as_str(),
            scope: scope(&e.scope_id),
            lease_ms: e.lease_expires_at.ms(),
        },
        Body::Finished(e) => StoredBody::Finished {
            at: attempt(&e.call, e.attempt),
            outcome: outcome(&e.outcome),
            late: e.late,
            receipt: e.receipt.as_ref().map(|receipt| StoredReceipt {
                scope: scope(&receipt.scope_id),
                digest: receipt.token.digest,
            }),
        },
        Body::Recorded(e) => StoredBody::Recorded {
            at: attempt(&e.call, e.attempt),
            facts: facts(&e.facts),
            scope: scope(&e.scope_id),
            started_ms: e.started_at.ms(),
            outcome: outcome(&e.outcome),
            digest: e.token.map(|token| token.digest),
        },
        Body::LeaseExpired { call, attempt: number } => {
            StoredBody::LeaseExpired { at: attempt(call, *number) }
        }
        Body::LeaseExtended { call, attempt: number, lease_expires_at } => {
            StoredBody::LeaseExtended {
                at: attempt(call, *number),
                lease_ms: lease_expires_at.ms(),
            }
        }
        Body::StatusChecked(e) => StoredBody::StatusChecked {
            at: attempt(&e.call, e.attempt),
            answer: index_of(CheckAnswer::ALL, &e.answer),
            source: &e.source,
            age_ms: e.age_ms,
            provider_ref: e.provider_ref.as_deref(),
            settles: e.settles,
            redacted: e.redacted,
        },
        Body::Resolved(e) => StoredBody::Resolved {
            at: attempt(&e.call, 0),
            state: index_of(ResolvedAs::ALL, &e.state),
            reason: &e.reason,
            redacted: e.redacted,
        },
        Body::Restarted(e) => {
            StoredBody::Restarted { last_ms: e.last_at.ms(), key_windows_void: e.key_windows_void }
        }
        Body::PolicySet { policy } => StoredBody::PolicySet {
            rules: policy
                .rules
                .iter()
                .map(|rule| StoredRule { pattern: &rule.pattern, terms: terms(&rule.terms) })
                .collect(),
        },
    }
}

fn added(body: &Body) -> Added<'_> {
    let mut added = Added::default();
    if let Some(facts) = body.facts() {
        added.is_error = facts.terms.is_error.map(|word| index_of(IsError::ALL, &word));
        added.twin_hash = facts.twin_hash.map(|hash| *hash.as_bytes());
        added.twin_scope = index_of(TwinScope::ALL, &facts.twin_scope);
    }
    added.answered = body.outcome().is_some_and(|outcome| outcome.answered);
    match body {
        Body::Resolved(e) => {
            added.by = e.by.as_deref();
            added.corrects = e.corrects;
        }
        Body::PolicySet { policy } => {
            let rules: Vec<_> = policy.rules.iter().map(added_rule).collect();
            if rules.iter().any(|rule| *rule != AddedRule::default()) {
                added.rules = rules;
            }
        }
        _ => {}
    }
    added
}

fn added_rule(rule: &Rule) -> AddedRule<'_> {
    AddedRule {
        is_error: rule.terms.is_error.map(|word| index_of(IsError::ALL, &word)),
        twin_by: rule.twin_by.iter().map(String::as_str).collect(),
        twin_scope: index_of(TwinScope::ALL, &rule.twin_scope),
    }
}

fn scope(scope_id: &ScopeId) -> StoredScope<'_> {
    match scope_id::to_bytes(scope_id) {
        Some(bytes) => StoredScope::Made(bytes),
        None => StoredScope::Other(scope_id.as_str()),
    }
}

fn attempt(call: &CallRef, attempt: u32) -> StoredAttempt<'_> {
    StoredAttempt {
        run_id: call.run_id.as_str(),
        tool_call_id: call.tool_call_id.as_str(),
        attempt,
    }
}

fn facts(facts: &Facts) -> StoredFacts<'_> {
    StoredFacts {
        tool: facts.tool.as_str(),
        input_hash: *facts.input_hash.as_bytes(),
        terms: terms(&facts.terms),
        operation_key: facts.operation_key.as_ref().map(|key| key.as_str()),
        message_id: facts.message_id.as_ref().map(|id| id.as_str()),
        labels: facts.labels.iter().collect(),
        trace: facts.trace.map(|trace| (trace.trace_id, trace.span_id)),
        redacted: facts.redacted,
    }
}

fn terms(terms: &Terms) -> StoredTerms {
    StoredTerms {
        effect: index_of(&Effect::ALL, &terms.effect),
        key_window_ms: terms.key_window_ms,
        settle_ms: terms.settle_ms,
        max_attempts: terms.max_attempts,
    }
}

fn outcome(outcome: &Outcome) -> StoredOutcome<'_> {
    StoredOutcome {
        status: index_of(OutcomeStatus::ALL, &outcome.status),
        duration_ms: outcome.duration_ms,
        output_hash: outcome.output_hash.map(|hash| *hash.as_bytes()),
        output_summary: outcome.output_summary.as_deref(),
        error_class: outcome.error_class.as_ref().map(|class| class.as_str()),
        provider_ref: outcome.provider_ref.as_deref(),
        message_id: outcome.message_id.as_deref(),
        redacted: outcome.redacted,
    }
}

/// `None` if a text or a number is not what was once checked.
fn from_stored(stored: StoredBody<'_>, added: Added<'_>, at: Time) -> Option<Body> {
    let token = |digest| Token { epoch: at.epoch_s(), digest };
    Some(match stored {
        StoredBody::ScopeOpened { scope, label, expires_ms } => Body::ScopeOpened(ScopeOpened {
            scope_id: read_scope(&scope)?,
            label: label.map(str::to_owned),
            expires_at: Time::from_ms(expires_ms),
        }),
        StoredBody::ScopeClosed { scope, end } => {
            Body::ScopeClosed { scope_id: read_scope(&scope)?, end: at_index(ScopeEnd::ALL, end)? }
        }
        StoredBody::Started { at, facts, claim, scope, lease_ms } => {
            let (call, attempt) = place(&at)?;
            Body::Started(Started {
                call,
                attempt,
                facts: read_facts(facts, &added)?,
                claim_id: ClaimId::parse(claim).ok()?,
                scope_id: read_scope(&scope)?,
                lease_expires_at: Time::from_ms(lease_ms),
            })
        }
        StoredBody::Finished { at, outcome, late, receipt } => {
            let (call, attempt) = place(&at)?;
            let receipt = match receipt {
                Some(receipt) => Some(Receipt {
                    scope_id: read_scope(&receipt.scope)?,
                    token: token(receipt.digest),
                }),
                None => None,
            };
            let outcome = read_outcome(outcome, &added)?;
            Body::Finished(Finished { call, attempt, outcome, late, receipt })
        }
        StoredBody::Recorded { at, facts, scope, started_ms, outcome, digest } => {
            let (call, attempt) = place(&at)?;
            Body::Recorded(Recorded {
                call,
                attempt,
                facts: read_facts(facts, &added)?,
                scope_id: read_scope(&scope)?,
                started_at: Time::from_ms(started_ms),
                outcome: read_outcome(outcome, &added)?,
                token: digest.map(token),
            })
        }
        StoredBody::LeaseExpired { at } => {
            let (call, attempt) = place(&at)?;
            Body::LeaseExpired { call, attempt }
        }
        StoredBody::LeaseExtended { at, lease_ms } => {
            let (call, attempt) = place(&at)?;
            Body::LeaseExtended { call, attempt, lease_expires_at: Time::from_ms(lease_ms) }
        }
        StoredBody::StatusChecked {
            at,
            answer,
            source,
            age_ms,
            provider_ref,
            settles,
            redacted,
        } => {
            let (call, attempt) = place(&at)?;
            Body::StatusChecked(StatusChecked {
                call,
                attempt,
                answer: at_index(CheckAnswer::ALL, answer)?,
                source: source.to_owned(),
                age_ms,
                provider_ref: provider_ref.map(str::to_owned),
                settles,
                redacted,
            })
        }
        StoredBody::Resolved { at, state, reason, redacted } => Body::Resolved(Resolved {
            call: place(&at)?.0,
            state: at_index(ResolvedAs::ALL, state)?,
            reason: reason.to_owned(),
            redacted,
            by: added.by.map(str::to_owned),
            corrects: added.corrects,
        }),
        StoredBody::PolicySet { rules } => {
            let mut policy = Policy::default();
            let mut added = added.rules.into_iter();
            for rule in rules {
                policy.rules.push(read_rule(&rule, added.next().unwrap_or_default())?);
            }
            Body::PolicySet { policy }
        }
        StoredBody::Restarted { last_ms, key_windows_void } => {
            Body::Restarted(Restarted { last_at: Time::from_ms(last_ms), key_windows_void })
        }
    })
}

fn read_rule(stored: &StoredRule<'_>, added: AddedRule<'_>) -> Option<Rule> {
    Some(Rule {
        pattern: stored.pattern.to_owned(),
        terms: read_terms(&stored.terms, added.is_error)?,
        twin_by: added.twin_by.into_iter().map(str::to_owned).collect(),
        twin_scope: at_index(TwinScope::ALL, added.twin_scope)?,
    })
}

fn read_scope(stored: &StoredScope<'_>) -> Option<ScopeId> {
    match stored {
        StoredScope::Made(bytes) => Some(scope_id::from_bytes(bytes)),
        StoredScope::Other(text) => ScopeId::parse(text).ok(),
    }
}

fn place(stored: &StoredAttempt<'_>) -> Option<(CallRef, u32)> {
    let run_id = RunId::parse(stored.run_id).ok()?;
    let tool_call_id = ToolCallId::parse(stored.tool_call_id).ok()?;
    Some((CallRef { run_id, tool_call_id }, stored.attempt))
}

fn read_facts(stored: StoredFacts<'_>, added: &Added<'_>) -> Option<Facts> {
    Some(Facts {
        tool: ToolName::stored(stored.tool)?,
        input_hash: InputHash::from_bytes(stored.input_hash),
        terms: read_terms(&stored.terms, added.is_error)?,
        operation_key: parsed(stored.operation_key, OperationKey::parse)?,
        message_id: parsed(stored.message_id, MessageId::parse)?,
        labels: read_labels(&stored.labels)?,
        trace: stored.trace.map(|(trace_id, span_id)| Trace { trace_id, span_id }),
        redacted: stored.redacted,
        twin_hash: added.twin_hash.map(InputHash::from_bytes),
        twin_scope: at_index(TwinScope::ALL, added.twin_scope)?,
    })
}

fn read_labels(stored: &[(&str, &str)]) -> Option<Labels> {
    if stored.is_empty() {
        return Some(Labels::default());
    }
    Labels::parse(stored.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))).ok()
}

fn read_terms(stored: &StoredTerms, is_error: Option<u8>) -> Option<Terms> {
    Some(Terms {
        effect: at_index(&Effect::ALL, stored.effect)?,
        key_window_ms: stored.key_window_ms,
        settle_ms: stored.settle_ms,
        max_attempts: stored.max_attempts,
        is_error: match is_error {
            Some(index) => Some(at_index(IsError::ALL, index)?),
            None => None,
        },
    })
}

fn read_outcome(stored: StoredOutcome<'_>, added: &Added<'_>) -> Option<Outcome> {
    Some(Outcome {
        status: at_index(OutcomeStatus::ALL, stored.status)?,
        duration_ms: stored.duration_ms,
        output_hash: stored.output_hash.map(OutputHash::from_bytes),
        output_summary: stored.output_summary.map(str::to_owned),
        error_class: parsed(stored.error_class, ErrorClass::parse)?,
        provider_ref: stored.provider_ref.map(str::to_owned),
        message_id: stored.message_id.map(str::to_owned),
        redacted: stored.redacted,
        answered: added.answered,
    })
}

/// `Some(None)` for an absent text, `None` for a broken one.
fn parsed<T, E>(text: Option<&str>, parse: fn(&str) -> Result<T, E>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => parse(text).ok().map(Some),
    }
}

/// Words are stored by their place in the list of the contract; the lists only ever grow at
/// their end.
pub(super) fn index_of<T: PartialEq>(all: &[T], word: &T) -> u8 {
    let index = all.iter().position(|other| other == word).expect("every word is in its list");
    u8::try_from(index).expect("lists are short")
}

pub(super) fn at_index<T: Copy>(all: &[T], index: u8) -> Option<T> {
    all.get(usize::from(index)).copied()
}
