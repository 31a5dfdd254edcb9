//! The receipts of the `zeroclaw` profile: verified for those who hold some, never signed.
//!
//! The profile joins its fields with `|`, which they may hold themselves: two different
//! calls can have the same signed bytes. That is why there is no `sign` here.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::receipt::Token;

/// Whether `key` signed this call: HMAC-SHA256 over `tool|args|result|timestamp`, the
/// timestamp being the token's epoch seconds. `args` is the compact JSON text exactly as it
/// was signed, `result` the result text. Compared in constant time.
pub fn verify(key: &[u8; 32], token: &Token, tool: &str, args: &str, result: &str) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return false;
    };
    for part in [tool, "|", args, "|", result, "|", &token.epoch.to_string()] {
        mac.update(part.as_bytes());
    }
    mac.verify_slice(&token.digest).is_ok()
}
