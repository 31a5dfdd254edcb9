//! Ids of scopes: `sc_` and 26 characters of base32hex, the first ten of which are the time,
//! so that new scopes fall at the end of their table.

use data_encoding::BASE32HEX_NOPAD;
use recibo_core::id::ScopeId;
use recibo_core::time::Time;

const LEN: usize = 16;

pub(crate) fn make(now: Time, random: [u8; 10]) -> ScopeId {
    let mut bytes = [0; LEN];
    bytes[..6].copy_from_slice(&now.ms().to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    from_bytes(&bytes)
}

/// The id that these bytes are written as.
pub(crate) fn from_bytes(bytes: &[u8; LEN]) -> ScopeId {
    let mut text = *b"sc_00000000000000000000000000";
    BASE32HEX_NOPAD.encode_mut(bytes, &mut text[3..]);
    text[3..].make_ascii_lowercase();
    let text = std::str::from_utf8(&text).expect("digits are ASCII");
    ScopeId::parse(text).expect("letters and digits are an id")
}

/// The bytes of an id that was made here.
pub(crate) fn to_bytes(scope_id: &ScopeId) -> Option<[u8; LEN]> {
    let digits = scope_id.as_str().strip_prefix("sc_")?;
    let mut upper = [0; 26];
    if digits.len() != upper.len() || digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    upper.copy_from_slice(digits.as_bytes());
    upper.make_ascii_uppercase();
    let mut bytes = [0; LEN];
    BASE32HEX_NOPAD.decode_mut(&upper, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_bytes_and_nothing_else_is() {
        let id = make(Time::from_ms(1_700_000_000_123), [7; 10]);
        assert!(id.as_str().starts_with("sc_"));
        assert_eq!(id.as_str().len(), 29);
        assert_eq!(from_bytes(&to_bytes(&id).unwrap()), id);
        let digits = &id.as_str()[3..];
        for other in [
            digits.to_owned(),
            format!("sc_{}", digits.to_uppercase()),
            format!("sc_{}", &digits[1..]),
            format!("sc_{}z", &digits[1..]),
            // The last digit has three bits to spare, which must be zero.
            format!("sc_{}1", &digits[..25]),
        ] {
            assert_eq!(to_bytes(&ScopeId::parse(&other).unwrap()), None, "{other}");
        }
    }
}
