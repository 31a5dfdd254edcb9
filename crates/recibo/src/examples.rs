//! One example per command, the last lines of its help.

use clap::Command;

/// A command's words, and a line that works.
const EXAMPLES: [(&str, &str); 27] = [
    ("", "recibo exec --run nightly --call backup --tool backup -- tar -czf backup.tgz docs"),
    ("serve", "recibo serve --data ./recibo-data --listen 127.0.0.1:7461"),
    ("init", "recibo init --data ./recibo-data"),
    ("status", "recibo status --data ./recibo-data"),
    ("stop", "recibo stop --data ./recibo-data"),
    ("exec", "recibo exec --run nightly --call backup --tool backup -- tar -czf backup.tgz docs"),
    ("mcp", "recibo mcp -- npx -y @modelcontextprotocol/server-filesystem ~/notes"),
    ("demo", "recibo demo --keep"),
    ("run", "recibo run nightly"),
    ("call", "recibo call nightly backup"),
    ("calls", "recibo calls --state unknown --page-size 20"),
    ("unknown", "recibo unknown --data ./recibo-data"),
    ("explain", "recibo explain nightly backup"),
    ("resolve", "recibo resolve nightly backup --as ok --reason 'backup.tgz is complete'"),
    ("policy", "recibo policy show"),
    ("policy show", "recibo policy show --json"),
    (
        "policy set",
        "echo '{\"tools\": [{\"match\": \"crm/*\", \"effect\": \"read_only\"}]}' | recibo policy set -",
    ),
    ("receipt", "recibo receipt verify zc-receipt-1789264800-..."),
    ("receipt verify", "recibo receipt verify zc-receipt-1789264800-... --output-file result.txt"),
    ("api-key", "recibo api-key list"),
    ("api-key create", "recibo api-key create --role adapter --namespace blue --expires 90d"),
    ("api-key list", "recibo api-key list --data ./recibo-data"),
    ("api-key revoke", "recibo api-key revoke 4c9hq0mr2e81k7vd"),
    ("help", "recibo help words"),
    ("help words", "recibo help words | less"),
    ("help completions", "recibo help completions bash > recibo.bash"),
    ("help man", "recibo help man --out ./man1"),
];

/// The command line with an example at the end of each command's help.
pub fn added_to(command: Command) -> Command {
    added(command, "")
}

fn added(mut command: Command, path: &str) -> Command {
    let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let path = format!("{path} {name}").trim_start().to_owned();
        command = command.mut_subcommand(name, |sub| added(sub, &path));
    }
    let Some((_, example)) = EXAMPLES.iter().find(|(known, _)| *known == path) else {
        return command;
    };
    let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    command.after_help(format!("{before}Example:\n  {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::grammar;

    /// The paths of all commands that help shows.
    fn paths(command: &Command, path: &str) -> Vec<String> {
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let below = visible.flat_map(|sub| {
            let path = format!("{path} {}", sub.get_name());
            paths(sub, path.trim_start())
        });
        std::iter::once(path.to_owned()).chain(below).collect()
    }

    /// The words of a line, as a shell reads them.
    fn words(line: &str) -> Vec<String> {
        // The line itself runs, with a `recibo` that prints what it was given.
        let script = format!("recibo() {{ printf '%s\\n' recibo \"$@\" >&2; }}\n{line}");
        let folder = tempfile::tempdir().unwrap();
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        words.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_command_has_one_example_that_its_parser_takes() {
        let known: Vec<_> = EXAMPLES.iter().map(|(path, _)| (*path).to_owned()).collect();
        let mut paths = paths(&grammar(), "");
        let mut sorted = known.clone();
        paths.sort();
        sorted.sort();
        assert_eq!(paths, sorted);
        for (path, example) in EXAMPLES {
            let words = words(example);
            assert_eq!(words.first().map(String::as_str), Some("recibo"), "{example}");
            let named = words[1..].join(" ");
            assert!(named.starts_with(path), "{example} is none of `{path}`");
            let parsed = grammar().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn help_ends_with_the_example() {
        for (path, example) in EXAMPLES {
            let line = format!("recibo {path} --help");
            let said = grammar().try_get_matches_from(line.split_whitespace()).unwrap_err();
            let text = said.to_string();
            assert!(text.trim_end().ends_with(&format!("Example:\n  {example}")), "{text}");
        }
        let said = grammar().try_get_matches_from(["recibo", "exec", "--help"]).unwrap_err();
        assert!(said.to_string().contains("Exit codes:"), "{said}");
    }
}
