//! Real MCP servers behind `recibo mcp`, driven by the official clients.

mod install;
mod log;
mod sessions;
