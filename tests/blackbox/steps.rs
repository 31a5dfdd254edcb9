//! The steps of a history. They name things by their place ("the newest attempt of call 3"), so
//! that a history still makes sense when some of its steps are left out.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::model::{Answer, Effect, Resolved, Status};
use super::world::CALLS;

/// Which scope a request names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ScopeRef {
    /// The newest one.
    Newest,
    /// The one opened so many scopes before it.
    Older(usize),
    /// One that never was.
    Never,
}

/// Which attempt of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum AttemptRef {
    Newest,
    /// So many before the newest.
    Older(u32),
    /// One more than there are.
    Next,
}

/// Which lease token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TokenRef {
    Own,
    /// Of another attempt, if there is one.
    Other,
    Wrong,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClaimStep {
    pub call: usize,
    /// Small numbers, so that claims are repeated.
    pub claim: u32,
    pub scope: ScopeRef,
    /// `None`: what the caller usually states.
    pub effect: Option<Effect>,
    pub lease_ms: u64,
    pub attempt: Option<AttemptRef>,
    pub other_tool: bool,
    pub other_input: bool,
    pub other_key: bool,
    pub stop: bool,
    pub window_ms: Option<u64>,
    /// Calls that the caller knows the result of.
    pub knows: Vec<usize>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutcomeStep {
    pub call: usize,
    pub attempt: AttemptRef,
    pub token: TokenRef,
    pub status: Status,
    /// Which of two results or error classes.
    pub other: bool,
    pub scope: Option<ScopeRef>,
    pub answered: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShotStep {
    pub call: usize,
    /// The last one of this call once more, with another scope.
    pub again: bool,
    pub status: Status,
    pub other: bool,
    pub scope: ScopeRef,
    pub attempt: Option<AttemptRef>,
    pub started_ms_ago: u64,
    pub effect: Option<Effect>,
    pub answered: Option<bool>,
}

/// Which resolution a new one corrects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum CorrectsRef {
    Last,
    First,
    Wrong,
}

/// Which `If-Match`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TagRef {
    Fresh,
    Stale,
    None,
}

/// A point in time that something happens at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::enum_variant_names, reason = "each is the end of something")]
pub enum Point {
    LeaseEnd,
    SettleEnd,
    WindowEnd,
    /// The end of a twin window that is this long.
    TwinEnd(u64),
}

/// How a service starts again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Boot {
    /// On the same boot.
    Same,
    /// On another one, the wall clock so far ahead of the ledger.
    Ahead(u64),
    /// On another one, the wall clock so far behind the last event.
    Behind(u64),
    /// On the same one, but its clock stands so far behind the last event.
    Back(u64),
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReadStep {
    Decision(usize),
    /// With `wait_ms=0`.
    Poll(usize),
    Batch,
    Call(usize),
    Attempt(usize, AttemptRef),
    Key(usize),
    OperationKey(usize),
    Receipts(usize),
    Run(usize),
    Scope(ScopeRef),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    Claim(ClaimStep),
    Outcome(OutcomeStep),
    Shot(ShotStep),
    Check {
        call: usize,
        attempt: AttemptRef,
        answer: Answer,
        age_ms: u64,
    },
    Resolve {
        call: usize,
        state: Resolved,
        tag: TagRef,
        corrects: Option<CorrectsRef>,
    },
    Renew {
        call: usize,
        attempt: AttemptRef,
        token: TokenRef,
        lease_ms: u64,
    },
    Read(ReadStep),
    Pass(u64),
    /// To a point in the life of a call: one ms before, at, or after it.
    PassTo {
        call: usize,
        point: Point,
        off: i64,
    },
    /// An administrator moves the wall clock.
    Wall(i64),
    OpenScope {
        ttl_ms: Option<u64>,
    },
    CloseScope(ScopeRef),
    Policy(usize),
    /// A request that must be refused whatever the ledger holds.
    Bad(usize),
    /// The service is killed (or stopped), is down for a while, and starts again.
    Restart {
        kill: bool,
        down_ms: u64,
        boot: Boot,
    },
    /// Reads all that there is.
    ReadAll,
}

/// The steps of a seed.
pub fn generate(seed: u64, len: usize) -> Vec<Step> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut steps = Vec::with_capacity(len + len / 5);
    let mut focus = 0;
    for number in 0..len {
        if rng.random_bool(0.2) {
            focus = rng.random_range(0..CALLS);
        }
        let call = if rng.random_bool(0.7) { focus } else { rng.random_range(0..CALLS) };
        steps.push(step(&mut rng, call));
        if number % 6 == 5 {
            steps.push(Step::ReadAll);
        }
    }
    steps.push(Step::ReadAll);
    steps
}

fn step(rng: &mut StdRng, call: usize) -> Step {
    match rng.random_range(0..100) {
        0..28 => Step::Claim(claim(rng, call)),
        28..47 => Step::Outcome(outcome(rng, call)),
        47..53 => Step::Shot(shot(rng, call)),
        53..59 => Step::Check {
            call,
            attempt: attempt(rng),
            answer: pick(rng, Answer::ALL),
            age_ms: pick(rng, &[0, 0, 0, 1, 1000]),
        },
        59..66 => Step::Resolve {
            call,
            state: pick(rng, Resolved::ALL),
            tag: pick_weighted(rng, &[(18, TagRef::Fresh), (1, TagRef::Stale), (1, TagRef::None)]),
            corrects: rng.random_bool(0.4).then(|| {
                let of = [(6, CorrectsRef::Last), (1, CorrectsRef::First), (1, CorrectsRef::Wrong)];
                pick_weighted(rng, &of)
            }),
        },
        66..70 => Step::Renew {
            call,
            attempt: attempt(rng),
            token: token(rng),
            lease_ms: pick(rng, &[1000, 5000, 60_000]),
        },
        70..76 => Step::Read(read(rng, call)),
        76..80 => Step::Pass(pick(rng, &[1, 500, 1000, 4000, 60_000, 3_600_000])),
        80..88 => Step::PassTo { call, point: point(rng), off: pick(rng, &[-1, 0, 0, 1]) },
        88 => Step::Wall(pick(rng, &[-3_600_000, -5000, 5000, 90_000_000])),
        89 => Step::OpenScope { ttl_ms: pick(rng, &[None, Some(1000), Some(60_000)]) },
        90 => Step::CloseScope(scope(rng)),
        91 => Step::Policy(rng.random_range(0..2)),
        92 => Step::Bad(rng.random_range(0..8)),
        _ => Step::Restart {
            kill: rng.random_bool(0.9),
            down_ms: pick(rng, &[0, 0, 1, 999, 5000, 60_000]),
            boot: boot(rng),
        },
    }
}

fn claim(rng: &mut StdRng, call: usize) -> ClaimStep {
    ClaimStep {
        call,
        claim: rng.random_range(0..6),
        scope: scope(rng),
        effect: rng.random_bool(0.08).then(|| pick(rng, Effect::ALL)),
        lease_ms: pick(rng, &[1000, 2000, 5000, 30_000, 60_000]),
        attempt: rng.random_bool(0.1).then(|| attempt(rng)),
        other_tool: rng.random_bool(0.02),
        other_input: rng.random_bool(0.02),
        other_key: rng.random_bool(0.02),
        stop: rng.random_bool(0.6),
        window_ms: pick(rng, &[None, None, Some(1000), Some(10_000)]),
        knows: (0..CALLS).filter(|_| rng.random_bool(0.1)).collect(),
    }
}

fn outcome(rng: &mut StdRng, call: usize) -> OutcomeStep {
    OutcomeStep {
        call,
        attempt: attempt(rng),
        token: token(rng),
        status: status(rng),
        other: rng.random_bool(0.2),
        scope: rng.random_bool(0.3).then(|| scope(rng)),
        answered: pick(rng, &[None, Some(true), Some(true), Some(false)]),
    }
}

fn shot(rng: &mut StdRng, call: usize) -> ShotStep {
    ShotStep {
        call,
        again: rng.random_bool(0.25),
        status: status(rng),
        other: rng.random_bool(0.2),
        scope: scope(rng),
        attempt: rng.random_bool(0.2).then(|| attempt(rng)),
        started_ms_ago: pick(rng, &[0, 10, 5000, 30_000]),
        effect: rng.random_bool(0.08).then(|| pick(rng, Effect::ALL)),
        answered: pick(rng, &[None, Some(true)]),
    }
}

fn status(rng: &mut StdRng) -> Status {
    pick_weighted(
        rng,
        &[
            (4, Status::Ok),
            (3, Status::Timeout),
            (3, Status::Unknown),
            (3, Status::RetryableError),
            (1, Status::TerminalError),
        ],
    )
}

fn attempt(rng: &mut StdRng) -> AttemptRef {
    let of = [(12, AttemptRef::Newest), (5, AttemptRef::Older(1)), (2, AttemptRef::Older(2))];
    if rng.random_bool(0.05) { AttemptRef::Next } else { pick_weighted(rng, &of) }
}

fn token(rng: &mut StdRng) -> TokenRef {
    pick_weighted(rng, &[(30, TokenRef::Own), (1, TokenRef::Other), (1, TokenRef::Wrong)])
}

fn scope(rng: &mut StdRng) -> ScopeRef {
    let of = [(16, ScopeRef::Newest), (2, ScopeRef::Older(1)), (2, ScopeRef::Older(2))];
    if rng.random_bool(0.03) { ScopeRef::Never } else { pick_weighted(rng, &of) }
}

fn point(rng: &mut StdRng) -> Point {
    let of = [
        (6, Point::LeaseEnd),
        (3, Point::SettleEnd),
        (2, Point::WindowEnd),
        (1, Point::TwinEnd(1000)),
        (1, Point::TwinEnd(10_000)),
    ];
    pick_weighted(rng, &of)
}

fn boot(rng: &mut StdRng) -> Boot {
    let of = [
        (6, Boot::Same),
        (2, Boot::Ahead(0)),
        (2, Boot::Ahead(7000)),
        (1, Boot::Ahead(90_000_000)),
        (1, Boot::Behind(1)),
        (1, Boot::Behind(10_000)),
        (1, Boot::Back(1)),
        (1, Boot::Back(3000)),
    ];
    pick_weighted(rng, &of)
}

fn read(rng: &mut StdRng, call: usize) -> ReadStep {
    match rng.random_range(0..10) {
        0 => ReadStep::Decision(call),
        1 => ReadStep::Poll(call),
        2 => ReadStep::Batch,
        3 => ReadStep::Call(call),
        4 => ReadStep::Attempt(call, attempt(rng)),
        5 => ReadStep::Key(call),
        6 => ReadStep::OperationKey(call),
        7 => ReadStep::Receipts(call),
        8 => ReadStep::Run(call % 2),
        _ => ReadStep::Scope(scope(rng)),
    }
}

fn pick<T: Copy>(rng: &mut StdRng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

fn pick_weighted<T: Copy>(rng: &mut StdRng, of: &[(u32, T)]) -> T {
    let total = of.iter().map(|(weight, _)| weight).sum();
    let mut left = rng.random_range(0..total);
    for (weight, item) in of {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return *item,
        }
    }
    unreachable!("the number is below the total")
}
