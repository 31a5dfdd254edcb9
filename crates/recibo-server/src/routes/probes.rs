//! Probes, without an API key.

use axum::extract::State;
use recibo_api::Code;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::failure::Failure;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(LiveProblems: ; InvalidQuery);
problems!(ReadyProblems: ; InvalidQuery, LedgerStopped);

/// Answer of a probe that has nothing to complain about.
#[derive(Serialize, ToSchema)]
pub(crate) struct Probe {
    /// Always `ok`.
    status: &'static str,
}

const FINE: Probe = Probe { status: "ok" };

/// Whether the process answers
#[utoipa::path(
    get, path = "/livez", operation_id = "get_liveness", tag = "service",
    responses((status = 200, description = "It does", body = Probe), LiveProblems)
)]
pub(crate) async fn live(_: NoQuery) -> Answer {
    Ok(answer::ok(&FINE))
}

/// Whether writes are served
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "service",
    responses((status = 200, description = "They are", body = Probe), ReadyProblems)
)]
pub(crate) async fn ready(State(app): State<App>, _: NoQuery) -> Answer {
    if app.store().is_serving() {
        Ok(answer::ok(&FINE))
    } else {
        Err(Failure::new(Code::LedgerStopped, "the ledger takes no writes"))
    }
}
