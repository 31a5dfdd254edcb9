//! The bounds of integers that the document states are those that are enforced.

use recibo_api::Role;
use serde_json::{Value, json};

use crate::harness::{Reply, Service};
use crate::roles::{body, url};

fn document() -> Value {
    serde_json::from_str(recibo_server::openapi_text()).unwrap()
}

/// Method, path and description.
type Operation<'d> = (String, &'d str, &'d Value);

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (method.to_uppercase(), path.as_str(), operation))
    });
    operations.collect()
}

/// The integers among the members of a schema.
fn integers<'d>(document: &'d Value, schema: &str) -> Vec<(&'d str, &'d Value)> {
    let schema = &document["components"]["schemas"][schema];
    let members = schema["properties"].as_object().unwrap().iter();
    let integers = members.filter(|(_, schema)| is_integer(schema));
    integers.map(|(name, schema)| (name.as_str(), schema)).collect()
}

fn is_integer(schema: &Value) -> bool {
    schema["type"] == "integer" || schema["type"][0] == "integer"
}

/// Values at both bounds and beside them, and whether each is good.
fn values(schema: &Value) -> [(i64, bool); 4] {
    let bound = |name: &str| schema[name].as_i64().unwrap_or_else(|| panic!("no {name}: {schema}"));
    let (minimum, maximum) = (bound("minimum"), bound("maximum"));
    [(minimum - 1, false), (minimum, true), (maximum, true), (maximum + 1, false)]
}

/// Whether a value was refused for what it is.
fn is_refused(reply: &Reply) -> bool {
    reply.status == 400 || reply.text("code") == "policy_invalid"
}

#[tokio::test]
async fn integers_of_bodies_have_the_bounds_that_are_enforced() {
    let service = Service::start().await;
    let document = document();
    let mut checked = 0;
    for (method, path, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let Some(name) = schema.as_str().and_then(|name| name.rsplit('/').next()) else { continue };
        let is_policy = name == "PolicyBody";
        let name = if is_policy { "PolicyRule" } else { name };
        for (member, schema) in integers(&document, name) {
            for (value, is_good) in values(schema) {
                let mut sent = body(&method, path).unwrap();
                if is_policy {
                    sent["tools"] = json!([{"match": "crm/*", "effect": "opaque"}]);
                }
                let part = if is_policy { &mut sent["tools"][0] } else { &mut sent };
                part[member] = json!(value);
                let ask = service.ask(Role::Admin, &method, &url(path)).json(sent);
                let reply = ask.send().await;
                assert_eq!(is_refused(&reply), !is_good, "{name}.{member} {value}: {reply:?}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 76, "{checked}");
}

#[tokio::test]
async fn integers_of_paths_and_queries_have_the_bounds_that_are_enforced() {
    let service = Service::start().await;
    let document = document();
    let mut checked = 0;
    for (method, path, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            if !is_integer(schema) {
                continue;
            }
            for (value, is_good) in values(schema) {
                let url = if parameter["in"] == "path" {
                    url(&path.replace(&format!("{{{name}}}"), &value.to_string()))
                } else {
                    format!("{}?{name}={value}", url(path))
                };
                let mut ask = service.ask(Role::Admin, &method, &url);
                if let Some(body) = body(&method, path) {
                    ask = ask.json(body);
                }
                let reply = ask.send().await;
                assert_eq!(is_refused(&reply), !is_good, "{name} {value}: {reply:?}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 24, "{checked}");
}
