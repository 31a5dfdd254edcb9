//! The one place that holds a signing key. It never leaves here, and it is wiped.

use hmac::digest::FixedOutputReset;
use hmac::{HmacReset, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{SignedFields, Token};

/// The key of one scope, as a keyed HMAC state. It can sign and verify, and it cannot be
/// printed, copied or stored: there is no `Debug`, `Clone` or serialization. Dropping it
/// wipes it.
pub struct ScopeKey {
    // On the heap, so that moving a key leaves no copy of the state behind.
    mac: Box<HmacReset<Sha256>>,
}

/// Both halves of the HMAC state are SHA-256 cores and a block buffer. They wipe themselves
/// only if the `zeroize` features are on; without those this does not compile.
const _: fn() = || {
    fn wipes_itself<T: ZeroizeOnDrop>() {}
    wipes_itself::<Sha256>();
};

impl ScopeKey {
    /// Takes over 256 random bits; what the caller holds is wiped.
    pub fn new(key: &mut [u8; 32]) -> Self {
        let mac = keyed_state(key);
        key.zeroize();
        wipe_stack();
        Self { mac }
    }

    /// The token for a successful attempt.
    pub fn sign(&self, fields: &SignedFields<'_>) -> Token {
        Token { epoch: fields.timestamp, digest: self.digest(fields) }
    }

    /// Whether this key signed exactly these fields. Takes the same time wherever the
    /// digests differ.
    pub fn verify(&self, token: &Token, fields: &SignedFields<'_>) -> bool {
        let same: bool = self.digest(fields).ct_eq(&token.digest).into();
        same && token.epoch == fields.timestamp
    }

    fn digest(&self, fields: &SignedFields<'_>) -> [u8; 32] {
        let digest = authenticate(&self.mac, &fields.message());
        wipe_stack();
        digest
    }
}

// Not inlined, so that the key block which the HMAC crate leaves on the stack lies below
// the caller's frame, where `wipe_stack` reaches it.
#[inline(never)]
fn keyed_state(key: &[u8; 32]) -> Box<HmacReset<Sha256>> {
    Box::new(HmacReset::new_from_slice(key).expect("HMAC takes keys of any length"))
}

#[inline(never)]
fn authenticate(keyed: &HmacReset<Sha256>, message: &[u8]) -> [u8; 32] {
    let mut mac = keyed.clone();
    Mac::update(&mut mac, message);
    let mut digest = [0; 32];
    // In place: `finalize` would move the state and leave a copy.
    mac.finalize_into_reset((&mut digest).into());
    digest
}

/// Overwrites the stack that the functions just left. Best effort, since Rust gives no hold
/// on the copies a compiler makes; costs a tenth of the signature.
#[inline(never)]
fn wipe_stack() {
    let mut stack = [0_u64; 256];
    stack.zeroize();
    std::hint::black_box(&stack);
}
