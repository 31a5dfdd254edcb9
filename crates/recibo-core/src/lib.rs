//! The pure rules of the ledger. No disk, no clock, no randomness, no async: all of
//! these are arguments, so that every run can be replayed.
#![forbid(unsafe_code)]

pub mod call;
pub mod decision;
pub mod effect;
pub mod event;
pub mod hash;
pub mod id;
pub mod json;
pub mod lease;
pub mod limits;
pub mod line;
pub mod plan;
pub mod receipt;
pub mod record;
pub mod secret;
pub mod status;
pub mod summary;
pub mod time;
pub mod tree;
pub mod visible;
pub mod zeroclaw;
