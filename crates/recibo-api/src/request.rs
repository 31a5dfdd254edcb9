//! What requests may say, and how each becomes a checked value of the core. What clients send
//! is the same type: members are public, and `parse` is the one check.
//!
//! None of these types has `Debug`: they hold arguments and results.

mod claim;
mod manage;
mod one_shot;
mod outcome;
mod renewal;
mod settle;
#[cfg(test)]
mod tests;
mod twins;

pub use crate::member::LabelPairs;
pub use claim::ClaimRequest;
pub use manage::{ApiKeyParams, ApiKeyRequest, ScopeParams, ScopeRequest};
pub use one_shot::{BatchRequest, OneShotRequest};
pub use outcome::{OutcomeParams, OutcomeRequest};
pub use renewal::{RenewalParams, RenewalRequest};
pub use settle::{CheckRequest, ResolutionRequest};
pub use twins::OnTwinWord;
