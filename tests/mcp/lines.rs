//! Lines as no host should write them, mutated from real ones, in front of a server that reads
//! nearly anything: no effect without a record, and no receipt without a success.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use recibo_core::hash::InputHash;
use recibo_tests::binary::Server;
use serde_json::{Value, json};

use super::mutate::{ANSWERS, burst};
use super::proxy::{Proxy, Stage, calls, receipt, request};

/// Lines in the suite; `just mcp-lines` names more.
const LINES: usize = 1_000;

/// What a server with one way of reading has done with its share of the lines.
struct Played {
    stage: Stage,
    server: Server,
    lines: usize,
    sessions: usize,
    receipts: Vec<String>,
}

fn play(pick: &str, lines: usize, mut random: StdRng) -> Played {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let mut played = Played { stage, server, lines: 0, sessions: 0, receipts: Vec::new() };
    let mut open: Option<Proxy> = None;
    while played.lines < lines {
        let mut proxy = open.take().unwrap_or_else(|| {
            played.sessions += 1;
            played.stage.start_with(&[], pick)
        });
        for _ in 0..random.random_range(1..4) {
            proxy.write(&burst(&mut random));
            played.lines += 1;
        }
        if played.hear(&mut proxy) {
            open = Some(proxy);
        } else {
            played.end(proxy);
        }
    }
    if let Some(proxy) = open {
        played.end(proxy);
    }
    played
}

impl Played {
    /// Hears answers until all that was said has been read; whether the session goes on.
    fn hear(&mut self, proxy: &mut Proxy) -> bool {
        let id = format!("read-{}", self.lines);
        proxy.say(&request(id.as_str(), "ping", json!({})));
        while let Some(line) = proxy.hear_any() {
            self.take(&line);
            if line.contains(&id) {
                return true;
            }
        }
        false
    }

    fn end(&mut self, proxy: Proxy) {
        proxy.end().rest.iter().for_each(|line| self.take(line));
    }

    fn take(&mut self, line: &str) {
        let Ok(answer) = line.parse::<Value>() else { return };
        let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
        self.receipts.extend(answers.iter().filter_map(receipt).map(Into::into));
    }

    fn check(&self) -> (usize, usize) {
        let records = calls(&self.server);
        let (mut recorded, mut proved) = (HashMap::new(), HashMap::new());
        let mut tokens = Vec::new();
        for call in &records {
            let text = |name: &str| call[name].as_str().expect("a text").to_owned();
            let key = (text("tool"), text("input_hash"));
            *recorded.entry(key.clone()).or_insert(0) += 1;
            let attempts = call["attempts"].as_array().expect("attempts");
            let ok = attempts.iter().filter(|record| record["status"] == "ok");
            tokens.extend(ok.clone().filter_map(|record| record["token"].as_str()));
            *proved.entry(key).or_insert(0) += ok.count();
        }
        let effects = self.stage.effects();
        for effect in &effects {
            let tool = effect["tool"].as_str().unwrap_or("no name");
            let arguments = effect["arguments"].to_string();
            let hash = InputHash::of_json(arguments.as_bytes()).map(|hash| hash.to_string());
            let key = (tool.to_owned(), hash.unwrap_or_default());
            let left = recorded.get_mut(&key).filter(|left| **left > 0);
            *left.unwrap_or_else(|| panic!("an effect without a record: {effect}")) -= 1;
            let proofs = proved.get_mut(&key).expect("it has a record");
            *proofs = proofs.saturating_sub(usize::from(is_success(effect)));
        }
        let unproved: Vec<_> = proved.iter().filter(|(_, left)| **left > 0).collect();
        assert!(unproved.is_empty(), "receipts for what did not succeed: {unproved:?}");
        for receipt in &self.receipts {
            assert!(tokens.contains(&receipt.as_str()), "a receipt without a record: {receipt}");
        }
        (records.len(), effects.len())
    }
}

/// Whether the tool may have said that it succeeded. An answer that it was made to say is none, but
/// a mutation may have changed that one too.
fn is_success(effect: &Value) -> bool {
    let said = effect["arguments"]["say"].as_array();
    let is_mutated = |line: &Value| line.as_str().is_none_or(|line| !ANSWERS.contains(&line));
    effect["ok"] == true || said.is_some_and(|lines| lines.iter().any(is_mutated))
}

#[test]
fn no_line_has_an_effect_without_a_record_or_a_receipt_without_a_success() {
    let named = std::env::var("RECIBO_MCP_LINES").ok();
    let lines = named.map_or(LINES, |lines| lines.parse().expect("a number of lines"));
    std::thread::scope(|scope| {
        for (seed, pick) in [(1, "first"), (2, "last")] {
            scope.spawn(move || {
                let played = play(pick, lines / 2, StdRng::seed_from_u64(seed));
                let (records, effects) = played.check();
                let Played { lines, sessions, receipts, .. } = &played;
                println!(
                    "{pick}: {lines} lines, {sessions} sessions, {records} records, {effects} \
                     effects, {} receipts",
                    receipts.len()
                );
                // Without these the test would show nothing.
                assert!(effects * 20 > *lines && !receipts.is_empty() && *sessions > 1);
            });
        }
    });
}
