//! The HTTP service of the ledger: routes, authentication, the order of checks, and what an
//! answer looks like on the wire.
//!
//! It decides nothing: the store does. What JSON says is `recibo-api`'s. Arguments, results and
//! keys pass through here and must never reach a log, so nothing here logs bodies, headers or
//! raw paths.
#![forbid(unsafe_code)]

mod answer;
mod app;
mod body;
mod caller;
mod connection;
mod failure;
mod limits;
mod path;
mod pieces;
mod problems;
mod query;
mod router;
mod routes;
mod rows;
mod serve;
mod shapes;
mod show;
mod trace;

pub use app::{App, Settings};
pub use limits::ConnectionLimits;
pub use recibo_api::secrets::SecretPolicy;
pub use router::{openapi, openapi_text, router};
pub use serve::{Listeners, ServeError, serve};
