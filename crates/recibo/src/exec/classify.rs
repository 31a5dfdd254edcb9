//! What the end of a command means for its attempt. Anything ambiguous is indefinite: the two
//! errors are positive statements that nothing took effect.

use recibo_core::status::OutcomeStatus;

use super::child::End;
use super::exit;
use crate::failure::Failure;

/// How exit codes are read.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Success.
    pub ok: Vec<u8>,
    /// Failed without effect, may be tried again.
    pub retryable: Vec<u8>,
    /// Failed without effect, for good.
    pub terminal: Vec<u8>,
}

/// What is reported of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// How it ended.
    pub status: OutcomeStatus,
    /// Why, if it is no success.
    pub error_class: Option<String>,
}

impl Rules {
    /// One exit code cannot mean two things.
    pub fn check(&self) -> Result<(), Failure> {
        let mut all: Vec<_> = [&self.ok, &self.retryable, &self.terminal]
            .into_iter()
            .flat_map(|codes| {
                let mut codes = codes.clone();
                codes.sort_unstable();
                codes.dedup();
                codes
            })
            .collect();
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Failure::usage(format!("exit code {} has two meanings", pair[0]))),
            None => Ok(()),
        }
    }

    /// Classifies the end of a command.
    pub fn classify(&self, end: &End) -> Class {
        let class = |status, error_class: String| Class { status, error_class: Some(error_class) };
        match end {
            End::Exited(code) if self.ok.contains(code) => {
                Class { status: OutcomeStatus::Ok, error_class: None }
            }
            End::Exited(code) => class(self.of_exit_code(*code), format!("exit_{code}")),
            End::Signalled(signal) | End::Interrupted(signal) => {
                class(OutcomeStatus::Unknown, format!("signal_{signal}"))
            }
            End::TimedOut => class(OutcomeStatus::Timeout, "timeout".into()),
            End::Lost => class(OutcomeStatus::Unknown, "lost".into()),
            // Certainly no effect, and a program that is missing can be installed.
            End::SpawnFailed(_) => class(OutcomeStatus::RetryableError, "spawn_failed".into()),
            End::TooLate => class(OutcomeStatus::RetryableError, "lease_over".into()),
            End::NotBegun => class(OutcomeStatus::RetryableError, "interrupted".into()),
        }
    }

    /// A code without a meaning says nothing, whatever the effect: where repeating does no
    /// harm, the ledger permits it after an unknown outcome too.
    fn of_exit_code(&self, code: u8) -> OutcomeStatus {
        if self.retryable.contains(&code) {
            OutcomeStatus::RetryableError
        } else if self.terminal.contains(&code) {
            OutcomeStatus::TerminalError
        } else {
            OutcomeStatus::Unknown
        }
    }
}

/// The exit code of `exec` for an outcome.
pub fn exit_code(status: OutcomeStatus) -> u8 {
    match status {
        OutcomeStatus::Ok => exit::OK,
        OutcomeStatus::TerminalError => exit::TERMINAL,
        OutcomeStatus::RetryableError => exit::RETRYABLE,
        OutcomeStatus::Unknown => exit::UNKNOWN,
        OutcomeStatus::Timeout => exit::TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules { ok: vec![0], retryable: vec![75], terminal: vec![64, 65] }
    }

    #[test]
    fn ends_are_classified() {
        for (end, code, error_class) in [
            (End::Exited(0), exit::OK, None),
            (End::Exited(75), exit::RETRYABLE, Some("exit_75")),
            (End::Exited(64), exit::TERMINAL, Some("exit_64")),
            (End::Exited(3), exit::UNKNOWN, Some("exit_3")),
            (End::Signalled(9), exit::UNKNOWN, Some("signal_9")),
            (End::Interrupted(15), exit::UNKNOWN, Some("signal_15")),
            (End::TimedOut, exit::TIMEOUT, Some("timeout")),
            (End::SpawnFailed("x".into()), exit::RETRYABLE, Some("spawn_failed")),
            (End::TooLate, exit::RETRYABLE, Some("lease_over")),
            (End::NotBegun, exit::RETRYABLE, Some("interrupted")),
            (End::Lost, exit::UNKNOWN, Some("lost")),
        ] {
            let class = rules().classify(&end);
            assert_eq!(exit_code(class.status), code, "{end:?}");
            assert_eq!(class.error_class.as_deref(), error_class, "{end:?}");
        }
    }

    #[test]
    fn one_exit_code_has_one_meaning() {
        assert!(rules().check().is_ok());
        assert!(Rules { ok: vec![0, 75, 0], ..rules() }.check().is_err());
        assert!(Rules { ok: vec![0, 0], ..rules() }.check().is_ok());
    }
}
