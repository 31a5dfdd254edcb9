//! Starts on the same boot and on another: what they append, and what a reader may rely on.

use std::sync::Arc;

use recibo_core::event::Body;
use recibo_core::id::{Namespace, ScopeId};
use recibo_core::status::CallState;
use recibo_store::{Config, ManualClock, ReadOnlyCause, Store};

use super::disk::BreakingDisk;
use super::failed_commits::{call, claim};

const LEASE_MS: u64 = 60_000;

fn namespace() -> Namespace {
    Namespace::parse("default").expect("a name")
}

fn open(disk: &BreakingDisk, clock: &Arc<ManualClock>) -> Store {
    let entropy = Box::new(|bytes: &mut [u8]| rand::fill(bytes));
    let config = Config { cache_bytes: 1 << 20, queue_len_max: 64 };
    Store::on_disk(disk.clone(), config, clock.clone(), entropy, [1; 32]).expect("it opens")
}

fn claim_one(store: &Store, name: &str) {
    let scope: ScopeId =
        store.open_scope(&namespace(), None, 600_000).wait().expect("it is served").scope_id;
    store.claim(&namespace(), claim(name, "c-1", &scope)).wait().expect("it is granted");
}

fn state(store: &Store, name: &str) -> CallState {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let view = runtime.expect("a runtime").block_on(store.settled()).expect("it can be read");
    view.decision(&namespace(), &call(name)).expect("it can be read").decision.state
}

#[test]
fn a_read_that_shows_a_lease_as_over_is_durable_and_appends_nothing() {
    let (disk, clock) = (BreakingDisk::default(), Arc::new(ManualClock::at(1_800_000_000_000)));
    let store = open(&disk, &clock);
    claim_one(&store, "a");
    let events = store.size();
    clock.advance_ms(LEASE_MS);
    assert_eq!(state(&store, "a"), CallState::Unknown);
    assert_eq!(store.size(), events, "no event");
    // The machine is switched off before any background job has run.
    let disk = disk.after_crash();
    drop(store);
    clock.reboot();
    let store = open(&disk, &clock);
    assert_eq!(state(&store, "a"), CallState::Unknown);
    assert_eq!(store.size(), events + 1, "one event: the restart");
}

/// A reader makes nothing durable: on this boot a lease that is over stays over by itself.
#[test]
fn a_reader_sees_the_end_of_a_lease_that_was_never_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::at(1_800_000_000_000));
    let entropy = || Box::new(|bytes: &mut [u8]| rand::fill(bytes));
    let config = || Config { cache_bytes: 1 << 20, queue_len_max: 64 };
    let store = Store::open(folder.path(), config(), clock.clone(), entropy()).expect("it opens");
    claim_one(&store, "a");
    // Whoever is killed marks no end.
    store.close();
    drop(store);
    for (passed_ms, seen) in
        [(LEASE_MS / 2, CallState::InFlight), (LEASE_MS / 2, CallState::Unknown)]
    {
        let cause = ReadOnlyCause::Asked;
        let open = || {
            Store::open_read_only(folder.path(), config(), clock.clone(), entropy(), cause)
                .expect("it opens")
        };
        let before = open();
        clock.advance_ms(passed_ms);
        let (after, size) = (open(), before.size());
        for reader in [before, after] {
            assert_eq!(within_seconds(move || (state(&reader, "a"), reader.size())), (seen, size));
        }
    }
}

/// A look that never ends must not hold up the other tests.
fn within_seconds<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(look()));
    seen.recv_timeout(std::time::Duration::from_secs(20)).expect("it hangs")
}

#[test]
fn a_start_on_another_boot_is_one_event_however_many_leases_live() {
    let (disk, clock) = (BreakingDisk::default(), Arc::new(ManualClock::at(1_800_000_000_000)));
    let store = open(&disk, &clock);
    for n in 0..50 {
        claim_one(&store, &format!("call-{n}"));
    }
    let events = store.size();
    store.close();
    drop(store);

    clock.advance_ms(1000);
    let store = open(&disk, &clock);
    assert_eq!(store.size(), events, "the same boot goes on");
    store.close();
    drop(store);

    clock.advance_ms(1000);
    clock.reboot();
    let store = open(&disk, &clock);
    assert_eq!(store.size(), events + 1);
    let snapshot = store.snapshot().expect("it can be read");
    let (event, _) = snapshot.event(events).expect("it can be read").expect("it is there");
    assert_eq!(event.owner, None, "it is of the whole ledger");
    assert!(matches!(event.body, Body::Restarted(restarted) if !restarted.key_windows_void));
    clock.advance_ms(LEASE_MS - 1);
    assert_eq!(state(&store, "call-7"), CallState::InFlight);
    clock.advance_ms(1);
    assert_eq!(state(&store, "call-7"), CallState::Unknown);
}
