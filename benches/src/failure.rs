//! Why a bench stopped: any error, as a sentence.

use std::fmt;

/// What every step of a bench gives.
pub type Outcome<T> = Result<T, Failure>;

/// A sentence for the person who runs the bench.
pub struct Failure(String);

impl Failure {
    /// A sentence of our own.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Any error, with its causes.
    pub fn of(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(error)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with a sentence unless the condition holds: an answer that is wrong is no figure.
pub fn check(holds: bool, text: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Failure::new(text())) }
}
