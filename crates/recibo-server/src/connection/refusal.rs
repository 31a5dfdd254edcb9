//! Heads that are not HTTP. hyper refuses them before any route with a bare status line; here
//! that becomes a problem like every other.

use axum::body::Bytes;
use recibo_api::{Code, Problem};

use crate::limits::HEAD_BYTES_MAX;

/// What is sent instead of hyper's own answer, if it is one.
pub(super) fn instead_of(answer: &[u8]) -> Option<Bytes> {
    let problem = match answer.get(..12)? {
        b"HTTP/1.1 400" => Problem::new(
            Code::MalformedRequest,
            "the request line or a header is not well-formed HTTP/1.1",
        ),
        b"HTTP/1.1 431" => Problem::new(
            Code::HeadTooLarge,
            format!(
                "a request line and its headers have at most {HEAD_BYTES_MAX} bytes and 100 headers"
            ),
        ),
        _ => return None,
    };
    let body = problem.to_json();
    // The status line stays as hyper wrote it.
    let status_line = answer.split(|byte| *byte == b'\n').next()?;
    let status_line = std::str::from_utf8(status_line).ok()?.trim_end();
    let length = body.len();
    let text = format!(
        "{status_line}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_refusals_become_problems() {
        let answer = instead_of(b"HTTP/1.1 431 Request Header Fields Too Large\r\ndate: x\r\n\r\n");
        let text = String::from_utf8(answer.unwrap().to_vec()).unwrap();
        assert!(text.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len()).trim_end().to_owned())
        );
        assert!(body.contains("\"head_too_large\""));
        for other in [&b"HTTP/1.1 100 Continue\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\n", b"", b"HTT"] {
            assert_eq!(instead_of(other), None);
        }
    }
}
