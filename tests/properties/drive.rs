//! Does one operation on the store and on the book, and compares all that can be seen.

use std::sync::{Arc, Mutex};

use recibo_core::event::Event;
use recibo_core::hash::sha256;
use recibo_core::id::{Namespace, ScopeId};
use recibo_core::line;
use recibo_core::plan::{Check, OneShot, Resolution};
use recibo_core::status::ScopeEnd;
use recibo_core::time::Time;
use recibo_core::tree::{Frontier, leaf_hash, root_of};
use recibo_store::{Config, Entropy, LogHead, ManualClock, Snapshot, Store, etag};

use super::book::Book;
use super::disk::Disk;
use super::op::{self, CALLS, Op};
use super::request::is_refused;

const START_MS: u64 = 1_800_000_000_000;
const SECRET: [u8; 32] = [9; 32];

type Drawn = Arc<Mutex<Vec<Vec<u8>>>>;

/// Both sides, and what they share.
pub struct Drive {
    pub(super) store: Store,
    pub(super) book: Book,
    disk: Disk,
    clock: Arc<ManualClock>,
    wall_ms: u64,
    /// What the store drew at random, newest last.
    pub(super) drawn: Drawn,
    /// All scopes ever opened.
    pub(super) scopes: Vec<ScopeId>,
    pub(super) last_shot: Option<(Namespace, OneShot)>,
    frontier: Frontier,
}

impl Drive {
    /// An empty ledger.
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let (disk, drawn) = (Disk::default(), Arc::default());
        Self {
            store: open(&disk, &clock, &drawn),
            book: Book::new(Time::from_ms(START_MS), SECRET),
            disk,
            clock,
            wall_ms: START_MS,
            drawn,
            scopes: Vec::new(),
            last_shot: None,
            frontier: Frontier::new(),
        }
    }

    /// Does one operation on both sides.
    pub fn step(&mut self, op: &Op) {
        let (before, events) = (self.head(), self.book.events.len());
        let scopes = self.scopes.len();
        let is_marked = self.marks(op);
        let is_answered_only = self.answer(op);
        if self.book.events.len() > events || is_marked {
            self.book.seen = Some(self.book.now);
        }
        self.compare();
        let appended = self.book.events.len() - events;
        if is_answered_only && self.scopes.len() == scopes {
            assert_eq!(appended, 0, "a refusal or a replay appends nothing");
            assert_eq!(self.head(), before, "a refusal or a replay leaves the log as it is");
        }
    }

    /// Whether the store makes durable how late it is, also if nothing is appended: whoever is
    /// answered may have been shown a lease as over.
    fn marks(&self, op: &Op) -> bool {
        match op {
            Op::Tick => self.book.has_open_leases(),
            Op::Advance { .. } | Op::WallBack { .. } | Op::Reopen { .. } | Op::Reboot { .. } => {
                false
            }
            Op::ShotAgain if self.last_shot.is_none() => false,
            _ => self.book.has_unmarked_end(),
        }
    }

    /// Answers whether it was a refusal, advice or a replay.
    fn answer(&mut self, op: &Op) -> bool {
        match op {
            Op::OpenScope { call, ttl_ms } => self.open_scope(&op::call(*call).0, *ttl_ms),
            Op::CloseScope { call, scope } => {
                let (namespace, _) = op::call(*call);
                let scope = self.scope(&namespace, *scope);
                let is_known = self.store.close_scope(&namespace, &scope).wait();
                let expected = self.book.close_scope(&namespace, &scope, ScopeEnd::Closed);
                assert_eq!(is_known.ok(), Some(expected));
            }
            Op::Claim { call, id, lease_ms, expected, said } => {
                return self.claim(*call, *id, *lease_ms, *expected, said);
            }
            Op::Report { call, back, outcome, token, scope } => {
                let attempt = self.attempt(*call, *back);
                return self.report(*call, attempt, outcome, *token, *scope);
            }
            Op::Shot { call, expected, outcome, age_ms, said } => {
                let (namespace, shot) = self.shot(*call, *expected, outcome, *age_ms, said);
                let answered_only = self.record(&namespace, &shot);
                self.last_shot = Some((namespace, shot));
                return answered_only;
            }
            Op::ShotAgain => {
                if let Some((namespace, shot)) = self.last_shot.clone() {
                    return self.record(&namespace, &shot);
                }
            }
            Op::Renew { call, back, lease_ms, token } => {
                return self.renew(*call, *back, *lease_ms, *token);
            }
            Op::Check { call, back, answer, age_ms } => {
                let attempt = self.attempt(*call, *back);
                let (namespace, call) = op::call(*call);
                let (answer, age_ms) = (*answer, *age_ms);
                let (source, provider_ref, redacted) = ("source".to_owned(), None, false);
                let check = Check { call, attempt, answer, source, age_ms, provider_ref, redacted };
                let got = self.store.check(&namespace, check.clone()).wait();
                return is_refused(got, self.book.check(&namespace, &check));
            }
            Op::Resolve { call, state, etag, corrects } => {
                let (given, corrects) = (self.etag(*call, *etag), self.corrected(*call, *corrects));
                let (namespace, call) = op::call(*call);
                let (reason, redacted, by) = ("reason".to_owned(), false, "local".to_owned());
                let word = Resolution { call, state: *state, reason, redacted, by, corrects };
                let got = self.store.resolve(&namespace, word.clone(), given.clone()).wait();
                return is_refused(got, self.book.resolve(&namespace, &word, &given));
            }
            Op::SetPolicy { call, policy } => {
                let (namespace, _) = op::call(*call);
                let policy = op::policies().swap_remove(*policy);
                let seq = self.store.set_policy(&namespace, policy.clone()).wait();
                assert_eq!(seq.ok(), Some(self.book.set_policy(&namespace, policy)));
            }
            Op::Tick => {
                self.store.tick(&op::call(0).0).wait().expect("it is served");
                self.book.tick();
            }
            Op::Advance { ms } => self.advance(*ms),
            Op::WallBack { ms } => {
                self.wall_ms = self.wall_ms.saturating_sub(*ms);
                self.clock.set_wall_ms(self.wall_ms);
            }
            Op::Reopen { down_ms } => self.reopen(*down_ms, false),
            Op::Reboot { down_ms } => self.reopen(*down_ms, true),
        }
        false
    }

    fn advance(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        self.wall_ms += ms;
        self.book.now = self.book.now.plus_ms(ms);
    }

    /// Ends the process, lets time pass, and starts it again. Then everything is read back, and
    /// the root is computed from the lines alone.
    pub fn reopen(&mut self, down_ms: u64, is_other_boot: bool) {
        if self.book.has_unmarked_end() {
            // The last batch marks it.
            self.book.seen = Some(self.book.now);
        }
        self.store.close();
        self.clock.advance_ms(down_ms);
        self.wall_ms += down_ms;
        if is_other_boot {
            self.clock.reboot();
        }
        // The store must be gone before its disk is opened again.
        let other = Disk::default();
        self.store = open(&other, &self.clock, &self.drawn);
        self.store = open(&self.disk, &self.clock, &self.drawn);
        let wall = Time::from_ms(self.wall_ms);
        if is_other_boot {
            self.book.restart(wall);
        } else {
            self.book.start_again(down_ms, wall);
        }
        self.compare();
        let snapshot = self.snapshot();
        let leaves: Vec<_> = (0..self.book.events.len())
            .map(|seq| leaf_hash(line::render(&self.event(&snapshot, seq)).as_bytes()))
            .collect();
        let head = snapshot.log_head().expect("it can be read");
        assert_eq!(head, LogHead { size: leaves.len() as u64, root: root_of(&leaves) });
        for number in 0..CALLS {
            let (namespace, call) = op::call(number);
            let story = snapshot.story(&namespace, &call, usize::MAX).expect("it can be read");
            let expected: Vec<Event> = self.book.story(&namespace, &call).cloned().collect();
            assert_eq!(story, expected, "a call's events are chained");
        }
    }

    /// Compares the log and every call.
    fn compare(&mut self) {
        assert!(self.store.is_serving(), "the store serves");
        assert_eq!(self.store.now(), self.book.now, "ledger time");
        let snapshot = self.snapshot();
        assert_eq!(
            snapshot.log_head().expect("it can be read").size,
            self.book.events.len() as u64
        );
        // Salts are the store's; all else must be the same. Numbers without gaps are, too.
        for seq in self.frontier.size() as usize..self.book.events.len() {
            let event = self.event(&snapshot, seq);
            self.book.events[seq].salt = event.salt;
            assert_eq!(event, self.book.events[seq]);
            self.frontier.push(leaf_hash(line::render(&event).as_bytes()), |_, _, _| {});
        }
        let head = snapshot.log_head().expect("it can be read");
        assert_eq!(head, LogHead { size: self.frontier.size(), root: self.frontier.root() });
        for number in 0..CALLS {
            self.compare_call(&snapshot, number);
        }
    }

    fn compare_call(&self, snapshot: &Snapshot, number: usize) {
        let (namespace, call) = op::call(number);
        let view = snapshot.call(&namespace, &call).expect("it can be read");
        let known = self.book.known(&namespace, &call);
        assert_eq!(view.is_some(), known.is_some(), "whether {call:?} is known");
        let (Some(view), Some(known)) = (view, known) else { return };
        let tip = &known.call.tip;
        assert_eq!(view.state, tip.state(self.book.now));
        assert_eq!(view.conflict, tip.conflict);
        assert_eq!(view.version, tip.version);
        assert_eq!(view.etag, etag::of(tip, self.book.now));
        assert_eq!(view.decision, known.decision(&self.book.moment()));
        assert_eq!(view.facts, known.facts);
        assert_eq!(view.records, self.book.records(&namespace, &call));
        let advice = snapshot.decision(&namespace, &call).expect("it can be read");
        assert_eq!(advice.decision, view.decision);
    }

    fn event(&self, snapshot: &Snapshot, seq: usize) -> Event {
        let stored = snapshot.event(seq as u64).expect("it can be read");
        let (event, leaf) = stored.unwrap_or_else(|| panic!("there is an event {seq}"));
        assert_eq!(leaf, leaf_hash(line::render(&event).as_bytes()), "the leaf of its line");
        event
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.store.snapshot().expect("it can be read")
    }

    fn head(&self) -> LogHead {
        self.snapshot().log_head().expect("it can be read")
    }
}

fn open(disk: &Disk, clock: &Arc<ManualClock>, drawn: &Drawn) -> Store {
    let config = Config { cache_bytes: 1 << 20, queue_len_max: 8 };
    let drawn = drawn.clone();
    let mut next = drawn.lock().expect("no holder panics").len() as u64;
    let entropy: Entropy = Box::new(move |bytes| {
        next += 1;
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = sha256(&[&next.to_be_bytes(), &[place as u8]])[0];
        }
        drawn.lock().expect("no holder panics").push(bytes.to_vec());
    });
    Store::on_disk(disk.clone(), config, clock.clone(), entropy, SECRET).expect("it opens")
}
