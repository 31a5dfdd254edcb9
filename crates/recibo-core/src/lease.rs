//! Lease tokens: who holds one may report the outcome of that attempt. They are derived, so
//! that a claim repeated after a restart gets the same one, and nothing but the secret is kept.

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::id::{CallRef, Namespace};
use crate::receipt::frame;

/// The secret that lease tokens are derived from. Not printable.
pub struct LeaseSecret(Hmac<Sha256>);

impl LeaseSecret {
    /// Takes the secret and wipes the caller's copy.
    pub fn new(secret: &mut [u8; 32]) -> Self {
        let mac = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        secret.zeroize();
        Self(mac)
    }

    /// The lease token of one attempt: 43 characters of base64url.
    pub fn token(&self, namespace: &Namespace, call: &CallRef, attempt: u32) -> String {
        let mut mac = self.0.clone();
        mac.update(&frame(&[
            b"recibo-lease-v1",
            namespace.as_str().as_bytes(),
            call.run_id.as_str().as_bytes(),
            call.tool_call_id.as_str().as_bytes(),
            attempt.to_string().as_bytes(),
        ]));
        BASE64URL_NOPAD.encode(&mac.finalize().into_bytes())
    }

    /// Compares a lease token in constant time.
    pub fn is_right(
        &self,
        given: &str,
        namespace: &Namespace,
        call: &CallRef,
        attempt: u32,
    ) -> bool {
        let right = self.token(namespace, call, attempt);
        right.as_bytes().ct_eq(given.as_bytes()).into()
    }
}
