//! Whole loads, from files as they may be found to the keys in the shard.

use super::super::effect::Effect;
use super::super::entry::{self, TxnId};
use super::super::file::{DataFile, FileKind, HEADER_BYTES, MANIFEST, VERSION, salt};
use super::super::frame;
use super::super::manifest::{Manifest, SnapshotFile};
use super::*;
use rufous_base::disk::{DiskError, DiskErrorKind, DiskReply, FileInfo};
use std::collections::BTreeMap;

const SEED: u64 = 99;

/// Files, and what is asked of them, done at once.
#[derive(Clone, Default)]
struct Disk {
    files: BTreeMap<String, Vec<u8>>,
    ops: Vec<DiskOp>,
}

impl Disk {
    fn list(&self) -> Vec<FileInfo> {
        let files = self.files.iter().map(|(name, bytes)| FileInfo {
            file: name.as_str().into(),
            bytes: bytes.len() as u64,
        });
        files.collect()
    }

    fn perform(&mut self, op: DiskOp) -> Result<DiskReply, DiskError> {
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
            DiskOp::Sync { .. } | DiskOp::SyncNames => Ok(DiskReply::Done),
            other => panic!("{other:?}"),
        }
    }

    fn folder(&self) -> Result<Folder, Damage> {
        Folder::new(&self.list(), self.files.get(MANIFEST).map(Vec::as_slice))
    }
}

/// A log being written.
struct Log {
    header: FileHeader,
    bytes: Vec<u8>,
    seq: u64,
    synced: u64,
}

impl Log {
    fn new(worker: u16, workers: u16) -> Self {
        let header = FileHeader {
            kind: FileKind::Log,
            generation: 1,
            worker,
            workers,
            index: 0,
            run: 1,
            first_seq: 0,
            salt: salt(SEED),
        };
        Self {
            bytes: header.encode().to_vec(),
            header,
            seq: 0,
            synced: 0,
        }
    }

    fn frame(&mut self, payload: &[u8]) -> &mut Self {
        let seed = self.header.frame_seed();
        frame::encode(&mut self.bytes, seed, self.seq, self.synced, payload);
        self.seq += 1;
        self
    }

    fn set(&mut self, key: &str) -> &mut Self {
        self.frame(&set(key, "v"))
    }

    fn piece(&mut self, n: u64, key: &str) -> &mut Self {
        let mut payload = Vec::new();
        entry::put_piece(&mut payload, txn(n), &[0, 1], &set(key, "p"));
        self.frame(&payload)
    }

    fn done(&mut self, n: u64) -> &mut Self {
        let mut payload = Vec::new();
        entry::put_done(&mut payload, txn(n));
        self.frame(&payload)
    }

    fn sync(&mut self) -> &mut Self {
        self.synced = self.seq;
        self
    }

    /// Stores the segment, with zeros behind it, and begins the next.
    fn next(&mut self, disk: &mut Disk, change: impl FnOnce(&mut FileHeader)) -> &mut Self {
        self.store(disk);
        self.header.index += 1;
        self.header.first_seq = self.seq;
        change(&mut self.header);
        self.seq = self.header.first_seq;
        self.bytes = self.header.encode().to_vec();
        self
    }

    fn name(&self) -> String {
        self.header.file().name().to_string()
    }

    fn store(&mut self, disk: &mut Disk) -> String {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len() + 200, 0);
        disk.files.insert(self.name(), bytes);
        self.name()
    }
}

fn txn(n: u64) -> TxnId {
    TxnId {
        run: 1,
        worker: 0,
        n,
    }
}

fn set(key: &str, value: &str) -> Vec<u8> {
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

fn manifest(workers: u16, snapshots: Vec<SnapshotFile>) -> Manifest {
    Manifest {
        generation: 1,
        logs_from: 1,
        workers,
        hash_seed: SEED,
        run: 1,
        saved_ms: 0,
        snapshots,
    }
}

fn disk(workers: u16) -> Disk {
    let mut disk = Disk::default();
    let bytes = manifest(workers, Vec::new()).encode();
    disk.files.insert(MANIFEST.into(), bytes);
    disk
}

/// A snapshot with these keys, named by the manifest.
fn with_snapshot(disk: &mut Disk, keys: &[&str]) -> String {
    let header = FileHeader {
        kind: FileKind::Snapshot,
        ..Log::new(0, 1).header
    };
    let mut bytes = header.encode().to_vec();
    for (seq, key) in (0..).zip(keys) {
        frame::encode(&mut bytes, header.frame_seed(), seq, 0, &set(key, "s"));
    }
    let count = keys.len() as u64;
    let mut end = Vec::new();
    entry::put_snapshot_end(&mut end, count, count);
    frame::encode(&mut bytes, header.frame_seed(), count, 0, &end);
    let named = SnapshotFile {
        worker: 0,
        file: header.file().name(),
        bytes: bytes.len() as u64,
        keys: count,
        crc: crc32fast::hash(&bytes),
    };
    let name = named.file.to_string();
    disk.files.insert(name.clone(), bytes);
    let manifest = manifest(1, vec![named]).encode();
    disk.files.insert(MANIFEST.into(), manifest);
    name
}

fn drive(loader: &mut Loader, disk: &mut Disk, shard: &mut Shard) {
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

struct Start {
    /// Per partition: its keys, and what the loader says.
    keys: Vec<Vec<String>>,
    loaded: Vec<Loaded>,
}

/// Loads everything as a node would.
fn start(disk: &mut Disk) -> Result<Start, Damage> {
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

fn keys_of(shard: &mut Shard) -> Vec<String> {
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

/// Loads twice: the second start must find the same, and nothing to be done.
fn start_twice(disk: &mut Disk) -> Start {
    let first = start(disk).unwrap_or_else(|damage| panic!("{damage}"));
    disk.ops.clear();
    let second = start(disk).unwrap_or_else(|damage| panic!("{damage}"));
    assert_eq!(first.keys, second.keys);
    assert!(!disk.ops.iter().any(|op| matches!(
        op,
        DiskOp::Truncate { .. } | DiskOp::Remove { .. }
    )));
    for (first, second) in first.loaded.iter().zip(&second.loaded) {
        assert_eq!(first.next_seq, second.next_seq);
        assert_eq!(first.last, second.last);
        assert!(second.torn.is_none() && second.cut == (0, 0));
    }
    first
}

fn refused(disk: &mut Disk) -> Damage {
    match start(disk) {
        Ok(start) => panic!("{:?}", start.keys),
        Err(damage) => damage,
    }
}

#[test]
fn snapshot_and_log_make_the_data() {
    let mut disk = disk(1);
    with_snapshot(&mut disk, &["a", "b", "c"]);
    let mut log = Log::new(0, 1);
    let mut delete = Vec::new();
    Effect::Delete { db: 0, key: b"b" }.encode(&mut delete);
    log.set("d").frame(&delete).next(&mut disk, |_| {});
    log.set("e").next(&mut disk, |h| (h.generation, h.index) = (2, 0));
    let name = log.set("f").store(&mut disk);
    let start = start_twice(&mut disk);
    assert_eq!(start.keys, [["a", "c", "d", "e", "f"]]);
    let loaded = &start.loaded[0];
    assert_eq!((loaded.keys, loaded.frames, loaded.next_seq), (3, 4, 4));
    assert_eq!(loaded.last.map(|h| h.file().name().to_string()), Some(name));
    // What was read outlives the power before anything is served.
    let synced = disk.ops.iter().filter(|op| matches!(op, DiskOp::Sync { .. }));
    assert_eq!(synced.count(), 3);
}

#[test]
fn nothing_stored_yet_is_fine() {
    let folder = Disk::default().folder().expect("an empty folder");
    assert!(folder.manifest.is_none() && folder.plans.is_empty());
    let start = start_twice(&mut disk(2));
    assert_eq!(start.keys, [[""; 0], [""; 0]]);
    assert_eq!(start.loaded[0].last, None);
}

#[test]
fn a_torn_tail_is_cut() {
    let mut log = Log::new(0, 1);
    log.set("a").set("b").sync().set("c");
    let two = log.bytes.len();
    log.set("d").set("e");
    for flip in two..log.bytes.len() {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        disk.files.get_mut(&name).unwrap()[flip] ^= 1;
        let start = start_twice(&mut disk);
        let keys: &[&str] = match flip - two < (log.bytes.len() - two) / 2 {
            true => &["a", "b", "c"],
            false => &["a", "b", "c", "d"],
        };
        assert_eq!(start.keys[0], keys);
        let torn = start.loaded[0].torn.clone().expect("torn");
        assert_eq!(torn.frames, 4 - keys.len() as u64);
        assert!(torn.bytes > 0 && torn.bytes <= (log.bytes.len() - two) as u64);
    }
}

#[test]
fn a_corrupt_middle_stops_the_start() {
    let mut log = Log::new(0, 1);
    log.set("a").set("b").set("c").sync().set("d");
    let last = log.bytes.len();
    log.set("e");
    for flip in HEADER_BYTES..log.bytes.len() {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        let before = disk.files.clone();
        disk.files.get_mut(&name).unwrap()[flip] ^= 0x80;
        let frame = (flip - HEADER_BYTES) / ((last - HEADER_BYTES) / 4);
        if frame < 3 {
            let damage = refused(&mut disk);
            assert_eq!(&*damage.file, name);
            let at = HEADER_BYTES + frame * ((last - HEADER_BYTES) / 4);
            assert_eq!(damage.offset, Some(at as u64), "{damage}");
            let ops = &disk.ops;
            assert!(ops.iter().all(|op| matches!(op, DiskOp::Read { .. })));
            assert_eq!(disk.files.len(), before.len());
        } else {
            start_twice(&mut disk);
        }
    }
}

#[test]
fn headers_that_are_damaged_stop_the_start() {
    let mut log = Log::new(0, 1);
    for flip in 0..HEADER_BYTES {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        disk.files.get_mut(&name).unwrap()[flip] ^= 0x10;
        assert_eq!(&*refused(&mut disk).file, name);
    }
    // Cut short by a loss of power, they are no loss.
    for cut in 0..HEADER_BYTES - 4 {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        disk.files.get_mut(&name).unwrap()[cut..].fill(0);
        start_twice(&mut disk);
    }
    let mut disk = disk(1);
    let name = log.set("x").store(&mut disk);
    let bytes = disk.files.get_mut(&name).unwrap();
    bytes[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let crc = crc32fast::hash(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(refused(&mut disk).kind, DamageKind::Newer);
}

#[test]
fn frames_taken_over_by_a_later_segment_are_void() {
    let mut disk = disk(1);
    let mut log = Log::new(0, 1);
    log.set("a").set("b").set("old").set("older");
    log.next(&mut disk, |h| h.first_seq = 2);
    log.set("c").next(&mut disk, |_| {});
    log.set("d").store(&mut disk);
    let start = start_twice(&mut disk);
    assert_eq!(start.keys, [["a", "b", "c", "d"]]);
    assert_eq!(start.loaded[0].next_seq, 4);
}

#[test]
fn a_gap_between_segments_is_a_tail_unless_it_was_synced() {
    // The last frame of the first generation is lost, those of the second are not.
    for (sync, run) in [(false, 1), (true, 1), (false, 2)] {
        let mut disk = disk(1);
        let mut log = Log::new(0, 1);
        log.set("a");
        let kept = log.bytes.len();
        log.set("b");
        let first = log.name();
        log.next(&mut disk, |h| {
            (h.generation, h.index, h.run) = (2, 0, run);
        });
        if sync {
            log.sync();
        }
        let second = log.set("c").set("d").store(&mut disk);
        disk.files.get_mut(&first).unwrap()[kept..].fill(0);
        if sync || run == 2 {
            let damage = refused(&mut disk);
            assert_eq!(&*damage.file, second, "{damage}");
            continue;
        }
        let start = start_twice(&mut disk);
        assert_eq!(start.keys, [["a"]]);
        assert_eq!(start.loaded[0].torn.as_ref().map(|t| t.frames), Some(2));
        assert!(!disk.files.contains_key(&second));
    }
}

#[test]
fn a_segment_that_is_missing_stops_the_start() {
    for missing in 0..2 {
        let mut disk = disk(1);
        let mut log = Log::new(0, 1);
        let mut names = Vec::new();
        for key in ["a", "b", "c"] {
            names.push(log.set(key).name());
            log.next(&mut disk, |_| {});
        }
        disk.files.remove(&names[missing]);
        let damage = refused(&mut disk);
        assert_eq!(&*damage.file, names[missing + 1], "{damage}");
    }
    // All of one worker's log, while the other has something.
    let mut disk = disk(2);
    Log::new(1, 2).set("a").store(&mut disk);
    assert_eq!(&*refused(&mut disk).file, Log::new(0, 2).name());
}

#[test]
fn segments_made_ahead_are_no_gap() {
    let mut disk = disk(1);
    let mut log = Log::new(0, 1);
    log.set("a").next(&mut disk, |_| {});
    disk.files.insert(log.name(), vec![0; 300]);
    log.header.index = 9;
    log.header.generation = 2;
    log.header.index = 0;
    log.bytes = log.header.encode().to_vec();
    let second = log.set("b").store(&mut disk);
    log.header.index = 1;
    let unused = log.name();
    disk.files.insert(unused.clone(), Vec::new());
    let start = start_twice(&mut disk);
    assert_eq!(start.keys, [["a", "b"]]);
    assert!(disk.files.contains_key(&second) && !disk.files.contains_key(&unused));
}

#[test]
fn commands_over_workers_are_whole_or_not_there() {
    let mut disk = disk(2);
    let mut first = Log::new(0, 2);
    first.piece(1, "x1").done(1).piece(2, "x2").set("a");
    first.store(&mut disk);
    let mut second = Log::new(1, 2);
    second.piece(1, "y1").set("b");
    second.store(&mut disk);
    let start = start_twice(&mut disk);
    assert_eq!(start.keys[0], ["a", "x1"]);
    assert_eq!(start.keys[1], ["b", "y1"]);
    assert_eq!((start.loaded[0].skipped, start.loaded[1].skipped), (1, 0));
}

#[test]
fn what_followed_a_command_that_was_lost_is_lost() {
    let mut disk = disk(2);
    let mut first = Log::new(0, 2);
    first.set("a").piece(1, "x1").set("b").done(1).set("c");
    first.next(&mut disk, |_| {}).set("d");
    let gone = first.store(&mut disk);
    let mut second = Log::new(1, 2);
    second.set("e").store(&mut disk);
    let start = start_twice(&mut disk);
    assert_eq!(start.keys[0], ["a", "b"]);
    assert_eq!(start.keys[1], ["e"]);
    assert_eq!(start.loaded[0].cut.0, 3);
    assert_eq!(start.loaded[0].next_seq, 3);
    assert!(!disk.files.contains_key(&gone));
}

#[test]
fn what_other_numbers_of_workers_began_is_taken_away() {
    let mut disk = disk(1);
    let mut log = Log::new(0, 1);
    log.set("a").store(&mut disk);
    let mut other = Log::new(0, 3);
    other.header.generation = 2;
    other.bytes = other.header.encode().to_vec();
    let name = other.store(&mut disk);
    assert_eq!(start_twice(&mut disk).keys, [["a"]]);
    assert!(!disk.files.contains_key(&name));
    other.set("b").store(&mut disk);
    assert_eq!(&*refused(&mut disk).file, name);
}

#[test]
fn every_byte_of_a_snapshot_counts() {
    let mut disk = disk(1);
    let name = with_snapshot(&mut disk, &["a", "b", "c"]);
    let whole = disk.files[&name].clone();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        disk.files.insert(name.clone(), flipped);
        assert_eq!(&*refused(&mut disk).file, name);
        disk.files.insert(name.clone(), whole[..at].to_vec());
        assert_eq!(&*refused(&mut disk).file, name);
    }
    let mut longer = whole.clone();
    longer.push(0);
    disk.files.insert(name.clone(), longer);
    assert_eq!(&*refused(&mut disk).file, name);
    disk.files.remove(&name);
    assert!(refused(&mut disk).to_string().contains("missing"));
    disk.files.insert(name, whole);
    assert_eq!(start_twice(&mut disk).keys, [["a", "b", "c"]]);
}

#[test]
fn a_manifest_that_is_wrong_stops_the_start() {
    let mut whole = disk(1);
    Log::new(0, 1).set("a").store(&mut whole);
    let bytes = whole.files[MANIFEST].clone();
    for at in 0..bytes.len() {
        let mut disk = whole.clone();
        disk.files.get_mut(MANIFEST).unwrap()[at] ^= 1;
        assert_eq!(&*refused(&mut disk).file, MANIFEST);
        disk.files.get_mut(MANIFEST).unwrap().truncate(at);
        assert_eq!(&*refused(&mut disk).file, MANIFEST);
    }
    whole.files.remove(MANIFEST);
    assert!(refused(&mut whole).to_string().contains("missing"));
}

#[test]
fn leftovers_are_strays() {
    let mut disk = disk(1);
    let mut log = Log::new(0, 1);
    log.set("a").store(&mut disk);
    let old = DataFile::Log {
        generation: 0,
        worker: 0,
        index: 3,
    };
    let unfinished = DataFile::Snapshot {
        generation: 2,
        worker: 0,
    };
    for file in [old, unfinished] {
        disk.files.insert(file.name().to_string(), vec![1; 10]);
    }
    disk.files.insert("manifest.next".into(), Vec::new());
    disk.files.insert("notes.txt".into(), Vec::new());
    disk.files.insert("lock".into(), Vec::new());
    let strays = disk.folder().expect("fine").strays;
    let strays: Vec<&str> = strays.iter().map(|name| &**name).collect();
    assert_eq!(strays, [&*old.name(), "manifest.next", &*unfinished.name()]);
}

#[test]
fn a_disk_that_fails_to_read_says_so() {
    let mut disk = disk(1);
    let name = Log::new(0, 1).set("a").store(&mut disk);
    let mut loader = Loader::new(disk.folder().expect("fine").plans.remove(0));
    disk.files.remove(&name);
    drive(&mut loader, &mut disk, &mut Shard::new(1));
    let Stage::Failed(damage) = loader.stage() else {
        panic!("{:?}", loader.stage());
    };
    assert_eq!(damage.kind, DamageKind::Disk);
    assert_eq!(damage.to_string(), format!("{name}: cannot read it: no such file"));
}
