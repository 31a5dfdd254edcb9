//! The run of a host that names none. All proxies that one host process has started share it, also
//! one that the host has started anew: a model that asks again is met by what it asked before.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use data_encoding::HEXLOWER;
use recibo_core::hash::sha256;

/// Names the run of the process that has started this one; `None` where the system does not tell
/// one process from a later one with its number.
pub fn id(tool_prefix: &str, command: &[OsString]) -> Option<String> {
    let parent = rustix::process::getppid()?.as_raw_nonzero().get();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let pids = fs::read_link("/proc/self/ns/pid").ok()?;
    let started = started(&fs::read_to_string(format!("/proc/{parent}/stat")).ok()?)?.to_owned();
    let mut parts =
        vec![boot.into_bytes(), pids.as_os_str().as_bytes().to_vec(), started.into_bytes()];
    parts.push(parent.to_string().into_bytes());
    // Without a prefix two tools of one name may be tools of two servers, and no twins.
    if tool_prefix.is_empty() {
        parts.extend(command.iter().map(|word| word.as_bytes().to_vec()));
    }
    let framed: Vec<u8> = parts
        .iter()
        .flat_map(|part| [&(part.len() as u64).to_be_bytes()[..], part].concat())
        .collect();
    Some(format!("mcp-{}", HEXLOWER.encode(&sha256(&[&framed])[..16])))
}

/// When a process began, in ticks since the boot. What comes before is a name in parentheses, which
/// may hold any character.
fn started(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_whatever_the_name_of_the_process() {
        let rest = (3..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        for name in ["(host)", "(a b)", "() 1 2)"] {
            assert_eq!(started(&format!("7 {name} {rest}")), Some("22"));
        }
        assert_eq!(started("7 (host) 3 4"), None);
    }

    #[test]
    fn proxies_of_one_host_share_a_run_and_servers_without_a_prefix_do_not() {
        let command = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let (one, other) = (command(&["npx", "one"]), command(&["npx", "two"]));
        let run = id("", &one).unwrap();
        assert_eq!(id("", &one).as_ref(), Some(&run));
        assert_ne!(id("", &other).unwrap(), run);
        assert_ne!(id("", &command(&["npx one"])).unwrap(), run);
        assert_eq!(id("a/", &one), id("b/", &other));
    }
}
