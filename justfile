# What CI runs, one by one.
default: fmt lint test

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --workspace

# Write the promised files anew: OpenAPI and golden event lines.
bless:
    RECIBO_BLESS=1 cargo test -p recibo-server openapi
    RECIBO_BLESS=1 cargo test -p recibo-core --test lines

serve:
    cargo run --release -- serve

demo:
    cargo run --release -- demo
