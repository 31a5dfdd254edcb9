//! Lines of real hosts, and what becomes of them in the hands of hosts that err.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use serde_json::{Value, json};

/// What a lenient server is made to answer, none of it a success.
pub const ANSWERS: [&str; 7] = [
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"isError":true,"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"iserror":true}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"resultType":"perhaps","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]},"error":{"code":-32603}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":NaN}]}}"#,
    r#"[{"jsonrpc":"2.0","id":@ID@,"result":17},{"jsonrpc":"2.0","id":"none","result":{}}]"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"resultType":"task","taskId":"t","status":"failed"}}"#,
];

/// Names of members, and how they are spelled otherwise.
const SPELLINGS: &[(&str, &[&str])] = &[
    ("method", &["Method", "METHOD", "m\\u0065thod", "method\\u0000", " method"]),
    ("params", &["Params", "param\u{17f}", "PARAMS", "params "]),
    ("name", &["Name", "NAME", "n\\u0061me"]),
    ("arguments", &["Arguments", "argument\u{17f}", "args"]),
    ("id", &["ID", "Id", "\u{131}d", "\u{130}D"]),
    ("jsonrpc", &["JSONRPC", "JsonRpc", "json_rpc"]),
    ("result", &["Result"]),
];

fn id(random: &mut impl Rng) -> Value {
    match random.random_range(0..10) {
        0 => json!(1),
        1 => json!("1"),
        2 => json!(1.5),
        3 => json!(format!("msg_{}", random.random::<u32>())),
        _ => json!(random.random::<u32>()),
    }
}

fn arguments(random: &mut impl Rng) -> Value {
    let n = random.random::<u32>();
    match random.random_range(0..12) {
        0 => json!({"how": "error", "n": n}),
        1 => json!({"how": "refuse", "n": n}),
        2 => json!({"say": [ANSWERS.choose(random)], "n": n}),
        3 => json!({"path": "/tmp/Ünï \"x\"\n", "content": "a\u{2028}b", "n": n}),
        4 => json!({"name": "echo", "method": "tools/call", "arguments": {"amount": n}}),
        5 => json!({}),
        _ => json!({"amount": 1.5, "n": n}),
    }
}

/// A line as the official clients write it.
pub fn real_line(random: &mut impl Rng) -> String {
    let id = id(random);
    let message = match random.random_range(0..16) {
        0 => json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {"sampling": {}, "roots": {}},
            "clientInfo": {"name": "mcp", "version": "0.1.0"}}}),
        1 => json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        2 => json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}}),
        3 => json!({"method": "ping", "jsonrpc": "2.0", "id": id}),
        4 => json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}),
        5 => json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
            "requestId": id, "reason": "tools/call"}}),
        _ => {
            let tool = *["pay", "echo", "read", "notes/write_file"].choose(random).expect("some");
            let params = json!({"name": tool, "arguments": arguments(random),
                "_meta": {"progressToken": 3}});
            json!({"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": id})
        }
    };
    message.to_string()
}

/// A line, or what came of it.
pub fn burst(random: &mut impl Rng) -> Vec<u8> {
    let mut line = real_line(random);
    for _ in 0..random.random_range(0..4) {
        line = mutated(line, random);
    }
    let mut bytes = line.into_bytes();
    if random.random_range(0..8) == 0 && !bytes.is_empty() {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..3) {
            0 => bytes[at] = random.random(),
            1 => bytes.insert(at, random.random()),
            _ => _ = bytes.remove(at),
        }
    }
    bytes.push(b'\n');
    bytes
}

fn mutated(line: String, random: &mut impl Rng) -> String {
    match random.random_range(0..12) {
        0 | 1 => respelled(&line, random),
        2 => doubled(&line, random),
        3 => with_number(&line, random),
        4 => batched(&line, random),
        5 => joined(&line, random),
        6 => cut(&line, random),
        7 => framed(&line, random),
        8 => without_a_member(&line, random),
        9 => with_method(&line, random),
        10 => around(&line, random),
        _ => line,
    }
}

/// The name of a member in another spelling.
fn respelled(line: &str, random: &mut impl Rng) -> String {
    let (name, spellings) = SPELLINGS.choose(random).expect("some");
    let spelling = spellings.choose(random).expect("some");
    line.replacen(&format!("\"{name}\":"), &format!("\"{spelling}\":"), 1)
}

/// A member that stands there twice.
fn doubled(line: &str, random: &mut impl Rng) -> String {
    let member = *[
        r#""method":"tools/call","#,
        r#""method":"ping","#,
        r#""Method":"tools/call","#,
        r#""id":77,"#,
        r#""ID":78,"#,
        r#""params":{"name":"pay","arguments":{"amount":1}},"#,
        r#""Params":{"name":"pay","arguments":{"amount":2}},"#,
        r#""name":"pay","#,
        r#""NAME":"pay","#,
        r#""arguments":{"amount":3},"#,
        r#""n":4,"#,
    ]
    .choose(random)
    .expect("some");
    let braces: Vec<usize> = line.match_indices('{').map(|(at, _)| at + 1).collect();
    let Some(&at) = braces.choose(random) else { return line.into() };
    let member = match line[at..].starts_with('}') {
        true => member.trim_end_matches(','),
        false => member,
    };
    format!("{}{member}{}", &line[..at], &line[at..])
}

/// A number that JSON does not have, or not every reader reads alike.
fn with_number(line: &str, random: &mut impl Rng) -> String {
    let numbers = ["NaN", "Infinity", "-Infinity", "1e999", "01", "0x1", "+1", "1.", "-0", "1E2"];
    let number = numbers.choose(random).expect("some");
    match *["\"n\":", "\"amount\":", "\"id\":", "\"progressToken\":"].choose(random).expect("some")
    {
        name if line.contains(name) => line.replacen(name, &format!("{name}{number},\"x\":"), 1),
        _ => line.replacen("1.5", number, 1),
    }
}

fn batched(line: &str, random: &mut impl Rng) -> String {
    let other = real_line(random);
    match random.random_range(0..5) {
        0 => format!("[{line}]"),
        1 => format!("[{line},{other}]"),
        2 => format!("[[{line}],{other}]"),
        3 => format!("[{line},{line}]"),
        _ => format!(" [ {other} , 7 , {line} ]"),
    }
}

fn joined(line: &str, random: &mut impl Rng) -> String {
    let between = *["", " ", "\r", ",", "\u{b}", "\u{85}", "\u{2028}", "\0", "\u{1e}"]
        .choose(random)
        .expect("some");
    format!("{line}{between}{}", real_line(random))
}

/// One message over several lines, or a part of one.
fn cut(line: &str, random: &mut impl Rng) -> String {
    let places: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
    let Some(&at) = places.choose(random) else { return String::new() };
    match random.random_range(0..5) {
        0 => line[..at].into(),
        1 => line[at..].into(),
        2 => format!("{}\r{}", &line[..at], &line[at..]),
        _ => format!("{}\n{}", &line[..at], &line[at..]),
    }
}

fn framed(line: &str, random: &mut impl Rng) -> String {
    let length = line.len();
    match random.random_range(0..6) {
        0 => format!("Content-Length: {length}\r\n\r\n{line}"),
        1 => format!("content-length:{length}\n\n{line}"),
        2 => format!("data: {line}"),
        3 => format!("{length}\n{line}"),
        4 => format!("\u{1e}{line}"),
        _ => format!("{line}\r"),
    }
}

fn without_a_member(line: &str, random: &mut impl Rng) -> String {
    let Ok(Value::Object(mut members)) = line.parse::<Value>() else { return line.into() };
    let names: Vec<String> = members.keys().cloned().collect();
    if let Some(name) = names.choose(random) {
        match random.random_range(0..3) {
            0 => _ = members.insert(name.clone(), Value::Null),
            1 => _ = members.insert(name.clone(), json!(["pay", {"amount": 1}])),
            _ => _ = members.remove(name),
        }
    }
    Value::Object(members).to_string()
}

fn with_method(line: &str, random: &mut impl Rng) -> String {
    let method = *[
        r#""Tools/Call""#,
        r#""tools\/call""#,
        r#""tools/call ""#,
        r#""/tools/call""#,
        r#""tools/call\u0000""#,
        r#"["tools/call"]"#,
        r#""tool\u017f/call""#,
        r#""tools/list""#,
        r#""TOOLS/CALL\n""#,
    ]
    .choose(random)
    .expect("some");
    line.replacen(r#""tools/call""#, method, 1)
}

fn around(line: &str, random: &mut impl Rng) -> String {
    match random.random_range(0..7) {
        0 => format!("\u{feff}{line}"),
        1 => format!("{line},"),
        2 => format!("{line} // call"),
        3 => format!("/* */{line}"),
        4 => line.replace('"', "'"),
        5 => format!("{line}}}"),
        _ => serde_json::to_string(line).expect("a string"),
    }
}
