//! Stored events: version byte, leaf hash, then the event without what its place says already.

use bincode::{BorrowDecode, Decode, Encode};
use recibo_core::effect::{Effect, Policy, Rule, Terms};
use recibo_core::event::{
    Body, Facts, Finished, Outcome, Receipt, Recorded, ScopeOpened, Started, StatusChecked,
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

use super::{CodecError, VERSION, append, take_rest};
use crate::scope_id;

const WHAT: &str = "event";
const BROKEN: CodecError = CodecError { what: WHAT };
/// Version byte and leaf hash.
const PREFIX_LEN: usize = 1 + 32;

/// An event as stored: its number is the key, its namespace a number.
#[derive(Clone)]
pub(crate) struct StoredEvent {
    pub(crate) nseq: u64,
    pub(crate) at: Time,
    pub(crate) namespace_no: u32,
    /// The event of the same call before this one, so that a call's story can be walked.
    pub(crate) before: Option<u64>,
    pub(crate) salt: [u8; 16],
    pub(crate) body: Body,
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
    bytes.push(VERSION);
    bytes.extend_from_slice(leaf);
    let frame = Frame {
        namespace_no: event.namespace_no,
        nseq: event.nseq,
        at_ms: event.at.ms(),
        before: event.before,
        salt: event.salt,
        body: to_stored(&event.body),
    };
    append(bytes, &frame);
}

/// Reads the bytes of an event.
pub(crate) fn decode_event(bytes: &[u8]) -> Result<StoredEvent, CodecError> {
    leaf_of(bytes)?;
    let frame: Frame<'_> = take_rest(&bytes[PREFIX_LEN..], WHAT)?;
    let at = Time::from_ms(frame.at_ms);
    Ok(StoredEvent {
        nseq: frame.nseq,
        at,
        namespace_no: frame.namespace_no,
        before: frame.before,
        salt: frame.salt,
        body: from_stored(frame.body, at).ok_or(BROKEN)?,
    })
}

/// The leaf hash of a stored event.
pub(crate) fn leaf_of(bytes: &[u8]) -> Result<Hash, CodecError> {
    match bytes {
        [VERSION, rest @ ..] => rest.first_chunk::<32>().copied().ok_or(BROKEN),
        _ => Err(BROKEN),
    }
}

/// Namespace number and time of a stored event, without reading the rest: for searches.
pub(crate) fn namespace_of(bytes: &[u8]) -> Result<(u32, Time), CodecError> {
    #[derive(Decode)]
    struct Start {
        namespace_no: u32,
        _nseq: u64,
        at_ms: u64,
    }
    leaf_of(bytes)?;
    let (start, _): (Start, usize) =
        bincode::decode_from_slice(&bytes[PREFIX_LEN..], super::CONFIG).map_err(|_| BROKEN)?;
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
        bincode::decode_from_slice(&bytes[PREFIX_LEN..], super::CONFIG).map_err(|_| BROKEN)?;
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
        Body::Resolved { call, state, reason, redacted } => StoredBody::Resolved {
            at: attempt(call, 0),
            state: index_of(ResolvedAs::ALL, state),
            reason,
            redacted: *redacted,
        },
        Body::PolicySet { policy } => StoredBody::PolicySet {
            rules: policy
                .rules
                .iter()
                .map(|rule| StoredRule { pattern: &rule.pattern, terms: terms(&rule.terms) })
                .collect(),
        },
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
fn from_stored(stored: StoredBody<'_>, at: Time) -> Option<Body> {
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
                facts: read_facts(facts)?,
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
            let outcome = read_outcome(outcome)?;
            Body::Finished(Finished { call, attempt, outcome, late, receipt })
        }
        StoredBody::Recorded { at, facts, scope, started_ms, outcome, digest } => {
            let (call, attempt) = place(&at)?;
            Body::Recorded(Recorded {
                call,
                attempt,
                facts: read_facts(facts)?,
                scope_id: read_scope(&scope)?,
                started_at: Time::from_ms(started_ms),
                outcome: read_outcome(outcome)?,
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
        StoredBody::Resolved { at, state, reason, redacted } => Body::Resolved {
            call: place(&at)?.0,
            state: at_index(ResolvedAs::ALL, state)?,
            reason: reason.to_owned(),
            redacted,
        },
        StoredBody::PolicySet { rules } => {
            let rules = rules
                .into_iter()
                .map(|rule| {
                    Some(Rule { pattern: rule.pattern.to_owned(), terms: read_terms(&rule.terms)? })
                })
                .collect::<Option<Vec<_>>>()?;
            Body::PolicySet { policy: Policy { rules } }
        }
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

fn read_facts(stored: StoredFacts<'_>) -> Option<Facts> {
    Some(Facts {
        tool: ToolName::stored(stored.tool)?,
        input_hash: InputHash::from_bytes(stored.input_hash),
        terms: read_terms(&stored.terms)?,
        operation_key: parsed(stored.operation_key, OperationKey::parse)?,
        message_id: parsed(stored.message_id, MessageId::parse)?,
        labels: read_labels(&stored.labels)?,
        trace: stored.trace.map(|(trace_id, span_id)| Trace { trace_id, span_id }),
        redacted: stored.redacted,
    })
}

fn read_labels(stored: &[(&str, &str)]) -> Option<Labels> {
    if stored.is_empty() {
        return Some(Labels::default());
    }
    Labels::parse(stored.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))).ok()
}

fn read_terms(stored: &StoredTerms) -> Option<Terms> {
    Some(Terms {
        effect: at_index(&Effect::ALL, stored.effect)?,
        key_window_ms: stored.key_window_ms,
        settle_ms: stored.settle_ms,
        max_attempts: stored.max_attempts,
    })
}

fn read_outcome(stored: StoredOutcome<'_>) -> Option<Outcome> {
    Some(Outcome {
        status: at_index(OutcomeStatus::ALL, stored.status)?,
        duration_ms: stored.duration_ms,
        output_hash: stored.output_hash.map(OutputHash::from_bytes),
        output_summary: stored.output_summary.map(str::to_owned),
        error_class: parsed(stored.error_class, ErrorClass::parse)?,
        provider_ref: stored.provider_ref.map(str::to_owned),
        message_id: stored.message_id.map(str::to_owned),
        redacted: stored.redacted,
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
