//! The Rust adapter against the real binary.

mod kills;
mod stories;
