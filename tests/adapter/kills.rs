//! The adapter library in a process of its own, which is killed at any step, and so is the
//! service: no effect without a record, no receipt for what did not succeed, and nothing granted
//! again while an earlier one may have taken effect.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use recibo_tests::binary::Server;
use serde_json::Value;

const ROUNDS: u64 = 30;
/// New calls of each round.
const CALLS: u64 = 8;

#[test]
fn kills_of_the_adapter_lose_no_effect_and_repeat_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let world = folder.path().join("world");
    let mut random = StdRng::seed_from_u64(7);
    let mut server = Server::start(&data);
    for round in 0..ROUNDS {
        let mut agent = Agent::start(&server, &world, round * CALLS);
        agent.let_live_for(random.random_range(0..40));
        if round % 5 == 4 {
            server.kill();
            agent.kill();
            server = Server::start(&data);
        } else {
            agent.kill();
        }
    }
    let known = Known::read(&server, &world);
    known.check_effects();
    known.check_receipts();
    known.check_grants();
    known.check_that_it_was_a_test();
}

struct Agent(Child, BufReader<std::process::ChildStdout>);

impl Agent {
    fn start(server: &Server, world: &Path, first: u64) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_recibo-test-agent"))
            .args([&server.api.url, &server.api.key])
            .arg(world)
            .arg(first.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent runs");
        let stdout = child.stdout.take().expect("a pipe");
        Self(child, BufReader::new(stdout))
    }

    /// Until it has taken so many steps.
    fn let_live_for(&mut self, steps: usize) {
        for line in (&mut self.1).lines().take(steps) {
            line.expect("readable output");
        }
    }

    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// A call and one of its attempts.
type Which = (String, u64);

/// What is known in the end: the lines of the world, and the ledger's records.
struct Known {
    effects: Vec<Which>,
    done: BTreeSet<Which>,
    attempts: BTreeMap<Which, Value>,
}

impl Known {
    fn read(server: &Server, world: &Path) -> Self {
        let text = std::fs::read_to_string(world).expect("a file");
        let lines: Vec<(&str, Which)> = text
            .lines()
            .map(|line| {
                let mut words = line.split(' ');
                let mut next = || words.next().expect("three words");
                (next(), (next().to_owned(), next().parse().expect("a number")))
            })
            .collect();
        let of = |word| lines.iter().filter(move |line| line.0 == word).map(|line| line.1.clone());
        let mut attempts = BTreeMap::new();
        for number in 0..(ROUNDS + 1) * CALLS {
            let call = format!("t:{number}");
            let whole = server.api.whole("r", &call);
            if whole.status == 404 {
                continue;
            }
            for record in whole.expect(200).at("attempts").as_array().expect("attempts") {
                let attempt = record["attempt"].as_u64().expect("a number");
                attempts.insert((call.clone(), attempt), record.clone());
            }
        }
        Self { effects: of("effect").collect(), done: of("done").collect(), attempts }
    }

    fn check_effects(&self) {
        for (i, which) in self.effects.iter().enumerate() {
            assert!(self.attempts.contains_key(which), "an effect without a record: {which:?}");
            assert!(!self.effects[..i].contains(which), "two effects of one attempt: {which:?}");
        }
    }

    fn check_receipts(&self) {
        for (which, record) in &self.attempts {
            let has_receipt = !record["token"].is_null();
            assert_eq!(has_receipt, record["status"] == "ok", "{which:?}");
            assert!(!has_receipt || self.done.contains(which), "{which:?} did not succeed");
        }
    }

    /// Of calls that do the same with a tool that must not be repeated, one attempt is granted
    /// only when all before it are known to have ended, those of the other call too.
    fn check_grants(&self) {
        let mut groups: BTreeMap<(&str, &str), Vec<(&Which, &Value)>> = BTreeMap::new();
        for (which, record) in &self.attempts {
            let text = |name: &str| record[name].as_str().expect("a text");
            if matches!(text("effect"), "opaque" | "queryable") {
                let group = groups.entry((text("tool"), text("input_hash"))).or_default();
                group.push((which, record));
            }
        }
        for mut group in groups.into_values() {
            let started = |record: &Value| record["seq"]["started"].as_u64().expect("a number");
            group.sort_by_key(|(_, record)| started(record));
            for (i, (earlier, record)) in group.iter().enumerate() {
                let Some((later, next)) = group.get(i + 1) else { continue };
                let status = record["status"].as_str().expect("a status");
                assert!(
                    matches!(status, "ok" | "retryable_error"),
                    "{later:?} was granted although {earlier:?} is {status}"
                );
                let finished = record["seq"]["finished"].as_u64().expect("a number");
                assert!(finished < started(next), "{later:?} was granted during {earlier:?}");
            }
        }
    }

    fn check_that_it_was_a_test(&self) {
        let count = |status: &str| {
            self.attempts.values().filter(|record| record["status"] == status).count()
        };
        let counts = ["ok", "unknown", "retryable_error"].map(count);
        assert!(counts.iter().all(|count| *count > 3), "{counts:?}");
        let is_lost = |which: &&Which| self.attempts[*which]["status"] != "ok";
        let lost = self.done.iter().filter(is_lost).count();
        assert!(lost > 0, "no kill has hit a call between its effect and its report");
    }
}
