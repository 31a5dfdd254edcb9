//! Format 1: the first one. Creates every table, so that readers never meet a missing one.

use redb::{TableDefinition, WriteTransaction};

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Numbered = TableDefinition<'static, u64, &'static [u8]>;

const BY_BYTES: [Bytes; 8] = [
    Bytes::new("namespaces"),
    Bytes::new("run_ids"),
    Bytes::new("runs"),
    Bytes::new("open_calls"),
    Bytes::new("operation_keys"),
    Bytes::new("scopes"),
    Bytes::new("api_keys"),
    Bytes::new("nodes"),
];
const BY_NUMBER: [Numbered; 2] = [Numbered::new("events"), Numbered::new("hash_index")];

pub(crate) fn run(txn: &WriteTransaction) -> Result<(), redb::Error> {
    for table in BY_BYTES {
        txn.open_table(table)?;
    }
    for table in BY_NUMBER {
        txn.open_table(table)?;
    }
    Ok(())
}
