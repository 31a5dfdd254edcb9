//! Asking for permission.

use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use recibo_api::answer::{ClaimAnswer, DecisionAnswer, ScopeAnswer};
use recibo_core::effect::Effect;
use recibo_core::hash::InputHash;
use recibo_core::limits;
use recibo_core::status::DecisionKind;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::signals::Signals;
use super::{exit, lease};
use crate::failure::Failure;
use crate::ledger::{Answer, Ledger, Request};

/// How often a request that got no answer is sent again, and how long it waits before.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// What is asked for.
pub struct Wish {
    /// The run.
    pub run: String,
    /// The call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What the tool does to the world, if stated.
    pub effect: Option<Effect>,
    /// Hash of the arguments. Hashed here: a tree of values would round large numbers and
    /// lose double members, and the arguments need not travel.
    pub input_hash: InputHash,
    /// How long others are kept away.
    pub lease_ms: u64,
    /// How long to wait while another attempt is under way.
    pub wait_ms: u64,
    /// A name for the scope.
    pub scope_label: Option<String>,
    /// How long the scope's key lives.
    pub scope_ttl_ms: u64,
}

/// Permission to run an attempt.
pub struct Grant {
    /// The attempt.
    pub attempt: u32,
    /// Needed to report.
    pub lease_token: String,
    /// For the outside service.
    pub idempotency_key: String,
    /// When the command must be over.
    pub last_moment_ms: u64,
}

/// The ledger's answer.
pub enum Permission {
    /// Run it.
    Granted(Grant),
    /// Do not.
    Refused(Box<DecisionAnswer>),
}

/// Opens a scope and claims an attempt in it. A scope that nothing was granted in is closed.
pub async fn ask(
    ledger: &Ledger,
    wish: &Wish,
    signals: &mut Signals,
) -> Result<Permission, Failure> {
    let scope_id = open_scope(ledger, wish).await?;
    let result = ask_in(ledger, wish, &scope_id, signals).await;
    if !matches!(result, Ok(Permission::Granted(_))) {
        // If this fails, the scope's time ends it.
        let _ = ledger.call(Request::delete(&["scopes", &scope_id])).await;
    }
    result
}

/// Opens a scope.
pub async fn open_scope(ledger: &Ledger, wish: &Wish) -> Result<String, Failure> {
    let body = json!({"label": wish.scope_label, "ttl_ms": wish.scope_ttl_ms});
    let answer = insist(ledger, &Request::post(&["scopes"], &body)).await?;
    Ok(answer.read::<ScopeAnswer>()?.scope_id)
}

async fn ask_in(
    ledger: &Ledger,
    wish: &Wish,
    scope_id: &str,
    signals: &mut Signals,
) -> Result<Permission, Failure> {
    let began_ms = lease::now_ms();
    loop {
        let permission = claim(ledger, wish, scope_id).await?;
        let Permission::Refused(decision) = &permission else { return Ok(permission) };
        let left_ms = wish.wait_ms.saturating_sub(lease::now_ms() - began_ms);
        if decision.decision.0 != DecisionKind::Wait || left_ms == 0 {
            return Ok(permission);
        }
        let wait_ms = left_ms.min(limits::WAIT_MS_MAX);
        let request = Request::get(&["runs", &wish.run, "calls", &wish.call, "decision"])
            .with("wait_ms", &wait_ms.to_string())
            .waiting(Duration::from_millis(wait_ms));
        tokio::select! {
            answer = ledger.call(request) => {
                answer.map_err(not_run)?;
            }
            _ = signals.next() => return Ok(permission),
        }
    }
}

/// One claim. Its id is drawn here and lives nowhere else, so that a replay of its grant
/// permits only this process, which knows that it has not run the command.
async fn claim(ledger: &Ledger, wish: &Wish, scope_id: &str) -> Result<Permission, Failure> {
    let request = Request::post(
        &["runs", &wish.run, "calls", &wish.call, "attempts"],
        &body(wish, scope_id, &claim_id()),
    );
    let mut tries = 0;
    loop {
        let asked_at_ms = lease::now_ms();
        let result = ledger.call(request.clone()).await;
        match result {
            Ok(answer) => return permission(&answer, asked_at_ms),
            Err(failure) => pause_or_fail(failure, &mut tries).await?,
        }
    }
}

fn permission(answer: &Answer, asked_at_ms: u64) -> Result<Permission, Failure> {
    Ok(match answer.read().map_err(|error| not_run(error.into()))? {
        ClaimAnswer::Granted(granted) => Permission::Granted(Grant {
            attempt: granted.attempt,
            lease_token: granted.lease.token,
            idempotency_key: granted.idempotency_key,
            last_moment_ms: lease::last_moment_ms(asked_at_ms, granted.lease.duration_ms),
        }),
        ClaimAnswer::Advice(decision) => Permission::Refused(decision),
    })
}

fn claim_id() -> String {
    let random: [u8; 16] = rand::random();
    format!("exec-{}", BASE32_NOPAD.encode(&random).to_lowercase())
}

fn body(wish: &Wish, scope_id: &str, claim_id: &str) -> Value {
    let mut body = json!({
        "scope_id": scope_id,
        "claim_id": claim_id,
        "tool": wish.tool,
        "input_hash": wish.input_hash.to_string(),
        "lease_ms": wish.lease_ms,
    });
    if let Some(effect) = wish.effect {
        body["effect"] = json!(effect.as_str());
    }
    body
}

async fn insist(ledger: &Ledger, request: &Request) -> Result<Answer, Failure> {
    let mut tries = 0;
    loop {
        match ledger.call(request.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => pause_or_fail(failure, &mut tries).await?,
        }
    }
}

async fn pause_or_fail(failure: Failure, tries: &mut u32) -> Result<(), Failure> {
    *tries += 1;
    if *tries >= TRIES || !failure.is_passing() {
        return Err(not_run(failure));
    }
    sleep(PAUSE * 2_u32.pow(*tries - 1)).await;
    Ok(())
}

/// The exit code of a failure before the command was run.
fn not_run(failure: Failure) -> Failure {
    match failure {
        Failure::Usage { .. } | Failure::WithCode { .. } => failure,
        failure if failure.is_passing() => failure.with_exit_code(exit::UNREACHABLE),
        failure => failure.with_exit_code(exit::REFUSED),
    }
}
