//! `recibo api-key`: who may ask the ledger what.

use recibo_api::answer::{ApiKeyEntry, ApiKeyList};
use recibo_api::{Role, Roles};
use recibo_core::id::Namespace;
use serde_json::json;

use super::{Done, view};
use crate::failure::Failure;
use crate::layout::{self, View};
use crate::ledger::{Ledger, Purpose, Request};
use crate::target::Common;
use crate::{duration, paint};

/// Arguments of `api-key`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Create a key and print it, this once, as JSON
    Create {
        /// adapter, reader, reconciler, operator, auditor or admin; may be given several times
        #[arg(long = "role", value_name = "ROLE", value_parser = role, required = true)]
        roles: Vec<Role>,
        /// The namespace that the key belongs to: one part of the ledger, which sees nothing of
        /// the others
        #[arg(long, value_parser = namespace)]
        namespace: Namespace,
        /// How long it is good, e.g. 90d [default: for ever]
        #[arg(long, value_name = "DURATION", value_parser = expiry)]
        expires: Option<u64>,
        #[command(flatten)]
        common: Common,
    },
    /// List all keys, without the keys themselves
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a key, at once and for ever
    Revoke {
        /// The id of the key, not the key
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

fn namespace(text: &str) -> Result<Namespace, String> {
    Namespace::parse(text).map_err(|error| error.to_string())
}

fn expiry(text: &str) -> Result<u64, String> {
    match duration::parse_ms(text)? {
        0 => Err("a key that is never good is of no use".into()),
        ms => Ok(ms),
    }
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| {
        let words: Vec<_> = Role::ALL.iter().map(|role| role.as_str()).collect();
        format!("one of {} is needed", words.join(", "))
    })
}

impl Args {
    /// What all commands take.
    pub fn common(&self) -> &Common {
        match &self.action {
            Action::Create { common, .. }
            | Action::List { common }
            | Action::Revoke { common, .. } => common,
        }
    }
}

/// Manages API keys.
pub async fn run(args: Args) -> Result<Done, Failure> {
    let purpose = match args.action {
        Action::Create { .. } => Purpose::Create,
        Action::List { .. } => Purpose::Administer,
        Action::Revoke { .. } => Purpose::Change,
    };
    Ledger::with(&args.common().target, purpose, async |ledger| act(ledger, &args).await).await
}

async fn act(ledger: &Ledger, args: &Args) -> Result<Done, Failure> {
    match &args.action {
        Action::Create { roles, namespace, expires, .. } => {
            // In the order of the contract, each once.
            let roles = Roles::new(roles.iter().copied()).into_iter().flat_map(Roles::iter);
            let roles: Vec<_> = roles.map(Role::as_str).collect();
            let mut body = json!({"roles": roles, "namespace": namespace.as_str()});
            if let Some(ms) = expires {
                body["expires_in_ms"] = json!(ms);
            }
            // One document in any case: it is the only copy, and the next step is a script's.
            Ok(Done::document(&ledger.call(Request::post(&["api-keys"], &body)).await?))
        }
        Action::List { common } => {
            let answer = ledger.call(Request::get(&["api-keys"])).await?;
            match common.json {
                true => Ok(Done::document(&answer)),
                false => Ok(Done::said(table(&answer.read()?, view(&common.target)))),
            }
        }
        Action::Revoke { id, common } => {
            let answer = ledger.call(Request::delete(&["api-keys", id])).await?;
            match common.json {
                true if !answer.body.is_empty() => Ok(Done::document(&answer)),
                true => Ok(Done::said(format!("{}\n", json!({"id": id, "revoked": true})))),
                false => Ok(Done::said(format!("{id} is revoked\n"))),
            }
        }
    }
}

fn table(list: &ApiKeyList, view: View) -> String {
    let row = |key: &ApiKeyEntry| {
        let condition = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => paint::bad(&format!("revoked {}", at.0)),
            (None, Some(end)) if end.0 <= view.now => paint::bad(&format!("expired {}", end.0)),
            (None, Some(end)) => format!("good until {}", end.0),
            (None, None) => "good".to_owned(),
        };
        let created = format!("created {}", key.created_at.0);
        let roles: Vec<_> = key.roles.iter().map(|role| role.0.as_str()).collect();
        vec![key.id.clone(), roles.join(","), key.namespace.clone(), created, condition]
    };
    let rows: Vec<_> = list.api_keys.iter().map(row).collect();
    layout::table(&rows, view.width)
}
