//! The order between what this proxy reports and what it asks: a claim follows the reports of
//! earlier calls, so that the ledger judges it by what is known here already.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a claim waits for them: as long as the ledger has for one request.
const PATIENCE: Duration = Duration::from_secs(20);

/// The reports under way.
#[derive(Default)]
pub struct Reports {
    next: AtomicU64,
    open: Arc<watch::Sender<BTreeSet<u64>>>,
}

/// A report from the moment when its cause is known; it is over when this is dropped.
pub struct Report {
    number: u64,
    open: Arc<watch::Sender<BTreeSet<u64>>>,
}

impl Reports {
    /// Something came that will be reported.
    pub fn begin(&self) -> Report {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.send_modify(|open| _ = open.insert(number));
        Report { number, open: self.open.clone() }
    }

    /// Waits until all that were begun before are over.
    pub async fn before(&self) {
        let next = self.next.load(Ordering::Relaxed);
        let mut open = self.open.subscribe();
        let over = open.wait_for(|open| open.first().is_none_or(|first| *first >= next));
        // One that hangs holds up nothing else; the ledger then judges by what it has.
        let _ = timeout(PATIENCE, over).await;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.open.send_modify(|open| _ = open.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn a_claim_waits_for_the_reports_before_it_and_for_no_other() {
        let reports = Reports::default();
        let (first, second) = (reports.begin(), reports.begin());
        let mut claim = pin!(reports.before());
        let mut context = Context::from_waker(Waker::noop());
        assert!(claim.as_mut().poll(&mut context).is_pending());
        let _later = reports.begin();
        drop(second);
        assert!(claim.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert_eq!(claim.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
