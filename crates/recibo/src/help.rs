//! `recibo help`: help on commands, the words, and what a system installs beside a program:
//! completions and man pages.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::grammar;
use crate::command::Done;
use crate::failure::Failure;
use crate::words;

/// Arguments of `help`.
#[derive(clap::Args)]
#[command(disable_help_subcommand = true, subcommand_value_name = "TOPIC or COMMAND")]
pub struct Args {
    #[command(subcommand)]
    topic: Option<Topic>,
}

#[derive(clap::Subcommand)]
enum Topic {
    /// The words that recibo uses, each with its meaning
    Words,
    /// Completions for a shell, to be put where it looks for them
    Completions {
        /// The shell
        shell: Shell,
    },
    /// A man page, or all of them
    Man {
        /// The command [default: recibo itself]
        #[arg(conflicts_with = "out")]
        command: Vec<String>,
        /// Write the pages of all commands into this folder
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    #[command(external_subcommand)]
    Of(Vec<String>),
}

/// Prints help.
pub fn run(args: Args) -> Result<Done, Failure> {
    match args.topic {
        None => Ok(of_command(&[])),
        Some(Topic::Of(command)) => Ok(of_command(&command)),
        Some(Topic::Words) => Ok(Done::said(words::PAGE.to_owned())),
        Some(Topic::Completions { shell }) => completions(shell),
        Some(Topic::Man { out: Some(folder), .. }) => pages(&folder),
        Some(Topic::Man { command, out: None }) => page(&command),
    }
}

/// What `recibo COMMAND --help` prints; for what is no command, what that prints.
fn of_command(command: &[String]) -> Done {
    let words = command.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    let line: Vec<_> = ["recibo"].into_iter().chain(words).chain(["--help"]).collect();
    match grammar().try_get_matches_from(line) {
        // Prints to the right stream, and ends with the right code.
        Err(said) => said.exit(),
        Ok(_) => Done::silent(),
    }
}

fn completions(shell: Shell) -> Result<Done, Failure> {
    let full = grammar();
    let visible: Vec<_> = full.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    // `help` takes any command's name, which a script does not see by itself.
    let names = visible.iter().filter(|command| command.get_name() != "help").map(|command| {
        let about = command.get_about().cloned().unwrap_or_default();
        Command::new(command.get_name().to_owned()).about(about).disable_help_flag(true)
    });
    let names: Vec<_> = names.collect();
    let mut shown = Command::new("recibo")
        .subcommands(visible)
        .disable_help_subcommand(true)
        .mut_subcommand("help", |help| help.subcommands(names));
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown, "recibo", &mut script);
    text(script)
}

fn page(command: &[String]) -> Result<Done, Failure> {
    let mut found = grammar();
    found.build();
    for word in command {
        let next = found.find_subcommand(word).filter(|next| !next.is_hide_set());
        let next = next.ok_or_else(|| Failure::usage(format!("`{word}` is no command")))?;
        found = next.clone();
    }
    let mut page = Vec::new();
    Man::new(found).render(&mut page).map_err(|error| Failure::said(error.to_string()))?;
    text(page)
}

fn pages(folder: &Path) -> Result<Done, Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(grammar(), folder))
        .map_err(|error| Failure::said(format!("cannot write to {}: {error}", folder.display())))?;
    Ok(Done::silent())
}

fn text(bytes: Vec<u8>) -> Result<Done, Failure> {
    let text = String::from_utf8(bytes).map_err(|error| Failure::said(error.to_string()))?;
    Ok(Done::said(text))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn completions_know_the_commands_and_not_the_hidden_ones() {
        for shell in Shell::value_variants() {
            let script = completions(*shell).unwrap().text;
            for word in ["explain", "verify", "completions", "words"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            assert!(!script.contains(crate::demo::tool::NAME), "{shell}");
        }
    }

    #[test]
    fn every_command_has_a_man_page() {
        for (command, title) in [
            (&[][..], "recibo 1"),
            (&["exec"], "recibo-exec 1"),
            (&["api-key", "create"], "recibo-api-key-create 1"),
        ] {
            let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
            let page = page(&command).unwrap().text;
            assert!(page.contains(&format!(".TH {title}")) && page.contains("Example:"), "{page}");
        }
        assert_eq!(page(&["dance".to_owned()]).unwrap_err().exit_code(), 2);
        let folder = tempfile::tempdir().unwrap();
        pages(&folder.path().join("man1")).unwrap();
        let names: Vec<_> = std::fs::read_dir(folder.path().join("man1")).unwrap().collect();
        assert!(names.len() > 20, "{names:?}");
    }
}
