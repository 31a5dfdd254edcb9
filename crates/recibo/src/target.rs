//! Which ledger a command talks to, and what every command that shows something takes.

use std::path::PathBuf;

/// Which ledger a command talks to.
#[derive(clap::Args, Clone, Debug)]
pub struct Target {
    /// The data folder: the service on it is asked; where none runs, one is started, which ends
    /// by itself
    #[arg(long, value_name = "DIR", env = "RECIBO_DATA", default_value = "./recibo-data")]
    pub data: PathBuf,
    /// Ask the service at this address instead of one on a data folder
    #[arg(long, value_name = "URL", requires = "api_key_file")]
    pub url: Option<String>,
    /// A file that holds the API key [default: none where the folder's socket needs none, else
    /// DIR/admin.key]
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Open the ledger in this process, and start no service: only one process at a time can
    #[arg(long, env = "RECIBO_ALONE", conflicts_with = "url",
          value_parser = clap::builder::FalseyValueParser::new())]
    pub alone: bool,
}

impl Target {
    /// Whether an API key was given, so that what is not found may be in another namespace.
    pub fn is_key_given(&self) -> bool {
        self.api_key_file.is_some()
    }
}

/// What every command that shows something takes.
#[derive(clap::Args, Clone, Debug)]
pub struct Common {
    #[command(flatten)]
    pub target: Target,
    /// Print one JSON document, as the service answered it
    #[arg(long)]
    pub json: bool,
}
