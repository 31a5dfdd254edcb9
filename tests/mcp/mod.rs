//! Real MCP servers behind `recibo mcp`, driven by the official clients.

mod cases;
mod ends;
mod install;
mod kills;
mod log;
mod proxy;
mod sessions;
