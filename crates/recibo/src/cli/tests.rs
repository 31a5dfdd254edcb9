use super::*;

fn parses(line: &str) -> bool {
    Cli::try_parse_from(line.split(' ')).is_ok()
}

#[test]
fn the_command_line_is_consistent() {
    grammar().debug_assert();
}

#[test]
fn command_lines_are_read_as_documented() {
    let cases = [
        ("recibo serve", true),
        ("recibo serve --data d --listen 127.0.0.1:0", true),
        ("recibo serve --listen nowhere", false),
        ("recibo serve --secrets refuse --cache-mib 64 --queue-len 10", true),
        ("recibo serve --queue-len 0", false),
        ("recibo run r", true),
        ("recibo run", false),
        ("recibo call r c --json", true),
        ("recibo call r", false),
        ("recibo calls --state unknown", true),
        ("recibo calls --state absent", false),
        ("recibo unknown --data d", true),
        ("recibo resolve r c --as ok --reason seen", true),
        ("recibo resolve r c --as unknown --reason seen", false),
        ("recibo resolve r c --as ok", false),
        ("recibo policy show", true),
        ("recibo policy set f.json", true),
        ("recibo policy", false),
        ("recibo explain r c", true),
        ("recibo receipt verify t --run r --call c --output-file f", true),
        ("recibo api-key create --role adapter --namespace n --expires 90d", true),
        ("recibo api-key create --role king --namespace n", false),
        ("recibo api-key revoke id", true),
        ("recibo run r --url http://h", false),
        ("recibo run r --url http://h --api-key-file f", true),
        ("recibo exec --run r --call c --tool t -- true", true),
        ("recibo exec --run r --call c --tool t true", false),
        ("recibo exec --run r --call c --tool t --", false),
        ("recibo exec --run r --call c -- true", false),
        ("recibo exec --run r --call c --tool t --effect opaque --timeout 5 -- a -b --c", true),
        ("recibo exec --run r --call c --tool t --effect harmless -- a", false),
        ("recibo exec --run r --call c --tool t --retryable-exit 75,76 -- a", true),
        ("recibo exec --run r --call c --tool t --retryable-exit 256 -- a", false),
        ("recibo demo", true),
        ("recibo dance", false),
    ];
    for (line, is_good) in cases {
        assert_eq!(parses(line), is_good, "{line}");
    }
}

#[test]
fn two_dashes_that_are_missing_are_hinted_at() {
    for (line, hint) in [
        ("recibo exec --run r --call c --tool t make test", "recibo exec ... -- make test"),
        ("recibo mcp npx server", "recibo mcp -- npx SERVER"),
        ("recibo exec --run r --call c --tool t --what", ""),
        ("recibo run r s", ""),
    ] {
        let error = grammar().try_get_matches_from(line.split(' ')).unwrap_err();
        let text = with_hint(error).to_string();
        assert_eq!(text.contains("put --"), !hint.is_empty(), "{text}");
        assert!(text.contains(hint), "{text}");
    }
}
