//! `api/adapter-cases.json`: what every adapter does and says, played against a scripted ledger
//! over real HTTP, and against real ones, embedded and behind the service.
#![forbid(unsafe_code)]

mod case;
mod play;
mod real;
mod script;

use case::Table;

fn table() -> Table {
    let text = include_str!("../../../../api/adapter-cases.json");
    serde_json::from_str(text).expect("the table has its own form")
}

/// Plays the cases that fit, and tells all that fail.
async fn play_all(is_real: bool, play: impl AsyncFn(&Table, &case::Case) -> Result<(), String>) {
    let table = table();
    let mut failures = Vec::new();
    let mut played = 0;
    for case in table.cases.iter().filter(|case| case.ledger.is_some() == is_real) {
        played += 1;
        let result = tokio::time::timeout(play::TOO_LONG, play(&table, case)).await;
        if let Err(why) = result.unwrap_or_else(|_| Err("it hangs".into())) {
            failures.push(format!("{}: {why}", case.name));
        }
    }
    assert!(played > 0);
    assert!(failures.is_empty(), "{} of {played} fail:\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test]
async fn every_case_is_played_as_scripted() {
    play_all(false, async |table, case| play::scripted(table, case).await).await;
}

#[tokio::test]
async fn the_real_cases_hold_embedded() {
    play_all(true, async |_, case| {
        let world = real::World::new()?;
        world.play(case, world.embedded(), None).await
    })
    .await;
}

#[tokio::test]
async fn the_real_cases_hold_behind_the_service() {
    play_all(true, async |_, case| {
        let world = real::World::new()?;
        let url = world.serve().await?;
        let ledger = world.over_http(&url, "adapter")?;
        let reconciler = world.over_http(&url, "reconciler")?;
        world.play(case, ledger, Some(reconciler)).await
    })
    .await;
}

#[test]
fn the_table_names_each_case_once() {
    let table = table();
    let mut names: Vec<_> = table.cases.iter().map(|case| &case.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), table.cases.len());
    assert!(names.len() >= 25);
}
