//! A command's stdout on its way to this process's.

use tokio::io::{AsyncWriteExt, Stdout};

/// More than this waits for a reader, and the command with it.
const WAITING_MAX: usize = 64 << 10;

/// What was read and is not passed on yet.
pub struct Stream {
    stdout: Stdout,
    waiting: Vec<u8>,
    is_closed: bool,
}

impl Stream {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { stdout: tokio::io::stdout(), waiting: Vec::new(), is_closed: false }
    }

    /// Takes what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.is_closed {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Whether there is something to pass on.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether nothing more should be read for now.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Passes some of it on. Nothing is lost or doubled if this is dropped.
    pub async fn pass_on(&mut self) {
        match self.stdout.write(&self.waiting).await {
            Ok(length) => drop(self.waiting.drain(..length)),
            // Whoever closed the pipe has read enough; the command goes on.
            Err(_) => {
                self.is_closed = true;
                self.waiting.clear();
            }
        }
    }

    /// Passes on all that is left.
    pub async fn finish(mut self) {
        while self.is_waiting() {
            self.pass_on().await;
        }
        let _ = self.stdout.flush().await;
    }
}
