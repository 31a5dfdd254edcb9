//! Scopes, API keys and the configuration.

use std::fmt;

use recibo_core::limits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::role::RoleWord;
use crate::word::{Timestamp, words};

/// Whether a scope's key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeState {
    /// It signs.
    Open,
    /// It was wiped on request or when its time was over.
    Closed,
    /// It went with an earlier process.
    Gone,
}

impl ScopeState {
    /// All states, in the order of the contract.
    pub const ALL: &'static [Self] = &[Self::Open, Self::Closed, Self::Gone];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Gone => "gone",
        }
    }
}

words! {
    ScopeState, ScopeStateWord = ScopeState::ALL;
}

/// A scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeAnswer {
    /// Its id outlives the key.
    pub scope_id: String,
    /// Whether the key lives.
    pub state: ScopeStateWord,
    /// The caller's name for it.
    #[schema(required)]
    pub label: Option<String>,
    /// Ledger time.
    pub opened_at: Timestamp,
    /// When the key is wiped at the latest.
    pub expires_at: Timestamp,
    /// When it was wiped, if an event says so.
    #[schema(required)]
    pub closed_at: Option<Timestamp>,
}

/// A service that runs, and how its ledger is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusAnswer {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Since when it runs; ledger time.
    pub started_at: Timestamp,
    /// Whether it serves reads only.
    pub read_only: bool,
    /// Process ids of those that are connected by the socket in the data folder, but for the one
    /// that asks; in ascending order.
    pub clients: Vec<u32>,
    /// Addresses that are connected over TCP, the one that asks among them; of IPv6, /64 networks.
    pub addresses: u64,
    /// Events of the ledger.
    pub events: u64,
    /// Calls of the namespace that are in flight.
    pub in_flight: u64,
    /// Calls of the namespace that are unknown.
    pub unknown: u64,
}

/// A new API key. It is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyCreated {
    /// Names the key.
    pub id: String,
    /// The key itself.
    pub api_key: String,
    /// What it permits.
    pub roles: Vec<RoleWord>,
    /// Where.
    pub namespace: String,
    /// Until when, if not for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Without the key.
impl fmt::Debug for ApiKeyCreated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyCreated").field("id", &self.id).finish_non_exhaustive()
    }
}

/// All API keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyList {
    /// Without the keys themselves.
    pub api_keys: Vec<ApiKeyEntry>,
}

/// An API key without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyEntry {
    /// Names the key.
    pub id: String,
    /// What it permits.
    pub roles: Vec<RoleWord>,
    /// Where.
    pub namespace: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when; null: for ever.
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[schema(required)]
    pub revoked_at: Option<Timestamp>,
}

/// What callers can count on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigAnswer {
    /// The service's version.
    pub version: String,
    /// Of a claim.
    pub lease_ms: Bounds,
    /// Of a scope.
    pub scope_ttl_ms: Bounds,
    /// Rows of a page.
    pub page_size: Bounds,
    /// Longest wait for a decision.
    pub wait_ms_max: u64,
    /// The rest.
    pub limits: Limits,
}

/// Bounds of a number that a request may name, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bounds {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// What holds when none is named.
    pub default: u64,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)+) => {
        /// Largest sizes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct Limits { $($(#[$doc])* pub $name: u64,)+ }

        /// Those of this version.
        const LIMITS: Limits = Limits { $($name: $value as u64),+ };
    };
}

limits! {
    /// Bytes of an id.
    id_bytes_max = limits::ID_LEN_MAX;
    /// Bytes of a namespace.
    namespace_bytes_max = limits::NAMESPACE_LEN_MAX;
    /// Bytes of a tool name.
    tool_bytes_max = limits::TOOL_LEN_MAX;
    /// Bytes of an error class.
    error_class_bytes_max = limits::ERROR_CLASS_LEN_MAX;
    /// Labels of a call.
    labels_max = limits::LABELS_MAX;
    /// Bytes of all label names and values of a call together.
    labels_bytes_max = limits::LABELS_BYTES_MAX;
    /// Bytes of an output summary in canonical form.
    output_summary_bytes_max = limits::SUMMARY_BYTES_MAX;
    /// Bytes of a reason or a source.
    reason_bytes_max = limits::REASON_BYTES_MAX;
    /// Bytes of a scope's label.
    scope_label_bytes_max = limits::SCOPE_LABEL_BYTES_MAX;
    /// Any duration, age or policy number.
    number_max = limits::NUMBER_MAX;
    /// Rules of an effect policy.
    policy_rules_max = limits::POLICY_RULES_MAX;
    /// Bytes of an effect policy in canonical form.
    policy_bytes_max = limits::POLICY_BYTES_MAX;
    /// Bytes of a body.
    body_bytes_max = limits::BODY_BYTES_MAX;
    /// Bytes of a batch.
    batch_bytes_max = limits::BATCH_BYTES_MAX;
    /// Receipts of a batch.
    batch_len_max = limits::BATCH_LEN_MAX;
    /// Nesting of arguments and results.
    json_depth_max = recibo_core::json::DEPTH_MAX;
    /// Digits of an integer.
    integer_digits_max = recibo_core::json::INTEGER_DIGITS_MAX;
}

impl ConfigAnswer {
    /// The limits of this version of the ledger.
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            lease_ms: Bounds {
                min: limits::LEASE_MS_MIN,
                max: limits::LEASE_MS_MAX,
                default: limits::LEASE_MS_DEFAULT,
            },
            scope_ttl_ms: Bounds {
                min: limits::SCOPE_TTL_MS_MIN,
                max: limits::SCOPE_TTL_MS_MAX,
                default: limits::SCOPE_TTL_MS_DEFAULT,
            },
            page_size: Bounds {
                min: 1,
                max: limits::PAGE_SIZE_MAX as u64,
                default: limits::PAGE_SIZE_DEFAULT as u64,
            },
            wait_ms_max: limits::WAIT_MS_MAX,
            limits: LIMITS,
        }
    }
}
