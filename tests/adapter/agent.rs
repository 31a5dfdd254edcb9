//! An agent that is there to be killed: it calls tools through the adapter, several at once, and
//! again under the same and under new ids. What its tools do to the world is a line in a file.
//! Arguments: the service's address, its API key, that file, the number of the first call.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt;
use recibo_adapter::{
    Adapter, Attempt, Effect, Ledger, Service, Settings, Shown, ToolCall, ToolContract, ToolError,
    ToolOutput, Turn,
};

/// Calls at the same time.
const TASKS: usize = 4;
/// Calls that an agent knows: its own eight, and the eight of the agent before.
const WINDOW: u64 = 16;

type World = Arc<Mutex<File>>;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, key, file, first] = &arguments[..] else { panic!("four arguments") };
    let file = File::options().create(true).append(true).open(file).expect("a file");
    let world = Arc::new(Mutex::new(file));
    let first = first.parse().expect("a number");
    let service = Service::nearby(url, key).expect("a service");
    let settings = Settings { run_id: Some("r".into()), ..Settings::default() };
    let turn = Adapter::new(Ledger::http(service), settings).turn("t");
    let tasks: Vec<_> =
        (0..TASKS).map(|_| tokio::spawn(act(turn.clone(), world.clone(), first))).collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn act(turn: Turn, world: World, first: u64) {
    loop {
        let number = first + rand::rng().random_range(0..WINDOW);
        // Two calls each do the same.
        let what = number / 2;
        let (tool, effect) = [
            ("opaque", Effect::Opaque),
            ("queryable", Effect::Queryable),
            ("keyed", Effect::Keyed),
            ("read", Effect::ReadOnly),
        ][usize::try_from(what % 4).expect("below 4")];
        let contract = ToolContract::new(tool, Shown::Everything)
            .effect(effect)
            .lease(Duration::from_secs(1))
            .wait(Duration::ZERO)
            .backoff(Duration::ZERO, Duration::ZERO);
        let call = ToolCall::new(number.to_string(), format!(r#"{{"what":{what}}}"#));
        let world = world.clone();
        turn.call(&contract, call, move |attempt| tool_of(world.clone(), attempt)).await;
        println!("told");
    }
}

async fn tool_of(world: World, attempt: Attempt) -> Result<ToolOutput, ToolError> {
    let note = |word| {
        let line = format!("{word} {} {}\n", attempt.tool_call_id, attempt.number);
        world.lock().expect("no panic").write_all(line.as_bytes()).expect("a write");
        println!("{word}");
    };
    let luck = rand::rng().random_range(0..10);
    if luck == 0 {
        return Err(ToolError::retryable("busy", ""));
    }
    tokio::task::yield_now().await;
    note("effect");
    tokio::task::yield_now().await;
    if luck == 1 {
        return Err(ToolError::ambiguous("reset", ""));
    }
    note("done");
    Ok(ToolOutput::text("done"))
}
