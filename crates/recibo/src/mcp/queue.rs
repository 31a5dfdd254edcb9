//! Tool calls reach the server in the order in which the host sent them, although each waits for
//! the ledger by itself: a server may depend on the order. Only a call that waits for another attempt
//! lets those behind it go first.

use std::sync::Mutex;

use tokio::sync::oneshot;

/// Where calls line up.
#[derive(Default)]
pub struct SendQueue(Mutex<Option<oneshot::Receiver<()>>>);

/// A place in the queue.
pub struct Ticket {
    before: Option<oneshot::Receiver<()>>,
    done: oneshot::Sender<()>,
}

impl SendQueue {
    /// Takes the next place.
    pub fn join(&self) -> Ticket {
        let (done, next) = oneshot::channel();
        let before = self.0.lock().expect("no holder panics").replace(next);
        Ticket { before, done }
    }
}

impl Ticket {
    /// Returns once all before have released their tickets.
    pub async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            // An error means that the ticket before was dropped.
            let _ = before.await;
        }
    }

    /// Gives the place up, now or before its turn. Who comes after still waits for those before.
    pub fn release(mut self) {
        tokio::spawn(async move {
            self.wait().await;
            let _ = self.done.send(());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_releases_early_lets_nobody_pass_those_before() {
        let queue = SendQueue::default();
        let (mut first, second, mut third) = (queue.join(), queue.join(), queue.join());
        first.wait().await;
        second.release();
        let (said, mut heard) = oneshot::channel();
        let waits = tokio::spawn(async move {
            third.wait().await;
            let _ = said.send(());
        });
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert!(heard.try_recv().is_err());
        first.release();
        waits.await.unwrap();
        assert!(heard.try_recv().is_ok());
    }
}
