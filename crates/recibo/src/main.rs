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
mod examples;
mod exec;
mod explain;
mod failure;
mod help;
mod layout;
mod ledger;
mod mcp;
mod paint;
mod serve;
mod service;
mod target;
mod timeline;
mod words;

use std::io::Write;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::command::Done;
use crate::failure::Failure;
use crate::target::Target;

fn main() -> ExitCode {
    let cli = Cli::of_process();
    if cli.command.is_on_demand() {
        serve::detach();
    }
    let is_json = cli.command.is_json();
    let is_key_given = cli.command.target().is_some_and(Target::is_key_given);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&Failure::said(format!("no threads to run on: {error}")), false, false);
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
        Err(failure) => failed(&failure, is_json, is_key_given),
    }
}

async fn dispatch(command: Command) -> Result<Done, Failure> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Init(args) => command::init::run(args).await,
        Command::Status(args) => command::status::run(args).await,
        Command::Stop(args) => command::stop::run(args).await,
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
        Command::Help(args) => help::run(args),
    }
}

fn failed(failure: &Failure, is_json: bool, is_key_given: bool) -> ExitCode {
    let _ = anstream::stderr().write_all(failure.for_person(is_key_given).as_bytes());
    if is_json {
        let _ = writeln!(std::io::stdout(), "{}", failure.to_json());
    }
    ExitCode::from(failure.exit_code())
}
