//! Ids in the path. They are percent-decoded exactly once, by axum's router; here it is only
//! checked that there was something to decode, and that ids are ids.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use recibo_api::Code;
use recibo_core::id::{CallRef, RunId, ScopeId, ToolCallId};

use crate::failure::Failure;

/// The parameters of the matched route.
pub(crate) struct Ids(RawPathParams);

impl Ids {
    /// A parameter as it was sent, decoded.
    pub(crate) fn text(&self, name: &str) -> &str {
        let mut params = self.0.iter();
        params.find(|(key, _)| *key == name).expect("the route has this parameter").1
    }

    pub(crate) fn run_id(&self) -> Result<RunId, Failure> {
        Ok(RunId::parse(self.text("run_id"))?)
    }

    pub(crate) fn call(&self) -> Result<CallRef, Failure> {
        let tool_call_id = ToolCallId::parse(self.text("tool_call_id"))?;
        Ok(CallRef { run_id: self.run_id()?, tool_call_id })
    }

    pub(crate) fn scope_id(&self) -> Result<ScopeId, Failure> {
        Ok(ScopeId::parse(self.text("scope_id"))?)
    }

    /// The number of an attempt: digits without leading zeros, so that each has one URL.
    pub(crate) fn attempt(&self) -> Result<u32, Failure> {
        let text = self.text("n");
        let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        text.parse().ok().filter(|_| is_plain).ok_or_else(|| {
            Failure::new(Code::InvalidId, "an attempt must be an integer from 1 to 4294967295")
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Ids {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let bad = || Failure::new(Code::InvalidId, "the path must be percent-encoded UTF-8");
        if !is_percent_encoded(parts.uri.path()) {
            return Err(bad());
        }
        RawPathParams::from_request_parts(parts, state).await.map(Self).map_err(|_| bad())
    }
}

/// Whether two hex digits follow every `%`. Decoders pass anything else through as it is, and
/// then two URLs would name one id.
pub(crate) fn is_percent_encoded(text: &str) -> bool {
    let mut parts = text.split('%');
    let _before_the_first = parts.next();
    parts.all(|part| {
        let digits = part.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_percent_sign_needs_two_hex_digits() {
        for good in ["", "/v1", "%25", "/a%2Fb%7c", "%aa%AA"] {
            assert!(is_percent_encoded(good), "{good}");
        }
        for bad in ["%", "a%2", "%zz", "%2g", "%%25", "100%", "%é"] {
            assert!(!is_percent_encoded(bad), "{bad}");
        }
    }
}
