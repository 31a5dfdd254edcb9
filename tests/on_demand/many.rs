//! Proxies and commands, all at once, on one folder; and a service that is killed, or replaced by
//! one that a person starts, in the middle of their work.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand::RngExt;
use recibo_tests::binary::Server;
use serde_json::{Value, json};

use super::{exec, pause, services, status, succeeds, until};
use crate::mcp::proxy::{Proxy, Stage, call, calls, receipt};

const PROXIES: usize = 5;
const EXECS: usize = 10;
/// Calls of each proxy.
const CALLS: usize = 6;

/// `RECIBO_ROUNDS` of the longer form, else few.
fn rounds() -> u32 {
    let rounds = std::env::var("RECIBO_ROUNDS").ok();
    rounds.map_or(3, |text| text.parse().expect("a number"))
}

/// Each proxy makes its calls, and each `exec` is run, all beginning at once. Gives the proxies.
fn play(stage: &Stage, calls: usize) -> Vec<Proxy> {
    let data = stage.data();
    let start = Barrier::new(PROXIES + EXECS);
    thread::scope(|scope| {
        let proxies: Vec<_> = (0..PROXIES)
            .map(|number| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let mut proxy = stage.start(&[]);
                    for id in 0..calls {
                        let arguments = json!({"proxy": number, "call": id});
                        let answer = proxy.ask(&call(id, "pay", arguments));
                        assert!(receipt(&answer).is_some(), "{answer}");
                    }
                    proxy
                })
            })
            .collect();
        let execs: Vec<_> = (0..EXECS)
            .map(|number| {
                let (start, data) = (&start, &data);
                scope.spawn(move || {
                    start.wait();
                    exec(data, &format!("e{number}")).output().expect("the binary runs")
                })
            })
            .collect();
        for output in execs {
            let output: Output = output.join().expect("no panic");
            assert!(succeeds(&output).contains("[receipt: zc-receipt-"), "{output:?}");
        }
        proxies.into_iter().map(|proxy| proxy.join().expect("no panic")).collect()
    })
}

/// Each call took effect once and is recorded once, as a success with a receipt.
fn expect_all_recorded(stage: &Stage, proxied: usize) {
    assert_eq!(stage.effects().len(), proxied);
    let calls = calls(&Server::start(&stage.data()));
    assert_eq!(calls.len(), proxied + EXECS);
    for call in &calls {
        let attempts = call["attempts"].as_array().expect("attempts");
        let last = attempts.last().expect("an attempt");
        assert_eq!((attempts.len(), &last["status"]), (1, &json!("ok")), "{call}");
        assert!(last["token"].is_string(), "{call}");
    }
}

#[test]
fn processes_that_start_at_the_same_instant_share_one_service_which_ends_by_itself() {
    for round in 0..rounds() {
        let stage = Stage::new();
        let data = stage.data();
        let proxies = play(&stage, 1);
        let running = status(&data);
        assert_eq!(services(&data), [pid(&running)], "{running}");
        let clients = running["clients"].as_array().expect("clients");
        let known: Vec<Value> = proxies.iter().map(|proxy| proxy.pid().into()).collect();
        assert!(known.iter().all(|pid| clients.contains(pid)), "{running}");
        // As long as a proxy lives, so does the service.
        pause(if round == 0 { 2_500 } else { 0 });
        assert_eq!(services(&data), [pid(&running)]);
        for proxy in proxies {
            assert_eq!(proxy.end().code, Some(0));
        }
        until("the service ends", || services(&data).is_empty());
        assert!(!data.join("service.json").exists() && !data.join("service.sock").exists());
        expect_all_recorded(&stage, PROXIES);
    }
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid")
}

/// Does something again and again while others work.
fn meanwhile<T>(work: impl FnOnce() -> T, mut disturb: impl FnMut() + Send) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // A panic, too, ends the other thread.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Kills whatever serves the folder a moment later; whether anything did.
fn kill_the_service(data: &Path) -> bool {
    pause(rand::rng().random_range(0..150));
    let killed = services(data).into_iter().filter(|pid| {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        killed.expect("kill runs").success()
    });
    killed.count() > 0
}

#[test]
fn a_service_that_is_killed_is_started_again_and_no_call_is_lost_or_doubled() {
    let mut killed = 0;
    for _ in 0..rounds() {
        let stage = Stage::new();
        let data = stage.data();
        let mut tries = 0;
        let proxies = meanwhile(
            || play(&stage, CALLS),
            || {
                // Not for ever: somebody has to get through.
                if tries < 4 {
                    tries += 1;
                    killed += u32::from(kill_the_service(&data));
                }
            },
        );
        for proxy in proxies {
            assert_eq!(proxy.end().code, Some(0));
        }
        expect_all_recorded(&stage, PROXIES * CALLS);
    }
    eprintln!("{killed} kills");
    assert!(killed >= rounds());
}

#[test]
fn a_service_that_a_person_starts_takes_over_and_gives_back_under_live_proxies() {
    let stage = Stage::new();
    let data = stage.data();
    let rounds = if rounds() > 3 { 20 } else { 3 };
    let mut proxies = play(&stage, 1);
    let mut id = 1;
    for round in 0..rounds {
        let server = (round > 0).then(|| Server::start(&data));
        let serving = server.as_ref().map(Server::pid);
        let address = server.as_ref().map(|server| server.api.url.replace("http://", ""));
        let address = address.unwrap_or_default();
        thread::scope(|scope| {
            for (number, proxy) in proxies.iter_mut().enumerate() {
                scope.spawn(move || {
                    for id in [id, id + 1] {
                        let arguments = json!({"proxy": number, "call": id});
                        let answer = proxy.ask(&call(id, "pay", arguments));
                        assert!(receipt(&answer).is_some(), "{answer}");
                    }
                });
            }
            // Another person's service finds it taken, also at the same address.
            if let Some(serving) = serving {
                for address in ["127.0.0.1:0", &address] {
                    let second = super::recibo(&data, &["serve", "--listen", address]);
                    super::fails(&second, 1, &["a service runs on"]);
                }
                assert_eq!(services(&data), [serving]);
                let parallel = exec(&data, &format!("p{round}")).output();
                succeeds(&parallel.expect("the binary runs"));
            }
        });
        id += 2;
        if let Some(server) = server {
            assert_eq!(server.stop(), Some(0));
        }
        // Nobody was told that it has gone.
        thread::scope(|scope| {
            for (number, proxy) in proxies.iter_mut().enumerate() {
                scope.spawn(move || {
                    let arguments = json!({"proxy": number, "call": id});
                    let answer = proxy.ask(&call(id, "pay", arguments));
                    assert!(receipt(&answer).is_some(), "{answer}");
                });
            }
        });
        id += 1;
    }
    assert_eq!(stage.effects().len(), PROXIES * id);
    for proxy in proxies {
        assert_eq!(proxy.end().code, Some(0));
    }
    until("the service ends", || services(&data).is_empty());
}
