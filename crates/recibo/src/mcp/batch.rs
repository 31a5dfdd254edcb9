//! Several messages in one line. The protocol had this until 2025-06-18; what has no tool call in
//! it passes as it came.

use std::sync::Arc;

use super::call::{self, Checked, Follower, Permit, Request};
use super::calls::Reply;
use super::message::{Message, place};
use super::refusal;
use super::session::{Session, ask, come, leave};

/// Whether a tool call is among these.
pub fn has_call(elements: &[&str]) -> bool {
    elements.iter().any(|text| {
        matches!(Message::read(text), Message::Request(_, method, _) if method == "tools/call")
    })
}

/// Takes a batch with tool calls from the host. It goes on once the ledger has said something to
/// each of them, without those that may not be run.
pub async fn from_host(session: &Arc<Session>, text: &str, elements: &[&str]) {
    let mut kept = Vec::new();
    let mut calls = Vec::new();
    let mut answers = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        let message = Message::read(element);
        match &message {
            Message::Request(id, method, members) if method == "tools/call" => {
                let Some(request) = Request::read(session, id.clone(), members) else {
                    kept.push(at);
                    continue;
                };
                if let Some(events) = request.continued(session) {
                    session.calls.continue_with(&request.id, events);
                    kept.push(at);
                    continue;
                }
                let (events, heard) = call::events();
                if session.calls.begin(&request.id, events.clone()) {
                    calls.push((at, request, events, heard));
                } else {
                    answers.push(request.answer(refusal::SAME_ID));
                }
            }
            message => {
                if session.notice(message) {
                    kept.push(at);
                }
            }
        }
    }
    let mut turn = Some(session.queue());
    let (session, busy) = (session.clone(), session.busy());
    let (text, places) = (text.to_owned(), places(text, elements));
    tokio::spawn(async move {
        let mut asked = Vec::new();
        for (at, request, events, heard) in calls {
            let permit: Permit = request.permit(&session, &mut turn).await;
            asked.push((at, request, events, heard, permit));
        }
        come(&mut turn).await;
        let mut pen = session.to_server.pen().await;
        for (at, request, events, heard, permit) in asked {
            match request.check(&session, permit, pen.is_open()).await {
                Checked::Send(grant) => {
                    kept.push(at);
                    let follower =
                        Follower::new(session.clone(), request, events, grant).follow(heard);
                    let busy = session.busy();
                    tokio::spawn(async move {
                        follower.await;
                        drop(busy);
                    });
                }
                Checked::Answer(answer) => answers.push(answer),
                Checked::Nothing => {}
            }
        }
        kept.sort_unstable();
        if !kept.is_empty() {
            let all = (kept.len() == places.len()).then(|| text.clone().into_bytes());
            let line = all.unwrap_or_else(|| {
                let kept: Vec<_> = kept.iter().map(|at| &text[places[*at].clone()]).collect();
                format!("[{}]\n", kept.join(",")).into_bytes()
            });
            pen.write(&line).await;
        }
        drop(pen);
        leave(turn);
        if !answers.is_empty() {
            session.answer(&format!("[{}]", answers.join(","))).await;
        }
        drop(busy);
    });
}

/// Takes a batch from the server. It goes on once the outcomes of all calls that it answers are
/// recorded.
pub async fn from_server(session: &Arc<Session>, text: &str, elements: &[&str], at_ms: u64) {
    let mut replies = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        if let Message::Response(id, _) = Message::read(element)
            && let Some((events, is_first)) = session.calls.answered(&id)
        {
            replies.push((at, ask(&events, (*element).to_owned(), at_ms, is_first)));
        }
    }
    if replies.is_empty() {
        session.to_host.write(text.as_bytes()).await;
        return;
    }
    let (session, busy) = (session.clone(), session.busy());
    let (mut text, places) = (text.to_owned(), places(text, elements));
    tokio::spawn(async move {
        // From the end, so that the places before stay where they are.
        while let Some((at, reply)) = replies.pop() {
            // An answer that the host has already is harmless: it has forgotten the id.
            if let Ok(Reply::Changed(changed)) = reply.await {
                text.replace_range(places[at].clone(), &changed);
            }
        }
        session.to_host.write(text.as_bytes()).await;
        drop(busy);
    });
}

fn places(text: &str, elements: &[&str]) -> Vec<std::ops::Range<usize>> {
    elements.iter().map(|element| place(text, element)).collect()
}
