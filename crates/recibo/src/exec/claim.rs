//! Asking for permission, and waiting for it as long as the caller wants to.

use std::time::Duration;

use recibo_adapter::{CallSpec, LedgerError, Permission, Scope, now_ms};
use recibo_core::status::DecisionKind;

use super::exit;
use super::signals::Signals;
use crate::failure::Failure;

/// Claims an attempt. A signal ends the waiting, not the claim: what was granted meanwhile must
/// be reported. A scope that nothing was granted in is closed.
pub async fn ask(
    scope: &Scope,
    spec: &CallSpec,
    wait_ms: u64,
    signals: &mut Signals,
) -> Result<Permission, Failure> {
    let result = ask_in(scope, spec, wait_ms, signals).await;
    if !matches!(result, Ok(Permission::Granted(_))) {
        // If this fails, the scope's time ends it.
        let _ = scope.close().await;
    }
    result
}

async fn ask_in(
    scope: &Scope,
    spec: &CallSpec,
    wait_ms: u64,
    signals: &mut Signals,
) -> Result<Permission, Failure> {
    let over_at_ms = now_ms().saturating_add(wait_ms);
    loop {
        let permission = scope.claim_now(spec).await.map_err(not_run)?;
        let Permission::Refused(advice) = &permission else { return Ok(permission) };
        let left = Duration::from_millis(over_at_ms.saturating_sub(now_ms()));
        if advice.decision.0 != DecisionKind::Wait || left.is_zero() {
            return Ok(permission);
        }
        tokio::select! {
            known = scope.wait_out(advice, left) => match known.map_err(not_run)? {
                Some(advice) => return Ok(Permission::Refused(advice)),
                None => continue,
            },
            _ = signals.next() => return Ok(permission),
        }
    }
}

/// The exit code of a failure before the command was run.
fn not_run(error: LedgerError) -> Failure {
    let exit_code = if error.is_transient() { exit::UNREACHABLE } else { exit::REFUSED };
    Failure::from(error).with_exit_code(exit_code)
}
