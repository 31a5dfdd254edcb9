//! The index against a plain log of keys, with sizes so small that everything happens often.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::*;

/// A ledger that knows of every event only the key that it enters, if any.
struct Ledger {
    db: Database,
    index: HashIndex,
    tuning: Tuning,
    log: Vec<Option<Key>>,
}

/// A snapshot, and the number of events in it.
struct Reader(ReadTransaction, View, u64);

impl Ledger {
    fn new(tuning: Tuning) -> Self {
        let db = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        recibo_migrations::run(&db).unwrap();
        let index = open(&db, &[], tuning);
        Self { db, index, tuning, log: Vec::new() }
    }

    /// Does everything but the commit.
    fn write(&mut self, keys: &[Option<Key>]) -> WriteTransaction {
        let txn = self.db.begin_write().unwrap();
        let mut size = self.log.len() as u64;
        for key in keys {
            txn.open_table(tables::EVENTS).unwrap().insert(size, &[][..]).unwrap();
            if let Some(key) = key {
                self.index.insert(*key, size);
            }
            size += 1;
        }
        self.index.maintain(&txn, size).unwrap();
        txn
    }

    fn commit(&mut self, keys: &[Option<Key>]) {
        self.write(keys).commit().unwrap();
        self.log.extend_from_slice(keys);
    }

    /// The readers of the index that ran ahead must see what was there before.
    fn fail(&mut self, keys: &[Option<Key>]) {
        self.write(keys).abort().unwrap();
        self.check(&self.reader());
        self.reopen();
    }

    fn reopen(&mut self) {
        self.index = open(&self.db, &self.log, self.tuning);
    }

    fn reader(&self) -> Reader {
        let (txn, view) = self.index.readers().begin(&self.db).unwrap();
        Reader(txn, view, self.log.len() as u64)
    }

    /// Every key must give exactly its values, newest first.
    fn check(&self, reader: &Reader) {
        let mut model: HashMap<Key, Vec<u64>> = HashMap::new();
        for (seq, key) in self.log[..reader.2 as usize].iter().enumerate() {
            model.entry(key.unwrap_or(Key(77))).or_default().push(seq as u64);
        }
        model.insert(Key(77), Vec::new());
        for (key, mut values) in model {
            values.reverse();
            assert_eq!(reader.values(key), values, "{key:?}");
        }
    }

    /// No row may be left of runs that nobody knows.
    fn check_rows(&self) {
        let reader = self.reader();
        let rows = reader.0.open_table(tables::HASH_INDEX).unwrap();
        let row = &view::read_row(&rows).unwrap();
        let mut known: Vec<u32> = row.runs.iter().map(|run| run.no).collect();
        known.extend(row.merges.iter().map(|merge| merge.output));
        known.extend(&row.trash);
        for entry in rows.range(1..).unwrap() {
            let run = (entry.unwrap().0.value() >> 32) as u32;
            assert!(known.contains(&run), "run {run} has rows");
        }
        let tiers = row.runs.iter().map(|run| usize::from(run.tier) + 1).max().unwrap_or(0);
        assert!(row.runs.len() <= 2 * self.tuning.fan_in * tiers, "merges fall behind: {row:?}");
        // A large run is removed while small ones queue behind it.
        assert!(row.trash.len() <= 3 * self.tuning.fan_in * (tiers + 1), "backlog: {row:?}");
        assert!(row.runs.is_sorted_by(|old, new| old.tier >= new.tier), "{row:?}");
    }
}

impl Reader {
    /// Also sees what is newer than its snapshot, as the caller's `confirm` would.
    fn values(&self, key: Key) -> Vec<u64> {
        let rows = self.0.open_table(tables::HASH_INDEX).unwrap();
        let mut values = Vec::new();
        let found = self.1.find_map(&rows, key, |value| {
            values.extend(Some(value).filter(|value| *value < self.2));
            Ok(None::<()>)
        });
        assert!(found.unwrap().is_none());
        values
    }
}

fn open(db: &Database, log: &[Option<Key>], tuning: Tuning) -> HashIndex {
    let rows = db.begin_read().unwrap().open_table(tables::HASH_INDEX).unwrap();
    let lost = |from| {
        let events = log.iter().zip(0_u64..).skip(from as usize);
        Ok(events.filter_map(|(key, seq)| Some(((*key)?, seq))).collect())
    };
    HashIndex::open_tuned(&rows, log.len() as u64, lost, tuning).unwrap()
}

fn some_tuning(random: &mut StdRng) -> Tuning {
    let (block_entries, flush_entries) = (random.random_range(1..6), random.random_range(1..40));
    Tuning {
        flush_entries,
        fan_in: random.random_range(2..5),
        merge_blocks: 2 * (flush_entries / block_entries as u64 + 1),
        shape: Shape { block_entries, summary_blocks: random.random_range(1..4) },
    }
}

/// Few keys, so that many entries share one; at the ends of the range too.
fn some_keys(random: &mut StdRng, len: usize) -> Vec<Option<Key>> {
    let key = |random: &mut StdRng| match random.random_range(0..8) {
        0 => None,
        1 => Some(Key(0)),
        2 => Some(Key(u64::MAX)),
        3 | 4 => Some(Key(random.random_range(1..30) << 58)),
        _ => Some(Key(random.random())),
    };
    (0..len).map(|_| key(random)).collect()
}

#[test]
fn a_lookup_finds_what_the_log_holds_whatever_happens() {
    for seed in 0..24 {
        let mut random = StdRng::seed_from_u64(seed);
        let tuning = some_tuning(&mut random);
        let mut ledger = Ledger::new(tuning);
        let mut readers = vec![ledger.reader()];
        for step in 0..150 {
            let len = random.random_range(1..30);
            let keys = some_keys(&mut random, len);
            match random.random_range(0..20) {
                0 => ledger.reopen(),
                1 => ledger.fail(&keys),
                2 => ledger.db.begin_write().unwrap().abort().unwrap(),
                3 => {
                    readers.push(ledger.reader());
                    let gone = random.random_range(0..readers.len());
                    ledger.check(&readers.swap_remove(gone));
                }
                4 => ledger.check(&ledger.reader()),
                // Events without entries must advance the index too.
                5 => ledger.commit(&vec![None; len]),
                _ => ledger.commit(&keys),
            }
            if step % 8 == 0 {
                ledger.check_rows();
            }
        }
        readers.push(ledger.reader());
        readers.iter().for_each(|reader| ledger.check(reader));
        let tiers = ledger.index.row.runs.iter().map(|run| run.tier).max();
        assert!(tiers >= Some(1), "seed {seed} merged nothing");
    }
}

#[test]
fn a_restart_after_every_commit_does_not_keep_merges_from_their_end() {
    let mut random = StdRng::seed_from_u64(1);
    let shape = Shape { block_entries: 3, summary_blocks: 2 };
    let mut ledger = Ledger::new(Tuning { flush_entries: 8, fan_in: 2, merge_blocks: 8, shape });
    for _ in 0..400 {
        let keys = some_keys(&mut random, 4);
        ledger.commit(&keys);
        ledger.reopen();
    }
    ledger.check_rows();
    ledger.check(&ledger.reader());
    assert!(ledger.index.row.runs[0].tier >= 6);
}

#[test]
fn entries_of_events_since_the_last_flush_are_few() {
    let mut ledger = Ledger::new(Tuning { flush_entries: 10, ..Tuning::STORED });
    for _ in 0..200 {
        ledger.commit(&[Some(Key(5)), None, None]);
        let waiting = ledger.log.len() as u64 - ledger.index.row.flushed_to;
        assert!(waiting < ledger.tuning.flush_events() + 3);
        ledger.reopen();
    }
    ledger.check(&ledger.reader());
}

#[test]
fn kinds_do_not_meet() {
    assert_ne!(Key::new(Kind::IdempotencyKey, &[7; 32]).0, u64::from_be_bytes([7; 8]));
}

#[test]
fn readers_beside_the_writer_find_every_committed_entry() {
    let key = |seq: u64| Key(seq.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let shape = Shape { block_entries: 4, summary_blocks: 3 };
    let mut ledger = Ledger::new(Tuning { flush_entries: 20, fan_in: 2, merge_blocks: 16, shape });
    let (readers, is_done) = (ledger.index.readers(), AtomicBool::new(false));
    let db = std::sync::Arc::new(std::mem::replace(
        &mut ledger.db,
        Database::builder().create_with_backend(InMemoryBackend::new()).unwrap(),
    ));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for commit in 0..600 {
                let txn = db.begin_write().unwrap();
                for seq in commit * 7..commit * 7 + 7 {
                    txn.open_table(tables::EVENTS).unwrap().insert(seq, &[][..]).unwrap();
                    ledger.index.insert(key(seq), seq);
                }
                ledger.index.maintain(&txn, commit * 7 + 7).unwrap();
                txn.commit().unwrap();
            }
            is_done.store(true, Ordering::SeqCst);
        });
        let mut random = StdRng::seed_from_u64(2);
        while !is_done.load(Ordering::SeqCst) {
            let (txn, view) = readers.begin(&db).unwrap();
            let events = txn.open_table(tables::EVENTS).unwrap();
            let Some((last, _)) = events.last().unwrap() else { continue };
            let size = last.value() + 1;
            let reader = Reader(txn, view, size);
            for _ in 0..20 {
                let seq = random.random_range(0..size);
                assert_eq!(reader.values(key(seq)), [seq]);
            }
        }
    });
}
