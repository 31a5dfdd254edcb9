//! Why the ledger gives no answer.

use recibo_api::client::ClientError;
use recibo_api::{Code, Problem};
use recibo_core::id::NameError;
use recibo_core::plan::Refusal;
use recibo_store::{StorageError, WriteError};

/// Why the ledger gives no answer. Holds neither arguments nor results nor keys.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// It refused; the message names the code. Nothing was appended.
    #[error("{} ({})", sentence(.0), .0.code)]
    Refused(Box<Problem>),
    /// The service cannot be reached, or says what no ledger says.
    #[error(transparent)]
    Service(ClientError),
}

fn sentence(problem: &Problem) -> &str {
    if problem.detail.is_empty() { problem.code.title() } else { &problem.detail }
}

impl LedgerError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused(problem) => Some(problem.code),
            Self::Service(error) => error.code(),
        }
    }

    /// Whether the same request may fare better in a moment: no answer, an overloaded ledger or
    /// a stopped one.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused(problem) => problem.code.is_transient(),
            Self::Service(error) => error.is_transient(),
        }
    }

    /// Whether the scope that was named signs no more.
    pub(crate) fn is_scope_gone(&self) -> bool {
        matches!(self.code(), Some(Code::ScopeGone | Code::ScopeNotFound))
    }

    /// Something in this process failed; its cause is on stderr or in the log.
    pub(crate) fn internal() -> Self {
        Problem::new(Code::Internal, "the ledger of this process failed").into()
    }
}

impl From<Problem> for LedgerError {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(problem))
    }
}

impl From<NameError> for LedgerError {
    fn from(error: NameError) -> Self {
        Problem::from(error).into()
    }
}

impl From<Refusal> for LedgerError {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<ClientError> for LedgerError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { problem, .. } => Self::Refused(problem),
            error => Self::Service(error),
        }
    }
}

impl From<WriteError> for LedgerError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::QueueFull => Problem::overloaded().into(),
            WriteError::Stopped => Problem::ledger_stopped().into(),
            WriteError::ReadOnly(cause) => Problem::read_only(cause).into(),
        }
    }
}

impl From<StorageError> for LedgerError {
    fn from(error: StorageError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "a read failed");
        Self::internal()
    }
}
