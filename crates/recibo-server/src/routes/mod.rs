//! The handlers, a file per resource. Each reads the shape of its request, asks whether the
//! role permits it, hands it to the store and shows the answer.

pub(crate) mod api_keys;
pub(crate) mod attempts;
pub(crate) mod batches;
pub(crate) mod call_pages;
pub(crate) mod calls;
pub(crate) mod claims;
pub(crate) mod config;
pub(crate) mod decisions;
pub(crate) mod document;
pub(crate) mod idempotency;
pub(crate) mod leases;
pub(crate) mod outcomes;
pub(crate) mod policy;
pub(crate) mod probes;
pub(crate) mod receipts;
pub(crate) mod receipts_block;
pub(crate) mod resolutions;
pub(crate) mod runs;
pub(crate) mod scopes;
pub(crate) mod status;
pub(crate) mod status_checks;
pub(crate) mod verify;
