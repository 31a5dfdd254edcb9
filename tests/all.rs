//! Every test of the whole, in one binary: one link, one process.
#![forbid(unsafe_code)]

mod adapter;
mod binary;
mod blackbox;
mod mcp;
mod model;
mod on_demand;
mod properties;
mod rules;
mod service;
mod store;
