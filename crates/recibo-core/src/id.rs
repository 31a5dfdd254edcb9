//! Names that callers choose, checked once at the door. A value of one of these types
//! needs no further check. Clones share the text: a name stands in requests, events and answers.

use std::fmt;
use std::sync::Arc;

use crate::limits;
use crate::visible::has_hidden;

/// Why a name was refused. Never holds the refused text: it may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {rule}")]
pub struct NameError {
    /// The kind of name, as the contract spells it.
    pub what: &'static str,
    /// What would have been right.
    pub rule: &'static str,
}

const ID_RULE: &str =
    "1 to 256 bytes of printable ASCII (0x21 to 0x7E) without '/', and not '.' or '..'";

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= limits::ID_LEN_MAX
        && text.bytes().all(|b| (0x21..=0x7e).contains(&b) && b != b'/')
        && text != "."
        && text != ".."
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:expr, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text; the error names the rule, never the text.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(NameError { what: $what, rule: $rule })
                }
            }

            /// The text as the caller gave it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// Tenant boundary, bound to an API key.
    Namespace, "namespace", "1 to 64 of a-z, 0-9 and '-'",
    |t| !t.is_empty()
        && t.len() <= limits::NAMESPACE_LEN_MAX
        && t.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
);
name!(
    /// One agent run.
    RunId, "run_id", ID_RULE, is_id
);
name!(
    /// One intended effect within a run.
    ToolCallId, "tool_call_id", ID_RULE, is_id
);
name!(
    /// Drawn fresh by the process that will send; makes a lost answer repeatable.
    ClaimId, "claim_id", ID_RULE, is_id
);
name!(
    /// The lifetime of one signing key.
    ScopeId, "scope_id", ID_RULE, is_id
);
name!(
    /// A key of the caller's own that the outside service knows.
    OperationKey, "operation_key",
    "1 to 256 bytes of printable ASCII without '/', not '.' or '..', and not beginning with 'rk1_'",
    |t| is_id(t) && !t.starts_with("rk1_")
);
name!(
    /// Links a call to a message.
    MessageId, "message_id", ID_RULE, is_id
);
name!(
    /// What the outside service calls the effect.
    ProviderRef, "provider_ref", ID_RULE, is_id
);
name!(
    /// A tool, `server/tool` for instance. Never part of a path.
    ToolName, "tool",
    "1 to 256 bytes of UTF-8 without control, format, line and paragraph separator characters",
    |t| !t.is_empty() && t.len() <= limits::TOOL_LEN_MAX && !has_hidden(t)
);

impl ToolName {
    /// A name that a ledger has stored. Names could hold format and separator characters once,
    /// and what is stored must stay readable; whoever shows it uses [`crate::visible`]. `None`
    /// for what was never taken.
    pub fn stored(text: &str) -> Option<Self> {
        let was_taken = !text.is_empty()
            && text.len() <= limits::TOOL_LEN_MAX
            && !text.chars().any(char::is_control);
        was_taken.then(|| Self(text.into()))
    }
}

name!(
    /// Class of an error, chosen by the adapter.
    ErrorClass, "error_class", "1 to 64 of A-Z, a-z, 0-9, '_', '.', ':' and '-'",
    |t| !t.is_empty()
        && t.len() <= limits::ERROR_CLASS_LEN_MAX
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'))
);

/// A call's place: its run and its id in it. The namespace is the API key's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallRef {
    /// The run.
    pub run_id: RunId,
    /// The call within the run.
    pub tool_call_id: ToolCallId,
}

/// Labels of a call: at most 16, name to value, 2 KiB together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Arc<[(Box<str>, Box<str>)]>);

impl Labels {
    /// Checks labels and sorts them as a canonical line wants them.
    pub fn parse(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, NameError> {
        const RULE: NameError = NameError {
            what: "labels",
            rule: "at most 16 with different names, 2 KiB together, of control characters only \
                   tab, line feed, form feed, carriage return and backspace",
        };
        let mut labels: Vec<(Box<str>, Box<str>)> =
            pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        labels.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
        let bytes: usize = labels.iter().map(|(k, v)| k.len() + v.len()).sum();
        // The others take six bytes in a canonical line, where these take two: a line has a limit.
        let is_clean = |c: char| c >= ' ' || matches!(c, '\t' | '\n' | '\u{8}' | '\u{c}' | '\r');
        let clean = labels.iter().all(|(k, v)| k.chars().chain(v.chars()).all(is_clean));
        let unique = labels.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if labels.len() <= limits::LABELS_MAX
            && bytes <= limits::LABELS_BYTES_MAX
            && clean
            && unique
        {
            Ok(Self(labels.into()))
        } else {
            Err(RULE)
        }
    }

    /// Names and values, in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The two ids of a W3C `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// 16 bytes, not all zero.
    pub trace_id: [u8; 16],
    /// 8 bytes, not all zero.
    pub span_id: [u8; 8],
}

impl Trace {
    /// Reads `00-<32 hex>-<16 hex>-<2 hex>`, lower case.
    pub fn parse(traceparent: &str) -> Result<Self, NameError> {
        Self::read(traceparent).ok_or(NameError {
            what: "traceparent",
            rule: "a W3C traceparent: 00-<32 hex>-<16 hex>-<2 hex>, lower case, ids not all zero",
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let decode = |t: &str| data_encoding::HEXLOWER.decode(t.as_bytes()).ok();
        let trace_id: [u8; 16] = decode(trace)?.try_into().ok()?;
        let span_id: [u8; 8] = decode(span)?.try_into().ok()?;
        let shaped = version == "00"
            && decode(flags)?.len() == 1
            && parts.next().is_none()
            && trace_id != [0; 16]
            && span_id != [0; 8];
        shaped.then_some(Self { trace_id, span_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_real_providers_pass_and_others_do_not() {
        let long = "x".repeat(256);
        for good in ["call_x|fc_y=", "a:b.c-d_e%20?#", "...", &long] {
            assert_eq!(RunId::parse(good).unwrap().as_str(), good);
        }
        let too_long = "x".repeat(257);
        for bad in ["", ".", "..", "a/b", "a b", "ä", "a\n", "\u{7f}", &too_long] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(OperationKey::parse("rk1_x").is_err());
        assert!(Namespace::parse("Blue").is_err());
        assert!(ToolName::parse("server/tool ☀").is_ok());
        assert!(ToolName::parse("a\u{85}b").is_err());
        assert!(ErrorClass::parse("http.503_x").is_ok());
        assert!(ErrorClass::parse("HTTP:503-x").is_ok());
        assert!(ErrorClass::parse("HTTP 503").is_err());
    }

    #[test]
    fn tool_names_hide_nothing_but_old_ones_stay_readable() {
        for hidden in
            ["\u{202e}", "\u{2066}", "\u{200b}", "\u{feff}", "\u{ad}", "\u{2028}", "\u{2029}"]
        {
            let tool = format!("pay{hidden}ment");
            let error = ToolName::parse(&tool).unwrap_err().to_string();
            assert!(error.contains("format") && !error.contains(hidden), "{error}");
            assert_eq!(ToolName::stored(&tool).unwrap().as_str(), tool);
        }
        for never_taken in ["", "a\nb", &"x".repeat(257)] {
            assert!(ToolName::parse(never_taken).is_err());
            assert_eq!(ToolName::stored(never_taken), None);
        }
        assert!(ToolName::parse(&"x".repeat(256)).is_ok());
    }

    #[test]
    fn labels_have_limits() {
        let one = |k: &str, v: &str| Labels::parse([(k.to_owned(), v.to_owned())]);
        assert!(one("k", &"v".repeat(2047)).is_ok());
        assert!(one("k", &"v".repeat(2048)).is_err());
        assert!(one("", "a\n\tb").is_ok());
        assert!(one("k", "a\0b").is_err());
        let many = |n: usize| Labels::parse((0..n).map(|i| (format!("k{i}"), String::new())));
        assert!(many(16).is_ok());
        assert!(many(17).is_err());
    }

    #[test]
    fn traceparents_are_read_strictly() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(Trace::parse(good).unwrap().span_id[1], 0xf0);
        for bad in [
            "",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert!(Trace::parse(bad).is_err(), "{bad}");
        }
    }
}
