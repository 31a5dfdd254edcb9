//! Receipts, and finished calls in one write.

use axum::extract::State;
use axum::http::StatusCode;
use recibo_api::answer::{OutcomeAnswer, Record};
use recibo_api::request::OneShotRequest;
use recibo_api::{Action, Code, body, secrets};
use recibo_core::receipt::Token;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::ResultBody;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(GetProblems: KEYED, IDS; ReceiptNotFound);
problems!(RecordProblems: KEYED, BODY, WRITE;
    ScopeNotFound, AttemptConflict, AttemptOpen, OperationKeyTaken, InputMismatch,
    EffectMismatch, EffectWeakerThanPolicy, OperationKeyMismatch, SecretDetected);

/// Read the record that holds a receipt
#[utoipa::path(
    get, path = "/v1/receipts/{token}", operation_id = "get_receipt", tag = "receipts",
    params(("token" = String, Path)),
    responses((status = 200, description = "The record", body = Record), GetProblems),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    let token: Token = ids
        .text("token")
        .parse()
        .map_err(|error| Failure::new(Code::InvalidId, format!("{error}")))?;
    caller.may(Action::Read)?;
    app.read(move |snapshot| match snapshot.receipt(&caller.namespace, &token)? {
        Some(record) => Ok(answer::ok(&Record::from_core(&record))),
        None => Err(Failure::new(Code::ReceiptNotFound, "no record holds this receipt")),
    })
    .await
}

/// Record a finished call in one write
#[utoipa::path(
    post, path = "/v1/receipts", operation_id = "record_receipt", tag = "receipts",
    request_body = OneShotRequest,
    responses(
        (status = 201, description = "Recorded", body = OutcomeAnswer),
        (status = 200, description = "It was recorded before", body = OutcomeAnswer),
        RecordProblems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn record(
    State(app): State<App>,
    caller: Caller,
    _: NoQuery,
    ResultBody(body): ResultBody,
) -> Answer {
    let policy = app.store().policy(&caller.namespace);
    let shot =
        body.parse(move |bytes| body::read::<OneShotRequest<'_>>(bytes)?.parse(&policy)).await?;
    caller.may(Action::Record)?;
    secrets::refuse_one_shot(&shot)?;
    let answers = app.store().record(&caller.namespace, vec![shot]).await?;
    let recorded = answers.into_iter().next().expect("one answer per one-shot")?;
    let status = if recorded.replayed { StatusCode::OK } else { StatusCode::CREATED };
    Ok(answer::json(status, &OutcomeAnswer::from_core(&recorded.record, recorded.replayed)))
}
