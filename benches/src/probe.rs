//! What the machine does by itself: how long its disk takes, what a process uses.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::report::{Report, quantile};

/// Durations of an `fdatasync` after one written page, in milliseconds.
pub struct Disk {
    /// The middle one.
    pub p50_ms: f64,
    /// The slowest of a hundred.
    pub p99_ms: f64,
}

/// Writes a page into a file that has its length already and makes it durable, 300 times.
pub fn disk(folder: &Path) -> Outcome<Disk> {
    const PAGES: u64 = 300;
    let path = folder.join("probe");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
    file.write_all(&vec![1; 4096 * PAGES as usize])?;
    file.sync_all()?;
    let mut times = Vec::new();
    for page in 0..PAGES {
        file.seek(SeekFrom::Start(page * 4096))?;
        file.write_all(&[page as u8; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    drop(file);
    std::fs::remove_file(path)?;
    times.sort_by(f64::total_cmp);
    Ok(Disk { p50_ms: quantile(&times, 0.5), p99_ms: quantile(&times, 0.99) })
}

/// Probes the disk and notes it.
pub fn note_disk(report: &mut Report, folder: &Path) -> Outcome<Disk> {
    let disk = disk(folder)?;
    let (p50, p99) = (disk.p50_ms, disk.p99_ms);
    report.note(format!("one fdatasync: p50 {p50:.3} ms, p99 {p99:.3} ms"));
    Ok(disk)
}

/// Bytes of the blocks that a folder's files take, at any depth.
pub fn allocated_bytes(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() { allocated_bytes(&entry.path())? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}

/// CPU seconds that this process has used.
pub fn cpu_s() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// A member of `/proc/PID/status` in MiB, such as `VmRSS`.
pub fn memory_mib(pid: u32, name: &str) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| Failure::new(format!("no {name} of {pid}")))
}

/// The part of the machine's CPUs that is in use while the bench does nothing, 0 to 1.
pub fn others_busy() -> Outcome<f64> {
    let before = cpu_ticks()?;
    std::thread::sleep(Duration::from_millis(500));
    let after = cpu_ticks()?;
    Ok((after.0 - before.0) / (after.1 - before.1).max(1.0))
}

/// Ticks of all CPUs: in use, and all.
fn cpu_ticks() -> Outcome<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).flat_map(str::parse).take(8).collect();
    let all: f64 = ticks.iter().sum();
    // idle and iowait
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    Ok((all - idle, all))
}

/// CPU seconds of a process, from `/proc/PID/stat`, at 100 ticks a second.
pub fn cpu_s_of(pid: u32) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / 100.0)
}

/// Writes back what earlier slices left, so that they do not slow this one.
pub fn settle(folder: &Path) -> Outcome<()> {
    Ok(File::open(folder)?.sync_all()?)
}
