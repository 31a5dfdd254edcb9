//! Single members of requests: their rules, and the masking of free text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{ErrorClass, Labels};
use recibo_core::json::{self, JsonError};
use recibo_core::secret::{self, Scan};
use recibo_core::{limits, summary};
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::problem::{Code, Problem};

/// Reads a member for which null is a value of its own: given as null is not the same as not
/// given.
pub(crate) fn given<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// Labels as they were sent: names differ, nothing else is checked.
#[derive(Clone)]
pub struct LabelPairs(Vec<(String, String)>);

/// What a client sends. The order of the names means nothing.
impl From<&BTreeMap<String, String>> for LabelPairs {
    fn from(labels: &BTreeMap<String, String>) -> Self {
        Self(labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

impl Serialize for LabelPairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for LabelPairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LabelVisitor)
    }
}

struct LabelVisitor;

impl<'de> de::Visitor<'de> for LabelVisitor {
    type Value = LabelPairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {} different labels", limits::LABELS_MAX)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LabelPairs, A::Error> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            let is_new = pairs.iter().all(|(known, _)| *known != name);
            if !is_new || pairs.len() == limits::LABELS_MAX {
                return Err(de::Error::invalid_length(pairs.len() + 1, &self));
            }
            pairs.push((name, value));
        }
        Ok(LabelPairs(pairs))
    }
}

/// An integer within bounds, both included.
pub(crate) fn within(name: &str, value: u64, min: u64, max: u64) -> Result<u64, Problem> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(Problem::invalid(format!("{name} must be an integer from {min} to {max}")))
    }
}

/// A duration in milliseconds or a seq, if one is named.
pub(crate) fn number(name: &str, value: Option<u64>) -> Result<Option<u64>, Problem> {
    value.map(|value| within(name, value, 0, limits::NUMBER_MAX)).transpose()
}

/// The number of an attempt, if one is named.
pub(crate) fn attempt(value: Option<u32>) -> Result<Option<u32>, Problem> {
    match value {
        Some(0) => Err(Problem::invalid("attempt must be an integer from 1 to 4294967295")),
        other => Ok(other),
    }
}

/// The hash of the arguments, given themselves or as their hash.
pub(crate) fn input(
    value: Option<&RawValue>,
    hash: Option<&str>,
) -> Result<Option<InputHash>, Problem> {
    match (value, hash) {
        (Some(_), Some(_)) => Err(both("input", "input_hash")),
        (Some(value), None) => InputHash::of_json(value.get().as_bytes())
            .map(Some)
            .map_err(|error| inside("input", value.get(), error)),
        (None, Some(hash)) => hash.parse().map(Some).map_err(|_| bad_hash("input_hash")),
        (None, None) => Ok(None),
    }
}

/// The hash of the arguments, which must be there.
pub(crate) fn needed_input(
    value: Option<&RawValue>,
    hash: Option<&str>,
) -> Result<InputHash, Problem> {
    input(value, hash)?.ok_or_else(|| Problem::invalid("one of input and input_hash is needed"))
}

/// A result: its hash, and its shape if it was given itself.
pub(crate) struct Output {
    pub(crate) hash: OutputHash,
    pub(crate) shape: Option<String>,
}

/// The result, given itself or as its hash. A string counts as the text that it holds,
/// anything else as its canonical JSON.
pub(crate) fn output(
    value: Option<&RawValue>,
    hash: Option<&str>,
) -> Result<Option<Output>, Problem> {
    match (value, hash) {
        (Some(_), Some(_)) => Err(both("output", "output_hash")),
        (Some(value), None) => {
            let bytes = value.get().as_bytes();
            let text = if bytes.first() == Some(&b'"') {
                json::string_value(bytes).map(Option::unwrap_or_default)
            } else {
                json::canonicalize(bytes).map(Cow::Owned)
            };
            let text =
                text.map_err(|error| instead_of_output(inside("output", value.get(), error)))?;
            Ok(Some(Output {
                hash: OutputHash::of_text(&text),
                shape: Some(summary::shape(&text)),
            }))
        }
        (None, Some(hash)) => {
            let hash = hash.parse().map_err(|_| bad_hash("output_hash"))?;
            Ok(Some(Output { hash, shape: None }))
        }
        (None, None) => Ok(None),
    }
}

fn both(one: &str, other: &str) -> Problem {
    Problem::invalid(format!("{one} and {other} exclude each other"))
}

pub(crate) fn bad_hash(name: &str) -> Problem {
    Problem::invalid(format!("{name} must be sha256: and 64 lower case hex digits"))
}

/// The value of a member has no canonical form. The place is a pointer into the whole body.
pub(crate) fn inside(name: &str, value: &str, error: JsonError) -> Problem {
    let mut problem = Problem::json(value.as_bytes(), error);
    problem.detail = format!("in {name}, counted from its beginning: {}", problem.detail);
    if let Some(Value::String(pointer)) = problem.extra.get_mut("pointer") {
        pointer.insert_str(0, &format!("/{name}"));
    }
    problem
}

/// A result that is no JSON has a hash all the same: says so where the result is at fault.
pub(crate) fn instead_of_output(mut problem: Problem) -> Problem {
    let pointer = problem.extra.get("pointer").and_then(Value::as_str).unwrap_or_default();
    if pointer == "/output" || pointer.starts_with("/output/") {
        problem.detail.push_str("; for a result that is not JSON, send output_hash");
    }
    problem
}

/// Masks credentials in free text and remembers whether there were any.
#[derive(Default)]
pub(crate) struct Mask {
    pub(crate) redacted: bool,
}

impl Mask {
    /// Masks a text. Masking can lengthen it: one that would leave its limit is replaced whole.
    pub(crate) fn text(&mut self, text: &str, bytes_max: usize) -> String {
        let scan = secret::mask(text);
        self.redacted |= scan.redacted();
        match scan.kinds.first() {
            Some(kind) if scan.text.len() > bytes_max => format!("[REDACTED:{kind}]"),
            _ => scan.text.into_owned(),
        }
    }

    /// Checks a class of errors. A masked one would not fit the alphabet, so it is replaced.
    pub(crate) fn error_class(&mut self, text: &str) -> Result<ErrorClass, Problem> {
        let class = ErrorClass::parse(text)?;
        if secret::finds(text).is_none() {
            return Ok(class);
        }
        self.redacted = true;
        Ok(ErrorClass::parse("redacted")?)
    }

    /// Checks labels as they were sent, then masks names and values: only what is within the
    /// limits is worth a scan.
    pub(crate) fn labels(&mut self, pairs: Option<LabelPairs>) -> Result<Labels, Problem> {
        let labels = Labels::parse(pairs.map(|pairs| pairs.0).unwrap_or_default())?;
        let scans: Vec<_> = labels
            .iter()
            .map(|(name, value)| (secret::mask(name), secret::mask_member(name, value)))
            .collect();
        if !scans.iter().any(|(name, value)| name.redacted() || value.redacted()) {
            return Ok(labels);
        }
        self.redacted = true;
        let masked = |text: fn(&Scan<'_>) -> String| {
            let mut pairs: Vec<_> =
                scans.iter().map(|(name, value)| (text(name), text(value))).collect();
            number_equal_names(&mut pairs);
            Labels::parse(pairs)
        };
        // Masks can be longer than what they cover. What no longer fits loses the text around
        // them first, and then goes: no call is refused for its labels.
        let labels = masked(|scan| scan.text.clone().into_owned()).or_else(|_| masked(covered));
        Ok(labels.unwrap_or_default())
    }

    /// Checks a summary and masks it; without one, the shape stands in.
    pub(crate) fn summary(
        &mut self,
        given: Option<&RawValue>,
        shape: Option<String>,
    ) -> Result<Option<String>, Problem> {
        let Some(given) = given else { return Ok(shape) };
        let canonical = json::canonicalize(given.get().as_bytes())
            .map_err(|error| inside("output_summary", given.get(), error))?;
        if !canonical.starts_with('{') || canonical.len() > limits::SUMMARY_BYTES_MAX {
            return Err(Problem::invalid(format!(
                "output_summary must be a JSON object of at most {} bytes in canonical form",
                limits::SUMMARY_BYTES_MAX
            )));
        }
        let (masked, redacted) = secret::mask_json(&canonical);
        self.redacted |= redacted;
        Ok(if masked.len() <= limits::SUMMARY_BYTES_MAX { Some(masked) } else { shape })
    }
}

/// A text that is covered whole if anything in it was.
fn covered(scan: &Scan<'_>) -> String {
    match scan.kinds.first() {
        Some(kind) => format!("[REDACTED:{kind}]"),
        None => scan.text.clone().into_owned(),
    }
}

/// Two names of the same kind of credential look the same once they are masked.
fn number_equal_names(pairs: &mut [(String, String)]) {
    for i in 1..pairs.len() {
        let (before, rest) = pairs.split_at_mut(i);
        let name = &mut rest[0].0;
        let base = name.clone();
        let mut number = 2;
        while before.iter().any(|(known, _)| known == name) {
            *name = format!("{base} {number}");
            number += 1;
        }
    }
}

/// Free text that must say something.
pub(crate) fn sentence(name: &str, text: &str) -> Result<(), Problem> {
    let max = limits::REASON_BYTES_MAX;
    if text.is_empty() || text.len() > max {
        return Err(Problem::new(Code::InvalidRequest, format!("{name} must be 1 to {max} bytes")));
    }
    Ok(())
}
