//! `recibo policy`: what each tool does to the world.

use std::path::PathBuf;

use recibo_api::policy::{PolicyBody, PolicyRule};

use super::{Done, source};
use crate::failure::Failure;
use crate::layout::{self, Width};
use crate::ledger::{Answer, Ledger, Purpose, Request};
use crate::target::Common;
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
        Action::Set { file, .. } => (Some(source::text(file)?), Purpose::Create),
    };
    let target = &args.common().target;
    let answer = Ledger::with(target, purpose, async |ledger| ask(ledger, body).await).await?;
    if args.common().json {
        return Ok(Done::document(&answer));
    }
    Ok(Done::said(table(&answer.read()?, Width::of_stdout())))
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

fn table(policy: &PolicyBody, width: Width) -> String {
    if policy.tools.is_empty() {
        return "no rules: a tool has the effect that its claims state, opaque if they state \
                none\n"
            .to_owned();
    }
    let row = |rule: &PolicyRule| {
        let numbers = [
            rule.key_window_ms.map(|ms| format!("key window {}", duration::in_words(ms))),
            rule.settle_ms.map(|ms| format!("settles after {}", duration::in_words(ms))),
            rule.max_attempts.map(|n| format!("at most {n} attempts")),
        ];
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        vec![rule.r#match.clone(), rule.effect.0.as_str().to_owned(), numbers.join(", ")]
    };
    let rows: Vec<_> = policy.tools.iter().map(row).collect();
    let mut text = layout::table(&rows, width);
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
            paint::plain(&table(&policy, Width::fixed(80))),
            "crm/*  queryable  settles after 5.0 s, at most 5 attempts\n\
             mail   keyed      key window 1 d\n\
             x      read_only\n\
             the first rule that matches wins\n"
        );
        assert!(table(&PolicyBody { tools: Vec::new() }, Width::fixed(80)).starts_with("no rules"));
    }
}
