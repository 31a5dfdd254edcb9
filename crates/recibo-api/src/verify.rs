//! Verifying a receipt: what was asked, the verdict, and how it is reached. Pure: the record
//! and what the key says are arguments.

use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{RunId, ToolCallId, ToolName};
use recibo_core::receipt::Token;
use recibo_core::record::Record as CoreRecord;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::answer::Record;
use crate::member;
use crate::problem::Problem;
use crate::word::{Word, words};

/// Asks whether a token is a receipt of this ledger and says what is given.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest<'a> {
    /// The token; a text that is none is `malformed`.
    pub(crate) token: String,
    /// The run that it is said to be of.
    pub(crate) run_id: Option<String>,
    /// The call that it is said to be of.
    pub(crate) tool_call_id: Option<String>,
    /// The attempt that it is said to be of.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_294_967_295_i64)]
    pub(crate) attempt: Option<u32>,
    /// The tool that is said to have run.
    pub(crate) tool: Option<String>,
    /// The arguments that it is said to have run with; null is the JSON null.
    #[serde(borrow, default, deserialize_with = "member::given")]
    #[schema(value_type = Value, required = false)]
    pub(crate) input: Option<&'a RawValue>,
    /// Instead of `input`: the hash of its canonical form.
    pub(crate) input_hash: Option<String>,
    /// The result that it is said to have given; null is the JSON null.
    #[serde(borrow, default, deserialize_with = "member::given")]
    #[schema(value_type = Value, required = false)]
    pub(crate) output: Option<&'a RawValue>,
    /// Instead of `output`: the hash of its text.
    pub(crate) output_hash: Option<String>,
}

/// A verify request, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyParams {
    /// The token; `None`: malformed.
    pub token: Option<Token>,
    /// The run, if given.
    pub run_id: Option<RunId>,
    /// The call, if given.
    pub tool_call_id: Option<ToolCallId>,
    /// The attempt, if given.
    pub attempt: Option<u32>,
    /// The tool, if given.
    pub tool: Option<ToolName>,
    /// The arguments' hash, if given, and the member that gave it.
    pub input: Option<(&'static str, InputHash)>,
    /// The result's hash, if given, and the member that gave it.
    pub output: Option<(&'static str, OutputHash)>,
}

impl VerifyRequest<'_> {
    /// Checks every member.
    pub fn parse(self) -> Result<VerifyParams, Problem> {
        let input_name = if self.input.is_some() { "input" } else { "input_hash" };
        let output_name = if self.output.is_some() { "output" } else { "output_hash" };
        let input = member::input(self.input, self.input_hash.as_deref())?;
        let output = member::output(self.output, self.output_hash.as_deref())?;
        Ok(VerifyParams {
            token: self.token.parse().ok(),
            run_id: self.run_id.as_deref().map(RunId::parse).transpose()?,
            tool_call_id: self.tool_call_id.as_deref().map(ToolCallId::parse).transpose()?,
            attempt: member::attempt(self.attempt)?,
            tool: self.tool.as_deref().map(claimed_tool).transpose()?,
            input: input.map(|hash| (input_name, hash)),
            output: output.map(|output| (output_name, output.hash)),
        })
    }
}

/// The tool of an old receipt may have a name that a claim would not be given today.
fn claimed_tool(text: &str) -> Result<ToolName, Problem> {
    Ok(ToolName::parse(text).or_else(|error| ToolName::stored(text).ok_or(error))?)
}

macro_rules! word_list {
    ($(#[$doc:meta])* $name:ident, $alias:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of the contract.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        words! { $name, $alias = $name::ALL; }
    };
}

word_list!(
    /// What is said of a token.
    Verdict, VerdictWord {
        /// Signed by a living key, and all that was given agrees.
        Valid = "valid",
        /// Held, its key gone, and all that was given agrees.
        Recorded = "recorded",
        /// Held, but something differs.
        Mismatch = "mismatch",
        /// Well formed, and not held here.
        Forged = "forged",
        /// No token.
        Malformed = "malformed",
    }
);

word_list!(
    /// What a verdict rests on.
    Level, LevelWord {
        /// The HMAC was recomputed.
        Signature = "signature",
        /// Recorded, and under a signed checkpoint.
        Log = "log",
        /// Only in the store.
        Recorded = "recorded",
    }
);

/// The verdict on a token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct VerifyAnswer {
    /// The verdict.
    pub verdict: VerdictWord,
    /// The highest level that holds; null if nothing was verified.
    #[schema(required)]
    pub level: Option<LevelWord>,
    /// The members of the request that differ; `signature` if the HMAC over the record fails.
    pub mismatches: Vec<String>,
    /// The members of the request that a sweep left nothing to compare with.
    pub unchecked: Vec<String>,
    /// The record that holds the token.
    #[schema(required)]
    pub record: Option<Record>,
}

/// What the scope's key says of the token over the stored record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// It signed this.
    Good,
    /// It did not.
    Bad,
    /// It is gone.
    KeyGone,
}

impl VerifyAnswer {
    /// A text that is no token.
    pub fn malformed() -> Self {
        Self::nothing_held(Verdict::Malformed)
    }

    /// A token that this namespace does not hold.
    pub fn forged() -> Self {
        Self::nothing_held(Verdict::Forged)
    }

    fn nothing_held(verdict: Verdict) -> Self {
        Self {
            verdict: Word(verdict),
            level: None,
            mismatches: Vec::new(),
            unchecked: Vec::new(),
            record: None,
        }
    }
}

/// The verdict on a token that a record holds.
pub fn verify_against(
    asked: &VerifyParams,
    record: &CoreRecord,
    signature: Signature,
) -> VerifyAnswer {
    let (mut mismatches, mut unchecked) = (Vec::new(), Vec::new());
    // In the order of the contract.
    let run_id = asked.run_id.as_ref().map(|id| *id == record.call.run_id);
    let call = asked.tool_call_id.as_ref().map(|id| *id == record.call.tool_call_id);
    let compared = [
        ("run_id", run_id),
        ("tool_call_id", call),
        ("attempt", asked.attempt.map(|attempt| attempt == record.attempt)),
        ("tool", asked.tool.as_ref().map(|tool| *tool == record.tool)),
    ];
    let differs = compared.iter().filter(|(_, same)| *same == Some(false));
    mismatches.extend(differs.map(|(name, _)| (*name).to_owned()));
    if let Some((name, _)) = asked.input.filter(|(_, hash)| *hash != record.input_hash) {
        mismatches.push(name.to_owned());
    }
    if let Some((name, hash)) = asked.output {
        match record.output_hash {
            Some(held) if held != hash => mismatches.push(name.to_owned()),
            Some(_) => {}
            None => unchecked.push(name.to_owned()),
        }
    }
    if signature == Signature::Bad {
        mismatches.push("signature".to_owned());
    }
    let (verdict, level) = match signature {
        _ if !mismatches.is_empty() => (Verdict::Mismatch, None),
        Signature::Good => (Verdict::Valid, Some(Word(Level::Signature))),
        Signature::KeyGone | Signature::Bad => (Verdict::Recorded, Some(Word(Level::Recorded))),
    };
    VerifyAnswer {
        verdict: Word(verdict),
        level,
        mismatches,
        unchecked,
        record: Some(Record::from_core(record)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::tests::core_record;
    use crate::body::read;

    fn asked(more: &str) -> VerifyParams {
        let token = core_record().token.unwrap();
        let text = format!(r#"{{"token":"{token}"{more}}}"#);
        read::<VerifyRequest<'_>>(text.as_bytes()).and_then(VerifyRequest::parse).unwrap()
    }

    #[test]
    fn an_old_receipt_is_verified_with_its_old_tool_name() {
        let params = asked(",\"tool\":\"pay\u{202e}tnem\"");
        assert_eq!(params.tool, ToolName::stored("pay\u{202e}tnem"));
    }

    #[test]
    fn a_verdict_names_what_differs_in_the_order_of_the_contract() {
        let right = r#","run_id":"run_82f","tool_call_id":"call_17","attempt":2,"tool":"lookup","input":1.0,"output":"x""#;
        let wrong =
            r#","output":null,"input":null,"tool":"l","attempt":1,"tool_call_id":"c","run_id":"r""#;
        let hash = format!(r#","output_hash":"{}""#, OutputHash::of_text("y"));
        let all = ["run_id", "tool_call_id", "attempt", "tool", "input", "output"];
        type Case<'a> = (&'a str, Signature, Verdict, Option<Level>, &'a [&'a str]);
        let cases: [Case<'_>; 7] = [
            ("", Signature::Good, Verdict::Valid, Some(Level::Signature), &[]),
            (right, Signature::Good, Verdict::Valid, Some(Level::Signature), &[]),
            (right, Signature::KeyGone, Verdict::Recorded, Some(Level::Recorded), &[]),
            (right, Signature::Bad, Verdict::Mismatch, None, &["signature"]),
            (wrong, Signature::Good, Verdict::Mismatch, None, &all),
            (wrong, Signature::KeyGone, Verdict::Mismatch, None, &all),
            (&hash, Signature::Good, Verdict::Mismatch, None, &["output_hash"]),
        ];
        for (more, signature, verdict, level, mismatches) in cases {
            let answer = verify_against(&asked(more), &core_record(), signature);
            assert_eq!(answer.verdict, Word(verdict), "{more}");
            assert_eq!(answer.level, level.map(Word), "{more}");
            assert_eq!(answer.mismatches, mismatches, "{more}");
            assert!(answer.unchecked.is_empty());
        }
    }

    #[test]
    fn what_a_sweep_removed_is_unchecked() {
        let swept = CoreRecord { output_hash: None, ..core_record() };
        let answer = verify_against(&asked(r#","output":"x""#), &swept, Signature::KeyGone);
        assert_eq!(answer.verdict, Word(Verdict::Recorded));
        assert_eq!(answer.unchecked, ["output"]);
    }

    #[test]
    fn a_text_that_is_no_token_is_malformed() {
        let read = |text: &str| read::<VerifyRequest<'_>>(text.as_bytes())?.parse();
        assert_eq!(read(r#"{"token":"zc-receipt-07-x"}"#).unwrap().token, None);
        assert!(read(r#"{"token":"x","input":1,"input_hash":"x"}"#).is_err());
        assert!(read(r#"{"token":"x","run_id":"a/b"}"#).is_err());
        let text = serde_json::to_string(&VerifyAnswer::malformed()).unwrap();
        assert_eq!(
            text,
            r#"{"verdict":"malformed","level":null,"mismatches":[],"unchecked":[],"record":null}"#
        );
    }
}
