//! Probes, without an API key.

use axum::extract::State;
use recibo_api::{Code, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::failure::Failure;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(LiveProblems: ; InvalidQuery);
problems!(ReadyProblems: ; InvalidQuery, LedgerStopped, ReadOnly);

/// Answer of a probe that has nothing to complain about.
#[derive(Serialize, ToSchema)]
pub(crate) struct Probe {
    /// Always `ok`.
    status: &'static str,
}

/// Answer of a ledger that serves writes.
#[derive(Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Always `ok`.
    status: &'static str,
    /// Whether the wall clock lay more than 24 hours ahead of the last event when the service
    /// started: either nothing happened for so long, or the clock is wrong.
    clock_ahead: bool,
}

/// Whether the process answers
#[utoipa::path(
    get, path = "/livez", operation_id = "get_liveness", tag = "service",
    responses((status = 200, description = "It does", body = Probe), LiveProblems)
)]
pub(crate) async fn live(_: NoQuery) -> Answer {
    Ok(answer::ok(&Probe { status: "ok" }))
}

/// Whether writes are served
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "service",
    responses((status = 200, description = "They are", body = Readiness), ReadyProblems)
)]
pub(crate) async fn ready(State(app): State<App>, _: NoQuery) -> Answer {
    if let Some(cause) = app.store().read_only_cause() {
        Err(Problem::read_only(cause).into())
    } else if app.store().is_serving() {
        Ok(answer::ok(&Readiness { status: "ok", clock_ahead: app.store().clock_is_ahead() }))
    } else {
        Err(Failure::new(Code::LedgerStopped, "the ledger takes no writes"))
    }
}
