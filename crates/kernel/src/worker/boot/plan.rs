//! The loading plan of worker 0.

use crate::durable::keeper::Keeper;
use crate::durable::load::{Damage, Folder};
use crate::durable::{DataFile, LoadPlan, Manifest, manifest};
use rufous_base::Now;
use rufous_base::disk::FileInfo;

/// The plan for a folder with these files.
pub(super) fn plan(
    manifest: Option<&[u8]>,
    files: &[FileInfo],
    workers: usize,
) -> Result<LoadPlan, Damage> {
    let folder = Folder::new(files, manifest)?;
    let segments = folder.plans.iter().flat_map(|p| &p.segments);
    let generation = segments.map(|s| s.generation).max().unwrap_or(1);
    let stored = folder.manifest.as_ref();
    let moves = stored.is_some_and(|m| usize::from(m.workers) != workers);
    let logs_from = stored.map_or(0, |m| m.logs_from);
    Ok(LoadPlan {
        generation: generation.max(logs_from),
        highest: highest_generation(files).max(generation).max(logs_from),
        moves,
        folder,
    })
}

/// Worker 0's record of the files in use. `hash_seed`: of this start.
pub(super) fn keeper(
    plan: &LoadPlan,
    now: Now,
    run: u64,
    hash_seed: u64,
    workers: usize,
) -> Keeper {
    let generation = plan.rewrite().unwrap_or(plan.generation);
    let first = Manifest {
        generation: 0,
        logs_from: generation,
        logs_until: None,
        workers: workers as u16,
        hash_seed,
        run,
        saved_ms: now.unix_ms(),
        snapshots: Vec::new(),
    };
    let manifest = plan.folder.manifest.clone().unwrap_or(first);
    Keeper::new(Manifest { run, ..manifest }, workers, generation, now)
}

/// The highest generation of all existing files, in use or not.
fn highest_generation(files: &[FileInfo]) -> u64 {
    let generation = |f: &FileInfo| match DataFile::parse(&f.file) {
        Some(file) => Some(file.generation()),
        None => manifest::kept_generation(&f.file),
    };
    let generations = files.iter().filter_map(generation);
    generations.max().unwrap_or(0)
}
