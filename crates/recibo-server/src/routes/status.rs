//! What runs, and for whom.

use axum::Extension;
use axum::extract::State;
use recibo_api::answer::StatusAnswer;
use recibo_api::{Action, Timestamp};
use recibo_core::status::CallState;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::connection::Peer;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED);

/// Say what runs
///
/// Who is connected, and how many calls are in flight or unknown. The time that this takes grows
/// with the number of such calls.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "get_status", tag = "service",
    responses((status = 200, description = "The service", body = StatusAnswer), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    asking: Option<Extension<Peer>>,
    _: NoQuery,
) -> Answer {
    caller.may(Action::Read)?;
    let (mut clients, mut addresses) = (Vec::new(), 0);
    for peer in app.connections().peers() {
        match peer {
            _ if asking.as_ref().is_some_and(|asking| asking.0 == peer) => {}
            Peer::Process(pid) => clients.push(pid),
            Peer::V4(_) | Peer::V6(_) => addresses += 1,
        }
    }
    clients.sort_unstable();
    let namespace = caller.namespace;
    let states = app.read(move |snapshot| Ok(snapshot.open_states(&namespace)?)).await?;
    let count = |state: CallState| states.get(&state).copied().unwrap_or_default();
    Ok(answer::ok(&StatusAnswer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: Timestamp(app.started_at()),
        read_only: app.store().read_only_cause().is_some(),
        clients,
        addresses,
        events: app.store().size(),
        in_flight: count(CallState::InFlight),
        unknown: count(CallState::Unknown),
    }))
}
