//! Earlier saves that a node keeps: after every crash, each one on the disk is
//! whole, so that it could be restored.

use super::World;
use crate::engine::disk::Disk;
use rufous_base::disk::FileInfo;
use rufous_kernel::durable::check::{Depth, Source, earlier_saves};
use std::io;

/// Checks every earlier save on the disk.
pub(super) fn check(world: &mut World) {
    if world.flipped {
        return;
    }
    match earlier_saves(&mut Look(&world.disk), Depth::Contents) {
        Ok(saves) => {
            if !saves.is_empty() {
                world.engine.reach("earlier save kept");
            }
            for damage in saves.into_iter().filter_map(|save| save.damage) {
                world.fail(format!("an earlier save is not whole: {damage}"));
            }
        }
        Err(error) => world.fail(format!("an earlier save cannot be read: {error}")),
    }
}

/// The disk while no node uses it.
struct Look<'a>(&'a Disk);

impl Source for Look<'_> {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let files = self.0.files().map(|(name, bytes)| FileInfo {
            file: name.into(),
            bytes: bytes.len() as u64,
        });
        Ok(files.collect())
    }

    fn read(&mut self, file: &str, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut files = self.0.files();
        let found = files.find(|(name, _)| *name == file);
        let (_, all) = found.ok_or(io::ErrorKind::NotFound)?;
        let rest = all.get(at as usize..).unwrap_or(&[]);
        Ok(rest[..rest.len().min(bytes)].to_vec())
    }
}
