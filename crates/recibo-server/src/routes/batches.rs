//! Many finished calls in one request, each on its own.

use axum::extract::State;
use recibo_api::answer::{BatchAnswer, BatchResult, OutcomeAnswer};
use recibo_api::request::BatchRequest;
use recibo_api::{Action, Problem, body, secrets};
use recibo_core::plan::{OneShot, Refusal};
use recibo_store::RecordAnswer;

use crate::answer::{self, Answer};
use crate::app::{App, blocking};
use crate::body::ResultBody;
use crate::caller::Caller;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED, BODY, WRITE);

/// Batches up to this size are shown where they are; more would hold up other requests.
const INLINE_LEN_MAX: usize = 64;

/// Record up to 1000 finished calls
///
/// Each has a result of its own, in order.
#[utoipa::path(
    post, path = "/v1/receipts:batch", operation_id = "record_receipts", tag = "receipts",
    request_body = BatchRequest,
    responses((status = 200, description = "A result per item", body = BatchAnswer), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn record(
    State(app): State<App>,
    caller: Caller,
    _: NoQuery,
    ResultBody(body): ResultBody,
) -> Answer {
    let policy = app.store().policy(&caller.namespace);
    let items: Vec<Result<OneShot, Problem>> = body
        .parse(move |bytes| {
            let items = body::read::<BatchRequest<'_>>(bytes)?;
            Ok(items
                .parse(&policy)
                .map(|item| {
                    let shot = item?;
                    secrets::refuse_one_shot(&shot)?;
                    Ok(shot)
                })
                .collect())
        })
        .await?;
    caller.may(Action::Record)?;
    let mut shots = Vec::with_capacity(items.len());
    let mut bad = Vec::with_capacity(items.len());
    for item in items {
        bad.push(item.map(|shot| shots.push(shot)).err());
    }
    let answers = if shots.is_empty() {
        Vec::new()
    } else {
        app.store().record(&caller.namespace, shots).await?
    };
    if bad.len() <= INLINE_LEN_MAX {
        return Ok(answer::ok(&show(bad, answers)));
    }
    blocking(move || Ok(answer::ok(&show(bad, answers)))).await
}

/// Puts the answers of the store where no problem stands.
fn show(bad: Vec<Option<Problem>>, answers: Vec<Result<RecordAnswer, Refusal>>) -> BatchAnswer {
    let mut answers = answers.into_iter();
    let results = bad.into_iter().map(|problem| {
        if let Some(problem) = problem {
            return problem.into();
        }
        match answers.next().expect("one answer per one-shot") {
            Ok(recorded) => {
                BatchResult::recorded(OutcomeAnswer::from_core(&recorded.record, recorded.replayed))
            }
            Err(refusal) => Problem::from(refusal).into(),
        }
    });
    BatchAnswer { results: results.collect() }
}
