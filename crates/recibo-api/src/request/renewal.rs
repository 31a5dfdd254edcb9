//! The renewal of a lease.

use recibo_core::id::CallRef;
use recibo_core::limits;
use recibo_core::plan::Renewal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::member;
use crate::problem::Problem;

/// Asks for another end of a lease that lives.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewalRequest {
    /// From the grant.
    pub lease_token: String,
    /// How long the attempt may stay open from now on.
    #[schema(minimum = 1000, maximum = 86_400_000)]
    pub lease_ms: u64,
}

/// A renewal, checked.
pub struct RenewalParams {
    /// What is asked for.
    pub renewal: Renewal,
    /// Shows that the caller holds the lease.
    pub lease_token: String,
}

impl RenewalRequest {
    /// Checks every member.
    pub fn parse(self, call: CallRef, attempt: u32) -> Result<RenewalParams, Problem> {
        let (min, max) = (limits::LEASE_MS_MIN, limits::LEASE_MS_MAX);
        let lease_ms = member::within("lease_ms", self.lease_ms, min, max)?;
        let renewal = Renewal { call, attempt, lease_ms };
        Ok(RenewalParams { renewal, lease_token: self.lease_token })
    }
}
