//! Every test of the whole, in one binary: one link, one process.
#![forbid(unsafe_code)]

mod rules;
