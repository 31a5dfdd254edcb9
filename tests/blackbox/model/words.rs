//! The words of the contract.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $(#[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is sent.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        // Not every list has another use.
        const _: &[$name] = $name::ALL;
    };
}

words! {
    /// In order of strictness.
    Effect {
        ReadOnly = "read_only",
        Idempotent = "idempotent",
        Keyed = "keyed",
        Queryable = "queryable",
        Opaque = "opaque",
    }
}

words! {
    /// Of an attempt.
    Status {
        Started = "started",
        Ok = "ok",
        Timeout = "timeout",
        RetryableError = "retryable_error",
        TerminalError = "terminal_error",
        Unknown = "unknown",
    }
}

words! {
    /// Of a call.
    State {
        Absent = "absent",
        InFlight = "in_flight",
        Unknown = "unknown",
        Retryable = "retryable",
        Ok = "ok",
        Terminal = "terminal",
        Abandoned = "abandoned",
    }
}

words! {
    /// Of a status check.
    Answer {
        ExecutedOk = "executed_ok",
        ExecutedFailed = "executed_failed",
        NotExecuted = "not_executed",
        Pending = "pending",
        Indeterminate = "indeterminate",
        Unsupported = "unsupported",
    }
}

words! {
    /// Of an operator.
    Resolved {
        Ok = "ok",
        Retryable = "retryable",
        Terminal = "terminal",
        Abandoned = "abandoned",
    }
}

impl Effect {
    /// Whether not knowing is no obstacle to another attempt.
    pub fn is_repeatable(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Idempotent)
    }

    /// Whether a second success is one too many.
    pub fn is_once(self) -> bool {
        matches!(self, Self::Queryable | Self::Opaque)
    }
}

impl Status {
    /// A positive statement about the effect.
    pub fn is_definite(self) -> bool {
        matches!(self, Self::Ok | Self::RetryableError | Self::TerminalError)
    }

    /// A positive statement that there was none.
    pub fn is_error(self) -> bool {
        matches!(self, Self::RetryableError | Self::TerminalError)
    }
}

impl Answer {
    /// What it makes of an attempt, where it counts.
    pub fn settles_as(self) -> Option<Status> {
        match self {
            Self::ExecutedOk => Some(Status::Ok),
            Self::ExecutedFailed => Some(Status::TerminalError),
            Self::NotExecuted => Some(Status::RetryableError),
            Self::Pending | Self::Indeterminate | Self::Unsupported => None,
        }
    }
}

impl Resolved {
    /// What it makes of the attempts that nobody knew the outcome of.
    pub fn settles_as(self) -> Option<Status> {
        match self {
            Self::Ok => Some(Status::Ok),
            Self::Retryable => Some(Status::RetryableError),
            Self::Terminal => Some(Status::TerminalError),
            Self::Abandoned => None,
        }
    }
}
