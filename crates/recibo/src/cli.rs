//! The command line: which commands there are.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::target::{Common, Target};
use crate::{command, demo, examples, exec, help, mcp, serve};

/// The version, with the commit if it is known: `0.1.0 (abc1234def 2026-12-03)`.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("RECIBO_COMMIT"));

/// An append-only receipt ledger for the tool calls of LLM agents.
#[derive(Parser)]
#[command(
    name = "recibo",
    version = VERSION,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One per command; its arguments stand beside its code.
#[derive(Subcommand)]
pub enum Command {
    /// Run the service on a data folder
    Serve(serve::Args),
    /// Make a ledger in a data folder
    Init(command::init::Args),
    /// Say what runs on a data folder, and how its ledger is; start nothing
    Status(command::status::Args),
    /// End the service on a data folder
    Stop(command::stop::Args),
    /// Run a command as a tool call, with a receipt
    Exec(exec::Args),
    /// Stand between an MCP host and a server, so that every tool call has its receipt
    Mcp(mcp::Args),
    /// Play the ledger's stories with real processes, and check their end
    Demo(demo::Args),
    /// Show the calls of a run as a timeline of attempts
    Run(command::run::Args),
    /// Show one call as a timeline of attempts
    Call(command::call::Args),
    /// List calls, oldest first
    Calls(command::calls::Args),
    /// List the calls that nobody knows the outcome of, oldest first
    Unknown(command::unknown::Args),
    /// Say in plain words what is known of a call and what to do next
    Explain(command::explain::Args),
    /// Say what became of a call, as an operator
    Resolve(command::resolve::Args),
    /// Show or replace the effect policy
    Policy(command::policy::Args),
    /// Verify a receipt
    Receipt(command::receipt::Args),
    /// Create, list and revoke API keys
    ApiKey(command::api_key::Args),
    /// Print help on a command, the words, completions and man pages
    Help(help::Args),
    /// The tool that the demo calls
    #[command(hide = true, name = demo::tool::NAME)]
    DemoTool(demo::tool::Args),
    /// Kills what a killed `exec` leaves behind
    #[command(hide = true, name = exec::guard::NAME)]
    ExecGuard,
}

/// The grammar of the command line, with the examples.
pub fn grammar() -> clap::Command {
    examples::added_to(Cli::command())
}

impl Cli {
    /// Reads the command line of this process. Ends it where there is nothing to do but to print
    /// help, a version or what is wrong.
    pub fn of_process() -> Self {
        let matches = grammar().try_get_matches().unwrap_or_else(|error| with_hint(error).exit());
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Says where a command of somebody else begins, if the two dashes before it are missing.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let is_word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => !word.starts_with('-'),
        _ => false,
    };
    if error.kind() == ErrorKind::UnknownArgument && is_word && usage.contains("-- <COMMAND>") {
        let hint = match usage.contains("recibo mcp") {
            true => "put -- before the server's command, as in: recibo mcp -- npx SERVER",
            false => "put -- before the command, as in: recibo exec ... -- make test",
        };
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

impl Command {
    /// Whether the answer is read by a program.
    pub fn is_json(&self) -> bool {
        match self {
            Self::Init(args) => args.json,
            Self::Stop(args) => args.json,
            // Whoever has started it reads why it could not start.
            Self::Serve(args) => args.on_demand,
            _ => self.common().is_some_and(|common| common.json),
        }
    }

    /// Whether it is a service that another command has started.
    pub fn is_on_demand(&self) -> bool {
        matches!(self, Self::Serve(args) if args.on_demand)
    }

    /// Which ledger it talks to, if it talks to one that was named.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Exec(args) => Some(&args.target),
            Self::Mcp(args) => Some(&args.target),
            _ => self.common().map(|common| &common.target),
        }
    }

    fn common(&self) -> Option<&Common> {
        Some(match self {
            Self::Status(args) => &args.common,
            Self::Run(args) => &args.common,
            Self::Call(args) => &args.common,
            Self::Calls(args) => &args.common,
            Self::Unknown(args) => &args.common,
            Self::Explain(args) => &args.common,
            Self::Resolve(args) => &args.common,
            Self::Policy(args) => args.common(),
            Self::Receipt(args) => args.common(),
            Self::ApiKey(args) => args.common(),
            // What `exec` and `mcp` write to stdout is not theirs.
            Self::Init(_)
            | Self::Stop(_)
            | Self::Serve(_)
            | Self::Exec(_)
            | Self::Mcp(_)
            | Self::Demo(_)
            | Self::Help(_)
            | Self::DemoTool(_)
            | Self::ExecGuard => return None,
        })
    }
}

#[cfg(test)]
mod tests;
