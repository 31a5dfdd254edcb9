//! The document of the API is a promise: it changes on purpose or not at all.

use std::collections::BTreeSet;
use std::path::Path;

use recibo_api::Code;
use recibo_core::id::RunId;
use recibo_core::receipt::Token;
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

/// All parameters of all operations, with the operation's id.
fn parameters(document: &Value) -> Vec<(&str, &Value)> {
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|operations| operations.as_object().unwrap().values());
    let parameters = operations.flat_map(|operation| {
        let id = operation["operationId"].as_str().unwrap();
        let own = operation["parameters"].as_array().into_iter().flatten();
        own.map(move |parameter| (id, parameter))
    });
    parameters.collect()
}

#[test]
fn patterns_of_ids_are_those_that_are_enforced() {
    let document: Value = serde_json::from_str(recibo_server::openapi_text()).unwrap();
    let digest = "A".repeat(43);
    let token = |seconds: &str| format!("zc-receipt-{seconds}-{digest}");
    let texts = [
        "",
        ".",
        "..",
        "...",
        "a",
        "-",
        "~",
        ".a",
        "a.",
        "-.",
        "a/b",
        "/",
        " ",
        "a b",
        "\u{7f}",
        "é",
        "%",
        "zc-receipt-1-",
        "zc-receipt-x-y",
    ];
    let mut texts = texts.map(str::to_owned).to_vec();
    texts.extend(["x".repeat(256), "x".repeat(257), token("0"), token("1"), token("01")]);
    let mut checked = 0;
    for (operation, parameter) in parameters(&document) {
        let name = parameter["name"].as_str().unwrap();
        if parameter["in"] == "header" || ["id", "page_token"].contains(&name) {
            continue;
        }
        let schema = &parameter["schema"];
        if let Some(pattern) = schema["pattern"].as_str() {
            let pattern = regex::Regex::new(pattern).unwrap();
            for text in &texts {
                let is_good = match name {
                    "token" => text.parse::<Token>().is_ok(),
                    _ => RunId::parse(text).is_ok(),
                };
                assert_eq!(pattern.is_match(text), is_good, "{operation} {name} {text:?}");
            }
            checked += 1;
        } else {
            let is_bounded = schema["enum"].is_array()
                || schema["minimum"].is_u64() && schema["maximum"].is_u64();
            assert!(is_bounded, "{operation} {name}: {schema}");
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn what_must_be_sent_is_required_and_a_left_out_body_is_not_null() {
    let document: Value = serde_json::from_str(recibo_server::openapi_text()).unwrap();
    let if_match = parameters(&document).into_iter().find(|(_, p)| p["name"] == "if-match");
    assert_eq!(if_match.unwrap().1["required"], true);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            let Some(body) = operation.get("requestBody") else { continue };
            assert_eq!(body["required"], path != "/v1/scopes", "{path}");
            let schema = &body["content"]["application/json"]["schema"];
            assert!(schema["$ref"].is_string(), "{path}: {schema}");
        }
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
