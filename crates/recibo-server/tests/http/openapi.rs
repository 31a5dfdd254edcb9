//! The document of the API is a promise: it changes on purpose or not at all.

use std::collections::BTreeSet;
use std::path::Path;

use recibo_api::Code;
use serde_json::Value;

#[test]
fn the_document_is_the_one_that_was_promised() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/openapi.json");
    let text = recibo_server::openapi_text();
    if std::env::var_os("RECIBO_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let promised = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(promised == text, "api/openapi.json differs; RECIBO_BLESS=1 rewrites it");
}

#[test]
fn every_operation_has_an_id_and_every_reference_a_target() {
    let document: Value = serde_json::from_str(recibo_server::openapi_text()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["title"], "recibo");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut ids = BTreeSet::new();
    let mut codes = BTreeSet::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap()));
            for response in operation["responses"].as_object().unwrap().values() {
                let schema = &response["content"]["application/problem+json"]["schema"];
                let words = &schema["allOf"][1]["properties"]["code"]["enum"];
                codes.extend(words.as_array().into_iter().flatten().filter_map(Value::as_str));
            }
        }
    }
    let off_the_routes =
        [Code::NotFound, Code::MethodNotAllowed, Code::MalformedRequest, Code::HeadTooLarge];
    codes.extend(off_the_routes.map(Code::as_str));
    assert_eq!(codes, Code::ALL.iter().map(|code| code.as_str()).collect());
    for reference in references(&document) {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
}

fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
