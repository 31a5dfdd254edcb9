//! Whether a value that stands beside a telling name is a secret, and which part of it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::Hit;
use super::name::{Meaning, Proof};

/// Shortest value that is taken for random characters.
const RANDOM_LEN_MIN: usize = 8;
/// Shortest run of letters and digits that is taken for random.
const RUN_LEN_MIN: usize = 6;
/// Letters alone are taken for random from here on: no word is longer.
const LETTERS_LEN_MIN: usize = 24;

/// Words that stand where a secret would, in lower case.
const NO_SECRETS: &[&str] = &[
    "",
    "null",
    "nil",
    "none",
    "undefined",
    "n/a",
    "na",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "redacted",
    "masked",
    "hidden",
    "removed",
    "unset",
    "set",
    "not set",
    "empty",
    "missing",
    "present",
    "absent",
    "invalid",
    "incorrect",
    "wrong",
    "expired",
    "required",
    "optional",
    "unchanged",
    "changed",
    "reset",
    "rotated",
    "revoked",
    "sent",
    "done",
    "ok",
    "failed",
    "refused",
    "denied",
    "unknown",
    "weak",
    "strong",
    "str",
    "string",
    "bytes",
    "stdin",
    "prompt",
    "env",
    "file",
    "vault",
    "keychain",
    "granted",
    "accepted",
];

/// A template, a usage string, code, or the place where the secret lies.
static STANDS_FOR_ANOTHER: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"\A(?:",
        r"\[REDACTED|<|\$\{|\$\(|\$[A-Za-z_]|\{\{|\{[\w.]*\}\z|%[sdv]\z|%\(|%[A-Z_]+%|\\?[*x•.#?_-]+\z",
        r"|(?i:your)[_ -]|[A-Z_]*(?:PASSWORD|PASS|TOKEN|KEY|SECRET)\z|&",
        r"|(?i:arn|vault|env|file|ssm|secretsmanager|keyvault):|[a-z]+://|@Microsoft\.",
        r"|projects/[^/]+/secrets/|[A-Za-z_][\w.]*\(|[A-Za-z_][\w.]*\[",
        r"|(?:self|this|os|process|config|cfg|settings|env|args|opts|options|ctx|request|req|params|secrets|vars?|local)\.",
        r")",
    ))
});

static PATH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\A(?:~|\.{0,2}|[A-Za-z]:)(?:[/\\][\w.-]+)+\z"));

/// What validators say of a password, not the password.
static MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)\A(?:is|are|was|were|must|should|too|has|have|not|cannot|can['’]t|may|needs?|does|doesn['’]t|please|enter|invalid|incorrect|wrong|missing|minimum|at least|min|max|contains)\s",
        r"|(?-u:\b)(?:is|are|was|must be|should be|has been) (?:required|invalid|incorrect|too|not|reset|expired|sent|set|changed|missing|empty)",
    ))
});

static SCHEME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\A\s*(?:(basic)|(bearer)|token|apikey|api-key|key|bot|negotiate|ntlm|splunk|geniekey|oauth|digest|hawk|signature|aws4-hmac-sha256)\s+(\S.*)\z",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is sound")
}

/// The part of a value that is secret, if any is.
pub(super) fn secret_part(meaning: Meaning, value: &str) -> Option<Hit> {
    let whole = |kind| Hit { at: trimmed(value), kind };
    let is_secret = match meaning.proof {
        Proof::Header => {
            return header(value).or_else(|| is_random(value).then(|| whole(meaning.kind)));
        }
        Proof::None => is_password(value, meaning.kind),
        Proof::Random => is_random(value),
        Proof::Cookie => value
            .split(';')
            .any(|pair| pair.split_once('=').is_some_and(|(_, value)| is_random(value))),
        Proof::Digits(..) => {
            let digits = value.trim();
            !digits.is_empty()
                && digits.bytes().all(|b| b.is_ascii_digit())
                && has_digits(meaning.proof, digits.len())
        }
    };
    is_secret.then(|| whole(meaning.kind))
}

/// Whether a JSON number beside a telling name is a secret.
pub(super) fn is_secret_number(meaning: Meaning, number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit()) && has_digits(meaning.proof, number.len())
}

fn has_digits(proof: Proof, n: usize) -> bool {
    proof.digits().is_some_and(|digits| digits.contains(&n))
}

fn trimmed(value: &str) -> Range<usize> {
    let start = value.len() - value.trim_start().len();
    start..start + value.trim().len()
}

/// A scheme stays readable, what follows it does not.
fn header(value: &str) -> Option<Hit> {
    let parts = SCHEME.captures(value)?;
    let rest = parts.get(3)?;
    let kind = match (parts.get(1), parts.get(2)) {
        (Some(_), _) => "basic_auth",
        (_, Some(_)) => "bearer_token",
        _ => "authorization",
    };
    // Of several words only a list of parameters is a credential: the rest is prose.
    let text = rest.as_str().trim_end();
    let is_credential = !text.contains(char::is_whitespace) || text.contains('=');
    (is_credential && !stands_for_another(text))
        .then(|| Hit { at: rest.start()..rest.start() + text.len(), kind })
}

/// Whether nothing else stands where the secret would.
pub(super) fn stands_for_another(value: &str) -> bool {
    let value = value.trim();
    NO_SECRETS.contains(&value.to_lowercase().as_str()) || STANDS_FOR_ANOTHER.is_match(value)
}

fn is_password(value: &str, kind: &str) -> bool {
    let value = value.trim();
    let is_count = value.len() < 4 && value.bytes().all(|byte| byte.is_ascii_digit());
    // Half of the base64 keys hold a slash, so one can look like a path.
    let is_path = kind == "password" && PATH.is_match(value);
    !is_count && !is_path && !stands_for_another(value) && !MESSAGE.is_match(value)
}

/// Whether a value looks as if nobody had thought of it.
pub(super) fn is_random(value: &str) -> bool {
    let value = value.trim();
    value.len() >= RANDOM_LEN_MIN
        && !value.contains(char::is_whitespace)
        && value.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random_run)
        && !PATH.is_match(value)
        && !stands_for_another(value)
}

fn is_random_run(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let letters = run.len() - digits;
    let bytes = run.as_bytes();
    let turns = bytes.windows(2).filter(|p| p[0].is_ascii_digit() != p[1].is_ascii_digit()).count();
    match (digits, letters) {
        (0, _) => letters >= LETTERS_LEN_MIN,
        (_, 0) => false,
        _ => {
            run.len() >= RUN_LEN_MIN
                && (turns >= 2 || (digits >= 3 && letters >= 3 && run.len() >= 8))
        }
    }
}
