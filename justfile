# What CI runs, one by one.
default: fmt lint test

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --workspace

# Random histories with kills and boots against a model of the contract: 100,000 checks.
model:
    RECIBO_MODEL_CHECKS=100000 cargo test -p recibo-tests blackbox -- --nocapture

# Write the promised files anew: OpenAPI, golden event lines, explain pages. Nothing writes
# api/vectors.json: its values are given.
bless:
    RECIBO_BLESS=1 cargo test -p recibo-server openapi
    RECIBO_BLESS=1 cargo test -p recibo-core --test lines
    RECIBO_BLESS=1 cargo test -p recibo --bin recibo explain

# Generated lines before a lenient MCP server: as many as named; the suite has 1,000.
mcp-lines LINES="100000":
    RECIBO_MCP_LINES={{LINES}} cargo test -p recibo-tests mcp::lines -- --nocapture

# Many processes on one folder, their service killed and replaced: as many rounds as named; the
# suite has 3.
on-demand ROUNDS="50":
    RECIBO_ROUNDS={{ROUNDS}} cargo test -p recibo-tests on_demand::many -- --nocapture --test-threads 1

serve:
    cargo run --release -- serve

demo:
    cargo run --release -- demo

# The ledger beside its peers, in under five minutes. Files go to benches/results.
bench *ARGS:
    cd benches && cargo run --release -- short {{ARGS}}

# The same at the sizes of the goals; takes most of an hour.
bench-full *ARGS:
    cd benches && cargo run --release -- full {{ARGS}}
