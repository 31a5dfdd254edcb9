//! Breadth first through all worlds, so that the first violation found has a shortest trace.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write as _};

use recibo_core::status::CallState;

use super::laws;
pub use super::laws::Laws;
use super::rules::Rules;
use super::step::{Action, step};
use super::world::{Key, World};

/// What was explored without a violation.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Different worlds.
    pub states: usize,
    /// Steps between them.
    pub transitions: usize,
    /// Length of the longest of all shortest ways.
    pub depth: u32,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, transitions, depth } = self;
        write!(f, "{states} states, {transitions} transitions, {depth} steps deep")
    }
}

/// A law that does not hold, and a shortest way to where it does not.
#[derive(Debug)]
pub struct Violation {
    law: String,
    trace: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\n{}", self.law, self.trace)
    }
}

struct Explored {
    ids: HashMap<Key, u32>,
    /// How each world was reached first.
    parents: Vec<Option<(u32, Action)>>,
    /// Worlds whose call is closed.
    closed: Vec<u32>,
    /// Steps that need no adapter, as (to, from).
    helpless: Vec<(u32, u32)>,
}

/// Looks at every world that can be reached.
pub fn explore(rules: &Rules, laws: Laws) -> Result<Report, Violation> {
    let mut explored = Explored {
        ids: HashMap::new(),
        parents: vec![None],
        closed: Vec::new(),
        helpless: Vec::new(),
    };
    let start = World::new();
    explored.ids.insert(start.key(rules.effect), 0);
    let mut queue = VecDeque::from([(0, 0, start)]);
    let mut report = Report { states: 0, transitions: 0, depth: 0 };
    while let Some((id, depth, world)) = queue.pop_front() {
        report.states += 1;
        report.depth = depth;
        laws::of_world(rules, laws, &world).map_err(|law| explored.violation(rules, law, id))?;
        if is_closed(&world) {
            explored.closed.push(id);
        }
        for action in Action::all(world.sides.len() as u32) {
            let Some(next) = step(rules, &world, action) else { continue };
            report.transitions += 1;
            let next_id = explored.enter(rules, &next, id, action, |next_id| {
                queue.push_back((next_id, depth + 1, next.clone()));
            });
            laws::of_step(rules, laws, &world, action, &next)
                .map_err(|law| explored.violation_after(rules, law, id, action))?;
            if action.needs_no_adapter() && next_id != id {
                explored.helpless.push((next_id, id));
            }
        }
    }
    if laws == Laws::All
        && let Some(stuck) = explored.stuck()
    {
        let law = "no way leads from here to a closed state without help from adapters";
        return Err(explored.violation(rules, law.to_owned(), stuck));
    }
    Ok(report)
}

fn is_closed(world: &World) -> bool {
    matches!(world.state(), CallState::Ok | CallState::Terminal | CallState::Abandoned)
}

impl Explored {
    /// The number of a world; `on_new` is called for one that is seen for the first time.
    fn enter(
        &mut self,
        rules: &Rules,
        world: &World,
        parent: u32,
        action: Action,
        on_new: impl FnOnce(u32),
    ) -> u32 {
        let new_id = self.parents.len() as u32;
        let id = *self.ids.entry(world.key(rules.effect)).or_insert(new_id);
        if id == new_id {
            self.parents.push(Some((parent, action)));
            on_new(id);
        }
        id
    }

    /// A world from which no closed one can be reached, going backward from all closed ones.
    fn stuck(&mut self) -> Option<u32> {
        self.helpless.sort_unstable();
        let mut reached = vec![false; self.parents.len()];
        let mut todo = self.closed.clone();
        while let Some(id) = todo.pop() {
            if std::mem::replace(&mut reached[id as usize], true) {
                continue;
            }
            let first = self.helpless.partition_point(|(to, _)| *to < id);
            let into = self.helpless[first..].iter().take_while(|(to, _)| *to == id);
            todo.extend(into.map(|(_, from)| *from));
        }
        reached.iter().position(|reached| !reached).map(|id| id as u32)
    }

    fn violation(&self, rules: &Rules, law: String, id: u32) -> Violation {
        let mut actions = Vec::new();
        let mut at = id;
        while let Some((parent, action)) = self.parents[at as usize] {
            actions.push(action);
            at = parent;
        }
        actions.reverse();
        Violation { law, trace: tell(rules, &actions) }
    }

    fn violation_after(&self, rules: &Rules, law: String, id: u32, action: Action) -> Violation {
        let Violation { law, mut trace } = self.violation(rules, law, id);
        let _ = writeln!(trace, "then {action}");
        Violation { law, trace }
    }
}

/// A trace as a story: what happened, and what the ledger thought of it.
fn tell(rules: &Rules, actions: &[Action]) -> String {
    let mut world = World::new();
    let mut story = String::new();
    for (index, action) in actions.iter().enumerate() {
        world = step(rules, &world, *action).expect("it happened before");
        let decision = rules.decision(world.call.as_ref(), world.now);
        let _ = writeln!(
            story,
            "{:>3}. {:<55} {} {}, effects: {}",
            index + 1,
            action.to_string(),
            decision.state.as_str(),
            decision.kind.as_str(),
            world.effects
        );
    }
    story
}
