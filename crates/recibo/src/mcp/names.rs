//! Who speaks to whom: the names in `initialize`, or since 2026-07-28 in `_meta`, become labels of
//! each call, so that the ledger shows which host and which server it was. They are shown to people
//! and never fail a call.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use recibo_adapter::CallSpec;
use recibo_core::id::Labels;
use regex::Regex;

use super::message::Members;

/// The label with the name and version of the host.
const CLIENT: &str = "mcp.client";
/// The label with the name and version of the server.
const SERVER: &str = "mcp.server";
/// The members of `_meta` in requests and results since 2026-07-28, where nothing is initialized.
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Characters of such a label: longer names say nothing more.
const LABEL_CHARS_MAX: usize = 120;

/// Controls, and what changes how a text looks without being seen itself.
static UNSEEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]").expect("a valid pattern"));

/// The labels of the calls of a session.
pub struct Names {
    given: BTreeMap<String, String>,
    learned: Mutex<BTreeMap<&'static str, String>>,
}

impl Names {
    /// With the labels that the user gave.
    pub fn new(given: BTreeMap<String, String>) -> Self {
        Self { given, learned: Mutex::default() }
    }

    /// Takes note of the parameters of a request.
    pub fn learn_client(&self, params: &Members<'_>) {
        let info = params.object("clientInfo");
        self.learn(CLIENT, info.or_else(|| params.object("_meta")?.object(CLIENT_INFO)));
    }

    /// Takes note of an answer.
    pub fn learn_server(&self, response: &Members<'_>) {
        let Some(result) = response.object("result") else { return };
        let info = result.object("serverInfo");
        self.learn(SERVER, info.or_else(|| result.object("_meta")?.object(SERVER_INFO)));
    }

    fn learn(&self, label: &'static str, info: Option<Members<'_>>) {
        let Some(info) = info else { return };
        let part = |name| info.text(name).unwrap_or_default();
        let whole = format!("{} {}", part("name"), part("version"));
        let seen = UNSEEN.replace_all(&whole, "");
        let short: String = seen.trim().chars().take(LABEL_CHARS_MAX).collect();
        let mut learned = self.learned.lock().expect("no holder panics");
        match short.is_empty() {
            true => learned.remove(label),
            false => learned.insert(label, short),
        };
    }

    /// The labels now. What the user gave comes first; a name that no longer fits is left out.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.given.clone();
        for (label, name) in &*self.learned.lock().expect("no holder panics") {
            if labels.contains_key(*label) {
                continue;
            }
            labels.insert((*label).to_owned(), name.clone());
            if Labels::parse(labels.clone()).is_err() {
                labels.remove(*label);
            }
        }
        labels
    }
}

/// The same call without these labels; `None` if it has none.
pub fn without(spec: &CallSpec) -> Option<CallSpec> {
    let mut spec = spec.clone();
    let removed = [CLIENT, SERVER].map(|label| spec.labels.remove(label).is_some());
    removed.contains(&true).then_some(spec)
}

/// Reads `NAME=VALUE` of the command line.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(given: &[(&str, &str)], name: &str, version: &str) -> BTreeMap<String, String> {
        let given = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let names = Names::new(given);
        let info = serde_json::json!({"name": name, "version": version});
        let params = serde_json::json!({"clientInfo": info}).to_string();
        let response = serde_json::json!({"result": {"serverInfo": info}}).to_string();
        names.learn_client(&Members::of(&params).unwrap());
        names.learn_server(&Members::of(&response).unwrap());
        names.labels()
    }

    #[test]
    fn names_are_short_and_show_what_they_are() {
        let labels = learned(&[], "a\u{202e}b\n", "1.0");
        assert_eq!(labels["mcp.client"], "ab 1.0");
        assert_eq!(labels["mcp.server"], "ab 1.0");
        assert_eq!(learned(&[], &"é".repeat(500), "")["mcp.client"].chars().count(), 120);
        assert!(learned(&[], "", "\u{200b}").is_empty());
    }

    #[test]
    fn names_are_learned_where_nothing_is_initialized() {
        let names = Names::new(BTreeMap::new());
        let info = serde_json::json!({"name": "host", "version": "2"});
        let params = serde_json::json!({"name": "t", "_meta": {CLIENT_INFO: info}}).to_string();
        let response = serde_json::json!({"result": {"_meta": {SERVER_INFO: info}}}).to_string();
        names.learn_client(&Members::of(&params).unwrap());
        names.learn_server(&Members::of(&response).unwrap());
        // A request without a name changes nothing.
        names.learn_client(&Members::of("{}").unwrap());
        let labels = names.labels();
        assert_eq!((&*labels["mcp.client"], &*labels["mcp.server"]), ("host 2", "host 2"));
    }

    #[test]
    fn what_the_user_gave_comes_first() {
        let labels = learned(&[("mcp.client", "mine")], "host", "1");
        assert_eq!(labels["mcp.client"], "mine");
        assert_eq!(labels["mcp.server"], "host 1");
        let long = "x".repeat(2000);
        let full = learned(&[("a", &long)], "host", "1.000000000000000000000000000000000000000");
        assert_eq!(full.keys().collect::<Vec<_>>(), ["a"]);
    }
}
