//! Reading what the host says, strictly. A server may read otherwise than this proxy: members in
//! any case, several messages a line, numbers that JSON does not have. Whatever is not plainly one
//! message to every reader is not passed on, so that no tool call reaches a server unseen.

use std::borrow::Cow;

use recibo_core::json::{canonicalize, write_string};
use serde_json::value::RawValue;

use super::message::{Id, Members, elements, is_spelling_of, string};

/// No JSON text.
const PARSE_ERROR: i32 = -32700;
/// A JSON text that is no JSON-RPC message.
const INVALID_REQUEST: i32 = -32600;
/// The one method that is recorded.
pub const CALL: &str = "tools/call";

/// A line of the host.
pub enum HostLine<'a> {
    /// Nothing but white space.
    Blank,
    /// One message.
    One(HostMessage<'a>),
    /// Several at once, each with its text.
    Batch(Vec<(&'a str, Result<HostMessage<'a>, Unfit>)>),
}

/// A message of the host.
pub enum HostMessage<'a> {
    /// A tool call.
    Call(HostCall<'a>),
    /// A tool call without an id: nothing can be recorded of it.
    CallWithoutId,
    /// Another request.
    Request(Id, Cow<'a, str>, Members<'a>),
    /// A notification.
    Notification(Cow<'a, str>, Members<'a>),
    /// The answer to a request of the server.
    Response,
}

/// A tool call as it was read.
pub struct HostCall<'a> {
    /// The id.
    pub id: Id,
    /// The id as it came.
    pub raw_id: &'a str,
    /// The tool.
    pub tool: Cow<'a, str>,
    /// The parameters.
    pub params: Members<'a>,
}

/// What is not passed on, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfit {
    code: i32,
    /// The reason, for stderr and for the host. Holds nothing of the line.
    pub reason: String,
    raw_id: String,
    /// Whether the line may be part of another framing than one message a line.
    pub framing: Framing,
}

/// What a line that is not passed on says of the framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message a line, as it should be.
    Lines,
    /// The message goes on in the next line, if that is no message either.
    Open,
    /// Headers stand before the messages.
    Headers,
}

impl Unfit {
    fn parse(reason: impl Into<String>) -> Self {
        let raw_id = "null".to_owned();
        Self { code: PARSE_ERROR, reason: reason.into(), raw_id, framing: Framing::Lines }
    }

    fn request(raw_id: Option<&str>, reason: impl Into<String>) -> Self {
        let raw_id = raw_id.unwrap_or("null").to_owned();
        Self { code: INVALID_REQUEST, reason: reason.into(), raw_id, framing: Framing::Lines }
    }

    /// The id of a request is in use, or too many are.
    pub fn taken(raw_id: &str, reason: &str) -> Self {
        Self::request(Some(raw_id), reason)
    }

    /// The answer to the host.
    pub fn answer(&self) -> String {
        let mut answer = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":"#, self.raw_id);
        answer.push_str(&self.code.to_string());
        answer.push_str(r#","message":"#);
        write_string(&mut answer, &format!("recibo: not passed on: {}", self.reason));
        answer.push_str("}}");
        answer
    }
}

/// Reads a line.
pub fn read(line: &[u8]) -> Result<HostLine<'_>, Unfit> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(HostLine::Blank);
    }
    if is_header(line) {
        let reason = "headers before messages (Content-Length) are the framing of another \
             protocol; MCP over stdio has one message a line";
        return Err(Unfit { framing: Framing::Headers, ..Unfit::parse(reason) });
    }
    let text = std::str::from_utf8(line).map_err(|_| Unfit::parse("the line is not UTF-8"))?;
    if text.contains('\r') {
        // Python's text streams end a line there.
        return Err(Unfit::parse("a carriage return in the middle of a line"));
    }
    is_one_text(text)?;
    if text.trim_ascii_start().starts_with('[') {
        let elements = elements(text).unwrap_or_default();
        if elements.is_empty() {
            return Err(Unfit::request(None, "an empty batch"));
        }
        let read = |element| (element, message(element));
        return Ok(HostLine::Batch(elements.into_iter().map(read).collect()));
    }
    message(text).map(HostLine::One)
}

fn is_header(line: &[u8]) -> bool {
    let begins = |name: &[u8]| {
        let line = line.trim_ascii_start();
        line.len() >= name.len() && line[..name.len()].eq_ignore_ascii_case(name)
    };
    begins(b"content-length:") || begins(b"content-type:")
}

/// Whether a line is exactly one JSON text.
fn is_one_text(text: &str) -> Result<(), Unfit> {
    let Err(error) = serde_json::from_str::<&RawValue>(text) else { return Ok(()) };
    if error.is_eof() {
        let reason = "the line ends in the middle of a message; MCP over stdio has one message \
             a line";
        return Err(Unfit { framing: Framing::Open, ..Unfit::parse(reason) });
    }
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    if matches!((texts.next(), texts.next()), (Some(Ok(_)), Some(Ok(_)))) {
        return Err(Unfit::parse("several messages in one line"));
    }
    Err(Unfit::parse(format!("the line is not JSON (at byte {})", error.column())))
}

fn message(text: &str) -> Result<HostMessage<'_>, Unfit> {
    let Some(members) = Members::of(text) else {
        return Err(Unfit::request(None, "no JSON-RPC message: it is not an object"));
    };
    let raw_id = plain_id(&members);
    if let Some(name) = members.ambiguous(&["jsonrpc", "id", "method", "params"]) {
        return Err(Unfit::request(raw_id, ambiguous(name)));
    }
    if members.text("jsonrpc").is_none_or(|version| version != "2.0") {
        return Err(Unfit::request(raw_id, r#"no JSON-RPC message: "jsonrpc" is not "2.0""#));
    }
    if members.get("id").is_some_and(|id| id.starts_with(['{', '[', 't', 'f'])) {
        return Err(Unfit::request(None, "an id is a string or a number"));
    }
    let Some(method) = members.get("method") else {
        let is_answer = members.get("result").or(members.get("error")).is_some();
        let none = || Unfit::request(raw_id, "no JSON-RPC message: neither method nor result");
        return is_answer.then_some(HostMessage::Response).ok_or_else(none);
    };
    let Some(method) = string(method) else {
        return Err(Unfit::request(raw_id, "a method is a string"));
    };
    if method == CALL {
        return call(members);
    }
    if is_spelling_of(method.trim().trim_matches('/'), CALL) {
        return Err(Unfit::request(raw_id, "the method tools/call in another spelling"));
    }
    Ok(match members.get("id") {
        Some(id) => HostMessage::Request(Id::read(id), method, members),
        None => HostMessage::Notification(method, members),
    })
}

fn call(members: Members<'_>) -> Result<HostMessage<'_>, Unfit> {
    let Some(raw_id) = members.get("id") else { return Ok(HostMessage::CallWithoutId) };
    if raw_id == "null" || canonicalize(raw_id.as_bytes()).is_err() {
        return Err(Unfit::request(None, "the id of a tools/call is a string or a number"));
    }
    let unfit = |reason: String| Unfit::request(Some(raw_id), reason);
    let Some(params) = members.object("params") else {
        return Err(unfit("a tools/call without an object of params".into()));
    };
    if let Some(name) = params.ambiguous(&["name", "arguments", "requestState", "inputResponses"]) {
        return Err(unfit(ambiguous(name)));
    }
    let Some(tool) = params.text("name") else {
        return Err(unfit("a tools/call without the name of a tool".into()));
    };
    Ok(HostMessage::Call(HostCall { id: Id::read(raw_id), raw_id, tool, params }))
}

fn ambiguous(name: &str) -> String {
    format!("the member \"{name}\" stands there twice or in another spelling")
}

/// The id, where every reader finds the same one.
fn plain_id<'a>(members: &Members<'a>) -> Option<&'a str> {
    let id = members.get("id").filter(|id| string(id).is_some() || id.parse::<f64>().is_ok());
    id.filter(|_| members.ambiguous(&["id"]).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(line: &str) -> String {
        let one = |message: &HostMessage<'_>| match message {
            HostMessage::Call(call) => format!("call {} {}", call.id.as_str(), call.tool),
            HostMessage::CallWithoutId => "call without id".into(),
            HostMessage::Request(id, method, _) => format!("request {} {method}", id.as_str()),
            HostMessage::Notification(method, _) => format!("notification {method}"),
            HostMessage::Response => "response".into(),
        };
        let refused = |unfit: &Unfit| format!("{} id {}", unfit.code, unfit.raw_id);
        match read(line.as_bytes()) {
            Ok(HostLine::Blank) => "blank".into(),
            Ok(HostLine::One(message)) => one(&message),
            Ok(HostLine::Batch(all)) => {
                let all = all.iter().map(|(_, read)| match read {
                    Ok(message) => one(message),
                    Err(unfit) => refused(unfit),
                });
                all.collect::<Vec<_>>().join(", ")
            }
            Err(unfit) => match unfit.framing {
                Framing::Lines => refused(&unfit),
                framing => format!("{} {framing:?}", refused(&unfit)),
            },
        }
    }

    /// `P` and `A` stand for what the cases have there.
    fn full(line: &str) -> String {
        let arguments = r#""params":{"name":"pay","arguments":{"amount":1}}"#;
        line.replace("P,", r#""jsonrpc":"2.0","#).replace("A}", &format!("{arguments}}}"))
    }

    #[test]
    fn only_what_is_plainly_one_message_is_passed_on() {
        let rows = [
            // M04
            (
                r#"{P,"id":1,"method":"tools/call","params":{"name":"pay","arguments":{"a":NaN}}}"#,
                "-32700 id null",
            ),
            (r#"{P,"id":1,"method":"ping","params":{"_meta":{"x":-Infinity}}}"#, "-32700 id null"),
            // M05
            (r#"{P,"id":1,"Method":"tools/call",A}"#, "-32600 id 1"),
            (r#"{P,"id":1,"method":"ping","method":"tools/call",A}"#, "-32600 id 1"),
            (r#"{P,"id":1,"ID":2,"method":"tools/call",A}"#, "-32600 id null"),
            (r#"{P,"id":1,"method":"tools/call","Params":{},A}"#, "-32600 id 1"),
            (r#"{P,"JSONRPC":"2.0","id":"a","method":"ping"}"#, "-32600 id \"a\""),
            (
                r#"{P,"id":1,"method":"tools/call","params":{"name":"echo","Name":"pay"}}"#,
                "-32600 id 1",
            ),
            (
                r#"{P,"id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":{}}}"#,
                "-32600 id 1",
            ),
            (
                r#"{P,"id":1,"method":"prompts/get","params":{"name":"x","Name":"y"}}"#,
                "request 1 prompts/get",
            ),
            (r#"{P,"id":1,"method":"Tools/Call",A}"#, "-32600 id 1"),
            (r#"{P,"id":1,"method":" tools/call\u0000",A}"#, "-32600 id 1"),
            (r#"{P,"id":1,"method":["tools/call"],A}"#, "-32600 id 1"),
            (r#"{P,"id":1,"method":"tools/call","params":{"arguments":{}}}"#, "-32600 id 1"),
            (r#"{P,"id":1,"method":"tools/call","params":{"name":7}}"#, "-32600 id 1"),
            (r#"{P,"id":1,"method":"tools/call","params":["pay"]}"#, "-32600 id 1"),
            (r#"{P,"id":null,"method":"tools/call",A}"#, "-32600 id null"),
            (r#"{P,"id":{"a":1},"method":"tools/call",A}"#, "-32600 id null"),
            // M06
            (r#"[{P,"method":"tools/call",A}]"#, "call without id"),
            (
                r#"[{P,"id":1,"method":"ping"},[{P,"id":2,"method":"tools/call",A}],7]"#,
                "request 1 ping, -32600 id null, -32600 id null",
            ),
            ("[]", "-32600 id null"),
            // M07
            (r#"{P,"id":1,"method":"tools/call","#, "-32700 id null Open"),
            (r#""params":{"name":"pay"}}"#, "-32700 id null"),
            (r#"{P,"id":1,"method":"ping"} {P,"id":2,"method":"tools/call",A}"#, "-32700 id null"),
            (
                "{P,\"id\":1,\"method\":\"ping\",\"params\":\r{P,\"id\":2,\"method\":\"tools/call\",A}\r}",
                "-32700 id null",
            ),
            ("Content-Length: 120\r\n", "-32700 id null Headers"),
            ("content-length:7", "-32700 id null Headers"),
            // All else.
            (r#"{P,"id":1.0,"method":"tools/call",A}"#, "call 1 pay"),
            (r#" {P,"method":"tools\/call","id":"\u0031",A} "#, "call \"1\" pay"),
            ("{P,\"id\":1,\"method\":\"tools/call\",A}\r\n", "call 1 pay"),
            (r#"{P,"id":null,"method":"x/y"}"#, "request null x/y"),
            (
                r#"{P,"method":"notifications/initialized"}"#,
                "notification notifications/initialized",
            ),
            (r#"{P,"id":4,"result":{"Method":"tools/call"}}"#, "response"),
            (r#"{P,"error":{"code":1}}"#, "response"),
            ("\r\n", "blank"),
            (" \t\n", "blank"),
            ("", "blank"),
            ("17", "-32600 id null"),
            (r#"{P,"id":1}"#, "-32600 id 1"),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, "-32600 id 1"),
            ("hello", "-32700 id null"),
            ("\u{feff}{}", "-32700 id null"),
        ];
        for (line, expected) in rows {
            assert_eq!(say(&full(line)), expected, "{line}");
        }
        assert!(read(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_refusal_is_an_error_with_its_reason() {
        let unfit = read(b"{").err().unwrap();
        let answer: serde_json::Value = serde_json::from_str(&unfit.answer()).unwrap();
        assert_eq!(answer["error"]["code"], -32700);
        assert!(answer["error"]["message"].as_str().unwrap().contains("one message a line"));
        assert!(answer["id"].is_null());
    }
}
