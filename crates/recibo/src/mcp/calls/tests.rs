use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

fn begun(calls: &Calls, id: &str) -> (Id, UnboundedReceiver<Event>) {
    let (events, heard) = unbounded_channel();
    let id = Id::read(id);
    assert!(calls.begin(&id, events).is_ok());
    (id, heard)
}

fn sent(calls: &Calls, id: &str) -> (Id, UnboundedReceiver<Event>) {
    let (id, heard) = begun(calls, id);
    assert_eq!(calls.send(&id), Sending::Go);
    (id, heard)
}

fn whose(calls: &Calls, id: &str) -> &'static str {
    match calls.answered(&Id::read(id)) {
        Whose::Call(..) => "call",
        Whose::Other(_) => "other",
        Whose::Nobody => "nobody",
        Whose::Stranger => "stranger",
    }
}

#[test]
fn a_cancel_before_the_call_is_sent_stops_both() {
    let calls = Calls::default();
    let (id, mut heard) = begun(&calls, "1");
    assert_eq!(calls.begin(&id, unbounded_channel().0), Err(Taken::SameId));
    assert_eq!(whose(&calls, "1"), "nobody");
    assert_eq!(calls.cancel(&id), Cancel::Drop);
    assert_eq!(calls.send(&id), Sending::Cancelled);
    assert!(heard.try_recv().is_err());
}

#[test]
fn a_cancel_of_a_sent_call_is_heard_and_its_answer_still_finds_it() {
    let calls = Calls::default();
    let (id, mut heard) = sent(&calls, "1");
    assert_eq!(calls.cancel(&id), Cancel::Send);
    assert!(matches!(heard.try_recv(), Ok(Event::Cancelled(_))));
    assert_eq!(whose(&calls, "1"), "call");
    assert_eq!(whose(&calls, "1"), "nobody");
    assert_eq!(calls.cancel(&Id::read("2")), Cancel::Send);
}

#[test]
fn m03_an_id_that_was_answered_names_a_new_call() {
    let calls = Calls::default();
    for number in 1..=3 {
        let (events, _heard) = unbounded_channel();
        let id = Id::read("1");
        assert_eq!(calls.begin(&id, events.clone()), Ok(Use { client: 1, round: 1, number }));
        assert_eq!(calls.begin(&id, events), Err(Taken::SameId));
        assert_eq!(calls.send(&id), Sending::Go);
        assert_eq!(whose(&calls, "1"), "call");
    }
    for _ in 0..2 {
        assert!(calls.request(&Id::read("0"), Other::Initialize).is_ok());
        assert_eq!(whose(&calls, "0"), "other");
    }
    let (events, _heard) = unbounded_channel();
    assert_eq!(calls.begin(&Id::read("1"), events), Ok(Use { client: 2, round: 2, number: 1 }));
}

#[test]
fn calls_that_wait_for_the_host_are_bounded() {
    let calls = Calls::default();
    let is_forgotten =
        |heard: &mut UnboundedReceiver<Event>| matches!(heard.try_recv(), Ok(Event::Forgotten));
    let park = |state: u64, last_moment_ms: u64| {
        let (events, heard) = unbounded_channel();
        let input: Input = ("pay".into(), "hash".into(), Some(state.to_string()));
        calls.park_input(input, events, last_moment_ms);
        heard
    };
    let mut all: Vec<_> = (0..1024).map(|state| park(state, 10_000 - state)).collect();
    assert!(!all.iter_mut().any(is_forgotten));
    // One more: the one that has the least time left goes. The same input twice: the newer stays.
    let _more = park(5000, 20_000);
    assert!(is_forgotten(&mut all[1023]));
    let _again = park(7, 20_000);
    assert!(is_forgotten(&mut all[7]));
    assert!(!all.iter_mut().any(is_forgotten));
}

#[test]
fn an_answer_to_another_request_is_never_taken_for_a_calls() {
    let calls = Calls::default();
    let ping = Id::read("1");
    assert!(calls.request(&ping, Other::Any).is_ok());
    assert!(calls.request(&ping, Other::Any).is_ok());
    assert_eq!(calls.begin(&ping, unbounded_channel().0), Err(Taken::SameId));
    assert_eq!(whose(&calls, "1"), "other");
    assert_eq!(calls.begin(&ping, unbounded_channel().0), Err(Taken::SameId));
    assert_eq!(whose(&calls, "1"), "other");
    let (id, _heard) = sent(&calls, "1");
    assert_eq!(calls.request(&id, Other::Any), Err(Taken::SameId));
    assert_eq!(whose(&calls, "1"), "call");
    assert_eq!(whose(&calls, "99"), "stranger");
}

#[test]
fn an_answer_of_the_other_type_ends_the_call_if_it_is_the_only_one() {
    for (open, answer, expected) in [
        (&["1"][..], "\"1\"", "call"),
        (&["\"1\""], "1", "call"),
        (&["\"1.0\""], "1", "stranger"),
        (&["\"a\""], "1", "stranger"),
        (&["\"nan\""], "1", "stranger"),
    ] {
        let calls = Calls::default();
        let _heard: Vec<_> = open.iter().map(|id| sent(&calls, id)).collect();
        assert_eq!(whose(&calls, answer), expected, "{open:?} {answer}");
    }
    let calls = Calls::default();
    let _both = (sent(&calls, "1"), sent(&calls, "\"1\""));
    assert_eq!(whose(&calls, "\"1\""), "call");
    assert_eq!(whose(&calls, "\"1\""), "nobody");
    assert_eq!(whose(&calls, "1"), "call");
}

#[test]
fn calls_that_were_given_up_are_bounded() {
    let calls = Calls::default();
    let (_, mut first) = sent(&calls, "0");
    let of = |id: &str| calls.lock().open[&Id::read(id)].events.clone().expect("followed");
    calls.give_up(&of("0"));
    let mut kept = Vec::new();
    for number in 1..=GIVEN_UP_MAX {
        let id = number.to_string();
        kept.push(sent(&calls, &id));
        calls.give_up(&of(&id));
    }
    assert!(matches!(first.try_recv(), Ok(Event::Forgotten)));
    assert_eq!(calls.lock().given_up.len(), GIVEN_UP_MAX);
}

#[test]
fn cancelled_requests_are_not_counted_and_their_ids_stay_taken() {
    let calls = Calls::default();
    for number in 0..2 * OTHERS_MAX {
        let id = Id::read(&number.to_string());
        assert_eq!(calls.request(&id, Other::Any), Ok(()));
        assert_eq!(calls.cancel(&id), Cancel::Send);
    }
    assert_eq!(calls.begin(&Id::read("0"), unbounded_channel().0), Err(Taken::SameId));
    assert_eq!(whose(&calls, "0"), "other");
    for number in 0..OTHERS_MAX {
        let id = Id::read(&format!("\"{number}\""));
        assert_eq!(calls.request(&id, Other::Any), Ok(()));
    }
    assert_eq!(calls.request(&Id::read("-1"), Other::Any), Err(Taken::TooMany));
}

#[test]
fn input_that_comes_after_the_lease_continues_nothing() {
    let calls = Calls::default();
    let (id, mut heard) = sent(&calls, "1");
    let Whose::Call(events, _) = calls.answered(&id) else { panic!("it is a call's") };
    let input: Input = ("pay".into(), "hash".into(), Some("state".into()));
    calls.park_input(input.clone(), events, 1000);
    let next = Id::read("2");
    assert_eq!(calls.bring_input(&next, &input, 1000), None);
    // An id that is taken costs nothing.
    let (taken, _other) = sent(&calls, "3");
    assert_eq!(calls.bring_input(&taken, &input, 999), Some(Err(Taken::SameId)));
    assert_eq!(calls.bring_input(&next, &input, 999), Some(Ok(())));
    assert!(matches!(heard.try_recv(), Ok(Event::Continued)));
    assert_eq!(calls.bring_input(&Id::read("4"), &input, 999), None);
}

#[test]
fn a_call_that_the_server_cannot_take_any_more_was_not_cancelled() {
    let calls = Calls::default();
    let (id, _heard) = begun(&calls, "1");
    calls.server_gone();
    assert_eq!(calls.send(&id), Sending::Gone);
}

#[test]
fn a_call_that_no_id_leads_to_ends_with_the_server() {
    let calls = Calls::default();
    let (id, mut heard) = sent(&calls, "1");
    let Whose::Call(events, _) = calls.answered(&id) else { panic!("it is a call's") };
    calls.give_up(&events);
    calls.server_gone();
    assert!(matches!(heard.try_recv(), Ok(Event::Gone("server_gone"))));
}

#[test]
fn who_has_gone_first_is_told() {
    for (is_host_first, class) in [(true, "host_gone"), (false, "server_gone")] {
        let calls = Calls::default();
        let (_, mut heard) = sent(&calls, "1");
        if is_host_first {
            calls.host_gone();
        }
        calls.server_gone();
        assert!(matches!(heard.try_recv(), Ok(Event::Gone(told)) if told == class));
    }
}
