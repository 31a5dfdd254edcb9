//! The service that runs on a data folder, as the other processes of its owner see it: where it is,
//! how one is started on demand, and how it is asked to end.
//!
//! `service.json` says where it is. `service.lock` is held by whoever starts a service or ends one,
//! so that of many processes that find none exactly one starts it, and the others find that one.

mod end;
mod joined;
mod note;
mod socket;
mod start;
mod turn;
pub mod version;

use std::time::Duration;

pub use end::{end, is_gone, take_over};
pub use joined::{Joined, Key, join};
pub use note::{NoteGuard, ServiceNote};
pub use socket::listen;
pub use start::join_or_start;
pub use turn::{Turn, wait_for_turn};

/// What the service prints once it is ready, before its address.
pub const READY: &str = "recibo listening on ";
/// How long a service that was asked to end may take: what is in flight has 30 s.
pub const END_PATIENCE: Duration = Duration::from_secs(40);
/// How often a process that waits for another one looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
