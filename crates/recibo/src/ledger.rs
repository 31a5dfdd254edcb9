//! The one way to a ledger: a request goes in, an answer or a failure comes out. Whether it
//! travels over HTTP to a service or into a router in this process is decided once, when the
//! ledger is found.

mod embedded;
mod find;

pub use find::{Purpose, find, find_for_adapter};
use recibo_api::client::Service;
pub use recibo_api::client::{Answer, Request};

use crate::failure::Failure;

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

    /// Closes what was opened here, so that the next process finds it free and tidy.
    pub async fn close(self) {
        if let Transport::Embedded(embedded) = self.0 {
            embedded.close().await;
        }
    }
}
