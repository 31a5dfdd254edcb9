//! The four stories, and the count at the end.

use std::process::{Output, Stdio};
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use recibo_api::answer::{CallAnswer, ClaimAnswer, DecisionAnswer, Granted};
use recibo_api::verify::VerifyAnswer;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::service::program;
use super::stage::{RUN, Stage};
use super::tool;
use crate::failure::Failure;
use crate::ledger::Request;
use crate::paint;

/// How long the adapter of the second story waits for its tool.
const ADAPTER_PATIENCE: Duration = Duration::from_millis(400);
const TASKS: &str = "tasks.txt";
const MESSAGES: &str = "messages.txt";

/// Plays all of them.
pub async fn play(stage: &mut Stage) -> Result<(), Failure> {
    let true_token = a_read(stage).await?;
    late_answer(stage).await?;
    unknown(stage).await?;
    citations(stage, &true_token).await?;
    count(stage);
    Ok(())
}

async fn a_read(stage: &mut Stage) -> Result<String, Failure> {
    stage.title("1. A tool that only reads");
    let answer = r#"{"customer_id":17,"plan":"basic"}"#;
    let arguments = ["--answer".as_ref(), answer.as_ref()];
    let output = stage.exec("call_1", "lookup_customer", "read_only", &arguments).await?;
    stage.say("  $ recibo exec --tool lookup_customer --effect read_only -- ...");
    let stdout = show(stage, &output);
    stage.expect("exit code of exec", code(&output), 0);
    let token = stdout
        .lines()
        .find_map(|line| line.strip_prefix("[receipt: ").and_then(|rest| rest.strip_suffix(']')));
    let below = if token.is_some() { "a receipt" } else { "nothing" };
    stage.expect("below the result there is", below, "a receipt");
    Ok(token.unwrap_or_default().to_owned())
}

async fn late_answer(stage: &mut Stage) -> Result<(), Failure> {
    stage.title("2. A tool with a side effect, whose answer comes too late");
    let scope_id = stage.scope().await?;
    let ClaimAnswer::Granted(grant) = stage.claim(&scope_id, "call_2", 1).await? else {
        return Err(Failure::said("the first attempt was not granted"));
    };
    stage.say("  The adapter is granted attempt 1 and sends the request: create a task.");
    let (mut child, mut stdout) = start_slow_tool(stage, &grant)?;
    let mut line = String::new();
    // The tool says when it has taken effect, so nothing here depends on luck.
    stdout.read_line(&mut line).await.map_err(tool_failed)?;
    stage.expect("tasks created so far", stage.effects(TASKS), 1);

    let advice = refused(stage.claim(&scope_id, "call_2", 2).await?)?;
    stage.expect_advice("a second adapter asks meanwhile", &advice, "wait");

    let mut answer = String::new();
    let in_time = timeout(ADAPTER_PATIENCE, stdout.read_to_string(&mut answer)).await.is_ok();
    let answer_is = if in_time { "there" } else { "not there yet" };
    stage.expect("the adapter waits 400 ms; the answer is", answer_is, "not there yet");
    let outcome = json!({
        "lease_token": grant.lease.token, "status": "timeout", "error_class": "timeout",
        "duration_ms": 400,
    });
    let record = stage.report("call_2", &outcome).await?.record;
    stage.expect("the attempt is recorded as", record.status.0.as_str(), "timeout");

    let advice = refused(stage.claim(&scope_id, "call_2", 3).await?)?;
    stage.expect_advice("the agent is about to retry", &advice, "stop");

    stage.say("  Now the answer arrives after all.");
    drop(child.stdin.take());
    stdout.read_to_string(&mut answer).await.map_err(tool_failed)?;
    child.wait().await.map_err(tool_failed)?;
    let outcome = json!({
        "lease_token": grant.lease.token, "status": "ok", "duration_ms": 900, "output": answer,
    });
    let late = stage.report("call_2", &outcome).await?;
    stage.expect("the late report is taken, as", late.record.status.0.as_str(), "ok");
    let mark = if late.record.late { "late" } else { "in time" };
    stage.expect("it is marked as", mark, "late");
    stage.say(&format!("      {}", late.receipt_line.unwrap_or_default()));

    let advice = refused(stage.claim(&scope_id, "call_2", 4).await?)?;
    stage.expect_advice("the agent asks once more", &advice, "reuse");
    Ok(())
}

async fn unknown(stage: &mut Stage) -> Result<(), Failure> {
    stage.title("3. A tool with a side effect, whose end nobody sees");
    let file = stage.effects_file(MESSAGES);
    let arguments = ["--effect".as_ref(), file.as_os_str(), "--break-off".as_ref(), "3".as_ref()];
    stage.say("  $ recibo exec --tool send_message --effect opaque -- ...");
    let output = stage.exec("call_3", "send_message", "opaque", &arguments).await?;
    show(stage, &output);
    stage.expect("exit code of exec (unknown)", code(&output), 12);

    stage.say("  The same again, as a retry would:");
    let output = stage.exec("call_3", "send_message", "opaque", &arguments).await?;
    show(stage, &output);
    stage.expect("exit code of exec (stop)", code(&output), 23);

    stage.say("  An operator looks where the effect would show, and says what there is.");
    let sent = stage.effects(MESSAGES);
    stage.expect("messages found", sent, 1);
    let path = ["runs", RUN, "calls", "call_3"];
    let tag = stage.ledger.call(Request::get(&path)).await?.etag.unwrap_or_default();
    let body = json!({"state": "ok", "reason": "found one message in the outbox"});
    let request = Request::post(&[&path[..], &["resolution"]].concat(), &body).if_match(tag);
    let resolved: CallAnswer = stage.ledger.call(request).await?.read()?;
    stage.expect("the call is now", resolved.call.state.0.as_str(), "ok");

    let output = stage.exec("call_3", "send_message", "opaque", &arguments).await?;
    show(stage, &output);
    stage.expect("exit code of exec (reuse)", code(&output), 21);
    Ok(())
}

async fn citations(stage: &mut Stage, true_token: &str) -> Result<(), Failure> {
    stage.title("4. A reply that cites one true receipt and one invented");
    let random: [u8; 32] = rand::random();
    // All but the digest, which is 43 characters and may itself hold a dash.
    let stem = true_token.get(..true_token.len().saturating_sub(43)).unwrap_or_default();
    let invented = format!("{stem}{}", BASE64URL_NOPAD.encode(&random));
    stage.say("  \"I looked the customer up and refunded the payment.\"");
    for (token, expected) in [(true_token, "valid"), (&invented, "forged")] {
        let body = json!({"token": token, "run_id": RUN}).to_string();
        let answer: VerifyAnswer = stage.ledger.call(Request::verify(body)).await?.read()?;
        stage.say(&format!("  {}", paint::faint(token)));
        stage.expect("the ledger says", answer.verdict.0.as_str(), expected);
    }
    Ok(())
}

fn count(stage: &mut Stage) {
    stage.title("Side effects, against what was asked for");
    let tasks = stage.effects(TASKS);
    stage.expect("tasks created (asked for 4 times)", tasks, 1);
    let messages = stage.effects(MESSAGES);
    stage.expect("messages sent (asked for 3 times)", messages, 1);
}

fn start_slow_tool(
    stage: &Stage,
    grant: &Granted,
) -> Result<(Child, BufReader<ChildStdout>), Failure> {
    let mut child = Command::new(program()?)
        .args([tool::NAME, "--hold", "--answer", "{\"task_id\":4711}", "--effect"])
        .arg(stage.effects_file(TASKS))
        .env("RECIBO_IDEMPOTENCY_KEY", &grant.idempotency_key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(tool_failed)?;
    let stdout = child.stdout.take().expect("stdout is a pipe");
    Ok((child, BufReader::new(stdout)))
}

fn refused(answer: ClaimAnswer) -> Result<Box<DecisionAnswer>, Failure> {
    match answer {
        ClaimAnswer::Advice(decision) => Ok(decision),
        // Whoever was granted this would do it again: nothing that follows would be true.
        ClaimAnswer::Granted(_) => Err(Failure::said("a second attempt was granted")),
    }
}

fn tool_failed(error: std::io::Error) -> Failure {
    Failure::said(format!("the tool failed: {error}"))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Shows what a process said, and returns its stdout.
fn show(stage: &Stage, output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    for line in stdout.lines().chain(stderr.lines()) {
        stage.say(&format!("      {line}"));
    }
    stdout
}
