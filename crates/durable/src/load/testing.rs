//! For tests: files in memory, logs and snapshots to store there, and complete loads of them.

use super::super::entry::{self, TxnId};
pub(in super::super) use super::super::file::HEADER_BYTES;
use super::super::file::{FileKind, MANIFEST, salt};
use super::super::frame;
use super::super::manifest::{Manifest, SnapshotFile};
use super::*;
use rufous_base::disk::{DiskError, DiskErrorKind, DiskOp, DiskReply, FileInfo};
use rufous_store::effect::Effect;
use std::collections::BTreeMap;

pub(in super::super) const SEED: u64 = 99;

/// Files, on which requests are executed at once.
#[derive(Clone, Default)]
pub(in super::super) struct Disk {
    pub(in super::super) files: BTreeMap<String, Vec<u8>>,
    pub(in super::super) ops: Vec<DiskOp>,
}

impl Disk {
    pub(in super::super) fn list(&self) -> Vec<FileInfo> {
        let files = self.files.iter().map(|(name, bytes)| FileInfo {
            file: name.as_str().into(),
            bytes: bytes.len() as u64,
        });
        files.collect()
    }

    pub(in super::super) fn perform(&mut self, op: DiskOp) -> Result<DiskReply, DiskError> {
        self.ops.push(op.clone());
        let missing = DiskError {
            kind: DiskErrorKind::NotFound,
            text: "no such file".into(),
            bytes: Vec::new(),
        };
        match op {
            DiskOp::Read { file, at, bytes } => {
                let all = self.files.get(&*file).ok_or(missing)?;
                let rest = all.get(at as usize..).unwrap_or(&[]);
                Ok(DiskReply::Read(rest[..rest.len().min(bytes)].to_vec()))
            }
            DiskOp::Truncate { file, bytes } => {
                let all = self.files.get_mut(&*file).ok_or(missing)?;
                all.resize(bytes as usize, 0);
                Ok(DiskReply::Done)
            }
            DiskOp::Remove { file } => {
                self.files.remove(&*file);
                Ok(DiskReply::Done)
            }
            DiskOp::Write {
                file, at, bytes, ..
            } => {
                let all = self.files.get_mut(&*file).ok_or(missing)?;
                let (from, to) = (at as usize, at as usize + bytes.len());
                all[from..to].copy_from_slice(&bytes);
                Ok(DiskReply::Wrote(bytes))
            }
            DiskOp::Sync { .. } | DiskOp::SyncNames => Ok(DiskReply::Done),
            other => panic!("{other:?}"),
        }
    }

    pub(in super::super) fn folder(&self) -> Result<Folder, Damage> {
        Folder::new(&self.list(), self.files.get(MANIFEST).map(Vec::as_slice))
    }
}

/// A log being written.
pub(in super::super) struct Log {
    pub(in super::super) header: FileHeader,
    pub(in super::super) bytes: Vec<u8>,
    pub(in super::super) seq: u64,
    pub(in super::super) synced: u64,
}

impl Log {
    pub(in super::super) fn new(worker: u16, workers: u16) -> Self {
        let header = FileHeader {
            kind: FileKind::Log,
            generation: 1,
            worker,
            workers,
            index: 0,
            run: 1,
            first_seq: 0,
            salt: salt(SEED),
            reserved: 0,
        };
        Self {
            bytes: header.encode().to_vec(),
            header,
            seq: 0,
            synced: 0,
        }
    }

    /// The log of a node with one worker whose segments are made with this many bytes.
    pub(in super::super) fn reserving(bytes: u64) -> Self {
        let mut log = Self::new(0, 1);
        log.header.reserved = bytes;
        log.bytes = log.header.encode().to_vec();
        log
    }

    pub(in super::super) fn frame(&mut self, payload: &[u8]) -> &mut Self {
        let seed = self.header.frame_seed();
        frame::encode(&mut self.bytes, seed, self.seq, self.synced, payload);
        self.seq += 1;
        self
    }

    pub(in super::super) fn set(&mut self, key: &str) -> &mut Self {
        self.frame(&set(key, "v"))
    }

    pub(in super::super) fn piece(&mut self, n: u64, key: &str) -> &mut Self {
        let mut payload = Vec::new();
        entry::put_piece(&mut payload, txn(n), &[0, 1], &set(key, "p"));
        self.frame(&payload)
    }

    pub(in super::super) fn done(&mut self, n: u64) -> &mut Self {
        let mut payload = Vec::new();
        entry::put_done(&mut payload, txn(n));
        self.frame(&payload)
    }

    pub(in super::super) fn sync(&mut self) -> &mut Self {
        self.synced = self.seq;
        self
    }

    /// Stores the segment, with zeros behind it, and begins the next.
    pub(in super::super) fn next(
        &mut self,
        disk: &mut Disk,
        change: impl FnOnce(&mut FileHeader),
    ) -> &mut Self {
        self.store(disk);
        self.header.index += 1;
        self.header.first_seq = self.seq;
        change(&mut self.header);
        self.seq = self.header.first_seq;
        self.bytes = self.header.encode().to_vec();
        self
    }

    pub(in super::super) fn name(&self) -> String {
        self.header.file().name().to_string()
    }

    pub(in super::super) fn store(&mut self, disk: &mut Disk) -> String {
        let mut bytes = self.bytes.clone();
        let reserved = self.header.reserved as usize;
        bytes.resize(reserved.max(bytes.len() + 200), 0);
        disk.files.insert(self.name(), bytes);
        self.name()
    }
}

pub(in super::super) fn txn(n: u64) -> TxnId {
    TxnId {
        run: 1,
        worker: 0,
        n,
    }
}

pub(in super::super) fn set(key: &str, value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let effect = Effect::Set {
        db: 0,
        key: key.as_bytes(),
        value: value.as_bytes(),
        expire_at: None,
    };
    effect.encode(&mut bytes);
    bytes
}

pub(in super::super) fn manifest(workers: u16, snapshots: Vec<SnapshotFile>) -> Manifest {
    Manifest {
        generation: 1,
        logs_from: 1,
        logs_until: None,
        workers,
        hash_seed: SEED,
        run: 1,
        saved_ms: 0,
        snapshots,
    }
}

pub(in super::super) fn disk(workers: u16) -> Disk {
    let mut disk = Disk::default();
    let bytes = manifest(workers, Vec::new()).encode();
    disk.files.insert(MANIFEST.into(), bytes);
    disk
}

/// A snapshot of one worker with these keys, named by the manifest.
pub(in super::super) fn with_snapshot(disk: &mut Disk, keys: &[&str]) -> String {
    with_snapshots(disk, &[keys]).remove(0)
}

/// The manifest names, for each log, the first frame that is not in a snapshot.
pub(in super::super) fn go_on_with(disk: &mut Disk, next_seq: u64) {
    let mut manifest = Manifest::decode(&disk.files[MANIFEST]).expect("a manifest");
    for named in &mut manifest.snapshots {
        named.next_seq = next_seq;
    }
    disk.files.insert(MANIFEST.into(), manifest.encode());
}

/// Snapshots of all workers.
pub(in super::super) fn with_snapshots(disk: &mut Disk, workers: &[&[&str]]) -> Vec<String> {
    let count = workers.len() as u16;
    let mut named = Vec::new();
    for (worker, keys) in (0..).zip(workers) {
        let header = FileHeader {
            kind: FileKind::Snapshot,
            ..Log::new(worker, count).header
        };
        let mut bytes = header.encode().to_vec();
        for (seq, key) in (0..).zip(*keys) {
            frame::encode(&mut bytes, header.frame_seed(), seq, 0, &set(key, "s"));
        }
        let count = keys.len() as u64;
        let mut end = Vec::new();
        entry::put_snapshot_end(&mut end, count, count);
        frame::encode(&mut bytes, header.frame_seed(), count, 0, &end);
        named.push(SnapshotFile {
            worker,
            file: header.file().name(),
            bytes: bytes.len() as u64,
            keys: count,
            crc: crc32fast::hash(&bytes),
            next_seq: 0,
        });
        disk.files.insert(header.file().name().to_string(), bytes);
    }
    let names = named.iter().map(|named| named.file.to_string()).collect();
    disk.files
        .insert(MANIFEST.into(), manifest(count, named).encode());
    names
}

pub(in super::super) fn drive(loader: &mut Loader, disk: &mut Disk, shard: &mut Shard) {
    let mut requests = Vec::new();
    loop {
        loader.poll(&mut requests);
        if requests.is_empty() {
            return;
        }
        let request = requests.remove(0);
        assert!(loader.owns(request.id));
        let result = disk.perform(request.op);
        let id = request.id;
        loader.on_done(Now::default(), DiskDone { id, result }, shard);
        let (done, total) = loader.progress();
        assert!(done <= total);
    }
}

pub(in super::super) struct Start {
    /// Per partition: its keys, and the loader's result.
    pub(in super::super) keys: Vec<Vec<String>>,
    pub(in super::super) loaded: Vec<Loaded>,
}

/// Loads everything as a node would.
pub(in super::super) fn start(disk: &mut Disk) -> Result<Start, Damage> {
    start_on_a_changing(disk, |_| ())
}

/// As [`start`]; files change after the scan.
pub(in super::super) fn start_on_a_changing(
    disk: &mut Disk,
    change: impl FnOnce(&mut Disk),
) -> Result<Start, Damage> {
    let plans = disk.folder()?.plans;
    let mut shards: Vec<Shard> = plans.iter().map(|_| Shard::new(SEED)).collect();
    let mut loaders: Vec<Loader> = plans.iter().cloned().map(Loader::new).collect();
    for (loader, shard) in loaders.iter_mut().zip(&mut shards) {
        drive(loader, disk, shard);
        match loader.stage() {
            Stage::Failed(damage) => return Err(damage),
            stage => assert_eq!(stage, Stage::Scanned),
        }
    }
    let summaries: Vec<&LogSummary> = loaders.iter().map(Loader::summary).collect();
    let verdicts = judge(&plans, &summaries)?;
    change(disk);
    for ((loader, shard), verdict) in loaders.iter_mut().zip(&mut shards).zip(verdicts) {
        loader.resolve(verdict);
        drive(loader, disk, shard);
        if let Stage::Failed(damage) = loader.stage() {
            return Err(damage);
        }
    }
    let keys = shards.iter_mut().map(keys_of).collect();
    let loaded = loaders.iter().filter_map(|l| l.loaded().cloned()).collect();
    Ok(Start { keys, loaded })
}

pub(in super::super) fn keys_of(shard: &mut Shard) -> Vec<String> {
    let mut keys = Vec::new();
    let mut cursor = 0;
    while let Some(next) = shard.scan(0, cursor, 100, Now::default(), &mut |item| {
        keys.push(String::from_utf8_lossy(item.key).into_owned());
    }) {
        cursor = next;
    }
    keys.sort();
    keys
}

/// Loads twice: the second start must have the same result, and make no changes.
pub(in super::super) fn start_twice(disk: &mut Disk) -> Start {
    let first = start(disk).unwrap_or_else(|damage| panic!("{damage}"));
    disk.ops.clear();
    let second = start(disk).unwrap_or_else(|damage| panic!("{damage}"));
    assert_eq!(first.keys, second.keys);
    assert!(
        !disk
            .ops
            .iter()
            .any(|op| matches!(op, DiskOp::Truncate { .. } | DiskOp::Remove { .. }))
    );
    for (first, second) in first.loaded.iter().zip(&second.loaded) {
        assert_eq!(first.next_seq, second.next_seq);
        assert_eq!(first.last, second.last);
        assert!(second.torn.is_none() && second.cut == (0, 0));
    }
    first
}

pub(in super::super) fn refused(disk: &mut Disk) -> Damage {
    match start(disk) {
        Ok(start) => panic!("{:?}", start.keys),
        Err(damage) => damage,
    }
}
