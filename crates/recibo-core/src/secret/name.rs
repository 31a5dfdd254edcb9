//! What the name of a value says about it: `client_secret`, `X-Api-Key`, `dbPassword`. The last
//! words of a name decide, so that `password_reset` and `token_count` mean nothing here.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// What a value with a telling name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) kind: &'static str,
    pub(super) proof: Proof,
}

/// What the value itself must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Nothing: only a placeholder, a reference or a message is no secret.
    None,
    /// Random characters: tools call harmless things `token` and `key` too.
    Random,
    /// A header: a scheme and a credential, or random characters.
    Header,
    /// `name=value` with a random value.
    Cookie,
    /// So many digits and nothing else.
    Digits(usize, usize),
}

impl Proof {
    /// How many digits make a number a secret.
    pub(super) fn digits(self) -> Option<RangeInclusive<usize>> {
        match self {
            // Fewer are a count or a flag.
            Self::None => Some(4..=usize::MAX),
            Self::Digits(min, max) => Some(min..=max),
            Self::Random | Self::Header | Self::Cookie => None,
        }
    }
}

/// Of each telling name at least one occurs in it. For hints: lower case, as a regex.
pub(super) const WORDS: &str = concat!(
    "pass|pwd|psw|pw|kennwort|contrase|senha|wachtwoord|пароль|密码|密碼|パスワード",
    "|secret|token|key|phrase|auth|cookie|cred|pin|otp|code|cvv|cvc|sig",
);

/// Names in lower case with `_` between their words, kind, proof. The first match counts. Behind
/// `*` they may end a longer word, as in PGPASSWORD.
const NAMES: &[(&str, &str, Proof)] = &[
    ("secret_?access_?key", "aws_secret_key", Proof::None),
    ("*(?:password|passwd|passphrase|passcode|passwort|kennwort)s?", "password", Proof::None),
    (
        "*(?:contraseña|contrasena|senha|mot_?de_?passe|wachtwoord|пароль|密码|密碼|パスワード)",
        "password",
        Proof::None,
    ),
    ("pwd|psw|pw", "password", Proof::None),
    ("(?:password|passwd|pwd|pass)_?(?:hash|digest)", "password", Proof::Random),
    (
        r"\Apass|(?:user|admin|root|db|database|smtp|imap|mail|email|ftp|login|auth|proxy|redis|mysql|pg|wifi)_?pass",
        "password",
        Proof::Random,
    ),
    (
        "(?:client|consumer|app|application|api|shared|jwt|totp|otp|mfa|hmac|webhook|signing|session|oauth|auth|encryption)_?secrets?",
        "secret",
        Proof::None,
    ),
    ("(?:seed|recovery)_?phrase", "secret", Proof::None),
    ("*secrets?", "secret", Proof::Random),
    ("secret_?keys?", "secret", Proof::Random),
    ("private_?keys?", "private_key", Proof::Random),
    (
        "(?:access|auth|refresh|id|api|bot|session|bearer|csrf|xsrf|oauth)?tokens?",
        "token",
        Proof::Random,
    ),
    (
        "(?:api|access|encryption|decryption|signing|master|account|shared|auth|hmac|webhook|ssh|deploy|subscription|admin|root|storage|license|session|integration|app|consumer|ingest)_?keys?",
        "api_key",
        Proof::Random,
    ),
    ("authorization", "authorization", Proof::Header),
    ("cookies?", "cookie", Proof::Cookie),
    ("credentials?|creds?|auth", "credential", Proof::Random),
    ("pin", "pin", Proof::Digits(4, 8)),
    (
        "t?otp|(?:verification|mfa|2fa|two_factor|one_time|login|sms)_?code",
        "otp",
        Proof::Digits(4, 10),
    ),
    ("cvv2?|cvc2?|(?:card_)?security_code", "cvv", Proof::Digits(3, 4)),
];

/// Tokens that say where to go on, or that something was said once.
const HARMLESS: &str = concat!(
    r"(?:\A|_)(?:page|next|continuation|pagination|sync|cursor|start|end|prev|previous|resume",
    r"|change|delta|position|skip|scroll|list|watch|snapshot|idempotency|request|dedup",
    r"|cancellation|receipt|first|last|eos|bos|pad|unk|sep|cls|mask|stop|special|design)",
    r"_?tokens?\z",
);

/// What may follow: `password_confirmation`, `secret_value`, `password2`.
const TAIL: &str = "(?:_?(?:confirmation|confirm|repeat|new|old|current|plain|plaintext|value|string|text|raw|base64|b64|[0-9]+))*";

struct Names {
    words: Regex,
    /// Any of the set: most names with a telling word mean nothing, and one answer costs less.
    any: Regex,
    set: RegexSet,
    harmless: Regex,
}

static TABLE: LazyLock<Names> = LazyLock::new(|| {
    let anchored: Vec<_> = NAMES
        .iter()
        .map(|(name, ..)| match name.strip_prefix('*') {
            Some(end) => format!(r"(?:{end}){TAIL}\z"),
            None => format!(r"(?:\A|_)(?:{name}){TAIL}\z"),
        })
        .collect();
    Names {
        words: Regex::new(&format!("(?i){WORDS}")).expect("the words are sound"),
        any: Regex::new(&anchored.join("|")).expect("the table holds sound patterns"),
        set: RegexSet::new(anchored).expect("the table holds sound patterns"),
        harmless: Regex::new(HARMLESS).expect("the pattern is sound"),
    }
});

/// What a name means; `None` for a name like any other.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    if !TABLE.words.is_match(name) {
        return None;
    }
    let words = words(name);
    if !TABLE.any.is_match(&words) {
        return None;
    }
    let index = TABLE.set.matches(&words).iter().next()?;
    let (_, kind, proof) = NAMES[index];
    (!TABLE.harmless.is_match(&words)).then_some(Meaning { kind, proof })
}

/// `awsSecretKey`, `AWS-SECRET-KEY` and `aws secret key` alike.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut chars = name.trim().chars().peekable();
    let mut last: Option<char> = None;
    while let Some(c) = chars.next() {
        if !c.is_alphanumeric() {
            words.push('_');
        } else {
            let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
            let begins = c.is_uppercase()
                && last.is_some_and(|last| {
                    last.is_lowercase()
                        || last.is_ascii_digit()
                        || (last.is_uppercase() && next_is_lower)
                });
            if begins {
                words.push('_');
            }
            words.extend(c.to_lowercase());
        }
        last = Some(c);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_name_decide_in_any_spelling() {
        let cases = [
            ("password", Some("password")),
            ("dbPassword", Some("password")),
            ("PGPASSWORD", Some("password")),
            ("password2", Some("password")),
            ("password_confirmation", Some("password")),
            ("password_reset", None),
            ("passwordHint", None),
            ("PWD", Some("password")),
            ("pass", Some("password")),
            ("smtp.pass", Some("password")),
            ("boarding_pass", None),
            ("APIKey", Some("api_key")),
            ("X-Api-Key", Some("api_key")),
            ("api_key_id", None),
            ("public_key", None),
            ("SharedAccessKeyName", None),
            ("awsSecretAccessKey", Some("aws_secret_key")),
            ("client secret", Some("secret")),
            ("secret_santa", None),
            ("token", Some("token")),
            ("accesstoken", Some("token")),
            ("nextPageToken", None),
            ("page_token", None),
            ("token_count", None),
            ("Proxy-Authorization", Some("authorization")),
            ("author", None),
            ("pin", Some("pin")),
            ("opinion", None),
            ("", None),
        ];
        for (name, kind) in cases {
            assert_eq!(meaning(name).map(|meaning| meaning.kind), kind, "{name}");
        }
    }
}
