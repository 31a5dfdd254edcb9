//! The store by itself: what no service is needed for.

mod disk;
mod failed_commits;
mod formats;
mod key_bytes;
mod many_attempts;
mod restarts;
mod twins;
