//! What can go wrong between a client and a service.

use crate::problem::{Code, Problem};

/// Why a request has no answer that can be used. Holds neither the API key nor what was sent.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The ledger refused. Nothing was appended.
    #[error("{}", refusal(problem))]
    Refused {
        /// What it said.
        problem: Box<Problem>,
        /// The problem document, as it came.
        body: String,
    },
    /// No answer came. Whether the request arrived is not known.
    #[error("cannot reach the service at {url}: {cause}")]
    NoAnswer {
        /// Where it should be.
        url: String,
        /// The innermost cause.
        cause: String,
    },
    /// A proxy answers that it finds no service (502, 503, 504). Whether the request arrived
    /// is not known.
    #[error("something else answers for the service, with HTTP status {status}")]
    Gateway {
        /// The HTTP status.
        status: u16,
    },
    /// An error status without a problem document: no ledger says that.
    #[error("the answer has HTTP status {status} and is no problem document")]
    Foreign {
        /// The HTTP status.
        status: u16,
    },
    /// A success whose document is not what was asked for.
    #[error("the answer is not what was asked for: {cause}")]
    Unreadable {
        /// Where it differs.
        cause: String,
    },
    /// An address that no service can have.
    #[error("`{url}` is no http:// or https:// address")]
    BadAddress {
        /// The address.
        url: String,
    },
    /// A text that no header can hold is no API key.
    #[error("what was given as an API key cannot be one")]
    BadApiKey,
    /// The system gives no HTTP client.
    #[error("no HTTP client: {cause}")]
    NoClient {
        /// Why.
        cause: String,
    },
}

fn refusal(problem: &Problem) -> String {
    let detail = if problem.detail.is_empty() { problem.code.title() } else { &problem.detail };
    format!("{detail} ({})", problem.code)
}

impl ClientError {
    /// Reads a body that came with an error status. A proxy that finds no service answers for
    /// it; that is no answer of the ledger.
    pub fn from_answer(status: u16, body: String) -> Self {
        match serde_json::from_str::<Problem>(&body) {
            Ok(problem) => Self::Refused { problem: Box::new(problem), body },
            Err(_) if matches!(status, 502..=504) => Self::Gateway { status },
            Err(_) => Self::Foreign { status },
        }
    }

    /// The code of a refusal. A proxy that finds a body too large is understood too.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { problem, .. } => Some(problem.code),
            Self::Foreign { status: 413 } => Some(Code::BodyTooLarge),
            _ => None,
        }
    }

    /// Whether nobody answered who could know what happened.
    pub fn is_no_answer(&self) -> bool {
        matches!(self, Self::NoAnswer { .. } | Self::Gateway { .. })
    }

    /// Whether the same request may fare better in a moment: no answer, or one that asks to
    /// come again.
    pub fn is_transient(&self) -> bool {
        self.is_no_answer() || self.code().is_some_and(Code::is_transient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_fare_better_in_a_moment_is_transient() {
        let problem = |code| Problem::new(code, "why").to_json();
        for (status, body, is_transient) in [
            (502, "<html>".to_owned(), true),
            (503, String::new(), true),
            (504, "{}".to_owned(), true),
            (500, "<html>".to_owned(), false),
            (404, "<html>".to_owned(), false),
            (503, problem(Code::Overloaded), true),
            (503, problem(Code::LedgerStopped), true),
            (500, problem(Code::Internal), false),
            (409, problem(Code::LeaseLive), false),
        ] {
            let error = ClientError::from_answer(status, body.clone());
            assert_eq!(error.is_transient(), is_transient, "{status} {body}");
        }
        let proxy = ClientError::from_answer(413, "<html>".into());
        assert_eq!(proxy.code(), Some(Code::BodyTooLarge));
    }
}
