//! `recibo policy`: what each tool does to the world.

use std::io::Read;
use std::path::PathBuf;

use recibo_api::policy::PolicyBody;

use super::Done;
use crate::cli::Common;
use crate::failure::Failure;
use crate::ledger::{Answer, Ledger, Purpose, Request, find};
use crate::{duration, paint};

/// Arguments of `policy`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show the rules
    Show {
        #[command(flatten)]
        common: Common,
    },
    /// Replace all rules: {"tools": [{"match": "crm/*", "effect": "queryable", ...}]}
    Set {
        /// A JSON file; - reads stdin
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
}

impl Args {
    /// What all commands take.
    pub fn common(&self) -> &Common {
        match &self.action {
            Action::Show { common } | Action::Set { common, .. } => common,
        }
    }
}

/// Shows or replaces the policy.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let (body, purpose) = match &args.action {
        Action::Show { .. } => (None, Purpose::Read),
        Action::Set { file, .. } => (Some(read(file)?), Purpose::Create),
    };
    let ledger = find(&args.common().target, purpose).await?;
    let result = ask(&ledger, body).await;
    ledger.close().await;
    let answer = result?;
    if args.common().json {
        return Ok(Done::document(&answer));
    }
    Ok(Done::said(table(&answer.read()?)))
}

async fn ask(ledger: &Ledger, body: Option<String>) -> Result<Answer, Failure> {
    let path = ["effects", "policy"];
    ledger
        .call(match body {
            Some(body) => Request::put(&path, body),
            None => Request::get(&path),
        })
        .await
}

fn read(file: &PathBuf) -> Result<String, Failure> {
    let mut text = String::new();
    let result = if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    result.map_err(|error| Failure::said(format!("cannot read {}: {error}", file.display())))
}

fn table(policy: &PolicyBody) -> String {
    if policy.tools.is_empty() {
        return "no rules: a tool has the effect that its claims state, opaque if they state \
                none\n"
            .to_owned();
    }
    let width = policy.tools.iter().map(|rule| rule.r#match.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in &policy.tools {
        let numbers = [
            rule.key_window_ms.map(|ms| format!("key window {}", duration::in_words(ms))),
            rule.settle_ms.map(|ms| format!("settles in {}", duration::in_words(ms))),
            rule.max_attempts.map(|n| format!("at most {n} attempts")),
        ];
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        let line = format!(
            "{:width$}  {:<10}  {}",
            rule.r#match,
            rule.effect.0.as_str(),
            numbers.join(", ")
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&paint::faint("the first rule that matches wins\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_shown_in_order_with_their_numbers() {
        let policy: PolicyBody = serde_json::from_str(
            r#"{"tools":[{"match":"crm/*","effect":"queryable","settle_ms":5000,"max_attempts":5},
                {"match":"mail","effect":"keyed","key_window_ms":86400000},
                {"match":"x","effect":"read_only"}]}"#,
        )
        .unwrap();
        assert_eq!(
            paint::plain(&table(&policy)),
            "crm/*  queryable   settles in 5.0 s, at most 5 attempts\n\
             mail   keyed       key window 1 d\n\
             x      read_only\n\
             the first rule that matches wins\n"
        );
        assert!(table(&PolicyBody { tools: Vec::new() }).starts_with("no rules"));
    }
}
