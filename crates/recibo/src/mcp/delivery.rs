//! What the server says, on its way to the host, in the order in which it was said. An answer waits
//! here for the ledger, and what was said later waits behind it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::calls::Reply;
use super::io::Output;

/// Lines that may wait: a server that says more is read no further for a while.
const WAITING_MAX: usize = 256;

/// What becomes of a message of the server.
pub enum Fate {
    /// It goes to the host as it came.
    Pass,
    /// It does not go to the host.
    Drop,
    /// It goes there once this is known.
    Wait(oneshot::Receiver<Reply>),
}

/// The way to the host.
pub struct Delivery {
    to_host: Arc<Output>,
    queue: mpsc::Sender<Waiting>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Lines in the queue, or taken from it and not written yet.
    waiting: AtomicUsize,
    is_deaf: AtomicBool,
}

struct Waiting {
    line: Vec<u8>,
    parts: Vec<(Range<usize>, Fate)>,
    is_batch: bool,
    /// Keeps the session until it is written.
    _busy: mpsc::Sender<()>,
}

impl Delivery {
    /// Starts to deliver; ends when it is dropped and all is delivered.
    pub fn start(to_host: Arc<Output>) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Waiting>(WAITING_MAX);
        let state = Arc::new(State::default());
        let delivery = Self { to_host: to_host.clone(), queue, state: state.clone() };
        tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                let busy = line._busy.clone();
                if let Some(line) = line.settle().await {
                    state.write(&to_host, &line).await;
                }
                state.waiting.fetch_sub(1, Ordering::AcqRel);
                drop(busy);
            }
        });
        delivery
    }

    /// Delivers a line. Only one task may call this: its order is the order of the host.
    pub async fn pass(&self, line: Vec<u8>, busy: &mpsc::Sender<()>) {
        if self.state.waiting.load(Ordering::Acquire) == 0 {
            self.state.write(&self.to_host, &line).await;
            return;
        }
        self.wait(line, Vec::new(), false, busy).await;
    }

    /// Delivers a line whose parts wait for the ledger; in a batch, parts may be left out.
    pub async fn wait(
        &self,
        line: Vec<u8>,
        parts: Vec<(Range<usize>, Fate)>,
        is_batch: bool,
        busy: &mpsc::Sender<()>,
    ) {
        self.state.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting { line, parts, is_batch, _busy: busy.clone() };
        // An error means that the runtime ends.
        let _ = self.queue.send(waiting).await;
    }

    /// Whether the host reads no more.
    pub fn is_deaf(&self) -> bool {
        self.state.is_deaf.load(Ordering::Acquire)
    }
}

impl State {
    async fn write(&self, to_host: &Output, line: &[u8]) {
        if !to_host.write(line).await {
            self.is_deaf.store(true, Ordering::Release);
        }
    }
}

impl Waiting {
    /// The line for the host, if there is one.
    async fn settle(self) -> Option<Vec<u8>> {
        let mut kept = Vec::with_capacity(self.parts.len());
        let mut is_changed = false;
        for (range, fate) in self.parts {
            let reply = match fate {
                Fate::Pass => Reply::AsItCame,
                Fate::Drop => Reply::Nothing,
                // If the follower has ended, the answer passes unchanged.
                Fate::Wait(reply) => reply.await.unwrap_or(Reply::AsItCame),
            };
            is_changed |= !matches!(reply, Reply::AsItCame);
            match reply {
                Reply::AsItCame => kept.push((range, None)),
                Reply::Changed(text) => kept.push((range, Some(text))),
                Reply::Nothing => {}
            }
        }
        if !is_changed {
            return Some(self.line);
        }
        if kept.is_empty() {
            return None;
        }
        let parts = kept.iter().map(|(range, changed)| match changed {
            Some(text) => text.as_bytes(),
            None => &self.line[range.clone()],
        });
        let parts: Vec<&[u8]> = parts.collect();
        Some(if self.is_batch {
            [b"[", &*parts.join(&b','), b"]\n"].concat()
        } else {
            parts.concat()
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn m09_nothing_overtakes_an_answer_that_waits() {
        let (near, mut far) = tokio::io::duplex(1 << 10);
        let delivery = Delivery::start(Arc::new(Output::new(Box::new(near))));
        let (busy, mut idle) = mpsc::channel(1);
        let (first, waits) = oneshot::channel();
        let (second, waits_too) = oneshot::channel();
        delivery.pass(b"0\n".to_vec(), &busy).await;
        delivery.wait(b"1\n".to_vec(), vec![(0..2, Fate::Wait(waits))], false, &busy).await;
        delivery.pass(b"2\n".to_vec(), &busy).await;
        let parts = vec![(1..2, Fate::Wait(waits_too)), (3..4, Fate::Drop), (5..6, Fate::Pass)];
        delivery.wait(b"[3,4,5]\n".to_vec(), parts, true, &busy).await;
        delivery.wait(b"6\n".to_vec(), vec![(0..2, Fate::Drop)], false, &busy).await;
        second.send(Reply::AsItCame).unwrap();
        first.send(Reply::Changed("one\n".into())).unwrap();
        drop((busy, delivery));
        assert!(idle.recv().await.is_none());
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "0\none\n2\n[3,5]\n");
    }
}
