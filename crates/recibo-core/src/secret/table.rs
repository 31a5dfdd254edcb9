//! The credential patterns, and nothing else. A pattern with groups masks only the one that took
//! part.

/// Literals of which at least one occurs in every text that a pattern matches: one pass
/// over a clean text ends here.
pub(super) const HINT: &str = concat!(
    r"(?i:bearer|basic|authorization|private key|accountkey|://|jdbc:|curl|sshpass|mysql|redis-cli|age-secret-key-1)",
    r"|AKIA|ASIA|AIza|ya29\.|GOCSPX-|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|xapp-",
    r"|[rs]k_live_|[rs]k_test_|whsec_|sk-|npm_|pypi-|SG\.|SK[0-9a-f]|hf_|rcb_|eyJ",
    r"|hvs\.|dop_v1_|shp[a-z]{2}_|gsk_|xai-|lin_api_|PMAK-|dapi[0-9a-f]|ATATT3",
);

/// Basic credentials that no header stands before. Such words are prose mostly, so what they
/// decode to is looked at.
pub(super) const BASIC: &str = r"(?i)(?-u:\b)basic\s+([a-z0-9+/]{4,}={0,2})";

/// Kind and pattern. Where two match at the same place the longer one names the kind, at
/// equal length the earlier in this table.
pub(super) const PATTERNS: &[(&str, &str)] = &[
    (
        "private_key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("private_key", r"(?i)age-secret-key-1[a-z0-9]{40,}"),
    ("recibo_api_key", r"rcb_[A-Za-z0-9-]{1,64}_[A-Za-z0-9_-]{43,}"),
    ("aws_access_key", r"(?:AKIA|ASIA)[A-Z0-9]{16,}"),
    ("google_api_key", r"AIza[A-Za-z0-9_-]{35,}"),
    ("google_oauth_token", r"ya29\.[A-Za-z0-9_.-]{20,}"),
    ("google_oauth_secret", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("azure_storage_key", r"(?i)accountkey\s*=\s*([a-z0-9+/]{80,}={0,2})"),
    ("github_token", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github_token", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab_token", r"(?-u:\b)gl(?:pat|dt|ptt|rt|cbt|oas|soat|ft|imt|agent)-[A-Za-z0-9_.-]{20,}"),
    ("slack_token", r"xox[abceoprs]-[A-Za-z0-9-]{10,}"),
    ("slack_token", r"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    (
        "slack_webhook",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+]{20,}",
    ),
    ("stripe_key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("stripe_key", r"whsec_[A-Za-z0-9+/]{24,}=*"),
    ("anthropic_api_key", r"sk-ant-[A-Za-z0-9_-]{16,}"),
    (
        "openai_api_key",
        r"(?:^|[^A-Za-z0-9])(sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}|(?:or-v1-)?[A-Za-z0-9]{20,}))",
    ),
    ("npm_token", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi_token", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("sendgrid_key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("twilio_key", r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    ("huggingface_token", r"(?-u:\b)hf_[A-Za-z0-9]{30,}"),
    ("vault_token", r"(?-u:\b)hvs\.[A-Za-z0-9_-]{24,}"),
    ("digitalocean_token", r"dop_v1_[0-9a-f]{64}"),
    ("shopify_token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    ("groq_api_key", r"(?-u:\b)gsk_[A-Za-z0-9]{40,}"),
    ("xai_api_key", r"(?-u:\b)xai-[A-Za-z0-9]{40,}"),
    ("linear_api_key", r"lin_api_[A-Za-z0-9]{32,}"),
    ("postman_key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("databricks_token", r"(?-u:\b)dapi[0-9a-f]{32}(?:-[0-9])?"),
    ("atlassian_token", r"ATATT3[A-Za-z0-9_=-]{40,}"),
    // Three parts, a signed token cut short (its payload begins like the header), or the
    // five parts of an encrypted one.
    (
        "jwt",
        r"eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?|[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){1,3})",
    ),
    // Greedy up to the last `@`: passwords hold `@`, `:` and `/` that nobody encoded.
    (
        "database_url",
        r#"(?i)(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|valkeys?|amqps?|mssql|sqlserver|clickhouse|cockroachdb|cassandra|neo4j|bolt|oracle)(?:\+[a-z0-9]+)?://[^\s:@/]*:\S+@[^\s"'<>]*"#,
    ),
    ("database_url", r#"(?i)jdbc:[a-z0-9]+://[^\s:@/]*:[^\s@/]+@[^\s"'<>]*"#),
    (
        "database_url",
        r#"(?i)jdbc:oracle:[a-z0-9]+:[^\s:@/"']+/(?:"([^"\[][^"]*)"|([^\s@"\[][^\s@"]*))@"#,
    ),
    ("url_password", r#"(?i)[a-z][a-z0-9+.-]{1,15}://[^\s:@/]*:[^\s@/]+@[^\s"'<>]*"#),
    ("bearer_token", r#"(?i)authorization["']?\s*[:=]?\s*["']?bearer\s+([^\s"'\[][^\s"',;]*)"#),
    ("basic_auth", r#"(?i)authorization["']?\s*[:=]?\s*["']?basic\s+([^\s"'\[][^\s"',;]*)"#),
    (
        "authorization",
        r#"(?i)authorization["']?\s*[:=]?\s*["']?(?:token|apikey|negotiate|ntlm|key|bot)\s+([^\s"'\[][^\s"',;]*)"#,
    ),
    (
        "basic_auth",
        r#"(?-u:\b)curl\s[^\n]*?(?:-u|--user)[ =]?["']?[^\s:"'$<]+:([^\s"'$<\[][^\s"'$<]*)"#,
    ),
    ("bearer_token", r"(?i)(?-u:\b)bearer\s+([a-z0-9._~+/-]{16,}=*)"),
    // The whole value of a header that is stored apart from its name.
    ("bearer_token", r"(?i)\A\s*bearer\s+([a-z0-9._~+/-]{8,}=*)\s*\z"),
    // Options of one letter.
    (
        "password",
        r#"(?-u:\b)(?:sshpass\s[^\n]*?-p\s?|mysql[a-z]*\s(?:[^\n]*?\s)?-p|redis-cli\s(?:[^\n]*?\s)?-a\s+)["']?([^\s"'$<\[-][^\s"'$<]*)"#,
    ),
];
