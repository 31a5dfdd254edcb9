//! The one way to a ledger: a request goes in, an answer or a failure comes out. Whether it
//! travels over HTTP to a service or into a router in this process is decided once, when the
//! ledger is found.

mod embedded;
mod find;

use std::borrow::Cow;

pub use find::{Purpose, find, find_for_adapter};
pub use recibo_api::client::Request;
use recibo_api::client::{ClientError, Service};
use recibo_core::visible::visible;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::target::Target;

/// An answer of a ledger.
#[derive(Debug)]
pub struct Answer {
    /// The version of the call, with quotes.
    pub etag: Option<String>,
    /// The document as it came.
    pub body: String,
}

impl From<recibo_api::client::Answer> for Answer {
    fn from(answer: recibo_api::client::Answer) -> Self {
        Self { etag: answer.etag, body: answer.body }
    }
}

impl Answer {
    /// Reads the document for people. This is the one place where foreign text comes in that a
    /// terminal will show, so no control and no format character of it comes through.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let mut document = self.parse()?;
        show(&mut document);
        Ok(serde_json::from_value(document).map_err(unreadable)?)
    }

    /// Reads the document for programs.
    pub fn parse(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.body).map_err(unreadable)?)
    }
}

fn unreadable(error: serde_json::Error) -> ClientError {
    ClientError::Unreadable { cause: error.to_string() }
}

fn show(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(show),
        Value::Object(members) => {
            for (name, mut value) in std::mem::take(members) {
                show(&mut value);
                members.insert(visible(&name).into_owned(), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A ledger to talk to.
pub struct Ledger(Transport);

enum Transport {
    Service(Service),
    Embedded(embedded::Embedded),
}

impl From<Service> for Ledger {
    fn from(service: Service) -> Self {
        Self(Transport::Service(service))
    }
}

impl Ledger {
    /// Sends a request; an answer that is no success is a failure.
    pub async fn call(&self, request: Request) -> Result<Answer, Failure> {
        match &self.0 {
            Transport::Service(service) => Ok(service.call(request).await?.into()),
            Transport::Embedded(embedded) => {
                Ok(embedded.call(request).await?.into_success()?.into())
            }
        }
    }

    /// Finds a ledger, asks it, and closes it whatever came of that.
    pub async fn with<T>(
        target: &Target,
        purpose: Purpose,
        ask: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let ledger = find(target, purpose).await?;
        let result = ask(&ledger).await;
        ledger.close().await;
        result
    }

    /// Closes what was opened here, so that the next process finds it free and tidy.
    pub async fn close(self) {
        if let Transport::Embedded(embedded) = self.0 {
            embedded.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn people_see_hidden_characters_and_programs_get_the_document_as_it_came() {
        let body = "{\"tool\":\"pay\u{202e}tnem\",\"na\\u200bme\":\"\\u001b[2Ja\\nb\"}".to_owned();
        let answer = Answer { etag: None, body: body.clone() };
        let members: BTreeMap<String, String> = answer.read().unwrap();
        let shown = |name: &str| members.get(name).map(String::as_str);
        assert_eq!(shown("tool"), Some("pay\\u{202e}tnem"));
        assert_eq!(shown("na\\u{200b}me"), Some("\\u{1b}[2Ja\\nb"));
        assert_eq!(crate::command::Done::document(&answer).text, format!("{body}\n"));
    }
}
