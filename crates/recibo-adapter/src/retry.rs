//! How often a request that got no answer is sent again.

use std::time::Duration;

/// How often a request that got no answer is sent again, and how long this side waits before:
/// the pause doubles each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Times that a claim, or the opening of a scope, is sent. At least 1.
    pub claim_tries: u32,
    /// Times that an outcome is sent. It has happened, so more effort is spent on it.
    pub report_tries: u32,
    /// The first pause.
    pub pause: Duration,
}

impl Default for RetryPolicy {
    /// Claims: 5 times within 3 s. Outcomes: 7 times within 12.6 s, long enough for a restart
    /// of the service.
    fn default() -> Self {
        Self { claim_tries: 5, report_tries: 7, pause: Duration::from_millis(200) }
    }
}

/// Counts the tries of one request.
pub(crate) struct Backoff {
    left: u32,
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new(tries: u32, policy: &RetryPolicy) -> Self {
        Self { left: tries.max(1), pause: policy.pause }
    }

    /// Whether there may be another one; takes it.
    pub(crate) fn take(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    /// Waits before the next one.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = self.pause.saturating_mul(2);
    }
}
