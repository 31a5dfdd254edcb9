//! Several messages of the host in one line. The protocol had this until 2025-06-18.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use recibo_adapter::{Grant, now_ms};
use tokio::time::timeout;

use super::call::{Check, Permit, Stay};
use super::follow::Follower;
use super::io::Written;
use super::message::place;
use super::session::{Pending, Session, Step, release, wait};
use super::strict::{HostMessage, Unfit};
use super::tell;

/// What becomes of the messages of a batch.
pub struct Plan {
    places: Vec<Range<usize>>,
    kept: Vec<usize>,
    calls: Vec<(usize, Pending)>,
    answers: Vec<String>,
}

/// A call of a batch after the ledger has answered.
struct Asked {
    at: usize,
    pending: Pending,
    permit: Permit,
}

impl Plan {
    /// Takes note of each message.
    pub fn read(
        session: &Session,
        line: &[u8],
        elements: Vec<(&str, Result<HostMessage<'_>, Unfit>)>,
    ) -> Self {
        let whole = std::str::from_utf8(line).expect("it was read as text");
        let mut plan =
            Self { places: Vec::new(), kept: Vec::new(), calls: Vec::new(), answers: Vec::new() };
        for (at, (element, message)) in elements.into_iter().enumerate() {
            plan.places.push(place(whole, element));
            let step = match message {
                Ok(message) => session.step(&message),
                Err(unfit) => {
                    tell(&format!("a message of a batch was not passed on: {}", unfit.reason));
                    Step::Answer(unfit.answer())
                }
            };
            match step {
                Step::Pass => plan.kept.push(at),
                Step::Answer(answer) => plan.answers.push(answer),
                Step::Call(pending) => plan.calls.push((at, *pending)),
                Step::Drop | Step::Batch(_) => {}
            }
        }
        plan
    }

    /// Sends the batch without what may not be sent. With calls in it, it goes on after the ledger
    /// has decided every call.
    pub async fn carry_out(mut self, session: Arc<Session>, line: Vec<u8>) {
        if self.calls.is_empty() {
            if let Some(line) = self.kept_line(&line) {
                session.to_server.write(&line).await;
            }
            return self.answer(&session).await;
        }
        let mut ticket = Some(session.join_queue());
        tokio::spawn(async move {
            let busy = session.busy();
            let mut asked: Vec<Asked> = Vec::new();
            for (at, mut pending) in std::mem::take(&mut self.calls) {
                // Another call of this line cannot end before the line is sent, and to wait for
                // others would take from the leases that were granted.
                if asked.iter().any(|asked| matches!(asked.permit, Permit::Go(_))) {
                    pending.request.spec.wait = Duration::ZERO;
                }
                let permit = pending.request.permit(&session, &mut ticket).await;
                asked.push(Asked { at, pending, permit });
            }
            wait(&mut ticket).await;
            let stays = self.send(&session, asked, &line).await;
            release(ticket);
            for (pending, stay) in stays {
                if let Some(why) = stay.settle().await {
                    session.admission.memory.note(&pending.request.spec.run_id, why.success);
                    self.answers.push(pending.request.answer(&why.text));
                }
            }
            self.answer(&session).await;
            drop(busy);
        });
    }

    /// Sends what still may be sent, and gives the calls that stay.
    async fn send(
        &mut self,
        session: &Arc<Session>,
        asked: Vec<Asked>,
        line: &[u8],
    ) -> Vec<(Pending, Stay)> {
        let grants = asked.iter().filter_map(|asked| match &asked.permit {
            Permit::Go(grant) => grant.as_ref(),
            Permit::No(_) => None,
        });
        // The first permission that ends bounds the whole line.
        let left = grants.map(Grant::left).min();
        let guard = timeout(left.unwrap_or(Duration::MAX), session.to_server.guard()).await;
        let mut stays = Vec::new();
        let mut sent = Vec::new();
        let is_open = guard.as_ref().is_ok_and(|guard| guard.is_open());
        for Asked { at, pending, permit } in asked {
            match (pending.request.check(session, permit, is_open || guard.is_err()), &guard) {
                (Check::Send(grant), Ok(_)) => {
                    self.kept.push(at);
                    sent.push((pending, grant));
                }
                (Check::Send(grant), Err(_)) => {
                    let stay = pending.request.stuck(session, grant);
                    stays.push((pending, stay));
                }
                (Check::Stay(stay), _) => stays.push((pending, stay)),
            }
        }
        let sent_at_ms = now_ms();
        let written = match (guard, self.kept_line(line)) {
            (Ok(mut guard), Some(line)) => {
                let left = sent.iter().filter_map(|(_, grant)| grant.as_ref()).map(Grant::left);
                guard.write_within(&line, left.min().unwrap_or(Duration::MAX)).await
            }
            _ => Written::Nothing,
        };
        for (pending, grant) in sent {
            if written == Written::Nothing {
                let stay = pending.request.stuck(session, grant);
                stays.push((pending, stay));
                continue;
            }
            let Pending { request, events, heard } = pending;
            let busy = session.busy();
            let follower = Follower::new(session.clone(), request, events, grant, sent_at_ms);
            tokio::spawn(async move {
                follower.follow(written, heard).await;
                drop(busy);
            });
        }
        stays
    }

    /// What goes to the server; as it came if nothing is left out.
    fn kept_line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        self.kept.sort_unstable();
        if self.kept.is_empty() {
            return None;
        }
        if self.kept.len() == self.places.len() {
            return Some(line.to_owned());
        }
        let kept = self.kept.iter().map(|at| &line[self.places[*at].clone()]);
        let kept: Vec<&[u8]> = kept.collect();
        Some([b"[", &*kept.join(&b','), b"]\n"].concat())
    }

    async fn answer(&self, session: &Session) {
        if !self.answers.is_empty() {
            session.answer(&format!("[{}]", self.answers.join(","))).await;
        }
    }
}
