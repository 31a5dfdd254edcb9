//! Problem codes and their rendering (RFC 9457). One table says what each code is.

mod refusal;

use std::borrow::Cow;
use std::fmt;

use recibo_core::id::NameError;
use recibo_core::json::{JsonError, JsonErrorKind};
use recibo_core::secret;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $status:literal, $title:literal;)+) => {
        /// What went wrong, as a word that stays the same for ever.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $title] $variant,)+ }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of the contract.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// The HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// A short sentence, the same for every occurrence.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

codes! {
    InvalidJson = "invalid_json", 400, "The body is not valid JSON";
    DuplicateMember = "duplicate_member", 400, "A member name occurs twice in one object";
    NumberOutOfRange = "number_out_of_range", 400, "A number is out of range";
    InvalidRequest = "invalid_request", 400, "The body does not fit the contract";
    InvalidId = "invalid_id", 400, "An id is not well formed";
    InvalidQuery = "invalid_query", 400, "The query does not fit the contract";
    InvalidPageToken = "invalid_page_token", 400, "The page token is not one of this listing";
    MalformedRequest = "malformed_request", 400, "The request is not well-formed HTTP";
    Unauthenticated = "unauthenticated", 401, "A valid API key is needed";
    Forbidden = "forbidden", 403, "The role of the API key does not permit this";
    LeaseTokenWrong = "lease_token_wrong", 403, "The lease token is not the attempt's";
    NotFound = "not_found", 404, "There is nothing here";
    RunNotFound = "run_not_found", 404, "The run is not known";
    CallNotFound = "call_not_found", 404, "The call is not known";
    AttemptNotFound = "attempt_not_found", 404, "The attempt is not known";
    ScopeNotFound = "scope_not_found", 404, "The scope is not known";
    ReceiptNotFound = "receipt_not_found", 404, "The receipt is not known";
    KeyNotFound = "key_not_found", 404, "No call has this key";
    ApiKeyNotFound = "api_key_not_found", 404, "The API key is not known";
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here";
    BodyTimeout = "body_timeout", 408, "The body did not arrive in time";
    BodyTooLarge = "body_too_large", 413, "The body is too large";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json";
    AttemptConflict = "attempt_conflict", 409, "The attempt is not the one that would be made";
    AttemptOpen = "attempt_open", 409, "An attempt is open";
    AttemptSettled = "attempt_settled", 409, "The attempt needs no status check";
    ClaimUsed = "claim_used", 409, "The claim id has had its grant";
    OutcomeConflict = "outcome_conflict", 409, "The attempt has another outcome";
    OperationKeyTaken = "operation_key_taken", 409, "Another call holds the operation key";
    ScopeGone = "scope_gone", 409, "The scope is closed or its key is gone";
    LeaseLive = "lease_live", 409, "A lease is live";
    LeaseOver = "lease_over", 409, "The lease is over";
    NothingToResolve = "nothing_to_resolve", 409, "The call needs no resolution";
    LastAdminKey = "last_admin_key", 409, "It is the last admin key";
    VersionMismatch = "version_mismatch", 412, "The call has changed since it was read";
    IfMatchRequired = "if_match_required", 428, "If-Match is needed";
    HeadTooLarge = "head_too_large", 431, "The request line and headers are too large";
    InputMismatch = "input_mismatch", 422, "The call is known with another tool or input";
    EffectMismatch = "effect_mismatch", 422, "The call is known with another effect";
    EffectWeakerThanPolicy = "effect_weaker_than_policy", 422, "The effect is weaker than the policy's";
    OperationKeyMismatch = "operation_key_mismatch", 422, "The call is known with another operation key";
    PolicyInvalid = "policy_invalid", 422, "The policy makes no sense";
    SecretDetected = "secret_detected", 422, "A credential stands where it would be stored";
    ScopeLimit = "scope_limit", 429, "Too many scopes of the namespace live";
    Internal = "internal", 500, "The service failed";
    Overloaded = "overloaded", 503, "The service is overloaded";
    LedgerStopped = "ledger_stopped", 503, "The ledger takes no writes";
    ReadOnly = "read_only", 503, "The ledger is open for reading only";
}

impl Code {
    /// Reads the word of the contract.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// Whether the same request may fare better in a moment.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Overloaded
                | Self::LedgerStopped
                | Self::ReadOnly
                | Self::ScopeLimit
                | Self::BodyTimeout
        )
    }

    /// The URI of the code: `urn:recibo:problem:<code>`.
    pub fn type_uri(self) -> String {
        format!("urn:recibo:problem:{}", self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as a client sees it: `application/problem+json`. Never holds what a caller sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What went wrong.
    pub code: Code,
    /// A sentence that helps.
    pub detail: String,
    /// Members that some codes bring: `first_seen_at`, `hint`, `holder`, `pointer`,
    /// `retry_after_ms` and the like.
    pub extra: Map<String, Value>,
}

impl Problem {
    /// A problem without further members.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), extra: Map::new() }
    }

    /// A write that found the queue full.
    pub fn overloaded() -> Self {
        Self::new(Code::Overloaded, "too many writes wait already; nothing was stored, try again")
    }

    /// A write whose commit failed, or that came after the end of the ledger.
    pub fn ledger_stopped() -> Self {
        Self::new(
            Code::LedgerStopped,
            "whether this write happened is known after the restart; ask again then",
        )
    }

    /// A write to a ledger that is open for reading only; why is a clause of its own.
    pub fn read_only(why: impl fmt::Display) -> Self {
        Self::new(
            Code::ReadOnly,
            format!("the ledger is open for reading only: {why}; nothing was stored"),
        )
    }

    /// A JSON text without canonical form: a body, or a part of one.
    pub fn json(text: &[u8], error: JsonError) -> Self {
        let fault = error.fault(text);
        let detail = match fault.cause {
            Some(cause) if error.kind == JsonErrorKind::InvalidJson => {
                format!("{error}: it holds {cause}")
            }
            _ => error.to_string(),
        };
        let problem = Self::new(error.kind.into(), detail).with("offset", error.offset);
        match fault.pointer {
            Some(pointer) if !secret::mask(&pointer).redacted() => problem.with("pointer", pointer),
            _ => problem,
        }
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// A member of the body breaks a rule of its own.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.code.status()
    }

    /// The body, as `application/problem+json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always have a JSON form")
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &self.code.type_uri())?;
        map.serialize_entry("title", self.code.title())?;
        map.serialize_entry("status", &self.code.status())?;
        map.serialize_entry("code", self.code.as_str())?;
        map.serialize_entry("detail", &self.detail)?;
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// For clients. A code that this version does not know reads as `internal`: whoever gets it
/// cannot know what happened.
impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        let Some(Value::String(code)) = members.remove("code") else {
            return Err(D::Error::missing_field("code"));
        };
        let detail = match members.remove("detail") {
            Some(Value::String(detail)) => detail,
            _ => String::new(),
        };
        for name in ["type", "title", "status"] {
            members.remove(name);
        }
        let code = Code::parse(&code).unwrap_or(Code::Internal);
        Ok(Self { code, detail, extra: members })
    }
}

/// For the OpenAPI document: a problem as it is written.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "only its schema is used; a problem is written by hand")]
struct Written {
    /// `urn:recibo:problem:<code>`
    r#type: String,
    /// The same for every occurrence of the code.
    title: String,
    /// The HTTP status.
    status: u16,
    /// Stable.
    code: String,
    /// A sentence that helps.
    detail: String,
}

impl utoipa::PartialSchema for Problem {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        Written::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Problem")
    }
}

/// Where the error's offset counts from is the caller's to say.
impl From<JsonErrorKind> for Code {
    fn from(kind: JsonErrorKind) -> Self {
        match kind {
            JsonErrorKind::InvalidJson => Self::InvalidJson,
            JsonErrorKind::DuplicateMember => Self::DuplicateMember,
            JsonErrorKind::NumberOutOfRange => Self::NumberOutOfRange,
        }
    }
}

/// A name in a path or a body.
impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        let code = match error.what {
            "run_id" | "tool_call_id" | "claim_id" | "scope_id" | "operation_key"
            | "message_id" | "provider_ref" => Code::InvalidId,
            _ => Code::InvalidRequest,
        };
        let problem = Self::new(code, error.to_string());
        if error.what == "tool_call_id" { problem.with("hint", CALL_ID_HINT) } else { problem }
    }
}

/// The map of `api/ids.md`.
const CALL_ID_HINT: &str = "providers write ids that do not fit; all adapters make of turn and \
     provider id the text `TURN:ID`, write `/`, `%` and each byte outside 0x21 to 0x7E as %XX if \
     the text does not fit as it is, and `h:` and its SHA-256 in hex where that is longer than 256 \
     bytes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_word_of_its_own_and_an_error_status() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            assert!((400..600).contains(&code.status()), "{code}");
            assert!(!code.title().is_empty());
        }
    }

    #[test]
    fn a_problem_is_written_in_a_fixed_order_and_read_back() {
        let problem = Problem::new(Code::LeaseLive, "why").with("lease_expires_at", "then");
        let text = problem.to_json();
        assert_eq!(
            text,
            r#"{"type":"urn:recibo:problem:lease_live","title":"A lease is live","status":409,"code":"lease_live","detail":"why","lease_expires_at":"then"}"#
        );
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
        let newer: Problem = serde_json::from_str(r#"{"code":"not_invented_yet"}"#).unwrap();
        assert_eq!(newer.code, Code::Internal);
    }
}
