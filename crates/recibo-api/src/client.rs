//! The HTTP client of the ledger: a request goes in, an answer or an error comes out. It knows
//! paths, headers and patience, and nothing of what an answer means.

mod error;
mod request;
mod service;

pub use error::ClientError;
pub use request::{Answer, Request};
pub use reqwest::Method;
pub use service::{Service, UNIX, is_alive};
