//! Real MCP servers behind `recibo mcp`, driven by the official clients.

mod cases;
mod ends;
mod install;
mod kills;
mod lines;
mod log;
mod mutate;
pub mod proxy;
mod relay;
mod sessions;
mod twins;
