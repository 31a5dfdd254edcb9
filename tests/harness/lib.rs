//! What the tests share.
#![forbid(unsafe_code)]

pub mod pure;
