//! What the server says, on its way to the host, in the order in which it was said. An answer waits
//! here for the ledger, and what was said later waits behind it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    queue: mpsc::Sender<Waiting>,
    taken: AtomicU64,
    is_deaf: Arc<AtomicBool>,
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
        let is_deaf = Arc::new(AtomicBool::default());
        let delivery = Self { queue, taken: AtomicU64::default(), is_deaf: is_deaf.clone() };
        tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                let busy = line._busy.clone();
                if let Some(line) = line.settle().await
                    && !to_host.write(&line).await
                {
                    is_deaf.store(true, Ordering::Release);
                }
                drop(busy);
            }
        });
        delivery
    }

    /// Delivers a line. Only one task may call this: its order is the order of the host. If the
    /// future is dropped, the line is delivered whole or not at all.
    pub async fn pass(&self, line: Vec<u8>, busy: &mpsc::Sender<()>) {
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
        let waiting = Waiting { line, parts, is_batch, _busy: busy.clone() };
        // An error means that the runtime ends.
        let _ = self.queue.send(waiting).await;
        self.taken.fetch_add(1, Ordering::AcqRel);
    }

    /// How many lines were taken for delivery so far.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// Whether the host reads no more.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Acquire)
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

    /// What the server says is heard no longer than its process lives; a host may read slowly.
    #[tokio::test]
    async fn a_line_that_was_taken_reaches_a_slow_host_whole() {
        let (near, mut far) = tokio::io::duplex(8);
        let delivery = Delivery::start(Arc::new(Output::new(Box::new(near))));
        let (busy, _idle) = mpsc::channel(1);
        let line = format!("{}\n", "x".repeat(1000));
        for _ in 0..3 {
            delivery.pass(line.clone().into_bytes(), &busy).await;
        }
        assert_eq!(delivery.taken(), 3);
        drop((busy, delivery));
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, line.repeat(3));
    }
}
