//! `ledger.json`: the ledger's id, and how far its beginning has come. The one JSON of this crate,
//! since people look into it.

use std::path::Path;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::LEDGER_ID_FILE;
use crate::batch::Entropy;
use crate::error::OpenError;
use crate::small_file::write_private;

/// The id of a ledger: random, for its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerId(pub(super) [u8; 16]);

impl LedgerId {
    pub(super) fn draw(entropy: &mut Entropy) -> Self {
        let mut bytes = [0; 16];
        entropy(&mut bytes);
        Self(bytes)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) ledger_id: LedgerId,
    /// Set once all parts are there.
    pub(super) complete: bool,
    /// Set while a ledger of before format 2 gets its id: then all parts are there from the start.
    pub(super) older: bool,
}

#[derive(Serialize, Deserialize)]
struct Written {
    ledger_id: String,
    complete: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    older: bool,
}

impl Mark {
    /// `None` if the text is no such file.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let Written { ledger_id, complete, older } = serde_json::from_slice(text).ok()?;
        let ledger_id = HEXLOWER.decode(ledger_id.as_bytes()).ok()?;
        let ledger_id = LedgerId::from_bytes(&ledger_id)?;
        Some(Self { ledger_id, complete, older })
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), OpenError> {
        let path = folder.join(LEDGER_ID_FILE);
        let written = Written {
            ledger_id: HEXLOWER.encode(self.ledger_id.as_bytes()),
            complete: self.complete,
            older: self.older,
        };
        let text = serde_json::to_string(&written).expect("strings and booleans have a JSON form");
        write_private(&path, format!("{text}\n").as_bytes())
            .map_err(|source| OpenError::io(&path, source))
    }
}
