//! Other calls that do the same: those of the run, and those of the namespace where the policy
//! asks for them.

use recibo_core::effect::TwinScope;
use recibo_core::hash::{InputHash, sha256};
use recibo_core::id::{CallRef, ToolName};
use recibo_core::plan::TwinKnown;

use super::{ByBytes, BySeq, Lookup, number};
use crate::error::StorageError;
use crate::tables::{self, EARLY_CALLS, RunKey};

/// Calls that are looked at for a twin, in the run and again in the namespace: the newest ones.
/// More would let one run slow down the writer.
const TWINS_MAX: usize = 64;

/// What a call does, and where others that do the same are looked for.
pub(crate) struct Alike<'a> {
    pub(crate) of: &'a CallRef,
    pub(crate) tool: &'a ToolName,
    pub(crate) twin_hash: &'a InputHash,
    pub(crate) scope: TwinScope,
    pub(crate) namespace_no: u32,
    /// `None` for a run that is not known.
    pub(crate) run_no: Option<u64>,
}

impl<B: ByBytes, N: BySeq> Lookup<'_, B, N> {
    /// Other calls that do the same, the newest first.
    pub(crate) fn twins(&self, alike: &Alike<'_>) -> Result<Vec<TwinKnown>, StorageError> {
        let digest = twin_digest(alike.tool, alike.twin_hash);
        let mut candidates = Vec::new();
        if let Some(run_no) = alike.run_no {
            let of_run = self.alike_in_run(run_no, &digest)?;
            candidates.extend(of_run.into_iter().map(|first_seq| (first_seq, run_no)));
        }
        if alike.scope == TwinScope::Namespace {
            candidates.extend(self.alike_in_namespace(alike.namespace_no, &digest)?);
            candidates.sort_by(|a, b| b.cmp(a));
            candidates.dedup();
        }
        let mut twins = Vec::new();
        for (first_seq, run_no) in candidates {
            let first = self.event(first_seq)?;
            let (Some((call, _)), Some(facts)) = (first.body.call(), first.body.facts()) else {
                return Err(StorageError::Inconsistent("a call opens oddly"));
            };
            // The digest has eight bytes: others may share it.
            let is_same = facts.tool == *alike.tool && facts.twin_hash() == alike.twin_hash;
            if call == alike.of || !is_same {
                continue;
            }
            if let Some(tip) = self.tip(run_no, call.tool_call_id.as_str())? {
                twins.push(TwinKnown { call: call.clone(), tip });
            }
        }
        Ok(twins)
    }

    /// First events of the calls of a run that may do the same, the newest first.
    fn alike_in_run(&self, run_no: u64, digest: &[u8; 8]) -> Result<Vec<u64>, StorageError> {
        let mut alike = Vec::new();
        let (from, to) = (RunKey::twin(run_no, digest, 0), RunKey::twin(run_no, digest, u64::MAX));
        for row in self.runs.range(from.as_slice()..=to.as_slice())?.rev().take(TWINS_MAX) {
            alike.push(first_seq_of(row?.0.value())?);
        }
        // The early calls are older than all that have a row of their own.
        let later = alike.len();
        let (from, to) = (RunKey::order(run_no, 0), RunKey::order(run_no, u64::MAX));
        for row in self.runs.range(from.as_slice()..=to.as_slice())?.take(EARLY_CALLS) {
            let (key, value) = row?;
            if value.value() == digest {
                alike.push(first_seq_of(key.value())?);
            }
        }
        alike[later..].reverse();
        alike.truncate(TWINS_MAX);
        Ok(alike)
    }

    /// First events and run numbers of the calls of a namespace that may do the same.
    fn alike_in_namespace(
        &self,
        namespace_no: u32,
        digest: &[u8; 8],
    ) -> Result<Vec<(u64, u64)>, StorageError> {
        let from = tables::wide_twin(namespace_no, digest, 0);
        let to = tables::wide_twin(namespace_no, digest, u64::MAX);
        let mut alike = Vec::new();
        for row in self.wide_twins.range(from.as_slice()..=to.as_slice())?.rev().take(TWINS_MAX) {
            let (key, value) = row?;
            alike.push((first_seq_of(key.value())?, number(value.value())?));
        }
        Ok(alike)
    }
}

fn first_seq_of(key: &[u8]) -> Result<u64, StorageError> {
    RunKey::first_seq_of(key).ok_or(StorageError::Inconsistent("a key of a run is short"))
}

/// What two calls that do the same share.
pub(crate) fn twin_digest(tool: &ToolName, twin_hash: &InputHash) -> [u8; 8] {
    let hash = sha256(&[twin_hash.as_bytes(), tool.as_str().as_bytes()]);
    let mut digest = [0; 8];
    digest.copy_from_slice(&hash[..8]);
    digest
}
