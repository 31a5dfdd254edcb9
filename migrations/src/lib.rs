//! One numbered step per store format, run when a store is opened.
//!
//! A step names tables and keys literally and never uses the store's own definitions: those
//! change, a released step must not. Add the next step as `step_000N.rs`, raise [`FORMAT`],
//! and test it on a file that the format before wrote.
#![forbid(unsafe_code)]

mod step_0001;
mod step_0002;

use redb::{Database, ReadableDatabase, TableDefinition, WriteTransaction};

/// The format that this build reads and writes.
pub const FORMAT: u32 = 2;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const FORMAT_KEY: &str = "format";

type Step = fn(&WriteTransaction) -> Result<(), redb::Error>;

/// The step at index `n` leads from format `n` to `n + 1`; format 0 is an empty file.
const STEPS: [Step; FORMAT as usize] = [step_0001::run, step_0002::run];

/// Why a store could not be brought to this build's format. The file has the format that the last
/// whole step led to: each step is one transaction.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// A newer build wrote the file.
    #[error(
        "the ledger file has format {found}, this build knows formats up to {FORMAT}: \
         use the newer build that wrote it"
    )]
    Newer {
        /// The file's format.
        found: u32,
    },
    /// The file is no ledger, or its format entry is damaged.
    #[error("the file holds tables but no readable format number: it is not a recibo ledger")]
    NotALedger,
    /// The file could not be read or written.
    #[error("the ledger file could not be read or written")]
    Storage(#[source] Box<redb::Error>),
}

impl<E: Into<redb::Error>> From<E> for MigrationError {
    fn from(error: E) -> Self {
        Self::Storage(Box::new(error.into()))
    }
}

/// Brings a file to [`FORMAT`], all steps in one transaction, and returns the format that it had.
/// A file of a newer format is refused unchanged.
pub fn run(db: &Database) -> Result<u32, MigrationError> {
    run_steps(db, &STEPS)
}

/// One transaction for all steps: where one of them fails, the file is as it was before the first.
fn run_steps(db: &Database, steps: &[Step]) -> Result<u32, MigrationError> {
    let found = format_of(db)?;
    if found as usize >= steps.len() {
        return Ok(found);
    }
    let mut txn = db.begin_write()?;
    txn.set_two_phase_commit(true);
    txn.set_quick_repair(true);
    for step in &steps[found as usize..] {
        step(&txn)?;
    }
    txn.open_table(META)?.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
    txn.commit()?;
    Ok(found)
}

/// The format of a file, 0 for an empty one. Writes nothing.
///
/// # Errors
/// A newer format, or no ledger.
pub fn format_of(db: &Database) -> Result<u32, MigrationError> {
    let found = read_format(db)?;
    if found > FORMAT {
        return Err(MigrationError::Newer { found });
    }
    Ok(found)
}

fn read_format(db: &Database) -> Result<u32, MigrationError> {
    let txn = db.begin_read()?;
    if txn.list_tables()?.next().is_none() {
        return Ok(0);
    }
    let table = match txn.open_table(META) {
        Ok(table) => table,
        Err(redb::TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(MigrationError::NotALedger),
    };
    let value = table.get(FORMAT_KEY)?.ok_or(MigrationError::NotALedger)?;
    let bytes: [u8; 4] = value.value().try_into().map_err(|_| MigrationError::NotALedger)?;
    Ok(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    fn empty() -> Database {
        Database::builder().create_with_backend(InMemoryBackend::new()).unwrap()
    }

    fn set_format(db: &Database, bytes: &[u8]) {
        let txn = db.begin_write().unwrap();
        txn.open_table(META).unwrap().insert(FORMAT_KEY, bytes).unwrap();
        txn.commit().unwrap();
    }

    #[test]
    fn an_empty_file_reaches_the_newest_format_and_stays_there() {
        let db = empty();
        assert_eq!(run(&db).unwrap(), 0);
        assert_eq!(run(&db).unwrap(), FORMAT);
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was_before_the_first_one() {
        let db = empty();
        let fails: Step = |_| Err(redb::Error::Corrupted("on purpose".into()));
        run_steps(&db, &[step_0001::run, fails]).unwrap_err();
        assert_eq!(format_of(&db).unwrap(), 0);
        assert_eq!(db.begin_read().unwrap().list_tables().unwrap().count(), 0);
    }

    #[test]
    fn a_newer_file_is_refused_unchanged() {
        let db = empty();
        set_format(&db, &(FORMAT + 1).to_le_bytes());
        let error = run(&db).unwrap_err();
        assert!(matches!(error, MigrationError::Newer { found } if found == FORMAT + 1));
        assert!(error.to_string().contains("newer build"));
        assert_eq!(db.begin_read().unwrap().list_tables().unwrap().count(), 1);
    }

    #[test]
    fn a_foreign_file_is_refused() {
        let db = empty();
        set_format(&db, b"x");
        assert!(matches!(run(&db), Err(MigrationError::NotALedger)));
    }
}
