//! Reconstruction of a lost manifest from the headers of the other files.

use super::super::file::{DataFile, FileHeader, HEADER_BYTES, salt};
use super::super::load::{Folder, Plan, SnapshotPass, SnapshotPlan};
use super::super::manifest::{Manifest, SnapshotFile, kept_name};
use super::{Check, run};
use rufous_base::disk::FileInfo;
use std::collections::BTreeSet;
use std::io;

impl Check<'_> {
    pub(super) fn guess(
        &mut self,
        files: &[FileInfo],
        damaged: Option<&[u8]>,
        hash_seed: u64,
    ) -> io::Result<Option<Folder>> {
        let mut headers = Vec::new();
        for info in files {
            if let Some(file) = DataFile::parse(&info.file) {
                let head = self.source.read(&info.file, 0, HEADER_BYTES)?;
                let header = FileHeader::decode(&head).ok();
                headers.extend(header.filter(|header| header.file() == file));
            }
        }
        let seed = damaged.and_then(seed_in).filter(|seed| {
            let salt = salt(*seed);
            headers.iter().any(|header| header.salt == salt)
        });
        let mut manifest = Manifest {
            generation: 0,
            logs_from: 0,
            logs_until: None,
            workers: 0,
            hash_seed: seed.unwrap_or(hash_seed),
            run: headers.iter().map(|h| h.run).max().unwrap_or(0),
            saved_ms: 0,
            snapshots: Vec::new(),
        };
        // The logs that followed an earlier save are removed: it is not part of the current data,
        // and has its own manifest.
        let is_kept = |generation| {
            let name = kept_name(generation);
            files.iter().any(|info| info.file == name)
        };
        let snapshots = headers.iter().filter(|h| is_snapshot(h));
        let snapshots = snapshots.filter(|h| !is_kept(h.generation));
        let generations: BTreeSet<(u64, u16)> =
            snapshots.map(|h| (h.generation, h.workers)).collect();
        for (generation, workers) in generations.into_iter().rev() {
            if let Some(mut found) = self.whole_snapshots(files, generation, workers)? {
                for named in &mut found {
                    named.next_seq = first_seq(&headers, generation, named.worker);
                }
                manifest.generation = generation;
                manifest.logs_from = generation;
                manifest.workers = workers;
                manifest.snapshots = found;
                self.report.notes.push(format!(
                    "the manifest can be rebuilt: the snapshot of generation {generation} is whole"
                ));
                return Ok(Some(Folder::with_manifest(files, manifest)));
            }
        }
        // Without a snapshot, logs contain all data only if they begin with the very first frame.
        let first = headers.iter().filter(|h| !is_snapshot(h));
        let first = first.min_by_key(|h| (h.generation, h.worker, h.index));
        let Some(first) = first.filter(|h| (h.first_seq, h.index) == (0, 0)) else {
            return Ok(None);
        };
        manifest.workers = first.workers;
        manifest.logs_from = first.generation;
        self.report.notes.push(format!(
            "the manifest can be rebuilt: the logs of all {} workers are complete",
            first.workers
        ));
        Ok(Some(Folder::with_manifest(files, manifest)))
    }

    /// All snapshots of a generation, if each is whole.
    fn whole_snapshots(
        &mut self,
        files: &[FileInfo],
        generation: u64,
        workers: u16,
    ) -> io::Result<Option<Vec<SnapshotFile>>> {
        let mut found = Vec::new();
        for worker in 0..workers {
            let file = DataFile::Snapshot { generation, worker }.name();
            let Some(info) = files.iter().find(|info| info.file == file) else {
                return Ok(None);
            };
            let mut named = SnapshotFile {
                worker,
                file,
                bytes: info.bytes,
                keys: 0,
                crc: 0,
                next_seq: 0,
            };
            let plan = Plan {
                partition: worker,
                workers,
                salt: 0,
                snapshot: Some(SnapshotPlan {
                    named: named.clone(),
                    found: Some(info.bytes),
                }),
                segments: Vec::new(),
            };
            let Some(mut pass) = SnapshotPass::new(&plan) else {
                return Ok(None);
            };
            // Number and checksum are unknown: only its own end mark is checked.
            let _ = run(self.source, &mut pass, &mut |_| ())?;
            let Some((keys, crc)) = pass.whole() else {
                return Ok(None);
            };
            (named.keys, named.crc) = (keys, crc);
            found.push(named);
        }
        Ok(Some(found))
    }
}

/// The first frame of a worker's log behind a snapshot, according to the remaining files.
fn first_seq(headers: &[FileHeader], generation: u64, worker: u16) -> u64 {
    // A later segment would skip one whose header is lost.
    let logs = headers.iter().filter(|h| !is_snapshot(h) && h.index == 0);
    let after = logs.filter(|h| h.worker == worker && h.generation >= generation);
    after.map(|h| h.first_seq).min().unwrap_or(0)
}

fn is_snapshot(header: &FileHeader) -> bool {
    matches!(header.file(), DataFile::Snapshot { .. })
}

/// The hash seed in the remains of a manifest.
fn seed_in(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("hash-seed "));
    line.and_then(|seed| u64::from_str_radix(seed, 16).ok())
}
