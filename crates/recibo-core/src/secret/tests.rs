use super::*;

/// Credentials in pieces, so that no scanner takes this file for a leak.
fn samples() -> Vec<(&'static str, String)> {
    let r = |piece: &str, n: usize| piece.repeat(n);
    vec![
        ("aws_access_key", format!("AKIA{}", r("Q7", 8))),
        ("aws_access_key", format!("ASIA{}", r("Z2", 8))),
        ("google_api_key", format!("AIza{}", r("aB3_-", 7))),
        ("github_token", format!("ghp_{}", r("a1B2", 9))),
        ("github_token", format!("ghs_{}", r("a1B2", 9))),
        ("github_token", format!("github_pat_{}", r("a1_B2", 16))),
        ("gitlab_token", format!("glpat-{}", r("a1-_", 5))),
        ("slack_token", format!("xoxb-{}-{}", r("12", 6), r("aB", 12))),
        ("stripe_key", format!("sk_live_{}", r("a1B2", 6))),
        ("stripe_key", format!("rk_live_{}", r("a1B2", 6))),
        ("stripe_key", format!("sk_test_{}", r("a1B2", 6))),
        ("openai_api_key", format!("sk-{}", r("a1B2", 12))),
        ("openai_api_key", format!("sk-proj-{}", r("a1_-", 12))),
        ("anthropic_api_key", format!("sk-ant-api03-{}", r("a1_-", 20))),
        ("npm_token", format!("npm_{}", r("a1B2", 9))),
        ("pypi_token", format!("pypi-AgEIcHlwaS5vcmc{}", r("a1_-", 20))),
        ("sendgrid_key", format!("SG.{}.{}", r("a1", 11), r("b2", 21))),
        ("twilio_key", format!("SK{}", r("0a", 16))),
        ("huggingface_token", format!("hf_{}", r("aB", 17))),
        ("recibo_api_key", format!("rcb_k1_{}", r("a", 43))),
        ("jwt", format!("eyJ{}.eyJ{}.{}", r("hb", 8), r("zd", 8), r("s_", 20))),
        ("jwt", format!("eyJ{}.e30.{}", r("hb", 8), r("s_", 20))),
        ("jwt", format!("eyJ{}..{}.{}.{}", r("hb", 8), r("iv", 8), r("ct", 8), r("tg", 8))),
        ("database_url", ["postgres", "://user:p@ss/w:rd@db.example/app"].concat()),
        ("database_url", ["postgresql+psycopg2", "://u:x@h:5432/d?sslmode=off"].concat()),
        ("database_url", ["mongodb+srv", "://u:x@cluster.example"].concat()),
        ("database_url", ["redis", "://:x@h:6379/0"].concat()),
        ("database_url", ["AMQPS", "://u:x@h"].concat()),
        ("url_password", ["https", "://bot:hunter2@git.example/a.git"].concat()),
        (
            "private_key",
            format!(
                "-----BEGIN {} KEY-----\n{}\n-----END {} KEY-----",
                "RSA PRIVATE",
                r("aB+/", 16),
                "RSA PRIVATE"
            ),
        ),
        ("private_key", format!("-----BEGIN {} KEY-----\\n{}", "PRIVATE", r("aB+/", 16))),
    ]
}

#[test]
fn every_kind_is_masked_wherever_it_stands() {
    for (kind, secret) in samples() {
        assert_eq!(finds(&secret), Some(kind), "{secret}");
        assert_eq!(mask(&secret).text, format!("[REDACTED:{kind}]"), "{secret}");
        for (before, after) in [("failed with ", "\nnext"), ("key=", " (é)"), ("(", "\n")] {
            let scan = mask(&format!("{before}{secret}{after}")).text.into_owned();
            assert!(scan.starts_with(&format!("{before}[REDACTED:{kind}]")), "{scan}");
            assert!(!mask(&scan).redacted(), "masked twice: {scan}");
        }
        assert!(PATTERNS.hint.is_match(&secret), "{kind} has no hint");
    }
}

#[test]
fn bearer_headers_lose_their_credential_only() {
    let long = "a1".repeat(12);
    let cases = [
        (
            "Authorization: Bearer x1".to_owned(),
            "Authorization: Bearer [REDACTED:bearer_token]".to_owned(),
        ),
        (
            "{'authorization': 'bearer x1'}".to_owned(),
            "{'authorization': 'bearer [REDACTED:bearer_token]'}".to_owned(),
        ),
        (
            "AUTHORIZATION=Basic dTpw".to_owned(),
            "AUTHORIZATION=Basic [REDACTED:basic_auth]".to_owned(),
        ),
        (format!("sent BEARER {long}=."), "sent BEARER [REDACTED:bearer_token].".to_owned()),
        ("Bearer s3cr3t-9".to_owned(), "Bearer [REDACTED:bearer_token]".to_owned()),
        (
            format!("AccountKey={}==;X", "aB+/".repeat(21)),
            "AccountKey=[REDACTED:azure_storage_key];X".to_owned(),
        ),
        (
            format!("aws_secret_access_key = {}", "aB3/".repeat(10)),
            "aws_secret_access_key = [REDACTED:aws_secret_key]".to_owned(),
        ),
    ];
    for (text, want) in cases {
        assert_eq!(mask(&text).text, want);
        assert!(!mask(&want).redacted(), "masked twice: {want}");
    }
}

#[test]
fn clean_text_and_real_ids_pass() {
    for text in [
        "",
        "Error: flight HAT030 not available",
        "the bearer of bad news",
        "bearer authentication failed",
        "call_oIHazX6yQrB8hUwl4cRilFKj",
        "1:call_oIHazX6yQrB8hUwl4cRilFKj",
        "toolu_01A09q90qw90lq917835lq9",
        "task-abcdefghijklmnopqrstuvwxyz",
        "risk-0123456789abcdefghijkl",
        "sk-short",
        "call_x|fc_y=",
        "https://example.com:8080/a@b",
        "postgres://localhost/app",
        "see s3://bucket/AKIA",
        "SKU12345",
        "chatcmpl-tool-0123456789abcdef0123456789abcdef",
        "0190b5a2-7c5e-7000-8000-0123456789ab",
        "crm/lookup.customer",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "eyJhbGciOiJIUzI1NiJ9",
        "rk1_5plqx72jlh6eygknrrsct2u4uwfj4rzwat6jvuwhqzdnnj5zvp6a",
        "basic understanding of authorization",
    ] {
        assert_eq!(finds(text), None, "{text}");
        assert!(matches!(mask(text).text, Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn receipt_tokens_pass_untouched() {
    let token = Token { epoch: 1_774_608_496, digest: [7; 32] }.to_string();
    // A digest that happens to hold the beginning of a key.
    let unlucky = format!("zc-receipt-1-xoxb-{}A", "a".repeat(37));
    assert!(unlucky.parse::<Token>().is_ok());
    for text in [
        format!("[receipt: {token}]"),
        format!("Authorization: Bearer {token}"),
        format!("done {unlucky}."),
    ] {
        assert_eq!(mask(&text).text, text);
        assert_eq!(finds(&text), None);
    }
    let key = format!("AKIA{}", "Q7".repeat(8));
    assert_eq!(
        mask(&format!("{key} {token} {key}")).text,
        format!("[REDACTED:aws_access_key] {token} [REDACTED:aws_access_key]")
    );
    let block = format!("-----BEGIN {} KEY-----\n{token}\nabc", "PRIVATE");
    assert_eq!(mask(&block).text, format!("[REDACTED:private_key]{token}[REDACTED:private_key]"));
    // Too long for a token: no cover for what it holds.
    assert!(mask(&format!("{unlucky}aaaa")).redacted());
}

#[test]
fn kinds_are_told_once_each_in_order() {
    let (aws, npm) = (format!("AKIA{}", "Q7".repeat(8)), format!("npm_{}", "a1B2".repeat(9)));
    let text = format!("{npm} {aws} {npm}");
    let scan = mask(&text);
    assert_eq!(
        (scan.kinds, finds(&text)),
        (vec!["npm_token", "aws_access_key"], Some("npm_token"))
    );
}

#[test]
fn json_is_masked_in_names_and_values_and_stays_canonical() {
    let aws = |n: &str| format!("AKIA{}", n.repeat(16));
    let clean = r#"{"a":["b",1]}"#;
    assert_eq!(mask_json(clean), (clean.to_owned(), false));
    let hinted = r#"{"sk-":"\"eyJ\\"}"#;
    assert_eq!(mask_json(hinted), (hinted.to_owned(), false));
    let text =
        format!(r#"{{"{}":1,"{}":{{"x":["{}\n\"q\""]}},"Z":"\\"}}"#, aws("A"), aws("B"), aws("C"));
    let canonical = json::canonicalize(text.as_bytes()).unwrap();
    let (masked, redacted) = mask_json(&canonical);
    assert!(redacted);
    assert_eq!(
        masked,
        r#"{"Z":"\\","[REDACTED:aws_access_key]":1,"[REDACTED:aws_access_key] 2":{"x":["[REDACTED:aws_access_key]\n\"q\""]}}"#
    );
    assert_eq!(json::canonicalize(masked.as_bytes()), Ok(masked));
}

#[test]
fn a_masked_name_never_meets_one_that_is_there() {
    let text = format!(r#"{{"AKIA{}":1,"[REDACTED:aws_access_key]":2}}"#, "A".repeat(16));
    let (masked, _) = mask_json(&text);
    assert_eq!(masked, r#"{"[REDACTED:aws_access_key]":2,"[REDACTED:aws_access_key] 2":1}"#);
}

#[test]
fn a_key_block_in_json_is_masked_with_its_line_feeds() {
    let text = format!(r#""-----BEGIN {0} KEY-----\nabc\n-----END {0} KEY----- ok""#, "EC PRIVATE");
    assert_eq!(mask_json(&text), (r#""[REDACTED:private_key] ok""#.to_owned(), true));
}
