//! The JSON contract of the ledger: what requests may say, what answers look like, and the
//! problem codes. It knows JSON; nothing of HTTP frameworks, storage or clocks.
//!
//! Feature `client`: the HTTP client, one for all who talk to a service.
//!
//! Requests are read strictly ([`body`]) and turned into the checked types of the core, once,
//! here. Nothing that a caller sent ever enters a problem: it may be secret.
#![forbid(unsafe_code)]

pub mod answer;
pub mod body;
#[cfg(feature = "client")]
pub mod client;
mod member;
pub mod page;
pub mod policy;
pub mod problem;
pub mod request;
pub mod role;
pub mod roles;
pub mod secrets;
pub mod verify;
pub mod word;

pub use problem::{Code, Problem};
pub use role::{Action, Role};
pub use roles::Roles;
pub use word::{Timestamp, Word};
