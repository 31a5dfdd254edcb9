//! Signals that ask this process to end. They are the command's as well.

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::failure::Failure;

/// The signals that are passed on.
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hangup: unix::Signal,
}

impl Signals {
    /// From here on these signals no longer end this process.
    pub fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind)
                .map_err(|error| Failure::said(format!("cannot listen to signals: {error}")))
        };
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    /// The next one. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.hangup.recv() => Signal::HUP,
        }
    }

    /// Whether one has come already.
    pub async fn has_come(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.next() => true,
            () = std::future::ready(()) => false,
        }
    }
}
