//! Real MCP servers behind `recibo mcp`, driven by the official clients.

mod install;
mod kills;
mod log;
mod sessions;
