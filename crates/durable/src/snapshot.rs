//! Writes one worker's part of a snapshot: from effects it makes a file that is complete and
//! durable, or none at all.
//!
//! A state machine like the log's writer: call [`SnapshotWriter::poll`] after the others. All
//! requests use the bulk lane, a few writes at a time: the source of the effects waits for
//! [`SnapshotWriter::can_take`].

use super::entry;
use super::file::{FileHeader, FileKind};
use super::frame;
use super::ids;
use super::log::Identity;
use super::manifest::SnapshotFile;
use crc32fast::Hasher;
use rufous_base::disk::{DiskDone, DiskError, DiskOp, DiskReply, DiskRequest, FileName, Lane};
use std::collections::VecDeque;

/// The size of effects at which a frame ends; only its last effects may make it larger.
const FRAME_BYTES: usize = 64 << 10;
/// Short enough that a worker on the same processor is hardly delayed by one.
const WRITE_BYTES: usize = 64 << 10;
/// Larger buffers are not kept.
const KEEP_BYTES: usize = 2 * WRITE_BYTES;
const MOST_WRITES: usize = 4;
/// Synced periodically, so that syncs of the log never wait for all of it.
const SYNC_EVERY: u64 = 16 << 20;

/// The progress of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotState {
    Writing,
    /// The entry for the manifest.
    Finished(SnapshotFile),
    /// The file is removed, or being removed.
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Effects,
    /// The end mark is written, with this many keys.
    Ended(u64),
    /// The last sync, and that of the names, were requested.
    Syncing(u64),
}

#[derive(Debug)]
pub struct SnapshotWriter {
    file: FileName,
    worker: u16,
    next_seq: u64,
    seed: u32,
    /// Effects that are not in a frame yet.
    effects: Vec<u8>,
    /// Frames that are not in a write yet.
    frames: Vec<u8>,
    writes: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    next_frame: u64,
    /// Bytes of requested writes, their checksum, and the number at the last sync.
    bytes: u64,
    crc: Hasher,
    synced_bytes: u64,
    created: bool,
    writing: usize,
    /// Requests without a result.
    waits: usize,
    /// The last sync of names, whose result ends the snapshot.
    last_id: u64,
    stage: Stage,
    state: SnapshotState,
    remove: bool,
    next_id: u64,
}

impl SnapshotWriter {
    /// No two snapshots of a run have the same generation, including failed ones. The snapshot
    /// contains the log's frames before `next_seq`.
    pub fn new(identity: Identity, generation: u64, next_seq: u64) -> Self {
        let header = FileHeader {
            kind: FileKind::Snapshot,
            generation,
            worker: identity.worker,
            workers: identity.workers,
            index: 0,
            run: identity.run,
            first_seq: 0,
            salt: identity.salt,
            reserved: 0,
        };
        Self {
            file: header.file().name(),
            worker: identity.worker,
            next_seq,
            seed: header.frame_seed(),
            effects: Vec::new(),
            frames: header.encode().to_vec(),
            writes: VecDeque::new(),
            spare: Vec::new(),
            next_frame: 0,
            bytes: 0,
            crc: Hasher::new(),
            synced_bytes: 0,
            created: false,
            writing: 0,
            waits: 0,
            last_id: 0,
            stage: Stage::Effects,
            state: SnapshotState::Writing,
            remove: false,
            // Late results for an aborted one must not be taken for those of the next one.
            next_id: ids::SNAPSHOT | (generation & 0xFFFF_FFFF) << 24,
        }
    }

    pub fn state(&self) -> &SnapshotState {
        &self.state
    }

    /// Whether the disk keeps up. More is accepted even if not, and kept in memory.
    pub fn can_take(&self) -> bool {
        self.writes.len() + self.writing < MOST_WRITES
    }

    /// Bytes in memory that the disk does not have yet.
    pub fn pending_bytes(&self) -> usize {
        let writes = self.writes.iter().map(Vec::len).sum::<usize>();
        writes + self.effects.len() + self.frames.len()
    }

    /// Takes whole effects.
    pub fn take(&mut self, effects: &[u8]) {
        debug_assert_eq!(self.stage, Stage::Effects);
        if self.state != SnapshotState::Writing {
            return;
        }
        if self.effects.is_empty() && effects.len() >= FRAME_BYTES {
            self.frame(effects);
            return;
        }
        self.effects.extend_from_slice(effects);
        if self.effects.len() >= FRAME_BYTES {
            self.end_frame();
        }
    }

    /// There are no more effects; the number of keys.
    pub fn finish(&mut self, keys: u64) {
        if self.state != SnapshotState::Writing {
            return;
        }
        if !self.effects.is_empty() {
            self.end_frame();
        }
        let mut mark = Vec::new();
        entry::put_snapshot_end(&mut mark, keys, self.next_frame);
        self.frame(&mark);
        self.end_write();
        self.effects = Vec::new();
        self.stage = Stage::Ended(keys);
    }

    /// Aborts the snapshot; the file is removed.
    pub fn abort(&mut self) {
        if self.state == SnapshotState::Writing {
            self.fail("it was given up".to_owned());
        }
    }

    fn end_frame(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        self.frame(&effects);
        if effects.capacity() <= KEEP_BYTES {
            effects.clear();
            self.effects = effects;
        }
    }

    fn frame(&mut self, payload: &[u8]) {
        // No frame of a snapshot is synced before all of it is.
        frame::encode(&mut self.frames, self.seed, self.next_frame, 0, payload);
        self.next_frame += 1;
        if self.frames.len() >= WRITE_BYTES {
            self.end_write();
        }
    }

    fn end_write(&mut self) {
        self.crc.update(&self.frames);
        let next = self.spare.pop().unwrap_or_default();
        let full = std::mem::replace(&mut self.frames, next);
        self.writes.push_back(full);
    }

    /// Makes the disk requests that are due.
    pub fn poll(&mut self, out: &mut Vec<DiskRequest>) {
        if std::mem::take(&mut self.remove) {
            // After all other requests on its lane.
            let file = self.file.clone();
            self.ask(DiskOp::Remove { file }, out);
        }
        if self.state != SnapshotState::Writing {
            return;
        }
        if !self.created {
            self.created = true;
            let (file, reserve) = (self.file.clone(), 0);
            self.ask(DiskOp::Create { file, reserve }, out);
        }
        while self.writing < MOST_WRITES
            && let Some(bytes) = self.writes.pop_front()
        {
            self.writing += 1;
            let (file, at) = (self.file.clone(), self.bytes);
            self.bytes += bytes.len() as u64;
            let sync = false;
            let op = DiskOp::Write {
                file,
                at,
                bytes,
                sync,
            };
            self.ask(op, out);
            if self.bytes - self.synced_bytes >= SYNC_EVERY {
                self.sync(out);
            }
        }
        if let Stage::Ended(keys) = self.stage
            && self.writes.is_empty()
        {
            self.sync(out);
            self.ask(DiskOp::SyncNames, out);
            self.last_id = self.next_id;
            self.stage = Stage::Syncing(keys);
        }
    }

    fn sync(&mut self, out: &mut Vec<DiskRequest>) {
        self.synced_bytes = self.bytes;
        let file = self.file.clone();
        self.ask(DiskOp::Sync { file }, out);
    }

    fn ask(&mut self, op: DiskOp, out: &mut Vec<DiskRequest>) {
        self.next_id += 1;
        self.waits += 1;
        let (id, lane) = (self.next_id, Lane::Bulk);
        out.push(DiskRequest { id, lane, op });
    }

    /// Handles the result of a request of this snapshot; results for earlier ones are ignored.
    pub fn on_done(&mut self, done: DiskDone) {
        if done.id >> 24 != self.next_id >> 24 {
            return;
        }
        self.waits = self.waits.saturating_sub(1);
        match done.result {
            Ok(DiskReply::Wrote(mut bytes)) => {
                self.writing = self.writing.saturating_sub(1);
                if bytes.capacity() <= KEEP_BYTES && self.state == SnapshotState::Writing {
                    bytes.clear();
                    self.spare.push(bytes);
                }
            }
            Ok(_) => {}
            Err(error) => self.on_error(&error),
        }
        if let Stage::Syncing(keys) = self.stage
            && done.id == self.last_id
            && self.state == SnapshotState::Writing
        {
            self.state = SnapshotState::Finished(SnapshotFile {
                worker: self.worker,
                file: self.file.clone(),
                bytes: self.bytes,
                keys,
                crc: self.crc.clone().finalize(),
                next_seq: self.next_seq,
            });
            self.drop_buffers();
        }
    }

    /// Whether all requests have results, so that it may be dropped.
    pub fn is_idle(&self) -> bool {
        self.waits == 0 && !self.remove
    }

    fn on_error(&mut self, error: &DiskError) {
        if self.state == SnapshotState::Writing {
            self.fail(error.to_string());
        }
    }

    fn fail(&mut self, why: String) {
        self.state = SnapshotState::Failed(why);
        self.remove = self.created;
        self.drop_buffers();
    }

    fn drop_buffers(&mut self) {
        self.effects = Vec::new();
        self.frames = Vec::new();
        self.writes = VecDeque::new();
        self.spare = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Effect;
    use super::super::entry::Entry;
    use super::super::file::{HEADER_BYTES, salt};
    use super::super::scan::{FrameReader, Step};
    use super::super::testing::FakeDisk;
    use super::*;

    fn writer(generation: u64) -> SnapshotWriter {
        let identity = Identity {
            worker: 1,
            workers: 2,
            run: 3,
            salt: salt(4),
        };
        SnapshotWriter::new(identity, generation, 0)
    }

    fn set(n: u64, bytes: usize) -> Vec<u8> {
        let mut effect = Vec::new();
        Effect::Set {
            db: 0,
            key: &n.to_le_bytes(),
            value: &vec![n as u8; bytes],
            expire_at: None,
        }
        .encode(&mut effect);
        effect
    }

    /// Runs until there are no more requests; a step of the disk at a time.
    fn drain(writer: &mut SnapshotWriter, disk: &mut FakeDisk) {
        loop {
            let mut requests = Vec::new();
            writer.poll(&mut requests);
            disk.take(&mut requests);
            let Some(done) = disk.step() else { break };
            writer.on_done(done);
        }
        assert!(writer.is_idle());
    }

    /// Writes this many keys, with values of this size, as fast as possible.
    fn write(disk: &mut FakeDisk, keys: u64, bytes: usize) -> SnapshotWriter {
        let mut writer = writer(7);
        for n in 0..keys {
            writer.take(&set(n, bytes));
            let mut requests = Vec::new();
            writer.poll(&mut requests);
            disk.take(&mut requests);
            while !writer.can_take() {
                let Some(done) = disk.step() else { break };
                writer.on_done(done);
                writer.poll(&mut requests);
                disk.take(&mut requests);
            }
            let bound = (MOST_WRITES + 1) * (WRITE_BYTES + FRAME_BYTES + 2 * bytes);
            assert!(writer.pending_bytes() < bound);
            assert!(disk.waiting(Lane::Bulk) <= MOST_WRITES + 2);
        }
        writer.finish(keys);
        drain(&mut writer, disk);
        writer
    }

    /// Keys, frames, and the numbers of both in the end mark.
    fn read(bytes: &[u8]) -> (u64, u64, Option<(u64, u64)>) {
        let header = FileHeader::decode(bytes).unwrap();
        let mut reader = FrameReader::new(&header, bytes.len() as u64);
        reader.feed(&bytes[HEADER_BYTES..]);
        let (mut keys, mut frames, mut mark) = (0u64, 0, None);
        while let Step::Frame(frame) = reader.next() {
            assert_eq!(mark, None, "nothing follows the end");
            for entry in entry::entries(frame.payload) {
                match entry {
                    Ok(Entry::Effect(Effect::Set { key, .. })) => {
                        assert_eq!(key, keys.to_le_bytes());
                        keys += 1;
                    }
                    Ok(Entry::SnapshotEnd { keys, frames }) => mark = Some((keys, frames)),
                    other => panic!("{other:?}"),
                }
            }
            frames += 1;
        }
        assert!(matches!(reader.next(), Step::End { .. }));
        (keys, frames, mark)
    }

    #[test]
    fn what_is_taken_is_in_the_file_and_outlives_the_power() {
        for (keys, bytes) in [(0, 0), (1, 5), (5000, 100), (40, 300_000), (3, 5 << 20)] {
            let mut disk = FakeDisk::new(keys);
            let writer = write(&mut disk, keys, bytes);
            let SnapshotState::Finished(file) = writer.state() else {
                panic!("{:?}", writer.state());
            };
            assert_eq!((file.worker, file.keys), (1, keys));
            let files = disk.after_power_loss();
            let contents = &files[&file.file];
            assert_eq!(file.bytes, contents.len() as u64);
            assert_eq!(file.crc, crc32fast::hash(contents));
            let (found, frames, mark) = read(contents);
            assert_eq!((found, mark), (keys, Some((keys, frames - 1))));
        }
    }

    #[test]
    fn whatever_fails_leaves_no_file() {
        let mut finished = 0;
        for seed in 0..100 {
            let mut disk = FakeDisk::new(seed);
            disk.fail_one_in = 15;
            let writer = write(&mut disk, 1000, 2000);
            match writer.state() {
                SnapshotState::Finished(file) => {
                    let files = disk.after_power_loss();
                    assert_eq!(file.crc, crc32fast::hash(&files[&file.file]));
                    finished += 1;
                }
                SnapshotState::Failed(why) => {
                    assert!(why.contains("as planned"), "{why}");
                    assert!(disk.files.is_empty());
                }
                SnapshotState::Writing => panic!("it never ends"),
            }
        }
        assert!((5..95).contains(&finished), "{finished}");
    }

    #[test]
    fn giving_up_removes_the_file_and_late_answers_pass() {
        let mut disk = FakeDisk::new(1);
        let mut first = writer(7);
        first.take(&set(1, 1 << 20));
        let mut requests = Vec::new();
        first.poll(&mut requests);
        disk.take(&mut requests);
        first.abort();
        first.poll(&mut requests);
        disk.take(&mut requests);
        let mut second = writer(8);
        second.finish(0);
        while let Some(done) = disk.step() {
            second.on_done(done);
        }
        assert!(disk.files.is_empty());
        drain(&mut second, &mut disk);
        assert!(matches!(second.state(), SnapshotState::Finished(_)));
        assert_eq!(disk.files.len(), 1);
    }
}
