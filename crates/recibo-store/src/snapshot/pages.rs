//! Reads of many calls: a run, its receipts, the ledger in order.

use std::collections::BTreeMap;

use recibo_core::id::{CallRef, Namespace, RunId, ScopeId, ToolName};
use recibo_core::receipt::Token;
use recibo_core::status::CallState;
use recibo_core::time::Time;
use redb::AccessGuard;

use super::{CallView, Snapshot, run_of};
use crate::codec::{OpenCallRow, decode_event, namespace_of};
use crate::error::StorageError;
use crate::tables::{self, OpenKey, RunKey};

/// Events, or open calls, looked at for one page at most. A page that finds too few rows in so many comes
/// short, with a token to go on.
const SCAN_MAX: usize = 200_000;

/// What a run holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Calls.
    pub calls: u64,
    /// Attempts of all calls.
    pub attempts: u64,
    /// Calls by state.
    pub by_state: BTreeMap<CallState, u64>,
    /// Calls whose evidence contradicts itself.
    pub conflicts: u64,
    /// Ledger time of the run's first event.
    pub first_at: Time,
    /// Ledger time of the newest event of its calls.
    pub last_at: Time,
}

/// Some calls in ledger order.
#[derive(Clone, Debug)]
pub struct CallPage {
    /// The calls.
    pub calls: Vec<CallView>,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
}

/// Which calls are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Only calls in this state.
    pub state: Option<CallState>,
}

/// A successful attempt with its receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptLine {
    /// The first event of its call.
    pub first_seq: u64,
    /// The tool.
    pub tool: ToolName,
    /// The receipt.
    pub token: Token,
}

/// Some receipts in the order of their calls.
#[derive(Clone, Debug)]
pub struct ReceiptPage {
    /// The receipts.
    pub lines: Vec<ReceiptLine>,
    /// Where the next page begins, if there is one. There may be one where `lines` is empty.
    pub next: Option<u64>,
}

impl Snapshot {
    /// Counts a run. Reads one row per call. `None` if the run is not known.
    pub fn run(
        &self,
        namespace: &Namespace,
        run_id: &RunId,
    ) -> Result<Option<RunSummary>, StorageError> {
        let Some(run_no) = run_of(self, namespace, run_id)? else { return Ok(None) };
        let mut summary = RunSummary {
            calls: 0,
            attempts: 0,
            by_state: BTreeMap::new(),
            conflicts: 0,
            first_at: self.now(),
            last_at: Time::default(),
        };
        let mut last_seq = 0;
        let (from, to) = (RunKey::call(run_no, ""), RunKey::call(run_no, "\u{7f}"));
        for row in self.reading.runs.range(from.as_slice()..to.as_slice())? {
            let (_, value) = row?;
            let tip = self.lookup().read_tip(value.value())?;
            summary.calls += 1;
            summary.attempts += u64::from(tip.attempts());
            *summary.by_state.entry(tip.state(self.now())).or_default() += 1;
            summary.conflicts += u64::from(tip.conflict);
            summary.first_at = summary.first_at.min(tip.recorded_at);
            last_seq = last_seq.max(tip.version);
        }
        summary.last_at = self.lookup().event(last_seq)?.at;
        Ok(Some(summary))
    }

    /// A page of a run's calls, by first event, from a position on. `None` if the run is not
    /// known.
    pub fn run_calls(
        &self,
        namespace: &Namespace,
        run_id: &RunId,
        from: u64,
        limit: usize,
    ) -> Result<Option<CallPage>, StorageError> {
        let Some(run_no) = run_of(self, namespace, run_id)? else { return Ok(None) };
        let (start, end) = (RunKey::order(run_no, from), RunKey::order(run_no, u64::MAX));
        let mut page = CallPage { calls: Vec::new(), next: None };
        for row in self.reading.runs.range(start.as_slice()..=end.as_slice())? {
            let first_seq = in_order(row?.0.value())?;
            if page.calls.len() == limit {
                page.next = Some(first_seq);
                break;
            }
            page.calls.push(self.call_at(namespace, run_no, first_seq)?);
        }
        Ok(Some(page))
    }

    fn call_at(
        &self,
        namespace: &Namespace,
        run_no: u64,
        first_seq: u64,
    ) -> Result<CallView, StorageError> {
        self.view(namespace, self.lookup().call_from(run_no, first_seq)?)
    }

    /// Some receipts of a run, in the order of their calls, of one scope if one is named, from a
    /// position on: those of so many calls, and no more calls once there are so many receipts.
    /// `None` if the run is not known.
    pub fn receipts(
        &self,
        namespace: &Namespace,
        run_id: &RunId,
        scope_id: Option<&ScopeId>,
        from: u64,
        limit: usize,
    ) -> Result<Option<ReceiptPage>, StorageError> {
        let Some(run_no) = run_of(self, namespace, run_id)? else { return Ok(None) };
        let (start, end) = (RunKey::order(run_no, from), RunKey::order(run_no, u64::MAX));
        let mut page = ReceiptPage { lines: Vec::new(), next: None };
        let rows = self.reading.runs.range(start.as_slice()..=end.as_slice())?;
        for (looked_at, row) in rows.enumerate() {
            let first_seq = in_order(row?.0.value())?;
            if looked_at == limit || page.lines.len() >= limit {
                page.next = Some(first_seq);
                break;
            }
            for record in self.call_at(namespace, run_no, first_seq)?.records {
                let is_wanted = scope_id.is_none_or(|scope| record.scope_id == *scope);
                if let (Some(token), true) = (record.token, is_wanted) {
                    page.lines.push(ReceiptLine { first_seq, tool: record.tool, token });
                }
            }
        }
        Ok(Some(page))
    }

    /// A page of all calls of a namespace, each at its first event, from a position on.
    pub fn calls(
        &self,
        namespace: &Namespace,
        filter: &CallFilter,
        from: u64,
        limit: usize,
    ) -> Result<CallPage, StorageError> {
        let Some(row) = self.namespace(namespace)? else {
            return Ok(CallPage { calls: Vec::new(), next: None });
        };
        match filter.state {
            // These few are kept in a list of their own.
            Some(CallState::InFlight | CallState::Unknown) => {
                self.open_calls(namespace, row.no, filter, from, limit)
            }
            _ => self.all_calls(namespace, row.no, filter, from, limit),
        }
    }

    /// How many calls of a namespace are in flight or unknown. Reads one row per such call.
    pub fn open_states(
        &self,
        namespace: &Namespace,
    ) -> Result<BTreeMap<CallState, u64>, StorageError> {
        let mut states = BTreeMap::new();
        let Some(row) = self.namespace(namespace)? else { return Ok(states) };
        let table = self.reading.txn.open_table(tables::OPEN_CALLS)?;
        for (from, to) in [
            (OpenKey::open(row.no, 0), OpenKey::open(row.no, u64::MAX)),
            (OpenKey::unknown(row.no, 0), OpenKey::unknown(row.no, u64::MAX)),
        ] {
            for row in table.range(from.as_slice()..=to.as_slice())? {
                let (_, row) = open_call(row)?;
                if let Some(tip) = self.lookup().tip(row.run_no, &row.tool_call_id)? {
                    *states.entry(tip.state(self.now())).or_default() += 1;
                }
            }
        }
        Ok(states)
    }

    fn open_calls(
        &self,
        namespace: &Namespace,
        namespace_no: u32,
        filter: &CallFilter,
        from: u64,
        limit: usize,
    ) -> Result<CallPage, StorageError> {
        let table = self.reading.txn.open_table(tables::OPEN_CALLS)?;
        let (open_from, open_to) =
            (OpenKey::open(namespace_no, from), OpenKey::open(namespace_no, u64::MAX));
        let open = table.range(open_from.as_slice()..=open_to.as_slice())?;
        let mut open = open.map(open_call).peekable();
        // A call with an open attempt whose lease is over is unknown too, so these two lists
        // are read side by side, in ledger order.
        let is_unknown_wanted = filter.state != Some(CallState::InFlight);
        let unknown_from = if is_unknown_wanted { from } else { u64::MAX };
        let unknown_from = OpenKey::unknown(namespace_no, unknown_from);
        let unknown_to = OpenKey::unknown(namespace_no, u64::MAX);
        let unknown = table.range(unknown_from.as_slice()..=unknown_to.as_slice())?;
        let mut unknown = unknown.map(open_call).peekable();
        let mut rows = std::iter::from_fn(|| {
            let place = |row: Option<&Result<(u64, OpenCallRow), StorageError>>| match row {
                Some(Ok((first_seq, _))) => *first_seq,
                // What fails, fails at once.
                Some(Err(_)) => 0,
                None => u64::MAX,
            };
            if place(open.peek()) < place(unknown.peek()) { open.next() } else { unknown.next() }
        });

        let mut page = CallPage { calls: Vec::new(), next: None };
        let mut looked_at = 0;
        while let Some(row) = rows.next().transpose()? {
            let (first_seq, row) = row;
            if looked_at == SCAN_MAX {
                page.next = Some(first_seq);
                break;
            }
            looked_at += 1;
            let tip = self.lookup().tip(row.run_no, &row.tool_call_id)?;
            let state = tip.map(|tip| tip.state(self.now()));
            if filter.state.is_some() && state != filter.state {
                continue;
            }
            if page.calls.len() == limit {
                page.next = Some(first_seq);
                break;
            }
            page.calls.push(self.call_at(namespace, row.run_no, first_seq)?);
        }
        Ok(page)
    }

    fn all_calls(
        &self,
        namespace: &Namespace,
        namespace_no: u32,
        filter: &CallFilter,
        from: u64,
        limit: usize,
    ) -> Result<CallPage, StorageError> {
        let mut page = CallPage { calls: Vec::new(), next: None };
        for (looked_at, entry) in self.reading.events.range(from..)?.enumerate() {
            let (key, value) = entry?;
            let seq = key.value();
            if looked_at == SCAN_MAX {
                page.next = Some(seq);
                break;
            }
            if namespace_of(value.value())?.0 != namespace_no {
                continue;
            }
            let event = decode_event(value.value())?;
            let first_of_call = event.before.is_none() && event.body.facts().is_some();
            let Some((call, _)) = event.body.call().filter(|_| first_of_call) else { continue };
            let Some(found) = self.wanted(namespace_no, call, filter)? else { continue };
            if page.calls.len() == limit {
                page.next = Some(seq);
                break;
            }
            page.calls.push(self.view(namespace, found)?);
        }
        Ok(page)
    }

    fn wanted(
        &self,
        namespace_no: u32,
        call: &CallRef,
        filter: &CallFilter,
    ) -> Result<Option<crate::lookup::Found>, StorageError> {
        let found = self.lookup().call(namespace_no, call)?;
        Ok(found.filter(|found| {
            let state = found.known.call.tip.state(self.now());
            filter.state.is_none_or(|wanted| wanted == state)
        }))
    }
}

fn in_order(order_key: &[u8]) -> Result<u64, StorageError> {
    RunKey::first_seq_of(order_key).ok_or(StorageError::Inconsistent("an order key is short"))
}

type Row<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

fn open_call(row: Result<Row<'_>, redb::StorageError>) -> Result<(u64, OpenCallRow), StorageError> {
    let (key, value) = row?;
    let first_seq = OpenKey::first_seq_of(key.value());
    let first_seq = first_seq.ok_or(StorageError::Inconsistent("an open call's key is short"))?;
    Ok((first_seq, OpenCallRow::decode(value.value())?))
}
