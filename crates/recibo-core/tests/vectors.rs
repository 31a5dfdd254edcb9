//! The published vectors: whoever writes a client tests it against the same file.

use recibo_core::hash::{InputHash, OutputHash, hex};
use recibo_core::receipt::{IdempotencyKey, ScopeKey, SignedFields, Token};
use recibo_core::tree::{Frontier, leaf_hash, root_of};
use recibo_core::{json, zeroclaw};
use serde_json::Value;

/// The cases of one section, which must not be empty.
fn section(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../../api/vectors.json")).unwrap();
    let cases = all[name].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{name}");
    cases
}

fn text<'a>(case: &'a Value, member: &str) -> &'a str {
    case[member].as_str().unwrap_or_else(|| panic!("{member} in {case}"))
}

fn key(case: &Value) -> [u8; 32] {
    let digits = text(case, "key_hex");
    let bytes = (0..64).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap());
    bytes.collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn every_section_is_tested_here() {
    let all: Value = serde_json::from_str(include_str!("../../../api/vectors.json")).unwrap();
    let names: Vec<_> = all.as_object().unwrap().keys().map(String::as_str).collect();
    let tested = [
        "about",
        "canonical",
        "idempotency_key",
        "malformed_tokens",
        "output_hash",
        "raw_text_input",
        "refused",
        "token",
        "tree",
        "zeroclaw_profile",
    ];
    assert_eq!(names, tested);
}

#[test]
fn canonical() {
    for case in section("canonical") {
        let form = json::canonicalize(text(&case, "json").as_bytes()).unwrap();
        assert_eq!(form, text(&case, "canonical"));
        let want: InputHash = text(&case, "input_hash").parse().unwrap();
        assert_eq!(InputHash::of_canonical(&form), want, "{case}");
        assert_eq!(InputHash::of_json(text(&case, "json").as_bytes()), Ok(want));
        assert_eq!(want.to_string(), text(&case, "input_hash"));
    }
}

#[test]
fn refused() {
    for case in section("refused") {
        let error = json::canonicalize(text(&case, "json").as_bytes()).unwrap_err();
        assert_eq!(error.code(), text(&case, "code"), "{case}");
    }
}

#[test]
fn output_hash() {
    for case in section("output_hash") {
        let hash = OutputHash::of_text(text(&case, "text"));
        assert_eq!(hash.to_string(), text(&case, "output_hash"), "{case}");
        let mut spelled = String::new();
        json::write_string(&mut spelled, text(&case, "text"));
        assert_eq!(OutputHash::of_json(spelled.as_bytes()), Ok(hash));
    }
}

#[test]
fn raw_text_input() {
    for case in section("raw_text_input") {
        assert!(json::canonicalize(text(&case, "text").as_bytes()).is_err());
        let mut spelled = String::new();
        json::write_string(&mut spelled, text(&case, "text"));
        let hash = InputHash::of_json(spelled.as_bytes()).unwrap();
        assert_eq!(hash.to_string(), text(&case, "input_hash"), "{case}");
    }
}

#[test]
fn idempotency_key() {
    for case in section("idempotency_key") {
        let call = ["namespace", "run_id", "tool_call_id"].map(|member| text(&case, member));
        let key = IdempotencyKey::derive(call[0], call[1], call[2]);
        assert_eq!(key.to_string(), text(&case, "key"), "{case}");
        assert_eq!(text(&case, "key").parse(), Ok(key));
    }
}

#[test]
fn token() {
    for case in section("token") {
        let fields = SignedFields {
            tool: text(&case, "tool"),
            input_hash: &text(&case, "input_hash").parse().unwrap(),
            output_hash: &text(&case, "output_hash").parse().unwrap(),
            timestamp: case["timestamp"].as_u64().unwrap(),
            namespace: text(&case, "namespace"),
            run_id: text(&case, "run_id"),
            tool_call_id: text(&case, "tool_call_id"),
            attempt: case["attempt"].as_u64().unwrap().try_into().unwrap(),
            scope_id: text(&case, "scope_id"),
        };
        assert_eq!(hex(&fields.message()), text(&case, "message_hex"));
        let key = ScopeKey::new(&mut key(&case));
        let token = key.sign(&fields);
        assert_eq!(token.to_string(), text(&case, "token"));
        assert_eq!(text(&case, "token").parse(), Ok(token));
        assert!(key.verify(&token, &fields));
        assert!(!key.verify(&token, &SignedFields { tool: "other", ..fields }));
    }
}

#[test]
fn malformed_tokens() {
    for case in section("malformed_tokens") {
        assert!(case.as_str().unwrap().parse::<Token>().is_err(), "{case}");
    }
}

#[test]
fn tree() {
    for case in section("tree") {
        let size = case["size"].as_u64().unwrap();
        // Long trees are described instead of listed.
        let lines: Vec<String> = match &case["lines"] {
            Value::Array(lines) => {
                lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
            }
            _ => (0..size).map(|i| format!("{{\"seq\":{i}}}")).collect(),
        };
        assert_eq!(lines.len() as u64, size);
        let leaves: Vec<_> = lines.iter().map(|line| leaf_hash(line.as_bytes())).collect();
        let mut frontier = Frontier::new();
        for leaf in &leaves {
            frontier.push(*leaf, |_, _, _| {});
        }
        assert_eq!(hex(&frontier.root()), text(&case, "root_hex"), "size {size}");
        assert_eq!(hex(&root_of(&leaves)), text(&case, "root_hex"), "size {size}");
    }
}

#[test]
fn zeroclaw_profile() {
    for case in section("zeroclaw_profile") {
        let token: Token = text(&case, "token").parse().unwrap();
        assert_eq!(Some(token.epoch), case["timestamp"].as_u64());
        let [tool, args, result] = ["tool", "args", "result"].map(|member| text(&case, member));
        assert!(zeroclaw::verify(&key(&case), &token, tool, args, result), "{case}");
        assert!(!zeroclaw::verify(&key(&case), &token, tool, args, "other"));
        assert!(!zeroclaw::verify(&[0; 32], &token, tool, args, result));
        let later = Token { epoch: token.epoch + 1, ..token };
        assert!(!zeroclaw::verify(&key(&case), &later, tool, args, result));
    }
}
