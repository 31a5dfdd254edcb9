//! What time alone causes, and a start on another boot.

use recibo_core::call::{self, Call};
use recibo_core::event::{Body, Restarted};
use recibo_core::id::Namespace;
use recibo_core::plan;
use recibo_core::status::ScopeEnd;
use recibo_core::time::Time;
use redb::ReadableTable;

use super::call_ref;
use crate::batch::Batch;
use crate::codec::OpenCallRow;
use crate::error::StorageError;
use crate::lookup::Found;
use crate::tables::OpenKey;

/// Ends of leases, and of scopes, that one tick appends.
const TICK_MAX: usize = 1024;

impl Batch<'_, '_> {
    /// Appends what time alone has caused: ends of leases and of scopes. No more at once than
    /// a batch holds; nothing answered depends on it, and the next tick goes on.
    pub(crate) fn tick(&mut self) -> Result<(), StorageError> {
        let now = self.now();
        for (namespace, scope_id) in self.state.keyring.due(now, TICK_MAX) {
            self.close_scope(&namespace, &scope_id, ScopeEnd::Expired)?;
        }
        for _ in 0..TICK_MAX {
            let Some(&lease) = self.state.leases.first() else { break };
            let (end, first_seq, namespace_no) = lease;
            if end > now {
                break;
            }
            self.state.leases.remove(&lease);
            self.expire(namespace_no, first_seq)?;
        }
        Ok(())
    }

    fn expire(&mut self, namespace_no: u32, first_seq: u64) -> Result<(), StorageError> {
        let Some((namespace, found)) = self.open_call(namespace_no, first_seq)? else {
            return Ok(());
        };
        let call = call_ref(&found)?.clone();
        if let Some(plan) = plan::expire(&self.place(), &call, &found.known) {
            self.carry_out(&namespace, Some(&found), plan)?;
        }
        Ok(())
    }

    /// Takes note of a start on another boot: one event, which gives the leases that lived when
    /// the ledger was last seen the time that remained then.
    pub(crate) fn restart(&mut self, restarted: Restarted) -> Result<(), StorageError> {
        if restarted.key_windows_void {
            self.state.head.key_windows_void_until_ms = restarted.last_at.ms();
        }
        let body = Body::Restarted(restarted);
        let (seq, now) = (self.append_for_all(body.clone()), self.now());
        self.change_open_calls(|call| call::apply(call, seq, now, &body))
    }

    /// The same where nothing is appended: leases that lived then live on, and nobody knows
    /// until when.
    pub(crate) fn forget_lease_ends(&mut self, restarted: &Restarted) -> Result<(), StorageError> {
        if restarted.key_windows_void {
            self.state.head.key_windows_void_until_ms = restarted.last_at.ms();
        }
        self.change_open_calls(|call| {
            let lease = call.as_mut().and_then(|call| call.tip.newest.lease.as_mut());
            if let Some(lease) = lease.filter(|lease| lease.expires_at > restarted.last_at) {
                lease.expires_at = Time::MAX;
            }
        })
    }

    fn change_open_calls(
        &mut self,
        change: impl Fn(&mut Option<Call>),
    ) -> Result<(), StorageError> {
        let open: Vec<_> = self.state.leases.iter().copied().collect();
        for (_, first_seq, namespace_no) in open {
            let Some((namespace, found)) = self.open_call(namespace_no, first_seq)? else {
                continue;
            };
            let mut after = Some(found.known.call.clone());
            change(&mut after);
            if let Some(after) = after.filter(|after| *after != found.known.call) {
                let target = call_ref(&found)?.clone();
                self.write_call(&namespace, found.run_no, &target, Some(&found), &after)?;
            }
        }
        Ok(())
    }

    fn open_call(
        &self,
        namespace_no: u32,
        first_seq: u64,
    ) -> Result<Option<(Namespace, Found)>, StorageError> {
        let key = OpenKey::open(namespace_no, first_seq);
        let row = match self.tables.open_calls.get(key.as_slice())? {
            Some(value) => OpenCallRow::decode(value.value())?,
            None => return Ok(None),
        };
        let names = &self.state.namespace_names;
        let namespace = names
            .get(row.namespace_no as usize)
            .ok_or(StorageError::Inconsistent("a namespace number without a name"))?;
        let found = self.lookup().call_in(row.run_no, &row.tool_call_id)?;
        Ok(found.map(|found| (namespace.clone(), found)))
    }
}
