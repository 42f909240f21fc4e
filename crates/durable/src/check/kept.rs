//! Earlier saves that are kept beside the current data, and how to return to one of them.

use super::super::file::{DataFile, MANIFEST};
use super::super::load::{Damage, DamageKind, Folder, SnapshotPass};
use super::super::manifest::{
    MOST_BYTES, Manifest, ManifestError, SnapshotFile, kept_generation, kept_name,
};
use super::{Check, Source, run};
use rufous_base::disk::{FileInfo, FileName};
use std::io;

/// How thoroughly an earlier save is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Whether its files exist.
    Names,
    /// All contents of its files.
    Contents,
}

/// A save before the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSave {
    pub generation: u64,
    /// `None` where it cannot be read.
    pub manifest: Option<Manifest>,
    /// Why a return to it is impossible.
    pub damage: Option<Damage>,
}

impl EarlierSave {
    pub fn keys(&self) -> u64 {
        self.snapshots().iter().map(|s| s.keys).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.snapshots().iter().map(|s| s.bytes).sum()
    }

    fn snapshots(&self) -> &[SnapshotFile] {
        self.manifest.as_ref().map_or(&[], |m| &m.snapshots)
    }
}

/// The changes for a return to an earlier save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// Replaces the current manifest.
    pub manifest: Manifest,
    /// Snapshots of the current data, to be removed.
    pub snapshots: Vec<FileName>,
    /// Logs of the current data, to be removed.
    pub logs: Vec<FileName>,
    /// Manifests that are no longer those of earlier saves, to be removed.
    pub copies: Vec<FileName>,
}

/// The earlier saves of a folder, oldest first, without the current one.
pub fn earlier_saves(source: &mut dyn Source, depth: Depth) -> io::Result<Vec<EarlierSave>> {
    let files = source.list()?;
    let generations = generations(source, &files)?;
    let mut saves = Vec::new();
    for generation in generations {
        match earlier(source, &files, generation, depth) {
            // A running node has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            save => saves.push(save?),
        }
    }
    Ok(saves)
}

/// One of them, with its contents checked.
pub fn earlier_save(source: &mut dyn Source, generation: u64) -> io::Result<Option<EarlierSave>> {
    let files = source.list()?;
    if !generations(source, &files)?.contains(&generation) {
        return Ok(None);
    }
    earlier(source, &files, generation, Depth::Contents).map(Some)
}

/// The generations of the earlier saves, ascending.
fn generations(source: &mut dyn Source, files: &[FileInfo]) -> io::Result<Vec<u64>> {
    // An unfinished save may have left a copy of the current manifest.
    let present = present(source, files)?.map(|manifest| manifest.generation);
    let names = files.iter().filter_map(|info| kept_generation(&info.file));
    let mut generations: Vec<u64> = names.filter(|g| present != Some(*g)).collect();
    generations.sort_unstable();
    Ok(generations)
}

/// How to return to `save`, whatever the state of the current data.
///
/// New logs begin above every generation of an existing file: if the change is interrupted, the
/// remaining current logs are not used.
pub fn plan_return(source: &mut dyn Source, save: &EarlierSave) -> io::Result<Option<Return>> {
    let Some(kept) = save.manifest.as_ref().filter(|_| save.damage.is_none()) else {
        return Ok(None);
    };
    let files = source.list()?;
    let present = present(source, &files)?;
    let generation = |name: &str| match DataFile::parse(name) {
        Some(file) => Some(file.generation()),
        None => kept_generation(name),
    };
    let generations = files.iter().filter_map(|info| generation(&info.file));
    let run = present.as_ref().map_or(0, |manifest| manifest.run);
    let manifest = Manifest {
        logs_from: generations.max().unwrap_or(0).max(kept.logs_from) + 1,
        logs_until: None,
        run: run.max(kept.run),
        ..kept.clone()
    };
    let kept = self::generations(source, &files)?;
    let goes = |generation: u64| !kept.contains(&generation) || generation == save.generation;
    let mut back = Return {
        manifest,
        snapshots: Vec::new(),
        logs: Vec::new(),
        copies: Vec::new(),
    };
    for info in &files {
        match DataFile::parse(&info.file) {
            Some(DataFile::Log { .. }) => back.logs.push(info.file.clone()),
            Some(DataFile::Snapshot { generation, .. }) if !kept.contains(&generation) => {
                back.snapshots.push(info.file.clone());
            }
            Some(_) => {}
            None if kept_generation(&info.file).is_some_and(goes) => {
                back.copies.push(info.file.clone());
            }
            None => {}
        }
    }
    Ok(Some(back))
}

fn present(source: &mut dyn Source, files: &[FileInfo]) -> io::Result<Option<Manifest>> {
    if !files.iter().any(|info| *info.file == *MANIFEST) {
        return Ok(None);
    }
    let bytes = source.read(MANIFEST, 0, MOST_BYTES + 1)?;
    Ok(Manifest::decode(&bytes).ok())
}

fn earlier(
    source: &mut dyn Source,
    files: &[FileInfo],
    generation: u64,
    depth: Depth,
) -> io::Result<EarlierSave> {
    let name = kept_name(generation);
    let bytes = source.read(&name, 0, MOST_BYTES + 1)?;
    let damaged = |what: &dyn std::fmt::Display, kind| Damage {
        file: name.clone(),
        offset: None,
        what: what.to_string(),
        kind,
    };
    let manifest = Manifest::decode(&bytes).and_then(|manifest| {
        let right = manifest.generation == generation && !manifest.snapshots.is_empty();
        right.then_some(manifest).ok_or(ManifestError::Damaged)
    });
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => {
            let kind = match error {
                ManifestError::Damaged => DamageKind::Damaged,
                ManifestError::Newer(_) => DamageKind::Newer,
            };
            return Ok(EarlierSave {
                generation,
                manifest: None,
                damage: Some(damaged(&error, kind)),
            });
        }
    };
    let folder = Folder::with_manifest(files, manifest.clone());
    let mut damage = None;
    for plan in &folder.plans {
        let Some(mut pass) = SnapshotPass::new(plan) else {
            continue;
        };
        let mut result = pass.presence();
        if result.is_ok() && depth == Depth::Contents {
            result = run(source, &mut pass, &mut |_| ())?;
        }
        if let Err(found) = result {
            damage = Some(found);
            break;
        }
    }
    Ok(EarlierSave {
        generation,
        manifest: Some(manifest),
        damage,
    })
}

impl Check<'_> {
    /// Damage of earlier saves stops no start.
    pub(super) fn earlier_saves(&mut self) -> io::Result<()> {
        for save in earlier_saves(self.source, Depth::Contents)? {
            let file = kept_name(save.generation);
            match &save.damage {
                None => {
                    let keys = save.keys();
                    self.say(&file, format!("an earlier save with {keys} keys"));
                }
                Some(damage) => {
                    self.say(&file, "an earlier save, damaged".into());
                    self.report.notes.push(format!(
                        "one cannot go back to the save of generation {}: {damage}",
                        save.generation
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
