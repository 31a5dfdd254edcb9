//! The rules of the ledger, as tables of short scripts (see `harness/pure.rs` for the words).

mod corrections;
mod decisions;
mod outcomes;
