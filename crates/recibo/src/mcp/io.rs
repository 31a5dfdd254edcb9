//! Lines in and out, byte for byte.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

/// Something to read lines from.
pub type Input = BufReader<Box<dyn AsyncRead + Send + Unpin>>;
type Sink = Box<dyn AsyncWrite + Send + Unpin>;

/// What kind of thing a standard stream is. Hosts use pipes or sockets, and those need no thread
/// to wait on them, which would cost more than all else here.
enum Kind {
    Pipe,
    Socket,
    Other,
}

fn kind(fd: &OwnedFd) -> io::Result<Kind> {
    let file_type = File::from(fd.try_clone()?).metadata()?.file_type();
    Ok(match () {
        () if file_type.is_fifo() => Kind::Pipe,
        () if file_type.is_socket() => Kind::Socket,
        () => Kind::Other,
    })
}

/// This process's stdin.
pub fn stdin() -> io::Result<Input> {
    let fd = rustix::io::dup(io::stdin())?;
    let input: Box<dyn AsyncRead + Send + Unpin> = match kind(&fd)? {
        Kind::Pipe => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        Kind::Socket => Box::new(socket(fd)?),
        Kind::Other => Box::new(tokio::io::stdin()),
    };
    Ok(reader(input))
}

/// This process's stdout.
pub fn stdout() -> io::Result<Output> {
    let fd = rustix::io::dup(io::stdout())?;
    Ok(Output::new(match kind(&fd)? {
        Kind::Pipe => Box::new(pipe::Sender::from_owned_fd(fd)?),
        Kind::Socket => Box::new(socket(fd)?),
        Kind::Other => Box::new(tokio::io::stdout()),
    }))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Reads lines from anything.
pub fn reader(input: Box<dyn AsyncRead + Send + Unpin>) -> Input {
    BufReader::with_capacity(64 << 10, input)
}

/// The next line with its line feed; `None` at the end. Of any length: what both sides can hold
/// must pass. The last line may have no line feed.
pub async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    // An input that broke has ended.
    match input.read_until(b'\n', &mut line).await {
        Ok(n) if n > 0 => Some(line),
        _ => None,
    }
}

/// Something to write lines to. Lines are never mixed; whoever comes first writes first.
pub struct Output(Mutex<Option<Sink>>);

/// The right to write next.
pub struct WriteGuard<'a>(MutexGuard<'a, Option<Sink>>);

/// How much of a line was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it.
    Whole,
    /// Nothing: the other side may never know that there was one.
    Nothing,
    /// A part of it. The output was closed, so that the rest never follows.
    Part,
}

impl Output {
    /// Writes into anything.
    pub fn new(sink: Sink) -> Self {
        Self(Mutex::new(Some(sink)))
    }

    /// Waits until nobody writes.
    pub async fn guard(&self) -> WriteGuard<'_> {
        WriteGuard(self.0.lock().await)
    }

    /// Writes bytes as they are; says whether the other side still takes them.
    pub async fn write(&self, bytes: &[u8]) -> bool {
        self.guard().await.write(bytes).await
    }

    /// Ends it: the other side reads the end.
    pub async fn close(&self) {
        if let Some(mut sink) = self.0.lock().await.take() {
            let _ = sink.shutdown().await;
        }
    }
}

impl WriteGuard<'_> {
    /// Whether the other side may still read.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Writes bytes as they are; says whether the other side still takes them.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(sink) = self.0.as_mut() else { return false };
        sink.write_all(bytes).await.is_ok() && sink.flush().await.is_ok()
    }

    /// Writes bytes as they are, but not after `left`: what is sent later than its permission
    /// allows must not be sent at all.
    pub async fn write_within(&mut self, bytes: &[u8], left: Duration) -> Written {
        let Some(sink) = self.0.as_mut() else { return Written::Nothing };
        let mut written = 0;
        let whole = timeout(left, async {
            while written < bytes.len() {
                match sink.write(&bytes[written..]).await {
                    Ok(n) if n > 0 => written += n,
                    _ => return false,
                }
            }
            // The bytes are out; whoever can read them still does.
            let _ = sink.flush().await;
            true
        });
        match whole.await {
            Ok(true) => Written::Whole,
            _ if written == 0 => Written::Nothing,
            _ => {
                *self.0 = None;
                Written::Part
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_does_not_get_through_in_time_is_never_completed() {
        let (near, mut far) = tokio::io::duplex(8);
        let output = Output::new(Box::new(near));
        let soon = Duration::from_millis(20);
        let mut guard = output.guard().await;
        assert_eq!(guard.write_within(b"12345678", soon).await, Written::Whole);
        assert_eq!(guard.write_within(b"nothing", soon).await, Written::Nothing);
        assert!(guard.is_open());
        let mut bytes = [0; 4];
        tokio::io::AsyncReadExt::read_exact(&mut far, &mut bytes).await.unwrap();
        assert_eq!(guard.write_within(b"a part", soon).await, Written::Part);
        assert!(!guard.is_open());
        let mut rest = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut rest).await.unwrap();
        assert_eq!(rest, b"5678a pa");
    }
}
