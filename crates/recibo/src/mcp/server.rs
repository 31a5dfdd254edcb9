//! What the server says. It goes to the host as it came; answers to tool calls wait for the ledger.

use std::sync::Arc;

use recibo_adapter::now_ms;
use tokio::sync::oneshot;

use super::answer::Reading;
use super::calls::{Answer, Event, Events, Kind, Other, Whose};
use super::delivery::Fate;
use super::io::{Input, next_line};
use super::loose::answered_ids;
use super::message::{Id, Members, Message, elements, place};
use super::session::Session;
use super::tell;

/// Takes what the server says, to its end. Once the host reads no more and no call is under way,
/// nobody reads the server, and it will notice as it would by itself.
pub async fn hear(session: Arc<Session>, mut server: Input) {
    let busy = session.busy();
    while let Some(line) = next_line(&mut server).await {
        let at_ms = now_ms();
        let text = std::str::from_utf8(&line).ok();
        let batch = text.and_then(elements).filter(|elements| !elements.is_empty());
        let (parts, is_batch) = match (text, batch) {
            (Some(text), Some(elements)) => {
                let part = |element| (place(text, element), judge(&session, element, at_ms));
                (elements.into_iter().map(part).collect(), true)
            }
            (Some(text), None) => (vec![(0..text.len(), judge(&session, text, at_ms))], false),
            (None, _) => (unreadable(&session, &line, at_ms), false),
        };
        if parts.iter().all(|(_, fate)| matches!(fate, Fate::Pass)) {
            session.delivery.pass(line, &busy).await;
        } else {
            session.delivery.wait(line, parts, is_batch, &busy).await;
        }
        if session.delivery.is_deaf() && session.calls.is_empty() {
            break;
        }
    }
}

/// Takes note of a message, and says what becomes of it.
fn judge(session: &Session, text: &str, at_ms: u64) -> Fate {
    match Message::read(text) {
        Message::Response(id, members) => match session.calls.answered(&id) {
            Whose::Call(events, kind) => ask(session, &events, text, at_ms, kind),
            Whose::Other(other) => {
                learn(session, other, &members);
                Fate::Pass
            }
            Whose::Nobody => {
                tell(&format!(
                    "an answer to request {} was not passed on: nobody waits for it",
                    id.as_str()
                ));
                Fate::Drop
            }
            Whose::Stranger => Fate::Pass,
        },
        Message::Notification(method, members) if is_about_task(&method) => {
            let params = members.object("params");
            match params.and_then(|params| session.events_of_task(&params)) {
                Some(events) => ask(session, &events, text, at_ms, Kind::TaskNotice),
                None => Fate::Pass,
            }
        }
        Message::Request | Message::Notification(..) => Fate::Pass,
        Message::Other => {
            let mut parts = unreadable(session, text.as_bytes(), at_ms);
            // What is unreadable passes as it came, so one of several waits is as good as all.
            parts.pop().map_or(Fate::Pass, |(_, fate)| fate)
        }
    }
}

fn is_about_task(method: &str) -> bool {
    // As in 2026-07-28, and as in 2025-11-25.
    matches!(method, "notifications/tasks" | "notifications/tasks/status")
}

fn learn(session: &Session, other: Other, members: &Members<'_>) {
    match other {
        Other::Initialize | Other::Discover => session.names.learn_server(members),
        Other::List => {
            session.names.learn_server(members);
            if let Some(hints) = &session.hints {
                hints.learn(members);
            }
        }
        Other::Any => {}
    }
}

/// The calls whose answers may stand in a line that cannot be read: they end with it.
fn unreadable(session: &Session, line: &[u8], at_ms: u64) -> Vec<(std::ops::Range<usize>, Fate)> {
    let fate = |id: &Id| match session.calls.answered(id) {
        Whose::Call(events, kind) => Some((0..line.len(), ask(session, &events, "", at_ms, kind))),
        _ => None,
    };
    answered_ids(line).iter().filter_map(fate).collect()
}

/// Hands an answer to whoever follows the call. What was said later about its task is for the same
/// follower, so the task is known before the next line is read.
fn ask(session: &Session, events: &Events, text: &str, at_ms: u64, kind: Kind) -> Fate {
    let reading = read(text, kind);
    if let Reading::Task(task) = &reading {
        session.calls.park_task(task.clone(), events.clone());
    }
    let (reply, replied) = oneshot::channel();
    let report = session.calls.reports.begin();
    let answer = Answer { text: text.to_owned(), reading, at_ms, kind, reply, report };
    // If the follower has ended, the reply is dropped and the answer passes unchanged.
    let _ = events.send(Event::Answer(answer));
    Fate::Wait(replied)
}

fn read(text: &str, kind: Kind) -> Reading {
    let Some(members) = Members::of(text) else { return Reading::Unreadable };
    match kind {
        Kind::Call | Kind::Continuation | Kind::TaskResult => Reading::of_call(text, &members),
        Kind::TaskGet => Reading::of_task(text, &members),
        Kind::TaskNotice => Reading::of_notice(text, &members),
    }
}
