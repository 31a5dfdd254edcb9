use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use zeroize::Zeroizing;

use super::parts::{Identity, LedgerPart, MarkPart};
use super::*;
use crate::{Config, ManualClock, ReadOnlyCause, Store, WriteError};

const ID: LedgerId = LedgerId::of(1);
const OTHER: LedgerId = LedgerId::of(2);
const KEY: [u8; 32] = [3; 32];
const SMALL: Config = Config { cache_bytes: 1 << 20, queue_len_max: 16 };

impl LedgerId {
    const fn of(byte: u8) -> Self {
        Self([byte; 16])
    }
}

fn mark(ledger_id: LedgerId, complete: bool, older: bool) -> MarkPart {
    MarkPart::Held(Mark { ledger_id, complete, older })
}

fn ledger(ledger_id: Option<LedgerId>, key: Option<[u8; 32]>, is_blank: bool) -> LedgerPart {
    let lease_key_id = key.map(|key| lease_key_id(&key));
    LedgerPart::Held(Identity { ledger_id, lease_key_id, is_blank })
}

fn key(byte: u8) -> LeaseKey {
    LeaseKey::Held(Zeroizing::new([byte; 32]))
}

/// The verdict, or the part that is named and how.
fn said(mark: MarkPart, ledger: LedgerPart, lease_key: LeaseKey, has_admin_key: bool) -> String {
    let parts = Parts { mark, ledger, lease_key, has_admin_key };
    match judge(Path::new("F"), &parts) {
        Ok(verdict) => format!("{verdict:?}").split('(').next().unwrap().to_owned(),
        Err(OpenError::PartMissing { part, beside, .. }) => format!("no {part} beside {beside}"),
        Err(OpenError::PartDamaged { part, how, .. }) => format!("{part} {how}"),
        Err(OpenError::PartForeign { part, .. }) => format!("foreign {part}"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn only_a_folder_that_never_answered_gets_a_new_ledger() {
    use LedgerPart::{Empty as NoBytes, Missing as NoLedger};
    use MarkPart::{Damaged as BadMark, Missing as NoMark};
    let whole = || mark(ID, true, false);
    let begun = || mark(ID, false, false);
    let moving = || mark(ID, false, true);
    let full = || ledger(Some(ID), Some(KEY), false);
    let old = || ledger(None, None, false);
    let old_blank = || ledger(None, None, true);
    let cases = [
        // Nothing was ever answered.
        (NoMark, NoLedger, LeaseKey::Missing, false, "New"),
        (NoMark, NoBytes, LeaseKey::Missing, false, "New"),
        (NoMark, old_blank(), LeaseKey::Missing, false, "New"),
        (NoMark, old_blank(), LeaseKey::Empty, false, "New"),
        (begun(), NoLedger, LeaseKey::Missing, false, "New"),
        (begun(), NoLedger, key(3), false, "New"),
        (begun(), NoBytes, key(3), false, "New"),
        (begun(), old_blank(), LeaseKey::Damaged, false, "New"),
        (begun(), full(), key(3), false, "New"),
        // A whole ledger, and older ones.
        (whole(), full(), key(3), true, "Whole"),
        (NoMark, old(), key(3), true, "Older"),
        (NoMark, old_blank(), key(3), true, "Older"),
        (NoMark, old_blank(), key(3), false, "Older"),
        (moving(), old(), key(3), true, "Older"),
        (moving(), full(), key(3), true, "Older"),
        // A part is gone.
        (whole(), NoLedger, key(3), true, "no ledger.redb beside ledger.json"),
        (whole(), NoBytes, key(3), true, "ledger.redb is empty"),
        (whole(), full(), LeaseKey::Missing, true, "no lease.key beside ledger.redb"),
        (whole(), full(), LeaseKey::Empty, true, "lease.key is empty"),
        (whole(), full(), LeaseKey::Damaged, true, "lease.key is not 32 bytes"),
        (NoMark, full(), key(3), true, "no ledger.json beside ledger.redb"),
        (BadMark, full(), key(3), true, "ledger.json cannot be read"),
        (NoMark, NoLedger, key(3), false, "no ledger.redb beside lease.key"),
        (NoMark, NoLedger, LeaseKey::Empty, false, "no ledger.redb beside lease.key"),
        (NoMark, NoLedger, LeaseKey::Missing, true, "no ledger.redb beside admin.key"),
        (NoMark, NoBytes, key(3), true, "ledger.redb is empty"),
        (NoMark, old(), LeaseKey::Missing, false, "no lease.key beside ledger.redb"),
        (NoMark, old(), LeaseKey::Empty, true, "lease.key is empty"),
        (NoMark, old_blank(), LeaseKey::Missing, true, "no lease.key beside ledger.redb"),
        (moving(), NoLedger, key(3), true, "no ledger.redb beside ledger.json"),
        (moving(), old(), LeaseKey::Missing, true, "no lease.key beside ledger.redb"),
        (begun(), NoLedger, key(3), true, "no ledger.redb beside admin.key"),
        (begun(), full(), LeaseKey::Missing, false, "no lease.key beside ledger.redb"),
        // A part is of another ledger.
        (whole(), ledger(Some(OTHER), Some(KEY), false), key(3), true, "foreign ledger.redb"),
        (whole(), old(), key(3), true, "foreign ledger.redb"),
        (whole(), full(), key(4), true, "foreign lease.key"),
        (begun(), ledger(Some(OTHER), Some(KEY), true), key(3), false, "foreign ledger.redb"),
        (begun(), old(), key(3), false, "foreign ledger.redb"),
        (moving(), ledger(Some(OTHER), Some(KEY), false), key(3), true, "foreign ledger.redb"),
        (moving(), full(), key(4), true, "foreign lease.key"),
    ];
    for (number, (mark, ledger, lease_key, has_admin_key, expected)) in
        cases.into_iter().enumerate()
    {
        assert_eq!(said(mark, ledger, lease_key, has_admin_key), expected, "case {number}");
    }
}

fn entropy() -> Entropy {
    Box::new(|bytes| rand::fill(bytes))
}

fn open_store(folder: &Path) -> Result<Store, OpenError> {
    Store::open(folder, SMALL, Arc::new(ManualClock::at(1_800_000_000_000)), entropy())
}

fn read_store(folder: &Path) -> Result<Store, OpenError> {
    let clock = Arc::new(ManualClock::at(1_800_000_000_000));
    Store::open_read_only(folder, SMALL, clock, entropy(), ReadOnlyCause::Asked)
}

fn namespace() -> recibo_core::id::Namespace {
    recibo_core::id::Namespace::parse("default").unwrap()
}

/// A ledger that has answered once.
fn used(folder: &Path) {
    let store = open_store(folder).unwrap();
    store.open_scope(&namespace(), None, 1_000_000).wait().unwrap();
    store.close();
}

fn size_of(folder: &Path) -> u64 {
    let store = open_store(folder).unwrap();
    store.close();
    store.size()
}

/// Every file with its bytes and its time.
fn bytes_of(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let time = entry.metadata().unwrap().modified().unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, (fs::read(entry.path()).unwrap_or_default(), time))
    };
    fs::read_dir(folder).unwrap().map(entry).collect()
}

#[test]
fn a_first_start_that_died_after_any_step_is_completed_by_the_next() {
    for step in Step::ALL {
        for is_torn in [false, true] {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path();
            let parts = Parts::read(folder).unwrap();
            let id = LedgerId::of(7);
            found(folder, &parts, id, &Database::builder(), &mut entropy(), step).unwrap();
            if is_torn {
                // The next step died in the middle.
                for part in [LEDGER_FILE, LEASE_SECRET_FILE, LEDGER_ID_FILE] {
                    fs::write(fresh_name(&folder.join(part)), "torn").unwrap();
                }
            }
            let is_complete = step == Step::Complete;
            match read_store(folder) {
                Ok(_) => assert!(is_complete, "{step:?}"),
                Err(OpenError::NoLedger { .. }) => assert!(!is_complete, "{step:?}"),
                Err(other) => panic!("{step:?}: {other}"),
            }
            used(folder);
            assert_eq!(size_of(folder), 1, "{step:?}");
            let MarkPart::Held(mark) = Parts::read(folder).unwrap().mark else {
                panic!("{step:?}")
            };
            assert_eq!(mark, Mark { ledger_id: id, complete: true, older: false });
        }
    }
}

#[test]
fn a_mark_that_claims_a_first_start_costs_no_event() {
    let temp = tempfile::tempdir().unwrap();
    used(temp.path());
    let MarkPart::Held(mark) = Parts::read(temp.path()).unwrap().mark else { panic!() };
    Mark { complete: false, ..mark }.write(temp.path()).unwrap();
    assert_eq!(size_of(temp.path()), 1);
}

#[test]
fn a_part_that_is_gone_or_foreign_is_refused_by_name_and_nothing_is_changed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    used(one.path());
    used(two.path());
    let parts = [LEDGER_FILE, LEASE_SECRET_FILE, LEDGER_ID_FILE];
    for part in parts {
        for damage in ["missing", "empty", "foreign"] {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path();
            for part in parts {
                fs::copy(one.path().join(part), folder.join(part)).unwrap();
            }
            let path = folder.join(part);
            match damage {
                "missing" => fs::remove_file(&path).unwrap(),
                "empty" => fs::write(&path, "").unwrap(),
                _ => drop(fs::copy(two.path().join(part), &path).unwrap()),
            }
            let before = bytes_of(folder);
            for result in [open_store(folder), read_store(folder)] {
                let words = result.err().expect("refused").to_string();
                // Of a foreign id the ledger file is what does not fit.
                let named =
                    if part == LEDGER_ID_FILE && damage == "foreign" { LEDGER_FILE } else { part };
                assert!(words.starts_with(named), "{part} {damage}: {words}");
                assert!(words.contains("backup"), "{words}");
                assert!(bytes_of(folder) == before, "{part} {damage}");
            }
        }
    }
}

#[test]
fn readers_change_nothing_and_notice_a_writer() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    used(folder);
    let before = bytes_of(folder);
    let (reader, other) = (read_store(folder).unwrap(), read_store(folder).unwrap());
    assert_eq!((reader.size(), other.size()), (1, 1));
    let refused = reader.open_scope(&namespace(), None, 1_000).wait();
    assert!(matches!(refused, Err(WriteError::ReadOnly(ReadOnlyCause::Asked))));
    assert!(matches!(open_store(folder).err(), Some(OpenError::InUse)));
    reader.close();
    drop((reader, other));
    assert!(bytes_of(folder) == before);
    let writer = open_store(folder).unwrap();
    assert!(matches!(read_store(folder).err(), Some(OpenError::InUse)));
    assert!(matches!(archive(folder, "aside"), Err(OpenError::InUse)));
    assert!(!folder.join("aside").exists());
    writer.close();
}

#[test]
fn an_archive_takes_all_parts_whatever_they_hold_and_leaves_the_rest() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    assert_eq!(archive(&folder.join("nowhere"), "a").unwrap(), None);
    assert_eq!(archive(folder, "a").unwrap(), None);
    used(folder);
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let ledger = fs::read(folder.join(LEDGER_FILE)).unwrap();
    let aside = archive(folder, "a").unwrap().unwrap();
    assert!(fs::read(aside.join(LEDGER_FILE)).unwrap() == ledger);
    assert_eq!(bytes_of(folder).keys().collect::<Vec<_>>(), ["a", "notes.txt"]);
    assert_eq!(size_of(&aside), 1, "it is a ledger still");
    // Half of one, and bytes that are no ledger.
    fs::write(folder.join(LEDGER_FILE), "junk").unwrap();
    let aside = archive(folder, "b").unwrap().unwrap();
    assert_eq!(fs::read(aside.join(LEDGER_FILE)).unwrap(), b"junk");
    used(folder);
    assert_eq!(size_of(folder), 1);
}

#[test]
fn two_first_starts_at_once_make_one_ledger() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("a/b");
    let results: Vec<_> = std::thread::scope(|threads| {
        let starts: Vec<_> = (0..8).map(|_| threads.spawn(|| open_store(&folder))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    for result in &results {
        assert!(matches!(result, Ok(_) | Err(OpenError::InUse)));
    }
    assert!(results.iter().any(Result::is_ok));
    for store in results.into_iter().flatten() {
        store.close();
    }
    assert_eq!(size_of(&folder), 0);
}
