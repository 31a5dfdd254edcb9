//! A client that asks for exactly what a test says, and keeps the whole answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Speaks to one service with one API key.
#[derive(Clone)]
pub struct Api {
    agent: ureq::Agent,
    /// Where the service is.
    pub url: String,
    /// Sent as bearer; empty for none.
    pub key: String,
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body as text.
    pub text: String,
    /// Body as JSON; null if it is none.
    pub json: Value,
}

impl Reply {
    /// A member of the body; null if there is none.
    pub fn at(&self, name: &str) -> &Value {
        &self.json[name]
    }

    /// A member that must be a string.
    pub fn str(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_else(|| panic!("no string {name} in {}", self.text))
    }

    /// Status and problem code.
    pub fn problem(&self) -> (u16, &str) {
        assert_eq!(
            self.headers.get("content-type").map(String::as_str),
            Some("application/problem+json"),
            "{}",
            self.text
        );
        assert_eq!(self.json["status"], self.status);
        (self.status, self.str("code"))
    }

    /// Fails the test unless the status is this one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl Api {
    /// A client for this service.
    pub fn new(url: &str, key: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(std::time::Duration::from_secs(60)))
            .max_idle_connections_per_host(4)
            .build();
        Self { agent: config.into(), url: url.to_owned(), key: key.to_owned() }
    }

    /// The same service with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// Sends a request with raw body and headers. `Err` if no answer came.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, ureq::Error> {
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if !self.key.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.to_vec()).expect("a request");
        let mut answer = self.agent.run(request)?;
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("").to_owned()))
            .collect();
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string()?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Reply { status, headers, text, json })
    }

    /// Sends JSON and gives the answer; fails the test if none comes.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends JSON. `Err` if no answer came.
    pub fn try_call(&self, method: &str, path: &str, body: &Value) -> Result<Reply, ureq::Error> {
        if body.is_null() {
            return self.send(method, path, &[], b"");
        }
        let headers = [("content-type", "application/json")];
        self.send(method, path, &headers, body.to_string().as_bytes())
    }

    /// Reads.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.call("GET", path, &Value::Null)
    }

    /// Posts.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.call("POST", path, body)
    }

    /// Opens a scope and gives its id.
    #[track_caller]
    pub fn scope(&self) -> String {
        self.post("/v1/scopes", &json!({})).expect(201).str("scope_id").to_owned()
    }

    /// Claims with what every claim needs, and more or other members.
    #[track_caller]
    pub fn claim(&self, run: &str, call: &str, scope: &str, claim_id: &str, more: Value) -> Reply {
        let mut body = json!({
            "scope_id": scope, "claim_id": claim_id, "tool": "t", "input": {"a": 1},
        });
        merge(&mut body, more);
        self.post(&format!("{}/attempts", call_path(run, call)), &body)
    }

    /// Reports an outcome.
    #[track_caller]
    pub fn report(&self, run: &str, call: &str, attempt: u64, body: Value) -> Reply {
        let path = format!("{}/attempts/{attempt}/outcome", call_path(run, call));
        self.post(&path, &body)
    }

    /// A whole call.
    #[track_caller]
    pub fn whole(&self, run: &str, call: &str) -> Reply {
        self.get(&call_path(run, call))
    }

    /// What the table says.
    #[track_caller]
    pub fn decision(&self, run: &str, call: &str) -> Reply {
        self.get(&format!("{}/decision", call_path(run, call))).expect(200)
    }

    /// Puts an effect policy in force.
    #[track_caller]
    pub fn policy(&self, tools: Value) {
        self.call("PUT", "/v1/effects/policy", &json!({ "tools": tools })).expect(200);
    }
}

/// Members of `more` replace those of `body`; a null removes.
fn merge(body: &mut Value, more: Value) {
    let (Value::Object(body), Value::Object(more)) = (body, more) else { return };
    for (name, value) in more {
        if value.is_null() {
            body.remove(&name);
        } else {
            body.insert(name, value);
        }
    }
}

/// The path of a call; ids are percent-encoded.
pub fn call_path(run: &str, call: &str) -> String {
    format!("/v1/runs/{}/calls/{}", encode(run), encode(call))
}

/// Percent-encodes everything but unreserved characters.
pub fn encode(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let encode = |b: u8| if is_plain(b) { (b as char).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(encode).collect()
}
