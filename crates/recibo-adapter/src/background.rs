//! Work that goes on after its caller has left: claims and reports must not be cut off in the
//! middle.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts work under way. Clones share the count.
#[derive(Clone)]
pub(crate) struct Background(Arc<watch::Sender<usize>>);

/// One piece of work; ends when it is dropped.
pub(crate) struct Running(Arc<watch::Sender<usize>>);

impl Default for Background {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Background {
    pub(crate) fn begin(&self) -> Running {
        self.0.send_modify(|count| *count += 1);
        Running(self.0.clone())
    }

    /// Returns once nothing is under way.
    pub(crate) async fn idle(&self) {
        // The sender is here, so the channel is open.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
