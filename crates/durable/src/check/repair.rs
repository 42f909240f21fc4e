//! The changes that make a start possible: each file keeps the data before the damage.

use super::super::entry;
use super::super::file::{DataFile, FileHeader, FileKind, HEADER_BYTES};
use super::super::frame;
use super::super::load::{
    ApplyPass, Break, Change, DamageKind, Folder, Plan, SnapshotPass, SnapshotPlan,
};
use super::super::manifest::{Manifest, SnapshotFile};
use super::{CHUNK_BYTES, Check, FileChange, run};
use crc32fast::Hasher;
use std::io;

impl Check<'_> {
    pub(super) fn snapshot(
        &mut self,
        plan: &Plan,
        manifest: Option<&mut Manifest>,
    ) -> io::Result<()> {
        let Some(mut pass) = SnapshotPass::new(plan) else {
            return Ok(());
        };
        let mut result = pass.presence();
        if result.is_ok() {
            result = run(self.source, &mut pass, &mut |_| ())?;
        }
        let Some(snapshot) = &plan.snapshot else {
            return Ok(());
        };
        let file = snapshot.named.file.clone();
        match result {
            Ok(()) => {
                let text = format!("{} keys in {} frames", pass.keys, pass.frames);
                self.say(&file, text);
            }
            Err(damage) => {
                let kind = damage.kind;
                self.report.damage.push(damage);
                match manifest {
                    Some(manifest) if kind == DamageKind::Damaged => {
                        self.mend_snapshot(plan, snapshot, manifest)?;
                    }
                    _ => self.report.repair = None,
                }
            }
        }
        Ok(())
    }

    /// The header of a snapshot, constructed if it is damaged: all fields are known except the run,
    /// which does not matter.
    fn snapshot_header(
        &mut self,
        plan: &Plan,
        name: DataFile,
        file: &rufous_base::disk::FileName,
        found: u64,
        run: u64,
    ) -> io::Result<FileHeader> {
        let head = match found {
            0 => Vec::new(),
            _ => self.source.read(file, 0, HEADER_BYTES)?,
        };
        let right = |header: &FileHeader| header.file() == name && header.workers == plan.workers;
        let header = FileHeader::decode(&head).ok().filter(right);
        Ok(header.unwrap_or(FileHeader {
            kind: FileKind::Snapshot,
            generation: name.generation(),
            worker: plan.partition,
            workers: plan.workers,
            index: 0,
            run,
            first_seq: 0,
            salt: plan.salt,
            reserved: 0,
        }))
    }

    /// Keeps the frames before the damage, and gives them an end mark.
    fn mend_snapshot(
        &mut self,
        plan: &Plan,
        snapshot: &SnapshotPlan,
        manifest: &mut Manifest,
    ) -> io::Result<()> {
        let file = &snapshot.named.file;
        let Some(name) = DataFile::parse(file) else {
            return Ok(());
        };
        let found = snapshot.found.unwrap_or(0);
        let header = self.snapshot_header(plan, name, file, found, manifest.run)?;
        let encoded = header.encode();
        let Some(mut pass) = SnapshotPass::new(plan) else {
            return Ok(());
        };
        if found >= HEADER_BYTES as u64 {
            // Its damage is known already.
            let _ = run(self.source, &mut pass, &mut |chunk| {
                if let Some(head) = chunk.first_chunk_mut() {
                    *head = encoded;
                }
            })?;
        }
        let mut payload = Vec::new();
        entry::put_snapshot_end(&mut payload, pass.keys, pass.frames);
        let mut end = Vec::new();
        let (seed, seq) = (header.frame_seed(), header.first_seq + pass.frames);
        frame::encode(&mut end, seed, seq, seq, &payload);
        let mut crc = Hasher::new();
        crc.update(&encoded);
        let mut at = HEADER_BYTES as u64;
        while at < pass.frames_end {
            let bytes = (pass.frames_end - at).min(CHUNK_BYTES as u64) as usize;
            let chunk = self.source.read(file, at, bytes)?;
            if chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            crc.update(&chunk);
            at += chunk.len() as u64;
        }
        crc.update(&end);
        let mended = SnapshotFile {
            bytes: pass.frames_end + end.len() as u64,
            keys: pass.keys,
            crc: crc.finalize(),
            ..snapshot.named.clone()
        };
        let kept = format!(
            "it keeps {} whole frames with {} keys",
            pass.frames, pass.keys
        );
        self.say(file, kept);
        let lost = snapshot.named.keys.saturating_sub(pass.keys);
        let bytes = snapshot.named.bytes.saturating_sub(mended.bytes);
        if lost > 0 {
            self.give_up(format!(
                "{lost} of {} keys of snapshot {file} ({bytes} bytes); what the log says of \
                 changes to them stays",
                snapshot.named.keys
            ));
        }
        self.change(FileChange::Write(file.clone(), 0, encoded.to_vec()));
        self.change(FileChange::Resize(file.clone(), pass.frames_end));
        self.change(FileChange::Write(file.clone(), pass.frames_end, end));
        if let Some(named) = manifest.snapshots.get_mut(usize::from(plan.partition)) {
            *named = mended;
        }
        Ok(())
    }

    /// Cuts a log as a start would if it took the damage for a loss of power.
    pub(super) fn cut_log(
        &mut self,
        folder: &Folder,
        apply: &ApplyPass,
        broken: Option<&Break>,
        worker: u16,
    ) {
        if let Some(broken) = broken {
            self.give_up(format!(
                "the log of worker {worker} from {} at byte {} on (frame {}): {} bytes, and \
                 {} whole frames behind the first that is not",
                broken.file, broken.offset, broken.seq, broken.bytes, broken.frames
            ));
        }
        if apply.cut.0 > 0 {
            self.give_up(format!(
                "the log of worker {worker} from frame {} on, which follows commands that are \
                 given up with others: {} frames, {} bytes",
                apply.next_seq(),
                apply.cut.0,
                apply.cut.1
            ));
        }
        let logs_from = folder.manifest.as_ref().map_or(0, |m| m.logs_from);
        let first = DataFile::Log {
            generation: logs_from,
            worker,
            index: 0,
        };
        let first = first.name();
        for change in apply.changes() {
            match change {
                Change::Remove(file) => self.change(FileChange::Remove(file)),
                Change::Empty(file, _) if file == first => {
                    self.change(FileChange::Resize(file, 0));
                }
                // It is not the first segment: it would be behind a gap.
                Change::Empty(file, _) => {
                    self.change(FileChange::Remove(file));
                    self.change(FileChange::Resize(first.clone(), 0));
                }
                Change::Truncate(file, bytes) => self.change(FileChange::Resize(file, bytes)),
                Change::Clear(file, (from, _, reserved)) => {
                    self.change(FileChange::Resize(file.clone(), from));
                    self.change(FileChange::Resize(file, reserved.max(from)));
                }
                Change::Rewrite(..) | Change::Write(..) | Change::Sync(_) => {}
            }
        }
    }
}
