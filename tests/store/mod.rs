//! The store by itself: what no service is needed for.

mod disk;
mod failed_commits;
mod many_attempts;
