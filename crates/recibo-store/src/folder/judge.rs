//! What the parts of a folder mean together. Pure: the one place that decides whether a ledger
//! may be begun.

use std::path::Path;

use super::mark::LedgerId;
use super::parts::{Identity, LeaseKey, LedgerPart, MarkPart, Parts, lease_key_id};
use super::{ADMIN_KEY_FILE, LEASE_SECRET_FILE, LEDGER_FILE, LEDGER_ID_FILE};
use crate::error::OpenError;

/// What to do with a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All parts are there and belong together.
    Whole,
    /// Nothing was ever answered from it: begin a ledger, or complete the one of this id.
    New(Option<LedgerId>),
    /// A ledger of before format 2: it gets an id, or this one that was meant for it.
    Older(Option<LedgerId>),
}

/// Judges a folder; an error names the part that is wrong.
pub(super) fn judge(folder: &Path, parts: &Parts) -> Result<Verdict, OpenError> {
    Judge { folder, parts }.verdict()
}

struct Judge<'a> {
    folder: &'a Path,
    parts: &'a Parts,
}

impl Judge<'_> {
    fn verdict(&self) -> Result<Verdict, OpenError> {
        let mark = match self.parts.mark {
            MarkPart::Missing => return self.without_mark(),
            MarkPart::Damaged => return Err(self.damaged(LEDGER_ID_FILE, "cannot be read")),
            MarkPart::Held(mark) => mark,
        };
        let id = mark.ledger_id;
        if mark.complete {
            let ledger = self.ledger(LEDGER_ID_FILE)?;
            if ledger.ledger_id != Some(id) {
                return Err(self.foreign(LEDGER_FILE));
            }
            self.check_lease_key(&ledger)?;
            Ok(Verdict::Whole)
        } else if mark.older {
            let ledger = self.ledger(LEDGER_ID_FILE)?;
            if ledger.ledger_id.is_some_and(|other| other != id) {
                return Err(self.foreign(LEDGER_FILE));
            }
            self.check_lease_key(&ledger)?;
            Ok(Verdict::Older(Some(id)))
        } else {
            self.first_start_that_died(id)
        }
    }

    /// The admin's key is made after the last step, so it says that all parts were there.
    fn first_start_that_died(&self, id: LedgerId) -> Result<Verdict, OpenError> {
        match self.parts.ledger {
            LedgerPart::Held(ledger) if ledger.ledger_id == Some(id) => {
                self.check_lease_key(&ledger)?;
            }
            LedgerPart::Held(ledger) if ledger.ledger_id.is_some() || !ledger.is_blank => {
                return Err(self.foreign(LEDGER_FILE));
            }
            _ if self.parts.has_admin_key => {
                self.ledger(ADMIN_KEY_FILE)?;
                return Err(self.damaged(LEDGER_FILE, "is empty"));
            }
            _ => {}
        }
        Ok(Verdict::New(Some(id)))
    }

    /// A folder of before format 2, one that holds nothing yet, or one that was copied in part.
    fn without_mark(&self) -> Result<Verdict, OpenError> {
        let has_no_key = matches!(self.parts.lease_key, LeaseKey::Missing | LeaseKey::Empty);
        let witness = match (&self.parts.lease_key, self.parts.has_admin_key) {
            (_, true) => Some(ADMIN_KEY_FILE),
            (LeaseKey::Missing, false) => None,
            (_, false) => Some(LEASE_SECRET_FILE),
        };
        let ledger = match (self.parts.ledger, witness) {
            (LedgerPart::Missing | LedgerPart::Empty, None) => return Ok(Verdict::New(None)),
            (LedgerPart::Missing | LedgerPart::Empty, Some(witness)) => self.ledger(witness)?,
            (LedgerPart::Held(ledger), _) => ledger,
        };
        if ledger.ledger_id.is_some() {
            return Err(self.missing(LEDGER_ID_FILE, LEDGER_FILE));
        }
        // The first start of an older build made the ledger file before the lease secret.
        if ledger.is_blank && has_no_key && !self.parts.has_admin_key {
            return Ok(Verdict::New(None));
        }
        self.check_lease_key(&ledger)?;
        Ok(Verdict::Older(None))
    }

    /// The ledger file, which must be there since `witness` is.
    fn ledger(&self, witness: &'static str) -> Result<Identity, OpenError> {
        match self.parts.ledger {
            LedgerPart::Missing => Err(self.missing(LEDGER_FILE, witness)),
            LedgerPart::Empty => Err(self.damaged(LEDGER_FILE, "is empty")),
            LedgerPart::Held(ledger) => Ok(ledger),
        }
    }

    fn check_lease_key(&self, ledger: &Identity) -> Result<(), OpenError> {
        match &self.parts.lease_key {
            LeaseKey::Missing => Err(self.missing(LEASE_SECRET_FILE, LEDGER_FILE)),
            LeaseKey::Empty => Err(self.damaged(LEASE_SECRET_FILE, "is empty")),
            LeaseKey::Damaged => Err(self.damaged(LEASE_SECRET_FILE, "is not 32 bytes")),
            // It cannot be compared; who needs it learns that it is denied.
            LeaseKey::Denied(_) => Ok(()),
            LeaseKey::Held(key) => match ledger.lease_key_id {
                Some(id) if id != lease_key_id(key) => Err(self.foreign(LEASE_SECRET_FILE)),
                _ => Ok(()),
            },
        }
    }

    fn missing(&self, part: &'static str, beside: &'static str) -> OpenError {
        OpenError::PartMissing { part, folder: self.folder.to_owned(), beside }
    }

    fn damaged(&self, part: &'static str, how: &'static str) -> OpenError {
        OpenError::PartDamaged { part, folder: self.folder.to_owned(), how }
    }

    fn foreign(&self, part: &'static str) -> OpenError {
        OpenError::PartForeign { part, folder: self.folder.to_owned() }
    }
}
