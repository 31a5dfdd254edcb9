//! The one way to a ledger: a request goes in, an answer or a failure comes out. Whether it
//! travels over HTTP to a service or into a router in this process is decided once, when the
//! ledger is found.

mod embedded;
mod find;

pub use find::{IfMissing, find, find_for_adapter};
use recibo_api::client::Service;
pub use recibo_api::client::{Answer, Request};

use crate::failure::Failure;
use crate::target::Target;

/// A ledger to talk to.
pub struct Ledger(Transport);

enum Transport {
    Service(Service),
    Embedded(embedded::Embedded),
}

impl Ledger {
    /// Sends a request; an answer that is no success is a failure.
    pub async fn call(&self, request: Request) -> Result<Answer, Failure> {
        match &self.0 {
            Transport::Service(service) => Ok(service.call(request).await?),
            Transport::Embedded(embedded) => Ok(embedded.call(request).await?.into_success()?),
        }
    }

    /// Finds a ledger, asks it, and closes it whatever came of that.
    pub async fn with<T>(
        target: &Target,
        if_missing: IfMissing,
        ask: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let ledger = find(target, if_missing).await?;
        let result = ask(&ledger).await;
        ledger.close().await;
        result
    }

    /// Closes what was opened here, so that the next process finds it free and tidy.
    pub async fn close(self) {
        if let Transport::Embedded(embedded) = self.0 {
            embedded.close().await;
        }
    }
}
