//! Why a command failed, as people and programs are told it.

use std::fmt::Write;

use recibo_adapter::LedgerError;
use recibo_api::client::ClientError;
use recibo_api::{Code, Problem};
use recibo_core::visible::visible;
use serde_json::json;

use crate::exec::exit;
use crate::{paint, words};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The ledger refused. The body is kept as it came: `--json` shows it.
    Refused {
        /// What the ledger said.
        problem: Box<Problem>,
        /// The problem document.
        body: String,
    },
    /// No answer of the ledger came. Whether the request arrived is not known.
    Unreachable {
        /// What happened.
        detail: String,
        /// What to do.
        advice: String,
    },
    /// Something on this side.
    Here {
        /// What happened.
        detail: String,
        /// What to do.
        advice: Option<String>,
    },
    /// Another process has the ledger open, perhaps only for a moment.
    InUse {
        /// Which one.
        detail: String,
        /// What to do.
        advice: String,
    },
    /// The command line asks for something that makes no sense.
    Usage {
        /// What.
        detail: String,
    },
    /// A failure that goes with an exit code of its own.
    WithCode {
        /// The exit code.
        exit_code: u8,
        /// The failure.
        failure: Box<Failure>,
    },
}

impl Failure {
    /// Names [`Failure::InUse`] to programs.
    pub const IN_USE: &str = "in_use";

    /// Something went wrong here.
    pub fn said(detail: impl Into<String>) -> Self {
        Self::Here { detail: detail.into(), advice: None }
    }

    /// Something went wrong here, and this is the way out.
    pub fn advised(detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Here { detail: detail.into(), advice: Some(advice.into()) }
    }

    /// The command line makes no sense.
    pub fn usage(detail: impl Into<String>) -> Self {
        Self::Usage { detail: detail.into() }
    }

    /// The same failure with another exit code.
    #[must_use]
    pub fn with_exit_code(self, exit_code: u8) -> Self {
        Self::WithCode { exit_code, failure: Box::new(self) }
    }

    /// What the ledger said.
    fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::WithCode { failure, .. } => failure.problem(),
            _ => None,
        }
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<Code> {
        self.problem().map(|problem| problem.code)
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::WithCode { exit_code, .. } => *exit_code,
            Self::Usage { .. } => exit::USAGE,
            Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::Here { .. }
            | Self::InUse { .. } => exit::FAILED,
        }
    }

    /// For the terminal: what happened, its code, what to do.
    pub fn for_people(&self) -> String {
        self.for_person(false)
    }

    /// The same for somebody who gave an API key or not: one who gave none is in the only
    /// namespace that there is without keys.
    pub fn for_person(&self, is_key_given: bool) -> String {
        let (detail, code, advice) = self.parts(is_key_given);
        let mut text = format!("{} {}", paint::bad("error:"), visible(detail));
        if let Some(code) = code {
            let _ = write!(text, " {}", paint::faint(&format!("({code})")));
        }
        text.push('\n');
        if let Some(problem) = self.problem() {
            for (name, value) in &problem.extra {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let name = name.replace('_', " ");
                let _ = writeln!(text, "  {}: {}", visible(&name), visible(&value));
            }
        }
        if let Some(advice) = advice {
            let advice = words::Reader::default().told(advice);
            let _ = writeln!(text, "  {} {advice}", paint::strong("to do:"));
        }
        text
    }

    /// For programs: the ledger's own document, or one of the same form.
    pub fn to_json(&self) -> String {
        match self {
            Self::Refused { body, .. } => body.clone(),
            Self::WithCode { failure, .. } => failure.to_json(),
            _ => {
                let code = match self {
                    Self::Unreachable { .. } => "unreachable",
                    Self::Usage { .. } => "usage",
                    Self::InUse { .. } => Self::IN_USE,
                    _ => "command_failed",
                };
                let (detail, _, advice) = self.parts(false);
                json!({
                    "type": format!("urn:recibo:problem:{code}"),
                    "title": "The command failed",
                    "code": code,
                    "detail": detail,
                    "hint": advice,
                })
                .to_string()
            }
        }
    }

    fn parts(&self, is_key_given: bool) -> (&str, Option<&'static str>, Option<&str>) {
        match self {
            Self::Refused { problem, .. } => {
                let detail = problem.detail.as_str();
                let detail = if detail.is_empty() { problem.code.title() } else { detail };
                (detail, Some(problem.code.as_str()), Some(advice(problem.code, is_key_given)))
            }
            Self::Unreachable { detail, advice } | Self::InUse { detail, advice } => {
                (detail, None, Some(advice))
            }
            Self::Here { detail, advice } => (detail, None, advice.as_deref()),
            Self::Usage { detail } => (detail, None, Some("see --help")),
            Self::WithCode { failure, .. } => failure.parts(is_key_given),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let body = problem.to_json();
        Self::Refused { problem: Box::new(problem), body }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Refused(problem) => (*problem).into(),
            LedgerError::Service(error) => error.into(),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let detail = error.to_string();
        let advice = match error {
            ClientError::Refused { problem, body } => return Self::Refused { problem, body },
            ClientError::NoAnswer { .. } => {
                let advice = "see whether the service runs and whether the address is right";
                return Self::Unreachable { detail, advice: advice.into() };
            }
            ClientError::Gateway { .. } => {
                let advice = "see whether the service runs behind its proxy";
                return Self::Unreachable { detail, advice: advice.into() };
            }
            ClientError::BadAddress { .. } => return Self::usage(detail),
            ClientError::BadApiKey => {
                return Self::usage("the API key file does not hold an API key");
            }
            ClientError::NoClient { .. } => return Self::said(detail),
            ClientError::Foreign { .. } => {
                "is this address the service's? A proxy may stand before it"
            }
            ClientError::Unreadable { .. } => {
                "the service may be of another version: compare `recibo --version` with /v1/config"
            }
        };
        Self::advised(detail, advice)
    }
}

/// What a person can do about each refusal.
fn advice(code: Code, is_key_given: bool) -> &'static str {
    match code {
        Code::InvalidJson | Code::DuplicateMember | Code::NumberOutOfRange => {
            "correct the JSON that was given"
        }
        Code::InvalidRequest | Code::InvalidQuery => "correct what was given",
        Code::InvalidId => {
            "ids are 1 to 256 printable ASCII characters without spaces and without /"
        }
        Code::InvalidPageToken => "list again from the first page",
        Code::Unauthenticated => {
            "give a valid key with --api-key-file; `recibo api-key list` shows which were revoked \
             or have expired"
        }
        Code::Forbidden => "use an API key whose role permits this",
        Code::LeaseTokenWrong => "report with the lease token that came with the grant",
        Code::NotFound | Code::MethodNotAllowed | Code::UnsupportedMediaType => {
            "the service may be of another version: compare `recibo --version` with /v1/config"
        }
        Code::RunNotFound | Code::CallNotFound | Code::AttemptNotFound if !is_key_given => {
            "check the spelling; `recibo calls` lists what there is"
        }
        Code::RunNotFound | Code::CallNotFound | Code::AttemptNotFound => {
            "check the spelling and the namespace of the API key; `recibo calls` lists what there is"
        }
        Code::ScopeNotFound | Code::ScopeGone => "open a new scope",
        Code::ReceiptNotFound | Code::KeyNotFound if !is_key_given => "check the spelling",
        Code::ReceiptNotFound | Code::KeyNotFound => {
            "check the spelling and the namespace of the API key"
        }
        Code::ApiKeyNotFound => "`recibo api-key list` shows the ids",
        Code::BodyTooLarge => "send hashes instead of the texts",
        Code::AttemptConflict | Code::ClaimUsed => {
            "look at the call with `recibo call`; ask again with a fresh claim"
        }
        Code::AttemptOpen | Code::LeaseLive => {
            "wait until the lease is over or its holder reports, then try again"
        }
        Code::AttemptSettled | Code::NothingToResolve => {
            "you need not do anything: how it ended is known already; `recibo call` shows it"
        }
        Code::OutcomeConflict => {
            "look at the call with `recibo explain`; an outcome is never overwritten"
        }
        Code::OperationKeyTaken => "look at the call that holds the key before you do anything",
        Code::VersionMismatch => {
            "look at the call again with `recibo call`, then decide again: it has changed"
        }
        Code::IfMatchRequired => "say which version of the call you have seen",
        Code::InputMismatch => {
            "do not repeat it: give this call an id of its own, for example with the turn before it"
        }
        Code::EffectMismatch => "state the effect of the first attempt, or none",
        Code::EffectWeakerThanPolicy => {
            "state a stricter effect or none; `recibo policy show` has the rules"
        }
        Code::OperationKeyMismatch => "give the operation key of the first attempt",
        Code::LeaseOver => "report the outcome: it is taken after the lease too",
        Code::PolicyInvalid => "correct the rule that is named",
        Code::ScopeLimit => "close scopes that are not needed, or wait until they end",
        Code::SecretDetected => "take the credential out of the ids, names and labels",
        Code::LastAdminKey => {
            "make another one first: `recibo api-key create --role admin --namespace default`"
        }
        Code::MalformedRequest | Code::HeadTooLarge => {
            "see whether a proxy stands before the service and changes requests"
        }
        Code::Overloaded | Code::BodyTimeout => "try again in a moment",
        Code::LedgerStopped => "restart the service; its log says why it stopped",
        Code::ReadOnly => "make room or give back the permission to write, then start it again",
        Code::Internal => "the service's log says more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_happened_its_code_and_what_to_do() {
        let body = Problem::new(Code::VersionMismatch, "read it again").with("x_y", 1).to_json();
        let failure = Failure::from(ClientError::from_answer(412, body.clone()));
        assert_eq!(
            paint::plain(&failure.for_people()),
            "error: read it again (version_mismatch)\n  x y: 1\n  to do: look at the call again \
             with `recibo call`, then decide again: it has changed\n"
        );
        assert_eq!(failure.to_json(), body);
        assert_eq!(failure.exit_code(), 1);
        let text = failure.for_people();
        let failure = failure.with_exit_code(30);
        assert_eq!(failure.exit_code(), 30);
        assert_eq!(failure.for_people(), text);
    }

    #[test]
    fn the_namespace_of_a_key_is_named_only_to_who_gave_a_key() {
        for code in [Code::RunNotFound, Code::CallNotFound, Code::ReceiptNotFound] {
            let failure = Failure::from(Problem::new(code, "it is not there"));
            assert!(!failure.for_people().contains("namespace"), "{code:?}");
            assert!(failure.for_person(true).contains("namespace"), "{code:?}");
        }
    }

    #[test]
    fn no_advice_is_to_do_nothing_without_saying_why() {
        let failure = Failure::from(Problem::new(Code::NothingToResolve, "it is ok"));
        let text = paint::plain(&failure.for_people());
        assert!(text.contains("to do: you need not do anything"), "{text}");
    }

    #[test]
    fn a_foreign_text_cannot_move_the_terminal() {
        let body = Problem::new(Code::VersionMismatch, "a\u{1b}[2J\u{202e}b").with("x", "\u{9b}1A");
        let failure = Failure::from(ClientError::from_answer(412, body.to_json()));
        let text = failure.for_people();
        assert!(text.contains("a\\u{1b}[2J\\u{202e}b") && text.contains("x: \\u{9b}1A"), "{text}");
        assert!(failure.to_json().contains('\u{202e}'));
    }

    #[test]
    fn other_failures_are_problem_documents_too() {
        let failure = Failure::from(ClientError::from_answer(500, "<html>".into()));
        let json: serde_json::Value = serde_json::from_str(&failure.to_json()).unwrap();
        assert_eq!(json["code"], "command_failed");
        assert_eq!(Failure::usage("no").exit_code(), 2);
    }
}
