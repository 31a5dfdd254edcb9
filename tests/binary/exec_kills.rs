//! A tool with a side effect, run through `recibo exec`, while tool, `exec` and service are
//! killed at each of their steps: never a second effect, and every call ends explainable.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rand::Rng;
use rand::seq::IndexedRandom;
use recibo_tests::binary::{self, Server};
use recibo_tests::worlds::side_by_side;

const RUNS: u64 = 200;
/// Worlds side by side, each with a folder and a service of its own.
const WORLDS: u64 = 8;

/// What dies, and when. A shell script is the tool, so it can kill in the middle.
#[derive(Clone, Copy, Debug)]
enum Kill {
    Nothing,
    ServiceBeforeClaim,
    /// As soon as it is started; most often it has claimed nothing yet.
    ExecAtOnce,
    ExecAfterClaim,
    ServiceAfterClaim,
    ToolBeforeEffect,
    ToolAfterEffect,
    ExecAfterEffect,
    ServiceAfterEffect,
    ServiceAfterOutcome,
}

const KILLS: [Kill; 10] = [
    Kill::Nothing,
    Kill::ServiceBeforeClaim,
    Kill::ExecAtOnce,
    Kill::ExecAfterClaim,
    Kill::ServiceAfterClaim,
    Kill::ToolBeforeEffect,
    Kill::ToolAfterEffect,
    Kill::ExecAfterEffect,
    Kill::ServiceAfterEffect,
    Kill::ServiceAfterOutcome,
];

struct World {
    folder: PathBuf,
    server: Option<Server>,
}

#[test]
fn kills_at_any_step_never_double_an_effect() {
    side_by_side(WORLDS, |folder, mut random| {
        let mut world = World { folder, server: None };
        for run in 0..RUNS / WORLDS {
            world.play(run, &mut random);
        }
    });
}

impl World {
    fn play(&mut self, run: u64, random: &mut impl Rng) {
        let call = format!("call-{run}");
        let effect = *["opaque", "queryable"].choose(random).expect("not empty");
        let mut kills = Vec::new();
        // Tried again and again, as an agent would, with a kill each time.
        for _ in 0..3 {
            let kill = *KILLS.choose(random).expect("not empty");
            kills.push(kill);
            self.attempt(&call, effect, kill);
        }
        let effects = self.effects(&call);
        assert!(effects <= 1, "{effects} effects of {call} ({effect}) after {kills:?}");
        self.explain(&call, &kills);
        if effects == 1 {
            self.check_decision(&call, &kills);
        }
    }

    fn attempt(&mut self, call: &str, effect: &str, kill: Kill) {
        let data = self.folder.join("data");
        let server = self.server.take().unwrap_or_else(|| Server::start(&data));
        let service = server.pid();
        if matches!(kill, Kill::ServiceBeforeClaim) {
            server.kill();
            self.exec(&data, call, effect, kill, service);
            return;
        }
        self.exec(&data, call, effect, kill, service);
        match kill {
            Kill::ServiceAfterOutcome | Kill::ServiceAfterClaim | Kill::ServiceAfterEffect => {
                server.kill();
            }
            _ => self.server = Some(server),
        }
    }

    fn exec(&self, data: &Path, call: &str, effect: &str, kill: Kill, service: u32) {
        let file = self.effect_file(call);
        let act = format!("echo done >> '{}'", file.display());
        let script = match kill {
            Kill::ExecAfterClaim => format!("kill -9 $PPID; {act}"),
            Kill::ServiceAfterClaim => format!("kill -9 {service}; {act}"),
            Kill::ToolBeforeEffect => format!("kill -9 $$; {act}"),
            Kill::ToolAfterEffect => format!("{act}; kill -9 $$"),
            Kill::ExecAfterEffect => format!("{act}; kill -9 $PPID"),
            Kill::ServiceAfterEffect => format!("{act}; kill -9 {service}"),
            Kill::Nothing
            | Kill::ServiceBeforeClaim
            | Kill::ExecAtOnce
            | Kill::ServiceAfterOutcome => act,
        };
        let mut exec = Command::new(binary::path())
            .args(["exec", "--run", "r", "--call", call, "--tool", "t", "--input", "1"])
            // Long enough for the lease of a killed one to end, so that its end is met too.
            .args(["--effect", effect, "--lease", "1s", "--wait", "3s", "--data"])
            .arg(data)
            .args(["--", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        if matches!(kill, Kill::ExecAtOnce) {
            exec.kill().expect("it was started");
        }
        let status = exec.wait().expect("it ends");
        // 2 would mean that this test speaks wrongly, 30 that the ledger refuses it.
        assert!(!matches!(status.code(), Some(2 | 30)), "{kill:?} {status}");
    }

    fn effect_file(&self, call: &str) -> PathBuf {
        self.folder.join(format!("effect-{call}"))
    }

    fn effects(&self, call: &str) -> usize {
        let text = std::fs::read_to_string(self.effect_file(call)).unwrap_or_default();
        text.lines().count()
    }

    fn explain(&self, call: &str, kills: &[Kill]) {
        let output = Command::new(binary::path())
            .args(["explain", "r", call, "--data"])
            .arg(self.folder.join("data"))
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{call} after {kills:?}: {text}{why}");
        assert!(text.contains(call), "{text}");
    }

    /// Once there was an effect, nobody is told to go on.
    fn check_decision(&mut self, call: &str, kills: &[Kill]) {
        let data = self.folder.join("data");
        let server = self.server.get_or_insert_with(|| Server::start(&data));
        let decision = server.api.decision("r", call);
        assert_ne!(decision.str("decision"), "proceed", "{call} after {kills:?}");
    }
}
