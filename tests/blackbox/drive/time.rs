//! Time passes, and services end and start.

use serde_json::{Value, json};

use super::{Drive, Played, named, path_of};
use crate::blackbox::clock::ms_of;
use crate::blackbox::compare::Diff;
use crate::blackbox::model::Survivor;
use crate::blackbox::steps::{Boot, Point};
use recibo_tests::binary::Server;

/// No single step passes more than this.
const PASS_MS_MAX: u64 = 10 * 86_400_000;

impl Drive {
    pub(super) fn pass(&mut self, ms: u64) -> Played {
        self.clock.pass(ms);
        self.ledger.now += ms;
        Ok(())
    }

    pub(super) fn pass_to(&mut self, call: usize, point: Point, off: i64) -> Played {
        let key = self.acted_on(call);
        let Some(call) = self.ledger.call(&key) else { return Ok(()) };
        let fold = self.ledger.fold(call);
        let Some(newest) = fold.attempts.last() else { return Ok(()) };
        let at = match point {
            Point::LeaseEnd => newest.lease.as_ref().map(|lease| lease.end),
            Point::SettleEnd => {
                newest.ended_at().map(|end| end + call.terms.settle_ms.unwrap_or(0))
            }
            Point::WindowEnd => call.window_end(),
            Point::TwinEnd(window_ms) => Some(fold.last_event_at + window_ms),
        };
        let at = at.and_then(|at| at.checked_add_signed(off));
        let left = at.and_then(|at| at.checked_sub(self.ledger.now));
        self.pass(left.unwrap_or(0).min(PASS_MS_MAX))
    }

    pub(super) fn move_wall(&mut self, ms: i64) -> Played {
        self.clock.set_wall(self.clock.wall_ms.saturating_add_signed(ms));
        Ok(())
    }

    pub(super) fn restart(&mut self, kill: bool, down_ms: u64, boot: Boot) -> Played {
        let server = self.server.take().expect("it runs");
        self.tally(if kill { "kills" } else { "orderly ends" });
        self.tally(if boot == Boot::Same { "starts on the same boot" } else { "other boots" });
        if kill {
            server.kill();
        } else if server.stop() != Some(0) {
            return Err("SIGTERM: the exit code is not 0".to_owned());
        }
        for scope in &mut self.ledger.scopes {
            scope.is_gone = true;
        }
        let (last, end) = (self.ledger.last_write, self.ledger.now);
        self.set_clock(down_ms, boot);
        let server = Server::start_by_clock(&self.data, self.clock.file());
        self.server = Some(server.map_err(|output| format!("no start: {output}"))?);
        if boot == Boot::Same {
            self.ledger.now += down_ms;
            return self.open_scope(None);
        }
        self.started_anew(last, end, boot)
    }

    fn set_clock(&mut self, down_ms: u64, boot: Boot) {
        let (last, now) = (self.ledger.last_write, self.ledger.now);
        match boot {
            Boot::Same => self.clock.pass(down_ms),
            Boot::Ahead(ms) => {
                self.clock.reboot();
                self.clock.set_wall(now + down_ms + ms);
            }
            Boot::Behind(ms) => {
                self.clock.reboot();
                self.clock.set_wall(last - ms);
            }
            Boot::Back(ms) => {
                self.clock.set_boot_ms(self.boot_ms_at_write.saturating_sub(ms.max(1)));
                self.clock.set_wall(now + down_ms);
            }
        }
    }

    /// After a start on another boot: learns from the answers when it began and which leases
    /// lived then, within what the contract permits, and holds them against each other.
    fn started_anew(&mut self, last: u64, end: u64, boot: Boot) -> Played {
        let survivors = self.ledger.survivors();
        let reply = self.post("/v1/scopes", &json!({}))?;
        let began = reply.json["opened_at"].as_str().and_then(ms_of).unwrap_or_default();
        let is_behind = matches!(boot, Boot::Behind(_));
        // "begins at max(wall clock, last event, last clock mark)"; the newest of the latter two
        // lies between the last write and the end.
        let may_begin =
            if is_behind { last..=end } else { self.clock.wall_ms..=self.clock.wall_ms };
        let mut diff = Diff::default();
        let holds = may_begin.contains(&began);
        diff.holds(&format!("ledger time begins in {may_begin:?}"), holds, &json!(began));
        named(diff, "a scope after a start on another boot", &reply)?;
        self.ledger.started_anew(began, is_behind);
        self.opened(&reply, None);
        let may_last = if is_behind { began..=began } else { last..=end };
        self.learn(&survivors, &may_last, began)
    }

    /// Finds the last known time of the ledger that explains what all leases are now.
    fn learn(
        &mut self,
        survivors: &[Survivor],
        may_last: &std::ops::RangeInclusive<u64>,
        began: u64,
    ) -> Played {
        let mut seen = Vec::new();
        for survivor in survivors {
            let key = self.ledger.calls[survivor.call].key.clone();
            let path = format!("{}/attempts/{}", path_of(&key), survivor.attempt);
            let record = self.get(&path)?;
            let end = record.json["lease_expires_at"].as_str().and_then(ms_of);
            seen.push(end.ok_or_else(|| format!("no end of lease: {}", record.text))?);
        }
        let mut candidates = vec![*may_last.start(), *may_last.end()];
        for (survivor, seen) in survivors.iter().zip(&seen) {
            let left = seen.saturating_sub(began);
            candidates.extend([survivor.end.saturating_sub(left), survivor.end - 1, survivor.end]);
        }
        let explains = |last: u64| {
            may_last.contains(&last)
                && survivors.iter().zip(&seen).all(|(s, seen)| s.may_end(*seen, began, last))
        };
        if !candidates.into_iter().any(explains) {
            let seen: Vec<Value> = seen.iter().map(|end| json!(end)).collect();
            return Err(format!(
                "after a start at {began} no last time in {may_last:?} explains the leases:\n\
                 {survivors:?}\nend at {seen:?}"
            ));
        };
        for (survivor, seen) in survivors.iter().zip(seen) {
            self.ledger.survived(survivor, seen, seen <= began);
        }
        Ok(())
    }
}
