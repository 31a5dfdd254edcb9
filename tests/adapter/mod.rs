//! The Rust adapter against the real binary.

mod stories;
