//! Tool calls reach the server in the order in which the host sent them, although each waits for
//! the ledger by itself: a server may depend on the order.

use std::sync::Mutex;

use tokio::sync::oneshot;

/// Where calls line up.
#[derive(Default)]
pub struct Line(Mutex<Option<oneshot::Receiver<()>>>);

/// A place in the line.
pub struct Turn {
    before: Option<oneshot::Receiver<()>>,
    done: oneshot::Sender<()>,
}

impl Line {
    /// Takes the next place.
    pub fn queue(&self) -> Turn {
        let (done, next) = oneshot::channel();
        let before = self.0.lock().expect("no holder panics").replace(next);
        Turn { before, done }
    }
}

impl Turn {
    /// Returns once all before are gone.
    pub async fn come(&mut self) {
        if let Some(before) = self.before.take() {
            // An error means that whoever was there has left without a word.
            let _ = before.await;
        }
    }

    /// Leaves the line, now or before it is one's turn. Who comes after still waits for those
    /// before.
    pub fn leave(mut self) {
        tokio::spawn(async move {
            self.come().await;
            let _ = self.done.send(());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_leaves_early_lets_nobody_pass_those_before() {
        let line = Line::default();
        let (mut first, second, mut third) = (line.queue(), line.queue(), line.queue());
        first.come().await;
        second.leave();
        let (said, mut heard) = oneshot::channel();
        let waits = tokio::spawn(async move {
            third.come().await;
            let _ = said.send(());
        });
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert!(heard.try_recv().is_err());
        first.leave();
        waits.await.unwrap();
        assert!(heard.try_recv().is_ok());
    }
}
