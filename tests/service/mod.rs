//! The service over HTTP, on a clock that the tests move.

mod cases;
mod listings;
mod settled;
