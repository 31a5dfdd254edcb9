//! Format 2: the ledger has an id and knows its lease secret. Both are new entries of `meta`,
//! `ledger_id` and `lease_key_id`; the store writes them, since they are drawn and derived, and
//! a step has neither randomness nor files. No table changes.

use redb::WriteTransaction;

pub(crate) fn run(_txn: &WriteTransaction) -> Result<(), redb::Error> {
    Ok(())
}
