//! Files that a command line names; `-` is stdin.

use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// Whether a name stands for stdin.
pub fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// All that is in a file.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let result = if is_stdin(file) {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    result.map_err(|error| Failure::said(format!("cannot read {}: {error}", name(file))))
}

/// The text in a file.
pub fn text(file: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes(file)?)
        .map_err(|_| Failure::said(format!("{} is not UTF-8", name(file))))
}

/// A file, as a message names it.
pub fn name(file: &Path) -> String {
    match is_stdin(file) {
        true => "stdin".to_owned(),
        false => file.display().to_string(),
    }
}
