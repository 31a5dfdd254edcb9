//! A load generator: keep-alive HTTP/1.1 over plain sockets, one request at a time on each.
//!
//! It is as lean as it can be, since it shares the machine with what it measures.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::failure::{Failure, Outcome, check};

/// Where requests go.
#[derive(Clone)]
pub struct Target {
    /// Host and port.
    pub address: String,
    /// The API key; any text for a bare server.
    pub api_key: String,
}

impl Target {
    /// A request with a JSON body, ready to send.
    pub fn post(&self, path: &str, body: &str) -> Vec<u8> {
        let (address, key, length) = (&self.address, &self.api_key, body.len());
        format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// A request without a body, ready to send.
    pub fn get(&self, path: &str) -> Vec<u8> {
        let (address, key) = (&self.address, &self.api_key);
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\r\n")
            .into_bytes()
    }

    /// Connections.
    pub async fn connect(&self, count: usize) -> Outcome<Vec<Conn>> {
        let mut conns = Vec::with_capacity(count);
        for _ in 0..count {
            let stream = TcpStream::connect(&self.address).await?;
            stream.set_nodelay(true)?;
            conns.push(Conn { stream, buffer: vec![0; 4096], filled: 0 });
        }
        Ok(conns)
    }
}

/// One connection.
pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Conn {
    /// Sends a request and reads its answer. Any answer but 2xx is a failure.
    pub async fn exchange(&mut self, request: &[u8]) -> Outcome<&[u8]> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        let (head, length) = loop {
            self.fill().await?;
            if let Some(head) = find(&self.buffer[..self.filled], b"\r\n\r\n") {
                break (head + 4, content_length(&self.buffer[..head])?);
            }
        };
        let total = head + length;
        if self.buffer.len() < total {
            self.buffer.resize(total, 0);
        }
        while self.filled < total {
            self.fill().await?;
        }
        let body = &self.buffer[head..total];
        check(self.buffer.get(9) == Some(&b'2'), || {
            let status = String::from_utf8_lossy(&self.buffer[9..12]);
            let start = String::from_utf8_lossy(&request[..request.len().min(120)]);
            format!("{status} for {start}: {}", String::from_utf8_lossy(body))
        })?;
        Ok(body)
    }

    async fn fill(&mut self) -> Outcome<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled * 2, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.filled..]).await?;
        self.filled += read;
        check(read > 0, || "the server closed a connection".into())
    }
}

fn content_length(head: &[u8]) -> Outcome<usize> {
    let name = b"content-length: ";
    let at = head.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name));
    let digits = at.map(|at| head[at + name.len()..].iter().take_while(|b| b.is_ascii_digit()));
    let text = digits.map(|digits| digits.map(|digit| char::from(*digit)).collect::<String>());
    let length = text.and_then(|text| text.parse().ok());
    length.ok_or_else(|| Failure::new("an answer without its length"))
}

/// The first place of a part.
pub fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The text of a string member without escapes, found by its name alone.
pub fn member<'a>(body: &'a [u8], name: &str) -> Outcome<&'a str> {
    let start = format!("\"{name}\":\"");
    let after = find(body, start.as_bytes()).map(|at| &body[at + start.len()..]);
    let text = after.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    text.and_then(|text| std::str::from_utf8(text).ok())
        .ok_or_else(|| Failure::new(format!("no {name} in {}", String::from_utf8_lossy(body))))
}

/// Does jobs 0, 1, ... on all clients at once, each the next free one; gives the seconds.
pub async fn drive<C, F, Work>(clients: &mut Vec<C>, jobs: usize, job: F) -> Outcome<f64>
where
    C: Send + 'static,
    F: Fn(usize, C) -> Work + Clone + Send + 'static,
    Work: Future<Output = Outcome<C>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = clients
        .drain(..)
        .map(|mut client| {
            let (next, job) = (next.clone(), job.clone());
            tokio::spawn(async move {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= jobs {
                        return Ok::<C, Failure>(client);
                    }
                    client = job(at, client).await?;
                }
            })
        })
        .collect();
    for task in tasks {
        clients.push(task.await??);
    }
    Ok(start.elapsed().as_secs_f64())
}
