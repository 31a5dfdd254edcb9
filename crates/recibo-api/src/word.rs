//! The closed word lists and the times of the core, as JSON strings.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use recibo_core::effect::{Effect, IsError, TwinScope};
use recibo_core::status::{
    AttemptStatus, CallState, CheckAnswer, DecisionKind, OutcomeStatus, Reason, ResolvedAs,
    SettledBy,
};
use recibo_core::time::Time;
use serde::de::{self, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{KnownFormat, RefOr, Schema, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// A closed list of words.
pub trait Words: Copy + 'static {
    /// The list's name in the OpenAPI document.
    const NAME: &'static str;
    /// What a word reads as that this version does not know; `None`: it is an error.
    const UNKNOWN: Option<Self> = None;
    /// All of them, in the order of the contract.
    const LIST: &'static [Self];

    /// The word of the contract.
    fn word(self) -> &'static str;
}

macro_rules! words {
    ($($list:ident, $alias:ident = $all:expr $(, unknown is $unknown:ident)?;)+) => {$(
        #[doc = concat!("A [`", stringify!($list), "`] as a JSON string.")]
        // The OpenAPI derive reads types as they are spelled and would take a type argument
        // for a schema of its own.
        pub type $alias = $crate::word::Word<$list>;

        impl $crate::word::Words for $list {
            const NAME: &'static str = stringify!($list);
            $(const UNKNOWN: Option<Self> = Some(Self::$unknown);)?
            const LIST: &'static [Self] = $all;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )+};
}
pub(crate) use words;

words! {
    Effect, EffectWord = &Effect::ALL;
    OutcomeStatus, OutcomeStatusWord = OutcomeStatus::ALL;
    AttemptStatus, AttemptStatusWord = AttemptStatus::ALL;
    IsError, IsErrorWord = IsError::ALL;
    TwinScope, TwinScopeWord = TwinScope::ALL;
    // Callers take a state that they do not know for `unknown`.
    CallState, CallStateWord = CallState::ALL, unknown is Unknown;
    // Callers treat a decision that they do not know as `stop`.
    DecisionKind, DecisionKindWord = DecisionKind::ALL, unknown is Stop;
    // A reason is for people and logs.
    Reason, ReasonWord = Reason::ALL, unknown is OutcomeUnknown;
    CheckAnswer, CheckAnswerWord = CheckAnswer::ALL;
    ResolvedAs, ResolvedAsWord = ResolvedAs::ALL;
    SettledBy, SettledByWord = SettledBy::ALL;
}

/// A word of a closed list, as a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(WordVisitor(PhantomData)).map(Word)
    }
}

struct WordVisitor<T>(PhantomData<T>);

impl<T: Words> de::Visitor<'_> for WordVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of")?;
        for (i, word) in T::LIST.iter().enumerate() {
            write!(f, "{} `{}`", if i == 0 { "" } else { "," }, word.word())?;
        }
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let known = T::LIST.iter().copied().find(|word| word.word() == text);
        known.or(T::UNKNOWN).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl<T: Words> PartialSchema for Word<T> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(T::LIST.iter().map(|word| word.word())))
            .into()
    }
}

impl<T: Words> ToSchema for Word<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::NAME)
    }
}

/// A point in time: RFC 3339, UTC, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub Time);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl de::Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time with an offset, 1970 to 9999")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        let time = Time::parse(text).map(Timestamp);
        time.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl ToSchema for Timestamp {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Timestamp")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_strings_and_an_unknown_decision_is_stop() {
        assert_eq!(serde_json::to_string(&Word(Effect::ReadOnly)).unwrap(), "\"read_only\"");
        let read = serde_json::from_str::<Word<DecisionKind>>;
        assert_eq!(read("\"reuse\"").unwrap().0, DecisionKind::Reuse);
        assert_eq!(read("\"dance\"").unwrap().0, DecisionKind::Stop);
        assert!(read("{\"reuse\":null}").is_err());
        assert!(serde_json::from_str::<Word<Effect>>("\"Opaque\"").is_err());
    }
}
