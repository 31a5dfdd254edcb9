//! Scopes and API keys.

use recibo_core::id::Namespace;
use recibo_core::limits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body;
use crate::member::{self, Mask};
use crate::problem::Problem;
use crate::role::{Role, RoleWord};
use crate::roles::Roles;

/// Asks for a signing key.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeRequest {
    /// A name for it.
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How long the key lives at most; 24 hours when not given.
    #[schema(minimum = 1000, maximum = 2_592_000_000_i64, default = 86_400_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// A scope to be opened, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeParams {
    /// The caller's name for it, masked.
    pub label: Option<String>,
    /// How long the key lives at most, in milliseconds.
    pub ttl_ms: u64,
}

impl ScopeRequest {
    /// Reads a body; an empty one asks for the defaults.
    pub fn read(bytes: &[u8]) -> Result<Self, Problem> {
        if bytes.is_empty() { Ok(Self::default()) } else { body::read(bytes) }
    }

    /// Checks every member and masks the label.
    pub fn parse(self) -> Result<ScopeParams, Problem> {
        let max = limits::SCOPE_LABEL_BYTES_MAX;
        if self.label.as_ref().is_some_and(|label| label.len() > max) {
            return Err(Problem::invalid(format!("label must be at most {max} bytes")));
        }
        let ttl_ms = self.ttl_ms.unwrap_or(limits::SCOPE_TTL_MS_DEFAULT);
        Ok(ScopeParams {
            label: self.label.map(|label| Mask::default().text(&label, max)),
            ttl_ms: member::within(
                "ttl_ms",
                ttl_ms,
                limits::SCOPE_TTL_MS_MIN,
                limits::SCOPE_TTL_MS_MAX,
            )?,
        })
    }
}

/// Asks for an API key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiKeyRequest {
    /// What it permits: all that any of these does.
    #[schema(min_items = 1, max_items = 6)]
    pub(crate) roles: Vec<RoleWord>,
    /// Where.
    #[schema(pattern = "^[a-z0-9-]{1,64}$")]
    pub(crate) namespace: String,
    /// How long it is valid; for ever when not given.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub(crate) expires_in_ms: Option<u64>,
}

/// An API key to be made, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyParams {
    /// What it permits.
    pub roles: Roles,
    /// Where.
    pub namespace: Namespace,
    /// How long it is valid, in milliseconds from now.
    pub expires_in_ms: Option<u64>,
}

impl ApiKeyRequest {
    /// Checks every member.
    pub fn parse(self) -> Result<ApiKeyParams, Problem> {
        let (given, kinds) = (self.roles.len(), Role::ALL.len());
        let roles = Roles::new(self.roles.into_iter().map(|role| role.0));
        let roles = roles
            .filter(|_| given <= kinds)
            .ok_or_else(|| Problem::invalid(format!("`roles`: expected 1 to {kinds} roles")))?;
        let expires_in_ms = self
            .expires_in_ms
            .map(|ms| member::within("expires_in_ms", ms, 1, limits::NUMBER_MAX))
            .transpose()?;
        Ok(ApiKeyParams { roles, namespace: Namespace::parse(&self.namespace)?, expires_in_ms })
    }
}
