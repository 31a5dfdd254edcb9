//! The closed word lists of attempts, calls, checks and decisions.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of the contract.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word of the contract.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    };
}

words!(
    /// What an adapter reports of an attempt.
    OutcomeStatus {
        /// It took effect and its result was seen.
        Ok = "ok",
        /// No answer in time; it may have taken effect.
        Timeout = "timeout",
        /// The adapter knows that nothing took effect; another try may work.
        RetryableError = "retryable_error",
        /// The adapter knows that nothing took effect, and another try would not either.
        TerminalError = "terminal_error",
        /// Nobody knows.
        Unknown = "unknown",
    }
);

words!(
    /// What an attempt reads as.
    AttemptStatus {
        /// Open, its lease live.
        Started = "started",
        /// Took effect.
        Ok = "ok",
        /// No answer in time.
        Timeout = "timeout",
        /// No effect; may be tried again.
        RetryableError = "retryable_error",
        /// No effect; final.
        TerminalError = "terminal_error",
        /// Nobody knows.
        Unknown = "unknown",
    }
);

words!(
    /// State of a call, folded from its events.
    CallState {
        /// No attempt is known.
        Absent = "absent",
        /// An attempt is open and its lease lives.
        InFlight = "in_flight",
        /// An earlier attempt may have taken effect.
        Unknown = "unknown",
        /// No effect; may be tried again.
        Retryable = "retryable",
        /// Took effect.
        Ok = "ok",
        /// No effect; final.
        Terminal = "terminal",
        /// An operator gave it up.
        Abandoned = "abandoned",
    }
);

words!(
    /// Answer to "may I run this?".
    DecisionKind {
        /// Run it, if a lease comes with the answer.
        Proceed = "proceed",
        /// Somebody is at it.
        Wait = "wait",
        /// It is done.
        Reuse = "reuse",
        /// Ask the outside service first.
        CheckStatus = "check_status",
        /// Do not run it.
        Stop = "stop",
    }
);

words!(
    /// Why a decision is what it is.
    Reason {
        /// Nothing was tried yet.
        FirstAttempt = "first_attempt",
        /// What was tried allows another try.
        RetryAllowed = "retry_allowed",
        /// An attempt is open.
        LeaseLive = "lease_live",
        /// It succeeded before.
        AlreadyOk = "already_ok",
        /// An earlier attempt may have taken effect.
        OutcomeUnknown = "outcome_unknown",
        /// The outside service no longer honours the key.
        KeyWindowOver = "key_window_over",
        /// The policy's number of attempts is used.
        AttemptsExhausted = "attempts_exhausted",
        /// It failed for good.
        TerminalError = "terminal_error",
        /// An operator gave it up.
        Abandoned = "abandoned",
        /// Effect and no-effect evidence contradict each other.
        Conflict = "conflict",
        /// A call that does the same is under way.
        TwinInFlight = "twin_in_flight",
        /// A call that does the same may have taken effect.
        TwinUnknown = "twin_unknown",
        /// A call that does the same took effect after its caller had given up.
        TwinOkLate = "twin_ok_late",
    }
);

words!(
    /// What the outside service said when asked.
    CheckAnswer {
        /// It ran and succeeded.
        ExecutedOk = "executed_ok",
        /// It ran and failed for good.
        ExecutedFailed = "executed_failed",
        /// It did not run.
        NotExecuted = "not_executed",
        /// It still runs.
        Pending = "pending",
        /// The service cannot say.
        Indeterminate = "indeterminate",
        /// The service has no such question.
        Unsupported = "unsupported",
    }
);

words!(
    /// An operator's word on a call.
    ResolvedAs {
        /// It took effect.
        Ok = "ok",
        /// It did not; may be tried again.
        Retryable = "retryable",
        /// It did not; final.
        Terminal = "terminal",
        /// Given up.
        Abandoned = "abandoned",
    }
);

words!(
    /// Who settled an attempt that had no definite outcome.
    SettledBy {
        /// A status check.
        StatusCheck = "status_check",
        /// An operator.
        Resolution = "resolution",
    }
);

words!(
    /// Why a scope's key was wiped.
    ScopeEnd {
        /// The caller closed it.
        Closed = "closed",
        /// Its time was over.
        Expired = "expired",
    }
);

impl OutcomeStatus {
    /// Whether the status says for certain that there was, or was not, an effect.
    pub fn is_definite(self) -> bool {
        matches!(self, Self::Ok | Self::RetryableError | Self::TerminalError)
    }

    /// What an attempt with this outcome reads as.
    pub fn as_attempt(self) -> AttemptStatus {
        match self {
            Self::Ok => AttemptStatus::Ok,
            Self::Timeout => AttemptStatus::Timeout,
            Self::RetryableError => AttemptStatus::RetryableError,
            Self::TerminalError => AttemptStatus::TerminalError,
            Self::Unknown => AttemptStatus::Unknown,
        }
    }
}

impl AttemptStatus {
    /// Whether the attempt may or may not have taken effect, and is not open.
    pub fn is_indefinite(self) -> bool {
        matches!(self, Self::Timeout | Self::Unknown)
    }
}
