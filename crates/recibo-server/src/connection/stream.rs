//! The bytes of a connection, with deadlines: nobody holds a connection by saying nothing, by
//! saying it slowly, or by not reading. Bodies have theirs where they are read.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::alarm::Alarm;
use super::refusal;
use super::registry::Link;
use super::tally::Told;
use crate::limits::ConnectionLimits;

/// A stream that watches the clock.
pub(super) struct Watched<S> {
    stream: S,
    link: Arc<Link>,
    limits: ConnectionLimits,
    /// Until when the next head must be whole, or have begun.
    deadline: Instant,
    /// Whether `deadline` is one of an idle connection: no byte of a head has come.
    is_idle: bool,
    to_read: Alarm,
    /// Since when the client has taken nothing of what it gets.
    blocked_since: Option<Instant>,
    to_write: Alarm,
    /// What is left of an answer to a head that is none.
    refusal: Option<Bytes>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, link: Arc<Link>, limits: ConnectionLimits) -> Self {
        Self {
            stream,
            limits,
            // Whoever connects has something to say, but for a process of this machine that holds a
            // connection to say that it is there.
            deadline: Instant::now() + if link.is_local() { limits.idle } else { limits.head },
            is_idle: link.is_local(),
            link,
            to_read: Alarm::default(),
            blocked_since: None,
            to_write: Alarm::default(),
            refusal: None,
        }
    }

    fn has_read(&mut self) {
        if self.is_idle && self.link.is_waiting() {
            self.is_idle = false;
            self.deadline = Instant::now() + self.limits.head;
        }
    }

    /// What to say of a read that would wait.
    fn reads_nothing(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.link.is_waiting() || !self.to_read.has_passed(self.deadline, context) {
            return Poll::Pending;
        }
        if !self.is_idle {
            self.link.tell(Told::SlowHead);
        }
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }

    /// What to say of a write: one that would wait must not do so for ever.
    fn writes<T>(&mut self, polled: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if polled.is_ready() {
            self.blocked_since = None;
            return polled;
        }
        let since = *self.blocked_since.get_or_insert_with(Instant::now);
        if !self.to_write.has_passed(since + self.limits.stall, context) {
            return Poll::Pending;
        }
        self.link.tell(Told::SlowReader);
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client reads no more")))
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    /// Sends a problem where hyper would send a bare status line.
    fn poll_refuse(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while let Some(left) = self.refusal.as_mut().filter(|left| !left.is_empty()) {
            let polled = Pin::new(&mut self.stream).poll_write(context, left);
            if let Poll::Ready(Ok(sent)) = polled {
                if sent == 0 {
                    return Poll::Ready(Err(ErrorKind::WriteZero.into()));
                }
                *left = left.slice(sent..);
            }
            ready!(self.writes(polled, context))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => self.reads_nothing(context),
            ready => {
                self.has_read();
                ready
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        // Without a request there is nothing to say but that a head was none.
        if self.link.is_waiting() {
            if self.refusal.is_none() {
                self.refusal = refusal::instead_of(bytes);
                self.link.tell(Told::BadHead);
            }
            if self.refusal.is_some() {
                ready!(self.poll_refuse(context))?;
                return Poll::Ready(Ok(bytes.len()));
            }
        }
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.writes(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if self.link.is_waiting() {
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(context, first.map_or(&[], |slice| slice));
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.writes(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.stream).poll_flush(context);
        ready!(this.writes(polled, context))?;
        if this.link.sent() {
            this.is_idle = true;
            this.deadline = Instant::now() + this.limits.idle;
            // hyper may have begun to read while the request was in flight, and then reads on
            // only when it is woken. It is woken then, and the read judges.
            let _ = this.to_read.has_passed(this.deadline, context);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.writes(polled, context)
    }
}
