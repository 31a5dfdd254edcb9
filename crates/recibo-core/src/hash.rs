//! SHA-256 and the two hashes of a call: of its arguments and of its result.
//!
//! Both are hashed and dropped; nothing in this file keeps or shows them.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::json::{self, JsonError};

/// SHA-256 of the parts one after the other. Nothing separates them: frame fields whose
/// lengths vary.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Lower case hex.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Appends bytes in lower case hex.
pub(crate) fn push_hex(out: &mut String, bytes: &[u8]) {
    HEXLOWER.encode_append(bytes, out);
}

/// The text is not `sha256:` and 64 lower case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is written sha256: and 64 lower case hex digits")]
pub struct HashError;

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The hash with these 32 bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes of the hash.
            pub fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl $name {
            /// The text as ASCII: `sha256:` and 64 digits.
            pub(crate) fn text(&self) -> [u8; 71] {
                let mut text = [0; 71];
                text[..7].copy_from_slice(b"sha256:");
                HEXLOWER.encode_mut(&self.0, &mut text[7..]);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut digits = [0; 64];
                f.write_str("sha256:")?;
                f.write_str(HEXLOWER.encode_mut_str(&self.0, &mut digits))
            }
        }

        impl FromStr for $name {
            type Err = HashError;

            fn from_str(text: &str) -> Result<Self, HashError> {
                parse(text).map(Self)
            }
        }
    };
}

hash_type! {
    /// SHA-256 of the canonical JSON of a call's arguments. Says whether two attempts asked
    /// for the same thing.
    InputHash
}

hash_type! {
    /// SHA-256 of the exact UTF-8 bytes of the result text as the model sees it, before the
    /// receipt line.
    OutputHash
}

impl InputHash {
    /// The hash of arguments given as any JSON text. A JSON string is hashed as a JSON
    /// string, also if it holds JSON text.
    ///
    /// # Errors
    /// Where the text has no canonical form.
    pub fn of_json(text: &[u8]) -> Result<Self, JsonError> {
        json::canonicalize(text).map(|canonical| Self::of_canonical(&canonical))
    }

    /// The hash of arguments that are canonical JSON already; not checked again.
    pub fn of_canonical(canonical: &str) -> Self {
        Self(sha256(&[canonical.as_bytes()]))
    }
}

impl OutputHash {
    /// The hash of a result that is no text, byte for byte.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(sha256(&[bytes]))
    }

    /// The hash of a result text.
    pub fn of_text(text: &str) -> Self {
        Self(sha256(&[text.as_bytes()]))
    }

    /// The hash of a result given as JSON: a string counts as the text that it holds,
    /// anything else as its canonical JSON.
    ///
    /// # Errors
    /// Where the text has no canonical form.
    pub fn of_json(text: &[u8]) -> Result<Self, JsonError> {
        let canonical = json::canonicalize(text)?;
        Ok(match json::string_of_canonical(&canonical) {
            Some(value) => Self::of_text(&value),
            None => Self::of_text(&canonical),
        })
    }
}

/// Strict, so that a hash has one spelling and can be compared as text.
fn parse(text: &str) -> Result<[u8; 32], HashError> {
    let digits = text.strip_prefix("sha256:").ok_or(HashError)?;
    let mut bytes = [0; 32];
    if digits.len() != 64 || HEXLOWER.decode_mut(digits.as_bytes(), &mut bytes).is_err() {
        return Err(HashError);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_has_one_spelling() {
        let text = InputHash::of_canonical("null").to_string();
        assert_eq!(text.parse::<InputHash>().map(|hash| hash.to_string()), Ok(text.clone()));
        let digits = &text[7..];
        for bad in [
            String::new(),
            digits.to_owned(),
            format!("SHA256:{digits}"),
            format!("sha256:{}", digits.to_uppercase()),
            format!("sha256:{}", &digits[1..]),
            format!("{text}0"),
            format!(" {text}"),
            format!("sha256:{}é", &digits[2..]),
        ] {
            assert_eq!(bad.parse::<OutputHash>(), Err(HashError), "{bad}");
        }
    }

    #[test]
    fn a_string_result_is_hashed_as_its_text() {
        let text = OutputHash::of_text("a\n\"é");
        assert_eq!(OutputHash::of_json(br#" "a\n\"\u00e9" "#), Ok(text));
        assert_eq!(
            OutputHash::of_json(b"{\"b\":1, \"a\":2.0}"),
            Ok(OutputHash::of_text("{\"a\":2,\"b\":1}"))
        );
        assert!(OutputHash::of_json(b"plain").is_err());
    }

    #[test]
    fn a_string_argument_is_hashed_as_json() {
        assert_eq!(InputHash::of_json(br#""{}""#), Ok(InputHash::of_canonical("\"{}\"")));
        assert_ne!(InputHash::of_json(br#""{}""#), InputHash::of_json(b"{}"));
    }
}
