//! Drives the router in process, over a store in memory and a clock that a test moves.

mod api_keys;
mod bounds;
mod endpoints;
mod harness;
mod ids;
mod limits;
mod logs;
mod openapi;
mod problems;
mod read_only;
mod reported;
mod roles;
mod serving;
mod slow_clients;
mod socket;
mod streams;
mod unix;
mod waiting;
