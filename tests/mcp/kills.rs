//! A tool with a side effect behind `recibo mcp`, while server, proxy and service are killed at
//! each of their steps: never a second effect, and every call ends explainable.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rand::Rng;
use rand::seq::IndexedRandom;
use recibo_tests::binary::{self, Server};
use recibo_tests::worlds::side_by_side;
use serde_json::{Value, json};

/// Calls; each is tried three times, with a kill each time.
const CALLS: u64 = 80;
const TRIES: usize = 3;
/// Worlds side by side, each with a folder and a service of its own.
const WORLDS: u64 = 8;

/// A server that is a shell script: it answers `initialize`, and to a call it does what its
/// variables say around an effect that is counted. `$PPID` is the proxy.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"tools/call"'*)
      eval "$BEFORE"
      echo done >> "$EFFECTS"
      eval "$AFTER"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}\n' "$id"
      ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

/// What dies, and when.
#[derive(Clone, Copy, Debug)]
enum Kill {
    Nothing,
    ServiceBeforeCall,
    /// Right after the call was written to it; most often it has claimed nothing yet.
    ProxyAtOnce,
    ServerBeforeEffect,
    ServerAfterEffect,
    ProxyBeforeEffect,
    ProxyAfterEffect,
    ServiceBeforeEffect,
    ServiceAfterEffect,
    ServiceAfterOutcome,
}

const KILLS: [Kill; 10] = [
    Kill::Nothing,
    Kill::ServiceBeforeCall,
    Kill::ProxyAtOnce,
    Kill::ServerBeforeEffect,
    Kill::ServerAfterEffect,
    Kill::ProxyBeforeEffect,
    Kill::ProxyAfterEffect,
    Kill::ServiceBeforeEffect,
    Kill::ServiceAfterEffect,
    Kill::ServiceAfterOutcome,
];

struct World {
    folder: PathBuf,
    service: Option<Server>,
}

#[test]
fn kills_at_any_step_of_a_proxied_call_never_double_an_effect() {
    side_by_side(WORLDS, |folder, mut random| {
        let mut world = World { folder, service: None };
        world.set_policy();
        for call in 0..CALLS / WORLDS {
            world.play(call, &mut random);
        }
    });
}

impl World {
    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn service(&mut self) -> &Server {
        let data = self.data();
        self.service.get_or_insert_with(|| Server::start(&data))
    }

    fn set_policy(&mut self) {
        self.service().api.policy(json!([{"match": "queryable", "effect": "queryable"}]));
    }

    fn play(&mut self, call: u64, random: &mut impl Rng) {
        let tool = *["opaque", "queryable"].choose(random).expect("not empty");
        let mut kills = Vec::new();
        // Tried again and again under one id, as a host would that resumes, with a kill each time.
        for number in 0..TRIES {
            let kill = *KILLS.choose(random).expect("not empty");
            let told_done = self.attempt(call, tool, kill);
            kills.push((kill, told_done));
            let is_harmless =
                matches!(kill, Kill::Nothing | Kill::ServiceBeforeCall | Kill::ServiceAfterOutcome);
            // A proxy that refused everything would pass all else.
            if number == 0 && is_harmless {
                assert!(told_done, "{call} ({tool}) was not run with {kill:?}");
            }
        }
        let effects = self.effects(call);
        assert!(effects <= 1, "{effects} effects of {call} ({tool}) after {kills:?}");
        if kills.iter().any(|(_, told_done)| *told_done) {
            assert_eq!(effects, 1, "{call} ({tool}) was told to be done after {kills:?}");
        }
        self.explain(call, effects, &format!("{call} ({tool}) after {kills:?}"));
    }

    /// Whether the host was told of a success.
    fn attempt(&mut self, call: u64, tool: &str, kill: Kill) -> bool {
        let service = self.service().pid();
        if matches!(kill, Kill::ServiceBeforeCall) {
            self.service.take().expect("it runs").kill();
        }
        let (before, after) = match kill {
            Kill::ServerBeforeEffect => ("kill -9 $$".to_owned(), String::new()),
            Kill::ServerAfterEffect => (String::new(), "kill -9 $$".to_owned()),
            Kill::ProxyBeforeEffect => ("kill -9 $PPID".to_owned(), String::new()),
            Kill::ProxyAfterEffect => (String::new(), "kill -9 $PPID".to_owned()),
            Kill::ServiceBeforeEffect => (format!("kill -9 {service}"), String::new()),
            Kill::ServiceAfterEffect => (String::new(), format!("kill -9 {service}")),
            _ => (String::new(), String::new()),
        };
        let mut proxy = Command::new(binary::path())
            // A lease that ends between the tries, so that its end is met too.
            .args(["mcp", "--run", "r", "--session", "s", "--lease", "1s", "--wait", "3s"])
            .arg("--data")
            .arg(self.data())
            .args(["--", "sh", "-c", SERVER])
            .env("EFFECTS", self.effect_file(call))
            .env("BEFORE", before)
            .env("AFTER", after)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut input = proxy.stdin.take().expect("a pipe");
        let mut output = BufReader::new(proxy.stdout.take().expect("a pipe")).lines();
        let request = json!({
            "jsonrpc": "2.0", "id": call, "method": "tools/call",
            "params": {"name": tool, "arguments": {"call": call}},
        });
        // Whoever is killed reads no more.
        let _ = writeln!(input, "{request}");
        let answer = match kill {
            Kill::ProxyAtOnce => {
                proxy.kill().expect("it was started");
                None
            }
            _ => output.next().and_then(Result::ok),
        };
        drop(input);
        proxy.wait().expect("it ends");
        // The guard of a killed proxy sees to it that the server ends: then its stdout does.
        for line in output {
            let _ = line;
        }
        if matches!(
            kill,
            Kill::ServiceBeforeEffect | Kill::ServiceAfterEffect | Kill::ServiceAfterOutcome
        ) && let Some(service) = self.service.take()
        {
            service.kill();
        }
        let answer: Value = answer.map_or(Value::Null, |line| {
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"))
        });
        answer["result"]["content"][0]["text"] == "done"
    }

    fn effect_file(&self, call: u64) -> PathBuf {
        self.folder.join(format!("effect-{call}"))
    }

    fn effects(&self, call: u64) -> usize {
        let text = std::fs::read_to_string(self.effect_file(call)).unwrap_or_default();
        text.lines().count()
    }

    fn explain(&mut self, call: u64, effects: usize, what: &str) {
        let id = format!("s:{call}");
        self.service();
        let text = explain(&self.data(), &id);
        assert!(text.contains(&id), "{what}: {text}");
        let decision = self.service().api.decision("r", &id);
        let is_known = ["ok", "in_flight", "unknown", "retryable", "terminal", "absent"]
            .contains(&decision.str("state"));
        assert!(is_known, "{what}: {}", decision.text);
        // Once there was an effect, nobody is told to go on, and nobody is told that there was none.
        if effects == 1 {
            assert_ne!(decision.str("decision"), "proceed", "{what}");
            assert_ne!(decision.str("state"), "absent", "{what}");
        }
    }
}

fn explain(data: &Path, id: &str) -> String {
    let output = Command::new(binary::path())
        .args(["explain", "r", id, "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{id}: {why}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
