//! The receipt of a successful attempt: the framed bytes that are signed, the key of a
//! scope, the token, and the idempotency key of a call.
//!
//! Scope keys are drawn by the caller: there is no randomness here, and no clock.

mod scope_key;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::LazyLock;

use data_encoding::{BASE64URL_NOPAD, Encoding, Specification};

use crate::hash::{InputHash, OutputHash, sha256};
use crate::id::{CallRef, Namespace};

pub use scope_key::ScopeKey;

const TOKEN_PREFIX: &str = "zc-receipt-";
const KEY_PREFIX: &str = "rk1_";
const KEY_DOMAIN: &[u8] = b"recibo-idempotency-key-v1";
const SIGN_DOMAIN: &[u8] = b"recibo-receipt-v1";

/// Base32 (RFC 4648) in lower case without padding. Trailing bits are checked, so each key
/// has one spelling.
static BASE32: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification.encoding().expect("the base32 alphabet is sound")
});

/// The fields one after the other, each as a 4-byte big-endian length and its bytes: no two
/// lists of fields have the same framing.
///
/// # Panics
/// If a field is 4 GiB or longer; all fields have limits far below.
pub fn frame(fields: &[&[u8]]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(fields.iter().map(|field| field.len() + 4).sum());
    for field in fields {
        let length = u32::try_from(field.len()).expect("a field is shorter than 4 GiB");
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(field);
    }
    framed
}

/// The text is no idempotency key as [`IdempotencyKey`] writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key is written rk1_ and 52 characters of lower case base32")]
pub struct KeyError;

/// The name of one intended effect, for the outside service: the same on every attempt,
/// and the same whatever the arguments are (those are compared instead).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey([u8; 32]);

impl IdempotencyKey {
    /// The key of a call.
    pub fn derive(namespace: &str, run_id: &str, tool_call_id: &str) -> Self {
        let call = [namespace.as_bytes(), run_id.as_bytes(), tool_call_id.as_bytes()];
        Self(sha256(&[&frame(&[KEY_DOMAIN, call[0], call[1], call[2]])]))
    }

    /// The key of a call whose names are checked.
    pub fn of(namespace: &Namespace, call: &CallRef) -> Self {
        let (run_id, tool_call_id) = (call.run_id.as_str(), call.tool_call_id.as_str());
        Self::derive(namespace.as_str(), run_id, tool_call_id)
    }

    /// The 32 bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// `rk1_` and 52 characters of lower case base32: 56 characters.
impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 52];
        f.write_str(KEY_PREFIX)?;
        f.write_str(BASE32.encode_mut_str(&self.0, &mut digits))
    }
}

impl FromStr for IdempotencyKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let digits = text.strip_prefix(KEY_PREFIX).ok_or(KeyError)?;
        let mut bytes = [0; 32];
        if digits.len() != 52 || BASE32.decode_mut(digits.as_bytes(), &mut bytes).is_err() {
            return Err(KeyError);
        }
        Ok(Self(bytes))
    }
}

/// The text is no token, or not spelled the one way in which tokens are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token is written zc-receipt-<epoch seconds>-<43 characters of base64url>")]
pub struct TokenError;

/// The proof of one successful attempt. Not secret. Equality is not in constant time: to
/// check a token use [`ScopeKey::verify`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// When it was signed, in seconds since 1970.
    pub epoch: u64,
    /// The HMAC-SHA256.
    pub digest: [u8; 32],
}

impl Token {
    /// Appends the text of the token.
    pub(crate) fn push_to(&self, out: &mut String) {
        out.push_str(TOKEN_PREFIX);
        // Writing into a String cannot fail.
        let _ = write!(out, "{}-", self.epoch);
        BASE64URL_NOPAD.encode_append(&self.digest, out);
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 43];
        write!(f, "{TOKEN_PREFIX}{}-", self.epoch)?;
        f.write_str(BASE64URL_NOPAD.encode_mut_str(&self.digest, &mut digits))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let rest = text.strip_prefix(TOKEN_PREFIX).ok_or(TokenError)?;
        let (seconds, digits) = rest.split_once('-').ok_or(TokenError)?;
        let spelled_once = seconds == "0" || !seconds.starts_with(['0', '+']);
        let epoch = seconds.parse().map_err(|_| TokenError)?;
        let mut digest = [0; 32];
        if !spelled_once
            || digits.len() != 43
            || BASE64URL_NOPAD.decode_mut(digits.as_bytes(), &mut digest).is_err()
        {
            return Err(TokenError);
        }
        Ok(Self { epoch, digest })
    }
}

/// The line that an adapter appends to the tool result which the model sees.
pub fn receipt_line(token: &Token) -> String {
    format!("[receipt: {token}]")
}

/// What a token vouches for.
#[derive(Debug, Clone, Copy)]
pub struct SignedFields<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The hash of the arguments.
    pub input_hash: &'a InputHash,
    /// The hash of the result.
    pub output_hash: &'a OutputHash,
    /// When the attempt was signed, in seconds since 1970: the `epoch` of the token.
    pub timestamp: u64,
    /// The namespace of the call.
    pub namespace: &'a str,
    /// The run of the call.
    pub run_id: &'a str,
    /// The call.
    pub tool_call_id: &'a str,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The scope whose key signs.
    pub scope_id: &'a str,
}

impl SignedFields<'_> {
    /// The bytes that are signed: the framed fields, the numbers as decimal digits.
    pub fn message(&self) -> Vec<u8> {
        let (mut timestamp, mut attempt) = ([0; DECIMAL_LEN_MAX], [0; DECIMAL_LEN_MAX]);
        frame(&[
            SIGN_DOMAIN,
            self.tool.as_bytes(),
            &self.input_hash.text(),
            &self.output_hash.text(),
            decimal(self.timestamp, &mut timestamp),
            self.namespace.as_bytes(),
            self.run_id.as_bytes(),
            self.tool_call_id.as_bytes(),
            decimal(u64::from(self.attempt), &mut attempt),
            self.scope_id.as_bytes(),
        ])
    }
}

/// Digits of the largest number.
const DECIMAL_LEN_MAX: usize = 20;

/// A number as decimal ASCII, without the memory that a text would take: this is done for
/// every receipt.
fn decimal(mut number: u64, digits: &mut [u8; DECIMAL_LEN_MAX]) -> &[u8] {
    let mut start = DECIMAL_LEN_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}
