//! The real binary over real HTTP: real traffic, real kills, and what it leaves behind.

mod exec_kills;
mod folder;
mod kills;
mod secrets;
mod slow_clients;
mod storm;
mod traffic;
