//! The command line: which commands there are, and what all of them take.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{command, demo, exec, mcp, serve};

/// An append-only receipt ledger for the tool calls of LLM agents.
#[derive(Parser)]
#[command(name = "recibo", version, propagate_version = true, max_term_width = 100)]
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
    /// The tool that the demo calls
    #[command(hide = true, name = demo::tool::NAME)]
    DemoTool(demo::tool::Args),
    /// Kills what a killed `exec` leaves behind
    #[command(hide = true, name = exec::guard::NAME)]
    ExecGuard,
}

impl Command {
    /// Whether the answer is read by a program.
    pub fn is_json(&self) -> bool {
        match self {
            Self::Init(args) => args.json,
            Self::Run(args) => args.common.json,
            Self::Call(args) => args.common.json,
            Self::Calls(args) => args.common.json,
            Self::Unknown(args) => args.common.json,
            Self::Explain(args) => args.common.json,
            Self::Resolve(args) => args.common.json,
            Self::Policy(args) => args.common().json,
            Self::Receipt(args) => args.common().json,
            Self::ApiKey(args) => args.common().json,
            // What `exec` and `mcp` write to stdout is not theirs.
            Self::Serve(_)
            | Self::Exec(_)
            | Self::Mcp(_)
            | Self::Demo(_)
            | Self::DemoTool(_)
            | Self::ExecGuard => false,
        }
    }
}

/// Which ledger a command talks to.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// The data folder: the service on it is asked; where none runs, the ledger is opened here
    #[arg(long, value_name = "DIR", env = "RECIBO_DATA", default_value = "./recibo-data")]
    pub data: PathBuf,
    /// Ask the service at this address instead of one on a data folder
    #[arg(long, value_name = "URL", requires = "api_key_file")]
    pub url: Option<String>,
    /// A file that holds the API key [default: DIR/admin.key]
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
}

/// What every command that shows something takes.
#[derive(Args, Clone, Debug)]
pub struct Common {
    #[command(flatten)]
    pub target: Target,
    /// Print one JSON document, as the service answered it
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests;
