//! Worlds side by side: each has a folder and random numbers of its own, so that they can be played
//! at once and again.

use std::path::PathBuf;

use rand::SeedableRng;
use rand::rngs::StdRng;

/// Plays so many worlds, each on a thread. A panic in one of them is a panic here.
pub fn side_by_side(worlds: u64, play: impl Fn(PathBuf, StdRng) + Sync) {
    let folder = tempfile::tempdir().expect("a folder");
    std::thread::scope(|threads| {
        for number in 0..worlds {
            let (folder, play) = (folder.path().join(number.to_string()), &play);
            threads.spawn(move || {
                std::fs::create_dir(&folder).expect("a folder");
                play(folder, StdRng::seed_from_u64(number));
            });
        }
    });
}
