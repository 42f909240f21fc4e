//! A disk for each node: a file with a file system in it, so that a node's disk can be full or hang while the
//! others' work.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::space::run;

/// Bytes of a disk.
const BYTES: u64 = 256 << 20;
/// Bytes that are written at once to fill it.
const PART: usize = 1 << 20;

/// What keeps this machine from it.
pub fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("disks of nodes need root".to_owned());
    }
    (!Path::new("/dev/loop-control").exists()).then(|| "there are no loop devices".to_owned())
}

/// Puts a file system at `folder`. The mount ends with the namespace of this program.
pub fn make(folder: &Path) -> Result<()> {
    let image = folder.with_extension("disk");
    File::create(&image)?.set_len(BYTES)?;
    let image = image.to_string_lossy().into_owned();
    run(&["mkfs.ext4", "-q", "-m", "0", &image])?;
    fs::create_dir_all(folder)?;
    let folder = folder.to_string_lossy().into_owned();
    run(&["mount", "-o", "loop", &image, &folder])
}

/// A disk in memory, so that what one process writes does not slow the others down.
pub fn make_fast(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    run(&["mount", "-t", "tmpfs", "none", &folder.to_string_lossy()])
}

/// Ends a disk when its last file is closed; the folder is free at once.
pub fn release(folder: &Path) -> Result<()> {
    run(&["umount", "--lazy", &folder.to_string_lossy()])
}

/// Takes all space that is left, until [`free`].
pub fn fill(folder: &Path) -> Result<()> {
    let path = filler(folder);
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let part = vec![1; PART];
    // A smaller part finds space that a larger one did not.
    for size in [PART, 4096, 1] {
        while file.write_all(&part[..size]).is_ok() {}
    }
    file.sync_all().context("filling a disk")
}

pub fn free(folder: &Path) -> Result<()> {
    fs::remove_file(filler(folder)).context("freeing a disk")
}

fn filler(folder: &Path) -> PathBuf {
    folder.join("filler")
}

/// Each write and sync waits until [`thaw`].
pub fn freeze(folder: &Path) -> Result<()> {
    run(&["fsfreeze", "--freeze", &folder.to_string_lossy()])
}

pub fn thaw(folder: &Path) -> Result<()> {
    run(&["fsfreeze", "--unfreeze", &folder.to_string_lossy()])
}
