//! Who holds a pipe open.

use std::fmt;
use std::fs;
use std::os::fd::AsFd;

use recibo_core::visible::visible;

/// A process that holds a pipe open.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    pid: u32,
    name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", visible(&self.name), self.pid)
    }
}

/// The other processes that hold this pipe, as far as this user may see them and the system has
/// `/proc`.
pub fn of(pipe: &impl AsFd) -> Vec<Holder> {
    let Ok(stat) = rustix::fs::fstat(pipe) else { return Vec::new() };
    let target = format!("pipe:[{}]", stat.st_ino);
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    let holders = others.filter(|pid| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|link| link == *target))
    });
    holders.map(|pid| Holder { pid, name: name_of(pid) }).collect()
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
