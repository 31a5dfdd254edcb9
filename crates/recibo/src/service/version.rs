//! Versions of a command and of the service that it talks to.

use std::cmp::Ordering;
use std::path::Path;

use super::ServiceNote;

/// The version of this program.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// Whether a service of that version is older than this program. One that does not say its version
/// is.
pub fn is_older(version: Option<&str>) -> bool {
    compare(version) == Ordering::Less
}

/// What to update where the service on a folder is of another version.
pub fn difference(note: &ServiceNote, folder: &Path) -> Option<String> {
    let theirs = note.version.as_deref().unwrap_or("of an older version");
    let what = match compare(note.version.as_deref()) {
        Ordering::Equal => return None,
        Ordering::Greater => "update this command",
        Ordering::Less => "update the service and start it again",
    };
    let folder = folder.display();
    Some(format!("the service on {folder} is {theirs} and this command {OWN}: {what}"))
}

/// How a version stands to this program's.
fn compare(version: Option<&str>) -> Ordering {
    let theirs = version.map(numbers).unwrap_or_default();
    theirs.cmp(&numbers(OWN))
}

/// Major, minor, patch. What is no number counts as 0.
fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or_default());
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(numbers("0.10.2"), [0, 10, 2]);
        assert!(numbers("0.10.0") > numbers("0.9.9"));
        assert_eq!(numbers("1.2.3-rc.1"), [1, 2, 3]);
        assert!(is_older(None) && is_older(Some("0.0.9")));
        assert!(!is_older(Some(OWN)) && !is_older(Some("999.0.0")));
    }

    #[test]
    fn the_sentence_says_which_one_to_update() {
        let told = |version: Option<&str>| {
            let note = ServiceNote {
                url: String::new(),
                pid: 1,
                version: version.map(str::to_owned),
                socket: None,
                on_demand: false,
            };
            difference(&note, Path::new("d"))
        };
        assert_eq!(told(Some(OWN)), None);
        assert!(told(Some("999.0.0")).unwrap().ends_with("update this command"));
        assert!(told(None).unwrap().ends_with("update the service and start it again"));
    }
}
