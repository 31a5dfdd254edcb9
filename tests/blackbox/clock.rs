//! The clock of the service: a file that debug builds read at each look at the time.

use std::path::{Path, PathBuf};

/// Wall time at which every history begins: 2027-01-15T08:00:00Z.
pub const START_MS: u64 = 1_800_000_000_000;

/// What the service takes for boot id, boot clock and wall clock.
pub struct TestClock {
    file: PathBuf,
    boot: u64,
    /// Since that boot.
    pub boot_ms: u64,
    /// Since 1970.
    pub wall_ms: u64,
}

impl TestClock {
    /// A clock in a folder.
    pub fn new(folder: &Path) -> Self {
        let file = folder.join("clock");
        let clock = Self { file, boot: 1, boot_ms: 10_000_000, wall_ms: START_MS };
        clock.write();
        clock
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Lets time pass on both clocks.
    pub fn pass(&mut self, ms: u64) {
        self.boot_ms += ms;
        self.wall_ms += ms;
        self.write();
    }

    /// Sets the wall clock.
    pub fn set_wall(&mut self, ms: u64) {
        self.wall_ms = ms;
        self.write();
    }

    /// Sets the boot clock alone.
    pub fn set_boot_ms(&mut self, ms: u64) {
        self.boot_ms = ms;
        self.write();
    }

    /// Boots the machine: another boot id, and a boot clock that may stand anywhere.
    pub fn reboot(&mut self) {
        self.boot += 1;
        self.boot_ms = if self.boot.is_multiple_of(2) { 4000 } else { 90_000_000_000 };
        self.write();
    }

    /// Replaces the file at once, so that nobody reads half of it.
    fn write(&self) {
        let text = format!("test-boot-{} {} {}\n", self.boot, self.boot_ms, self.wall_ms);
        let new = self.file.with_extension("new");
        std::fs::write(&new, text).expect("a clock file");
        std::fs::rename(&new, &self.file).expect("a clock file");
    }
}

/// A time as answers write it.
pub fn text(ms: u64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms.cast_signed()).expect("a time");
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Reads a time of an answer.
pub fn ms_of(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}
