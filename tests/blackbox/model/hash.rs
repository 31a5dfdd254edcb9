//! Hashes as section 3 describes them, written anew.

use std::collections::BTreeMap;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Canonical JSON of arguments whose names and values need no escapes and no doubles.
pub fn canonical(members: &BTreeMap<&str, Value>) -> String {
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

/// `sha256:` and the digest of a text.
pub fn sha256(text: &str) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
}

/// The key that names the effect of a call.
pub fn idempotency_key(namespace: &str, run: &str, call: &str) -> String {
    let mut framed = Vec::new();
    for field in ["recibo-idempotency-key-v1", namespace, run, call] {
        framed.extend(u32::try_from(field.len()).expect("a short field").to_be_bytes());
        framed.extend(field.as_bytes());
    }
    format!("rk1_{}", BASE32_NOPAD.encode(&Sha256::digest(&framed)).to_lowercase())
}

#[test]
fn the_models_own_hashes_agree_with_the_worked_values() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/vectors.json");
    let text = std::fs::read_to_string(file).expect("worked values");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let keys = all["idempotency_key"].as_array().expect("a list");
    assert!(!keys.is_empty());
    for key in keys {
        let part = |name: &str| key[name].as_str().unwrap_or_else(|| panic!("{name} in {key}"));
        let made = idempotency_key(part("namespace"), part("run_id"), part("tool_call_id"));
        assert_eq!(made, part("key"));
    }
}
