//! The commands that ask a ledger something and show the answer, one file each.

pub mod api_key;
pub mod call;
pub mod calls;
pub mod explain;
pub mod init;
pub mod policy;
pub mod receipt;
pub mod resolve;
pub mod run;
mod source;
pub mod status;
pub mod stop;
pub mod unknown;

use recibo_api::answer::{Call, DecisionAnswer};
use recibo_core::status::CallState;
use recibo_core::time::Time;
use recibo_store::{Clock, SystemClock};

use crate::failure::Failure;
use crate::layout::{View, Width};
use crate::ledger::{Answer, Ledger, Request};
use crate::target::Target;
use crate::timeline::Verdict;

/// What a command leaves on stdout, and how it ended.
#[derive(Debug, Default)]
pub struct Done {
    /// All of stdout.
    pub text: String,
    /// The exit code of the process.
    pub exit_code: u8,
}

impl Done {
    /// Nothing to say.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Said, and good.
    pub fn said(text: String) -> Self {
        Self { text, exit_code: 0 }
    }

    /// The document as it came.
    pub fn document(answer: &Answer) -> Self {
        Self::said(format!("{}\n", answer.body.trim_end()))
    }
}

/// This machine's clock. For ages shown to people only; nothing is decided by it.
pub fn now() -> Time {
    Time::from_ms(SystemClock.wall_ms())
}

/// How this terminal shows a page to whoever named this ledger.
pub fn view(target: &Target) -> View {
    let is_key_given = target.is_key_given();
    View { now: now(), width: Width::of_stdout(), is_key_given }
}

/// What the ledger would answer about a call now. Of a call whose state is fixed this is known
/// without asking.
async fn verdict(ledger: &Ledger, call: &Call) -> Result<Verdict, Failure> {
    match call.state.0 {
        CallState::Ok | CallState::Terminal | CallState::Abandoned => {
            Ok(Verdict::of_fixed_state(call.state.0))
        }
        _ => {
            let answer = decision(ledger, &call.run_id, &call.tool_call_id).await?;
            Ok(Verdict::from(&answer.read::<DecisionAnswer>()?))
        }
    }
}

async fn decision(ledger: &Ledger, run: &str, call: &str) -> Result<Answer, Failure> {
    ledger.call(Request::get(&["runs", run, "calls", call, "decision"])).await
}
