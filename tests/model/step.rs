//! What can happen next in a world.

use std::fmt;

use recibo_core::effect::Effect;
use recibo_core::plan::ClaimedAs;
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs};
use recibo_core::time::Time;

use super::rules::{Fault, Rules};
use super::world::{ATTEMPTS_MAX, Adapter, Request, Side, World};

/// One thing that happens. The number is the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A claim with a fresh claim id.
    Claim,
    /// The answer to the claim arrives.
    Start(u32),
    /// The answer was lost: the same claim again.
    ClaimAgain(u32),
    /// The adapter sends.
    Send(u32),
    /// The request arrives and takes effect.
    Apply(u32),
    /// The request is refused, or lost.
    Drop(u32),
    /// The answer of the outside service is lost: the adapter reports a timeout and will never
    /// know more.
    LoseAnswer(u32),
    /// The adapter crashes.
    Crash(u32),
    /// A millisecond passes.
    Tick,
    /// The background job looks for ends of leases.
    Expire,
    /// The adapter reports, in time or late.
    Report(u32, OutcomeStatus),
    /// The outside service is asked and answers at once.
    Check(u32, CheckAnswer),
    /// The outside service is asked and says that it did not happen; nobody books it yet.
    Note(u32),
    /// What was noted is booked.
    Book,
    /// An operator's word.
    Resolve(ResolvedAs),
}

impl Action {
    /// Everything that might happen; [`step`] says what can.
    pub fn all(attempts: u32) -> impl Iterator<Item = Self> {
        let of_attempt = |n| {
            let plain = [
                Self::Start(n),
                Self::ClaimAgain(n),
                Self::Send(n),
                Self::Apply(n),
                Self::Drop(n),
                Self::LoseAnswer(n),
                Self::Crash(n),
                Self::Note(n),
            ];
            let reports = OutcomeStatus::ALL.iter().map(move |status| Self::Report(n, *status));
            let checks = CheckAnswer::ALL.iter().map(move |answer| Self::Check(n, *answer));
            plain.into_iter().chain(reports).chain(checks)
        };
        [Self::Claim, Self::Tick, Self::Expire, Self::Book]
            .into_iter()
            .chain((1..=attempts).flat_map(of_attempt))
            .chain(ResolvedAs::ALL.iter().map(|state| Self::Resolve(*state)))
    }

    /// Whether it happens without the goodwill of an adapter that is at work.
    pub fn needs_no_adapter(self) -> bool {
        !matches!(self, Self::Start(_) | Self::Send(_) | Self::Report(..))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim => write!(f, "a fresh claim is granted"),
            Self::Start(n) => write!(f, "the grant of attempt {n} reaches its adapter"),
            Self::ClaimAgain(n) => write!(f, "the claim of attempt {n} is repeated"),
            Self::Send(n) => write!(f, "the adapter of attempt {n} sends"),
            Self::Apply(n) => write!(f, "the request of attempt {n} takes effect"),
            Self::Drop(n) => write!(f, "the request of attempt {n} is refused or lost"),
            Self::LoseAnswer(n) => write!(f, "the answer to attempt {n} is lost"),
            Self::Crash(n) => write!(f, "the adapter of attempt {n} crashes"),
            Self::Tick => write!(f, "a millisecond passes"),
            Self::Expire => write!(f, "the background job books the end of the lease"),
            Self::Report(n, status) => {
                write!(f, "the adapter of attempt {n} reports {}", status.as_str())
            }
            Self::Check(n, answer) => {
                write!(f, "asked about attempt {n}, the service says {}", answer.as_str())
            }
            Self::Note(n) => write!(f, "asked about attempt {n}, the service says no: noted"),
            Self::Book => write!(f, "the answer that was noted is booked"),
            Self::Resolve(state) => write!(f, "the operator says {}", state.as_str()),
        }
    }
}

/// The world after an action; `None` if it cannot happen or changes nothing.
pub fn step(rules: &Rules, world: &World, action: Action) -> Option<World> {
    let mut next = world.clone();
    match action {
        Action::Claim => return claim(rules, world),
        Action::Start(n) => start(&mut next, n)?,
        Action::ClaimAgain(n) => claim_again(rules, &mut next, n)?,
        Action::Send(n) => send(rules, &mut next, n)?,
        Action::Apply(n) => apply(rules, &mut next, n)?,
        Action::Drop(n) => {
            let side = next.side_mut(n);
            require(side.request == Request::Net)?;
            side.request = Request::Dropped;
        }
        Action::LoseAnswer(n) => {
            report(rules, &mut next, n, OutcomeStatus::Timeout)?;
            next.side_mut(n).adapter = Adapter::Gone;
        }
        Action::Crash(n) => {
            let side = next.side_mut(n);
            require(side.adapter != Adapter::Gone)?;
            side.adapter = Adapter::Gone;
        }
        Action::Tick => tick(rules, &mut next)?,
        Action::Expire => next.call = Some(rules.expire(world.call.as_ref()?, world.now)?),
        Action::Report(n, status) => report(rules, &mut next, n, status)?,
        Action::Check(n, answer) => {
            ask(rules, &mut next, n, answer)?;
            book(rules, &mut next, n, answer, world.now)?;
        }
        Action::Note(n) => {
            ask(rules, &mut next, n, CheckAnswer::NotExecuted)?;
            require(next.noted.replace((n, world.now)) != Some((n, world.now)))?;
        }
        Action::Book => {
            let (n, asked_at) = next.noted.take()?;
            book(rules, &mut next, n, CheckAnswer::NotExecuted, asked_at)?;
        }
        Action::Resolve(state) => {
            // An operator does not lie, but may give up at any time.
            require(match state {
                ResolvedAs::Ok => world.effects > 0,
                ResolvedAs::Retryable | ResolvedAs::Terminal => !world.has_trace_outside(),
                ResolvedAs::Abandoned => true,
            })?;
            next.call = rules.resolve(world.call.as_ref()?, world.now, state).ok()?;
        }
    }
    Some(next)
}

fn require(holds: bool) -> Option<()> {
    holds.then_some(())
}

fn claim(rules: &Rules, world: &World) -> Option<World> {
    require(world.sides.len() < ATTEMPTS_MAX)?;
    let claimed = rules.claim(world.call.as_ref(), world.now, None).ok()?;
    let ClaimedAs::Granted { lease_expires_at, .. } = claimed.answer else { return None };
    let mut next = world.clone();
    next.call = Some(claimed.plan.call.expect("a grant is an event"));
    next.sides.push(Side {
        adapter: Adapter::Asking,
        request: Request::None,
        lease_end: lease_expires_at,
        reported_at: None,
    });
    Some(next)
}

/// An adapter counts its lease from when it asked, so an answer that comes after it is useless.
fn start(world: &mut World, n: u32) -> Option<()> {
    let now = world.now;
    let side = world.side_mut(n);
    require(side.adapter == Adapter::Asking && now < side.lease_end)?;
    side.adapter = Adapter::Ready;
    Some(())
}

fn claim_again(rules: &Rules, world: &mut World, n: u32) -> Option<()> {
    require(world.side(n).adapter == Adapter::Asking)?;
    let again = rules.claim(world.call.as_ref(), world.now, Some(n)).ok()?;
    let ClaimedAs::Granted { attempt, .. } = again.answer else { return None };
    assert_eq!(attempt, n, "a claim id belongs to one attempt");
    world.side_mut(n).adapter = Adapter::Ready;
    Some(())
}

fn send(rules: &Rules, world: &mut World, n: u32) -> Option<()> {
    let in_time = world.now < world.side(n).lease_end;
    let side = world.side_mut(n);
    require(side.adapter == Adapter::Ready)?;
    require(in_time || rules.fault == Some(Fault::SendsAfterLease))?;
    (side.adapter, side.request) = (Adapter::Sent, Request::Net);
    Some(())
}

/// Within the window the service recognizes the key and does nothing twice.
fn apply(rules: &Rules, world: &mut World, n: u32) -> Option<()> {
    require(world.side(n).request == Request::Net)?;
    let inside = world.window_end().is_some_and(|end| world.now < end);
    let recognized = rules.effect == Effect::Keyed && inside && world.effects > 0;
    world.side_mut(n).request = Request::Applied;
    // More than two tell nothing new.
    world.effects = (world.effects + u8::from(!recognized)).min(2);
    Some(())
}

/// What was sent within the key window arrives within it, or never.
fn tick(rules: &Rules, world: &mut World) -> Option<()> {
    let before = world.now;
    world.now = before.plus_ms(1);
    if rules.effect == Effect::Keyed {
        let end = world.window_end().unwrap_or(before);
        let closes = before < end && world.now >= end;
        require(!closes || world.sides.iter().all(|side| side.request != Request::Net))?;
    }
    Some(())
}

/// An adapter reports only what it knows. One that will not send any more may say so.
fn report(rules: &Rules, world: &mut World, n: u32, status: OutcomeStatus) -> Option<()> {
    let now = world.now;
    let side = *world.side(n);
    let has_sent = side.adapter == Adapter::Sent;
    require(match status {
        OutcomeStatus::Ok => has_sent && side.request == Request::Applied,
        OutcomeStatus::RetryableError | OutcomeStatus::TerminalError => {
            side.adapter == Adapter::Ready || (has_sent && side.request == Request::Dropped)
        }
        OutcomeStatus::Timeout | OutcomeStatus::Unknown => has_sent,
    })?;
    let call = world.call.as_ref()?;
    let after = rules.report(call, now, n, status).ok()??;
    world.call = Some(after);
    let side = world.side_mut(n);
    side.reported_at.get_or_insert(now);
    if status.is_definite() {
        side.adapter = Adapter::Gone;
    }
    Some(())
}

/// A source tells the truth, but its "not executed" is final only after its settle time; then
/// what is still under way will not be taken any more.
fn ask(rules: &Rules, world: &mut World, n: u32, answer: CheckAnswer) -> Option<()> {
    require(rules.effect == Effect::Queryable)?;
    let side = *world.side(n);
    let is_final = world.now >= world.final_from(&side);
    require(match answer {
        CheckAnswer::ExecutedOk => side.request == Request::Applied,
        CheckAnswer::ExecutedFailed => side.request == Request::Dropped,
        CheckAnswer::NotExecuted => side.request != Request::Applied,
        CheckAnswer::Pending | CheckAnswer::Indeterminate | CheckAnswer::Unsupported => true,
    })?;
    if answer == CheckAnswer::NotExecuted && is_final && side.request == Request::Net {
        world.side_mut(n).request = Request::Dropped;
    }
    Some(())
}

fn book(
    rules: &Rules,
    world: &mut World,
    n: u32,
    answer: CheckAnswer,
    asked_at: Time,
) -> Option<()> {
    let after = rules.check(world.call.as_ref()?, world.now, n, answer, asked_at).ok()??;
    world.call = Some(after);
    Some(())
}
