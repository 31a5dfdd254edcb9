//! The binary: the service, and commands for people and scripts that talk to it.
//!
//! Commands know JSON over HTTP and the clock; none of them decides anything about a call.
//! That is the ledger's to do.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod data;
mod demo;
mod duration;
mod exec;
mod explain;
mod failure;
mod ledger;
mod mcp;
mod paint;
mod serve;
mod timeline;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::command::Done;
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let is_json = cli.command.is_json();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&Failure::said(format!("no threads to run on: {error}")), false);
        }
    };
    let result = runtime.block_on(dispatch(cli.command));
    // What still runs on blocking threads at this point is nobody's any more.
    runtime.shutdown_background();
    match result {
        Ok(done) => {
            // Whoever closed the pipe has read enough.
            let _ = anstream::stdout().write_all(done.text.as_bytes());
            ExitCode::from(done.exit_code)
        }
        Err(failure) => failed(&failure, is_json),
    }
}

async fn dispatch(command: Command) -> Result<Done, Failure> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Init(args) => command::init::run(args).await,
        Command::Exec(args) => exec::run(args).await,
        Command::Mcp(args) => mcp::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::DemoTool(args) => demo::tool::run(args).await,
        Command::ExecGuard => exec::guard::run().await,
        Command::Run(args) => command::run::run(args).await,
        Command::Call(args) => command::call::run(args).await,
        Command::Calls(args) => command::calls::run(args).await,
        Command::Unknown(args) => command::unknown::run(args).await,
        Command::Explain(args) => command::explain::run(args).await,
        Command::Resolve(args) => command::resolve::run(args).await,
        Command::Policy(args) => command::policy::run(args).await,
        Command::Receipt(args) => command::receipt::run(args).await,
        Command::ApiKey(args) => command::api_key::run(args).await,
    }
}

fn failed(failure: &Failure, is_json: bool) -> ExitCode {
    let _ = anstream::stderr().write_all(failure.for_people().as_bytes());
    if is_json {
        let _ = writeln!(std::io::stdout(), "{}", failure.to_json());
    }
    ExitCode::from(failure.exit_code())
}
