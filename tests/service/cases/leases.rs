//! Leases: how they end, and that their end is not permission.

use recibo_tests::service::Service;
use serde_json::json;

#[test]
fn c01_a_dead_process_does_not_hold_a_call_for_ever() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    for (effect, expected) in [
        ("read_only", "proceed"),
        ("idempotent", "proceed"),
        ("keyed", "stop"),
        ("queryable", "check_status"),
        ("opaque", "stop"),
    ] {
        api.claim("r", effect, &scope, "c1", json!({"effect": effect, "lease_ms": 5000}))
            .expect(201);
        assert_eq!(api.decision("r", effect).at("decision"), "wait");
        service.advance_ms(5000);
        assert_eq!(api.decision("r", effect).at("decision"), expected, "{effect}");
    }
}

#[test]
fn c02_there_is_no_attempt_without_a_lease() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let before = service.log();
    for bad in [json!(0), json!(-1), json!(999), json!(86_400_001), json!(1.5), json!("60000")] {
        let reply = api.claim("r", "c", &scope, "c1", json!({ "lease_ms": bad }));
        assert_eq!(reply.problem(), (400, "invalid_request"), "{bad}");
    }
    assert_eq!(service.log(), before);
    let granted = api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    assert_eq!(granted.at("lease")["duration_ms"], 60_000);
    for (call, lease_ms) in [("min", 1000), ("max", 86_400_000)] {
        let granted = api.claim("r", call, &scope, "c1", json!({ "lease_ms": lease_ms }));
        assert_eq!(granted.expect(201).at("lease")["duration_ms"], lease_ms);
    }
}

#[test]
fn c03_the_end_of_a_lease_is_no_permission() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    for effect in ["queryable", "opaque"] {
        api.claim("r", effect, &scope, "c1", json!({ "effect": effect })).expect(201);
        service.advance_ms(60_000);
        let again = api.claim("r", effect, &scope, "c2", json!({ "effect": effect })).expect(200);
        assert_eq!(again.at("state"), "unknown");
        assert_eq!(again.at("reason"), "outcome_unknown");
        assert!(again.at("lease").is_null());
        service.tick();
        let again = api.claim("r", effect, &scope, "c3", json!({ "effect": effect })).expect(200);
        assert_ne!(again.at("decision"), "proceed", "an event about it changes nothing");
    }
}

#[test]
fn c04_leases_are_milliseconds_to_the_last_one() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let lease = json!({"lease_ms": 2000, "effect": "read_only"});
    api.claim("r", "c", &scope, "c1", lease).expect(201);
    service.advance_ms(1999);
    let wait = api.decision("r", "c");
    assert_eq!((wait.str("decision"), wait.at("retry_after_ms")), ("wait", &json!(1)));
    service.advance_ms(1);
    assert_eq!(api.decision("r", "c").at("decision"), "proceed");
    service.advance_ms(1);
    assert_eq!(api.decision("r", "c").at("decision"), "proceed");
}

#[test]
fn c05_an_orphan_is_unknown_and_no_error() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    service.advance_ms(60_000);
    for _ in ["judged when read", "and after the event"] {
        let call = api.whole("r", "c").expect(200);
        assert_eq!(call.at("state"), "unknown");
        assert_eq!(call.at("attempts")[0]["status"], "unknown");
        assert_eq!(call.at("attempts")[0]["error_class"], "lease_expired");
        service.tick();
    }
}

#[test]
fn c14_only_the_clock_of_the_ledger_decides() {
    let mut service = Service::start();
    let scope = service.api.scope();
    let keyed = json!([{"match": "t", "effect": "keyed", "key_window_ms": 3_600_000}]);
    service.api.policy(keyed);
    let claim = |service: &Service, call: &str, scope: &str, id: &str| {
        service.api.claim("r", call, scope, id, json!({"lease_ms": 10_000}))
    };
    let granted = claim(&service, "c", &scope, "c1").expect(201);
    let token = granted.at("lease")["token"].clone();

    // The wall clock steps back while the service runs: nothing notices.
    let wall = recibo_tests::service::START_MS;
    service.clock.set_wall_ms(wall - 3_600_000);
    service.advance_ms(4000);
    assert_eq!(service.api.decision("r", "c").at("retry_after_ms"), 6000);

    // Nor does a restart on the same boot.
    service.restart();
    let wait = service.api.decision("r", "c");
    assert_eq!((wait.str("decision"), wait.at("retry_after_ms")), ("wait", &json!(6000)));
    // On another boot ledger time stands where the ledger was last seen.
    service.tick();
    service.reboot(0);
    let wait = service.api.decision("r", "c");
    assert_eq!((wait.str("decision"), wait.at("retry_after_ms")), ("wait", &json!(6000)));
    let report =
        json!({"lease_token": token, "status": "timeout", "duration_ms": 1, "error_class": "t"});
    service.api.report("r", "c", 1, report).expect(200);
    // Nobody knows how much of the key window has passed, so it is over.
    let stop = service.api.decision("r", "c");
    assert_eq!((stop.str("decision"), stop.str("reason")), ("stop", "key_window_over"));
    // Windows opened after that start count again.
    let scope = service.api.scope();
    let granted = claim(&service, "d", &scope, "c1");
    assert_eq!(granted.status, 201, "{}", granted.text);
}

#[test]
fn c30_a_slow_tool_is_not_started_twice() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let granted = api.claim("r", "c", &scope, "c1", json!({"lease_ms": 120_000})).expect(201);
    service.advance_ms(60_000);
    let impatient = api.claim("r", "c", &scope, "c2", json!({})).expect(200);
    assert_eq!(impatient.at("decision"), "wait");
    assert_eq!(impatient.at("retry_after_ms"), 60_000);
    assert_eq!(impatient.headers["retry-after"], "60");
    service.advance_ms(60_000);
    assert_eq!(api.claim("r", "c", &scope, "c3", json!({})).at("decision"), "stop");
    let late = json!({
        "lease_token": granted.at("lease")["token"], "status": "ok", "duration_ms": 121_000,
        "output": "done",
    });
    let taken = api.report("r", "c", 1, late).expect(200);
    assert_eq!(taken.at("late"), true);
    assert!(taken.at("token").is_string());
    assert_eq!(api.decision("r", "c").at("decision"), "reuse");
}

/// A process that is killed and started again and again: the lease ends when it should.
#[test]
fn a_dead_attempts_lease_ends_however_often_the_ledger_restarts() {
    for (effect, after) in
        [("opaque", "stop"), ("idempotent", "proceed"), ("queryable", "check_status")]
    {
        let mut service = Service::start();
        let scope = service.api.scope();
        let asked = json!({"lease_ms": 3000, "effect": effect});
        service.api.claim("r", "c", &scope, "c1", asked).expect(201);
        let mut seen = Vec::new();
        for _ in 0..6 {
            service.clock.advance_ms(900);
            service.restart();
            seen.push(service.api.decision("r", "c").str("decision").to_owned());
        }
        assert_eq!(seen, ["wait", "wait", "wait", after, after, after], "{effect}");
    }
}

#[test]
fn another_boot_gives_a_lease_what_remained_and_never_twice_its_length() {
    let mut service = Service::start();
    let scope = service.api.scope();
    service.api.claim("r", "c", &scope, "c1", json!({"lease_ms": 10_000})).expect(201);
    let mut left = Vec::new();
    for _ in 0..4 {
        service.advance_ms(1000);
        service.tick();
        service.reboot(4000);
        left.push(service.api.decision("r", "c").at("retry_after_ms").clone());
    }
    // 4 s were added, then 8, then no more than the 10 s that were granted.
    assert_eq!(left, [json!(9000), json!(8000), json!(5000), json!(null)]);
    assert_eq!(service.api.decision("r", "c").at("state"), "unknown");
}

/// Even where the last clock mark before the crash is older than the end of the lease.
#[test]
fn a_lease_that_was_read_as_over_stays_over_on_another_boot() {
    let mut service = Service::start();
    let scope = service.api.scope();
    service.api.claim("r", "c", &scope, "c1", json!({"lease_ms": 10_000})).expect(201);
    service.advance_ms(10_000);
    assert_eq!(service.api.decision("r", "c").at("state"), "unknown");
    service.reboot(0);
    assert_eq!(service.api.decision("r", "c").at("state"), "unknown");
}

/// A claim that is refused appends nothing, yet it shows the call, and its twin.
#[test]
fn a_lease_that_a_claim_showed_as_over_stays_over_on_another_boot() {
    for shown_by in ["c", "twin"] {
        let mut service = Service::start();
        let scope = service.api.scope();
        service.api.claim("r", "c", &scope, "c1", json!({"lease_ms": 10_000})).expect(201);
        service.advance_ms(10_000);
        let refused = service.api.claim("r", shown_by, &scope, "c2", json!({"twins": "stop"}));
        assert_eq!((refused.status, refused.str("decision")), (200, "stop"), "{shown_by}");
        service.reboot(0);
        assert_eq!(service.api.decision("r", "c").at("state"), "unknown", "{shown_by}");
    }
}

#[test]
fn another_boot_gives_no_keyed_lease_more_than_its_window() {
    let mut service = Service::start();
    let scope = service.api.scope();
    let keyed = json!([{"match": "k", "effect": "keyed", "key_window_ms": 10_000}]);
    service.api.policy(keyed);
    service.api.claim("r", "keyed", &scope, "c1", json!({"tool": "k"})).expect(201);
    service.api.claim("r", "plain", &scope, "c1", json!({"lease_ms": 10_000})).expect(201);
    service.advance_ms(4000);
    service.tick();
    // Down for a while, the wall clock going on: when the ledger was last seen is what counts.
    service.reboot(3000);
    let left = |call: &str| service.api.decision("r", call).at("retry_after_ms").clone();
    assert_eq!(left("plain"), json!(6000), "what was left then");
    assert_eq!(left("keyed"), json!(3000), "the outside service forgets its key then");
}
