//! Which files hold the data: those that the manifest names, and those that exist.

use super::super::file::{DataFile, LOCK, MANIFEST, MANIFEST_NEXT, salt};
use super::super::manifest::{Manifest, ManifestError, SnapshotFile, kept_generation};
use super::Damage;
use rufous_base::disk::{FileInfo, FileName};

/// The files of one partition: one worker of the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub partition: u16,
    /// The number of partitions.
    pub workers: u16,
    /// The salt in the headers of its files.
    pub salt: u32,
    pub snapshot: Option<SnapshotPlan>,
    pub segments: Vec<SegmentFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotPlan {
    /// The entry in the manifest.
    pub named: SnapshotFile,
    /// The size of the file, if it exists.
    pub found: Option<u64>,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub file: FileName,
    pub generation: u64,
    pub index: u32,
    pub bytes: u64,
}

/// A data folder, by the names of its files and its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// `None`: no data was ever stored here.
    pub manifest: Option<Manifest>,
    /// One per partition.
    pub plans: Vec<Plan>,
    /// Generations of earlier saves that are kept, ascending. A start does not read them.
    pub kept: Vec<u64>,
    /// Files of a snapshot that was not finished, or that a finished one has replaced: they contain
    /// no current data.
    pub strays: Vec<FileName>,
}

impl Plan {
    /// The log's first frame that the snapshot does not contain.
    pub(in super::super) fn first_seq(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |s| s.named.next_seq)
    }
}

impl Folder {
    /// `manifest` contains the bytes of the file of that name, if it exists.
    pub fn new(files: &[FileInfo], manifest: Option<&[u8]>) -> Result<Self, Damage> {
        let Some(bytes) = manifest else {
            return Self::without_manifest(files);
        };
        match Manifest::decode(bytes) {
            Ok(manifest) => Ok(Self::with_manifest(files, manifest)),
            Err(error @ ManifestError::Newer(_)) => {
                Err(Damage::newer(&FileName::from(MANIFEST), error))
            }
            Err(error) => Err(Damage::manifest(error.to_string())),
        }
    }

    fn without_manifest(files: &[FileInfo]) -> Result<Self, Damage> {
        if let Some(other) = files.iter().find(|f| DataFile::parse(&f.file).is_some()) {
            let what = format!("missing, although data files exist ({})", other.file);
            return Err(Damage::manifest(what));
        }
        let strays = files.iter().filter(|info| *info.file == *MANIFEST_NEXT);
        Ok(Self {
            manifest: None,
            plans: Vec::new(),
            kept: Vec::new(),
            strays: strays.map(|info| info.file.clone()).collect(),
        })
    }

    pub(in super::super) fn with_manifest(files: &[FileInfo], manifest: Manifest) -> Self {
        let mut plans: Vec<Plan> = (0..manifest.workers)
            .map(|partition| Plan {
                partition,
                workers: manifest.workers,
                salt: salt(manifest.hash_seed),
                snapshot: None,
                segments: Vec::new(),
            })
            .collect();
        for named in &manifest.snapshots {
            let found = files.iter().find(|info| info.file == named.file);
            if let Some(plan) = plans.get_mut(usize::from(named.worker)) {
                plan.snapshot = Some(SnapshotPlan {
                    named: named.clone(),
                    found: found.map(|info| info.bytes),
                });
            }
        }
        let mut kept: Vec<u64> = files
            .iter()
            .filter_map(|info| kept_generation(&info.file))
            // It was about to be replaced.
            .filter(|generation| *generation != manifest.generation)
            .collect();
        kept.sort_unstable();
        let mut strays = Vec::new();
        for info in files {
            let name = &*info.file;
            if name == MANIFEST || name == LOCK {
                continue;
            }
            let plan = match DataFile::parse(name) {
                Some(DataFile::Snapshot { generation, .. }) if kept.contains(&generation) => {
                    continue;
                }
                Some(file) => plans.get_mut(usize::from(file.worker())).zip(Some(file)),
                None if name == MANIFEST_NEXT => None,
                // The file is not one of Rufous.
                None => continue,
            };
            match plan {
                Some((
                    plan,
                    DataFile::Log {
                        generation, index, ..
                    },
                )) if manifest.has_log(generation) => {
                    plan.segments.push(SegmentFile {
                        file: info.file.clone(),
                        generation,
                        index,
                        bytes: info.bytes,
                    });
                }
                Some((plan, DataFile::Snapshot { .. }))
                    if (plan.snapshot.iter()).any(|s| s.named.file == info.file) => {}
                _ => strays.push(info.file.clone()),
            }
        }
        for plan in &mut plans {
            plan.segments.sort_by_key(|s| (s.generation, s.index));
        }
        Self {
            manifest: Some(manifest),
            plans,
            kept,
            strays,
        }
    }
}
