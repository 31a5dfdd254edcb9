//! Random operations. They name things by small numbers, and attempts by their distance from
//! the newest, so that they meet often and a failing run shrinks to few and plain ones.

use proptest::prelude::*;
use proptest::sample::select;
use recibo_core::effect::{Effect, IsError, Policy, Rule, Terms, TwinScope};
use recibo_core::id::{CallRef, Namespace, RunId, ToolCallId, ToolName};
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs};

/// How many calls there are.
pub const CALLS: usize = 4;

/// One operation. `call` is a number below [`CALLS`], `back` counts attempts from the newest,
/// and what is expected counts from the newest on: 1 is right.
#[derive(Clone, Debug)]
pub enum Op {
    /// Opens a scope in the namespace of a call.
    OpenScope { call: usize, ttl_ms: u64 },
    /// Closes a scope, of whatever namespace.
    CloseScope { call: usize, scope: Scope },
    /// Claims. `id` names the claim.
    Claim { call: usize, id: u8, lease_ms: u64, expected: Option<u32>, said: Said },
    /// Reports.
    Report { call: usize, back: u32, outcome: Told, token: Token, scope: Option<Scope> },
    /// Records a one-shot that started so many milliseconds ago.
    Shot { call: usize, expected: Option<u32>, outcome: Told, age_ms: u64, said: Said },
    /// Records the last one-shot again.
    ShotAgain,
    /// Renews a lease.
    Renew { call: usize, back: u32, lease_ms: u64, token: Token },
    /// A status check.
    Check { call: usize, back: u32, answer: CheckAnswer, age_ms: u64 },
    /// An operator's word; one that corrects the newest one, or another event.
    Resolve { call: usize, state: ResolvedAs, etag: Etag, corrects: Option<bool> },
    /// Sets one of the [`policies`] in the namespace of a call.
    SetPolicy { call: usize, policy: usize },
    /// The background job.
    Tick,
    /// Time passes.
    Advance { ms: u64 },
    /// The wall clock is set back.
    WallBack { ms: u64 },
    /// The process ends and starts again after a while.
    Reopen { down_ms: u64 },
    /// The machine boots anew.
    Reboot { down_ms: u64 },
}

/// What a claim or a one-shot says of its call.
#[derive(Clone, Debug)]
pub struct Said {
    /// The scope.
    pub scope: Scope,
    /// The effect, if any is stated.
    pub effect: Option<Effect>,
    /// The caller's own key, if it has one.
    pub key: Option<u8>,
    /// Whether the input is another than the call's.
    pub is_other_input: bool,
    /// What it says of its twins.
    pub twins: Twins,
}

/// What a claim says of its twins.
#[derive(Clone, Copy, Debug)]
pub struct Twins {
    /// Whether it asks to be held back.
    pub stop: bool,
    /// For how long a twin counts.
    pub window_ms: u64,
    /// Which of the calls it knows the late success of.
    pub knows: Option<usize>,
    /// Whether it brings a twin hash, which makes all its inputs the same.
    pub is_hashed: bool,
}

/// Which scope is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One of the namespace that lives; it is opened if there is none.
    Live,
    /// One that was opened before the newest one, in whatever namespace.
    Old,
    /// One that never was.
    None,
}

/// An outcome; `text` makes two of one status differ.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Its status.
    pub status: OutcomeStatus,
    /// Its result or error class.
    pub text: u8,
    /// Whether the service's answer was seen.
    pub answered: bool,
}

/// Which lease token a report brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The attempt's own.
    Right,
    /// That of the attempt after it.
    OfNext,
    /// That of the same attempt of the next call.
    OfOtherCall,
    /// None at all.
    Empty,
}

/// Which entity tag a resolution brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Etag {
    /// As the call is now.
    Current,
    /// As it was one event ago.
    Stale,
    /// The current version, with the wrong word about its lease.
    OtherLease,
    /// Any.
    Star,
}

/// The calls: two in one run, a third in another, and the first one's name in another namespace.
pub fn call(number: usize) -> (Namespace, CallRef) {
    let (namespace, run, id) =
        [("a", "r1", "t1"), ("a", "r1", "t2"), ("a", "r2", "t1"), ("b", "r1", "t1")][number];
    let call = CallRef {
        run_id: RunId::parse(run).expect("an id"),
        tool_call_id: ToolCallId::parse(id).expect("an id"),
    };
    (Namespace::parse(namespace).expect("a name"), call)
}

/// The tool of all calls: the two of the first run are twins, and so is the call of the second
/// run where the policy looks so far.
pub fn tool() -> ToolName {
    ToolName::parse("crm/put").expect("a name")
}

/// Policies to choose from.
pub fn policies() -> Vec<Policy> {
    let rule = |pattern: &str, effect, window, settle, max_attempts| {
        let (key_window_ms, settle_ms) = (window, settle);
        Rule::new(pattern, Terms { key_window_ms, settle_ms, max_attempts, ..Terms::of(effect) })
    };
    let one = |rules| Policy { rules };
    let wide = |mut rule: Rule| {
        rule.twin_scope = TwinScope::Namespace;
        rule.terms.is_error = Some(IsError::NoEffect);
        rule
    };
    vec![
        one(vec![]),
        one(vec![rule("crm/*", Effect::Idempotent, None, None, Some(2))]),
        one(vec![rule("*", Effect::Keyed, Some(5_000), Some(500), None)]),
        one(vec![rule("crm/*", Effect::Queryable, None, Some(500), Some(4))]),
        one(vec![rule("*", Effect::Queryable, None, Some(0), None)]),
        one(vec![
            rule("mail", Effect::Opaque, None, None, None),
            rule("*", Effect::ReadOnly, None, None, None),
        ]),
        one(vec![wide(rule("*", Effect::Opaque, None, None, None))]),
    ]
}

fn status() -> impl Strategy<Value = OutcomeStatus> {
    use OutcomeStatus::*;
    prop_oneof![8 => Just(Timeout), 6 => Just(RetryableError), 2 => Just(Unknown),
        2 => Just(Ok), 1 => Just(TerminalError)]
}

fn told() -> impl Strategy<Value = Told> {
    (
        status(),
        prop_oneof![5 => Just(0), 1 => Just(1)],
        prop_oneof![2 => Just(false), 1 => Just(true)],
    )
        .prop_map(|(status, text, answered)| Told { status, text, answered })
}

fn maybe<T: Clone + std::fmt::Debug + 'static>(
    some: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Option<T>> {
    prop_oneof![5 => Just(None), 1 => some.prop_map(Some)]
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![20 => Just(Scope::Live), 2 => Just(Scope::Old), 1 => Just(Scope::None)]
}

fn said() -> impl Strategy<Value = Said> {
    let is_other_input = prop_oneof![40 => Just(false), 1 => Just(true)];
    let effect = prop_oneof![9 => Just(None), 1 => select(&Effect::ALL[..]).prop_map(Some)];
    let key = prop_oneof![15 => Just(None), 1 => (0..3_u8).prop_map(Some)];
    (scope(), effect, key, is_other_input, twins()).prop_map(
        |(scope, effect, key, is_other_input, twins)| Said {
            scope,
            effect,
            key,
            is_other_input,
            twins,
        },
    )
}

fn twins() -> impl Strategy<Value = Twins> {
    let stop = prop_oneof![1 => Just(false), 1 => Just(true)];
    let window_ms = select(vec![0_u64, 1_000, 5_000, 3_600_000]);
    let is_hashed = prop_oneof![9 => Just(false), 1 => Just(true)];
    (stop, window_ms, maybe(0..CALLS), is_hashed)
        .prop_map(|(stop, window_ms, knows, is_hashed)| Twins { stop, window_ms, knows, is_hashed })
}

/// Times that lie around the lengths that are in use, and some that lie far beyond.
fn some_ms() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..3_u64,
        4 => select(vec![499_u64, 500, 501, 999, 1_000, 1_001, 2_000, 4_999, 5_000]),
        1 => select(vec![60_000_u64, 86_400_000, 400 * 86_400_000]),
    ]
}

fn answer() -> impl Strategy<Value = CheckAnswer> {
    prop_oneof![3 => Just(CheckAnswer::NotExecuted), 2 => select(CheckAnswer::ALL)]
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![10 => Just(Token::Right), 1 => Just(Token::OfNext),
        1 => Just(Token::OfOtherCall), 1 => Just(Token::Empty)]
}

fn etag() -> impl Strategy<Value = Etag> {
    prop_oneof![6 => Just(Etag::Current), 1 => Just(Etag::Stale),
        1 => Just(Etag::OtherLease), 1 => Just(Etag::Star)]
}

/// Whether a resolution corrects one, and then whether the newest one.
fn corrects() -> impl Strategy<Value = Option<bool>> {
    prop_oneof![5 => Just(None), 4 => Just(Some(true)), 1 => Just(Some(false))]
}

/// Any operation.
pub fn op() -> impl Strategy<Value = Op> {
    let calls = 0..CALLS;
    let call = || prop_oneof![4 => Just(0_usize), 2 => calls.clone()];
    // One back too far is an attempt that does not exist.
    let back = || prop_oneof![9 => Just(0_u32), 4 => Just(1), 2 => Just(2), 1 => Just(u32::MAX)];
    let expected = || maybe(prop_oneof![2 => Just(1_u32), 1 => Just(0), 1 => Just(2)]);
    let age = prop_oneof![2 => Just(0_u64), 1 => some_ms()];
    let lease = select(vec![1_000_u64, 2_000, 60_000]);
    prop_oneof![
        2 => (call(), select(vec![3_000_u64, 1_000_000]))
            .prop_map(|(call, ttl_ms)| Op::OpenScope { call, ttl_ms }),
        1 => (call(), scope()).prop_map(|(call, scope)| Op::CloseScope { call, scope }),
        20 => (call(), 0..12_u8, lease, expected(), said()).prop_map(
            |(call, id, lease_ms, expected, said)| {
                Op::Claim { call, id, lease_ms, expected, said }
            }),
        16 => (call(), back(), told(), token(), maybe(scope())).prop_map(
            |(call, back, outcome, token, scope)| {
                Op::Report { call, back, outcome, token, scope }
            }),
        3 => (call(), expected(), told(), 0..3_u64, said()).prop_map(
            |(call, expected, outcome, age_ms, said)| {
                Op::Shot { call, expected, outcome, age_ms, said }
            }),
        1 => Just(Op::ShotAgain),
        4 => (call(), back(), select(vec![1_000_u64, 2_000, 60_000]), token()).prop_map(
            |(call, back, lease_ms, token)| Op::Renew { call, back, lease_ms, token }),
        8 => (call(), back(), answer(), age).prop_map(
            |(call, back, answer, age_ms)| Op::Check { call, back, answer, age_ms }),
        7 => (call(), select(ResolvedAs::ALL), etag(), corrects()).prop_map(
            |(call, state, etag, corrects)| Op::Resolve { call, state, etag, corrects }),
        1 => (call(), 0..policies().len())
            .prop_map(|(call, policy)| Op::SetPolicy { call, policy }),
        2 => Just(Op::Tick),
        10 => some_ms().prop_map(|ms| Op::Advance { ms }),
        1 => some_ms().prop_map(|ms| Op::WallBack { ms }),
        2 => some_ms().prop_map(|down_ms| Op::Reopen { down_ms }),
        2 => some_ms().prop_map(|down_ms| Op::Reboot { down_ms }),
    ]
}
