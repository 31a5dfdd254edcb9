//! What the server says of its tools. Only believed with `--trust-annotations`: a server that
//! calls a tool read-only permits every retry of it.

use std::collections::HashMap;
use std::sync::Mutex;

use recibo_core::effect::Effect;

use super::message::Members;

/// The effects that passing answers to `tools/list` have named. The proxy asks for no list
/// itself: a host lists the tools before it calls one, and a request that the host did not make
/// would be one more thing that differs.
#[derive(Default)]
pub struct Hints(Mutex<HashMap<String, Option<Effect>>>);

impl Hints {
    /// Takes note of an answer to `tools/list`. A tool that is listed again is as it is listed
    /// last.
    pub fn learn(&self, response: &Members<'_>) {
        let Some(tools) = response.object("result").and_then(|result| result.array("tools")) else {
            return;
        };
        let mut known = self.0.lock().expect("no holder panics");
        for tool in tools.into_iter().filter_map(Members::of) {
            if let Some(name) = tool.text("name") {
                known.insert(name.into_owned(), tool.object("annotations").and_then(effect));
            }
        }
    }

    /// What is known of a tool.
    pub fn effect(&self, tool: &str) -> Option<Effect> {
        *self.0.lock().expect("no holder panics").get(tool)?
    }
}

fn effect(annotations: Members<'_>) -> Option<Effect> {
    if annotations.is_true("readOnlyHint") {
        Some(Effect::ReadOnly)
    } else if annotations.is_true("idempotentHint") {
        Some(Effect::Idempotent)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_two_effects_and_the_last_list_counts() {
        let hints = Hints::default();
        let list = r#"{"id":1,"result":{"tools":[
            {"name":"r","annotations":{"readOnlyHint":true,"idempotentHint":false}},
            {"name":"i","annotations":{"readOnlyHint":false,"idempotentHint":true}},
            {"name":"d","annotations":{"destructiveHint":false}},
            {"name":"s","annotations":{"readOnlyHint":"true"}},
            {"name":"n"}, 17]}}"#;
        hints.learn(&Members::of(list).unwrap());
        assert_eq!(hints.effect("r"), Some(Effect::ReadOnly));
        assert_eq!(hints.effect("i"), Some(Effect::Idempotent));
        for tool in ["d", "s", "n", "x"] {
            assert_eq!(hints.effect(tool), None, "{tool}");
        }
        let again = r#"{"id":2,"result":{"tools":[{"name":"r"}]}}"#;
        hints.learn(&Members::of(again).unwrap());
        assert_eq!(hints.effect("r"), None);
        assert_eq!(hints.effect("i"), Some(Effect::Idempotent));
    }
}
