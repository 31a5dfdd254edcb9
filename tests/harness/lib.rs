//! What the tests share.
#![forbid(unsafe_code)]

pub mod api;
pub mod binary;
pub mod pure;
pub mod service;
pub mod worlds;
