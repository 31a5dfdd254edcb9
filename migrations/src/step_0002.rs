//! Format 2: open and unknown calls stand by namespace, and calls whose twins are looked for in
//! all runs have a table. Values with new members have version 2 and are read beside those of
//! version 1, so no other value is rewritten.
//!
//! The ledger has an id and knows its lease secret: `ledger_id` and `lease_key_id` in `meta`. The
//! store writes them, since they are drawn and derived, and a step has neither randomness nor
//! files.

use redb::{ReadableTable, TableDefinition, WriteTransaction};

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

const OPEN_CALLS: Bytes = Bytes::new("open_calls");
const WIDE_TWINS: Bytes = Bytes::new("wide_twins");

pub(crate) fn run(txn: &WriteTransaction) -> Result<(), redb::Error> {
    txn.open_table(WIDE_TWINS)?;
    let mut table = txn.open_table(OPEN_CALLS)?;
    let mut moved = Vec::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (key, value) = (key.value().to_vec(), value.value().to_vec());
        let new_key = new_key(&key, &value).ok_or_else(|| {
            redb::Error::Corrupted("an open call has a damaged key or value".into())
        })?;
        moved.push((key, new_key, value));
    }
    for (key, ..) in &moved {
        table.remove(key.as_slice())?;
    }
    for (_, key, value) in &moved {
        table.insert(key.as_slice(), value.as_slice())?;
    }
    Ok(())
}

/// From kind and first seq to kind, namespace number and first seq. The number is the first
/// member of the value.
fn new_key(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let (kind, first_seq) = key.split_first()?;
    let first_seq: [u8; 8] = first_seq.try_into().ok()?;
    let namespace_no = varint(value.strip_prefix(&[1])?)?;
    let mut new = vec![*kind];
    new.extend_from_slice(&namespace_no.to_be_bytes());
    new.extend_from_slice(&first_seq);
    Some(new)
}

/// An integer as bincode 2 writes it: up to 250 as one byte, else a marker and little-endian
/// bytes.
fn varint(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [small @ 0..=250, ..] => Some(u32::from(*small)),
        [251, a, b, ..] => Some(u32::from(u16::from_le_bytes([*a, *b]))),
        [252, a, b, c, d, ..] => Some(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gets_the_namespace_of_its_value() {
        let key = [b"o".as_slice(), &7_u64.to_be_bytes()].concat();
        for (value, namespace_no) in [
            (&[1, 3, 9, 9][..], 3_u32),
            (&[1, 251, 0x2c, 0x01, 9], 300),
            (&[1, 252, 1, 0, 1, 0, 9], 65_537),
        ] {
            let expected =
                [b"o".as_slice(), &namespace_no.to_be_bytes(), &7_u64.to_be_bytes()].concat();
            assert_eq!(new_key(&key, value), Some(expected));
        }
        assert_eq!(new_key(&key, &[2, 3]), None);
        assert_eq!(new_key(&key[..5], &[1, 3]), None);
    }
}
