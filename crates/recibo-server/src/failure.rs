//! Whatever went wrong, as `application/problem+json`. The one place where causes are logged,
//! once, and where they stop: a client never sees them.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use recibo_api::{Code, Problem};
use recibo_core::id::NameError;
use recibo_core::plan::Refusal;
use recibo_store::{StorageError, WriteError};

use crate::answer::NO_STORE;

/// A problem on its way out. Boxed, so that the good path stays small.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Box<Problem>);

impl Failure {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "the service failed; its log says why")
    }
}

/// What is logged where an answer breaks off; the client only sees the connection end.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.code.as_str())
    }
}

impl std::error::Error for Failure {}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Problem::from(error).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::QueueFull => Problem::overloaded().into(),
            WriteError::Stopped => Problem::ledger_stopped().into(),
            WriteError::ReadOnly(cause) => Problem::read_only(cause).into(),
        }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "a read failed");
        Self::internal()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = self.0;
        let mut response = Response::new(problem.to_json().into());
        *response.status_mut() =
            StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, NO_STORE);
        match problem.code {
            Code::Unauthenticated => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Code::Overloaded => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
