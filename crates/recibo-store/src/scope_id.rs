//! Ids of scopes: `sc_` and 26 characters of base32hex, the first ten of which are the time,
//! so that new scopes fall at the end of their table.

use recibo_core::id::ScopeId;
use recibo_core::time::Time;

pub(crate) fn make(now: Time, random: [u8; 10]) -> ScopeId {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&now.ms().to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    let digits = data_encoding::BASE32HEX_NOPAD.encode(&bytes).to_lowercase();
    ScopeId::parse(&format!("sc_{digits}")).expect("letters and digits are an id")
}
