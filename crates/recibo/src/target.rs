//! Which ledger a command talks to, and what every command that shows something takes.

use std::path::PathBuf;

/// Which ledger a command talks to.
#[derive(clap::Args, Clone, Debug)]
pub struct Target {
    /// The data folder: the service on it is asked; where none runs, the ledger is opened here
    #[arg(long, value_name = "DIR", env = "RECIBO_DATA", default_value = "./recibo-data")]
    pub data: PathBuf,
    /// Ask the service at this address instead of one on a data folder
    #[arg(long, value_name = "URL", requires = "api_key_file")]
    pub url: Option<String>,
    /// A file that holds the API key [default: DIR/admin.key]
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
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
