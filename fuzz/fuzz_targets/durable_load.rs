//! Data folders of any contents: files whose bytes are the input itself, or logs and snapshots that
//! the input tells how to write and where to damage. Loading never panics, a check finds what a
//! start finds, and a start goes well after what the check calls a repair.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_base::Now;
use rufous_base::disk::{DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply, FileInfo};
use rufous_kernel::durable::check::{FileChange, Repair, Source, check};
use rufous_kernel::durable::{
    Damage, DataFile, Effect, Entry, FileHeader, FileKind, Folder, Loader, LogSummary, Manifest,
    SnapshotFile, Stage, TxnId, entry, file, frame, load,
};
use rufous_kernel::shard::Shard;
use std::collections::BTreeMap;
use std::io;

const SEED: u64 = 1;
const WORKERS: u16 = 2;

#[derive(Clone, Default)]
struct Disk(BTreeMap<String, Vec<u8>>);

impl Disk {
    fn infos(&self) -> Vec<FileInfo> {
        let info = |(name, bytes): (&String, &Vec<u8>)| FileInfo {
            file: name.as_str().into(),
            bytes: bytes.len() as u64,
        };
        self.0.iter().map(info).collect()
    }

    fn part(&self, file: &str, at: u64, bytes: usize) -> Option<Vec<u8>> {
        let rest = self.0.get(file)?.get(at as usize..).unwrap_or_default();
        Some(rest[..rest.len().min(bytes)].to_vec())
    }

    fn perform(&mut self, op: DiskOp) -> Result<DiskReply, DiskError> {
        let missing = DiskError {
            kind: DiskErrorKind::NotFound,
            text: String::new(),
            bytes: Vec::new(),
        };
        match op {
            DiskOp::Read { file, at, bytes } => {
                return self
                    .part(&file, at, bytes)
                    .map(DiskReply::Read)
                    .ok_or(missing);
            }
            DiskOp::Truncate { file, bytes } => self
                .0
                .get_mut(&*file)
                .ok_or(missing)?
                .resize(bytes as usize, 0),
            DiskOp::Remove { file } => drop(self.0.remove(&*file)),
            _ => {}
        }
        Ok(DiskReply::Done)
    }

    fn repair(&mut self, repair: Repair) {
        for change in repair.changes {
            let name = change.file().to_string();
            match change {
                FileChange::Remove(_) => drop(self.0.remove(&name)),
                FileChange::Resize(_, bytes) => {
                    self.0.entry(name).or_default().resize(bytes as usize, 0)
                }
                FileChange::Write(_, at, bytes) => {
                    let (all, at) = (self.0.entry(name).or_default(), at as usize);
                    all.resize(all.len().max(at + bytes.len()), 0);
                    all[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
    }
}

impl Source for Disk {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        Ok(self.infos())
    }

    fn read(&mut self, file: &str, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        self.part(file, at, bytes)
            .ok_or(io::ErrorKind::NotFound.into())
    }
}

fn drive(loader: &mut Loader, disk: &mut Disk, shard: &mut Shard) -> Result<(), Damage> {
    let mut requests = Vec::new();
    loop {
        loader.poll(&mut requests);
        if requests.is_empty() {
            break;
        }
        let request = requests.remove(0);
        let (id, result) = (request.id, disk.perform(request.op));
        loader.on_done(Now::default(), DiskDone { id, result }, shard);
    }
    match loader.stage() {
        Stage::Failed(damage) => Err(damage),
        _ => Ok(()),
    }
}

fn start(disk: &mut Disk) -> Result<usize, Damage> {
    let manifest = disk.0.get("manifest").cloned();
    let plans = Folder::new(&disk.infos(), manifest.as_deref())?.plans;
    let mut all: Vec<_> = plans
        .iter()
        .map(|plan| (Loader::new(plan.clone()), Shard::new(SEED)))
        .collect();
    for (loader, shard) in &mut all {
        drive(loader, disk, shard)?;
    }
    let summaries: Vec<&LogSummary> = all.iter().map(|(loader, _)| loader.summary()).collect();
    let verdicts = load::judge(&plans, &summaries)?;
    let mut keys = 0;
    for ((loader, shard), verdict) in all.iter_mut().zip(verdicts) {
        loader.resolve(verdict);
        drive(loader, disk, shard)?;
        keys += (0..16).map(|db| shard.len(db)).sum::<usize>();
    }
    Ok(keys)
}

fn set(key: u8) -> Vec<u8> {
    let mut payload = Vec::new();
    let effect = Effect::Set {
        db: 0,
        key: &[key],
        value: b"value",
        expire_at: None,
    };
    effect.encode(&mut payload);
    payload
}

fn header(kind: FileKind, worker: u16) -> FileHeader {
    FileHeader {
        kind,
        generation: 1,
        worker,
        workers: WORKERS,
        index: 0,
        run: 1,
        first_seq: 0,
        salt: file::salt(SEED),
        reserved: 0,
    }
}

/// A payload of the input's own bytes, unless it makes large values of few of them.
fn is_modest(payload: &[u8]) -> bool {
    entry::entries(payload).all(|entry| match entry {
        Ok(Entry::Effect(effect)) => !matches!(effect, Effect::Write { .. }),
        Ok(Entry::Piece { effects, .. }) => effects
            .iter()
            .all(|e| !matches!(e, Ok(Effect::Write { .. }))),
        _ => true,
    })
}

fn write_log(disk: &mut Disk, worker: u16, mut input: &[u8]) {
    let mut header = header(FileKind::Log, worker);
    let (mut bytes, mut seq, mut synced) = (header.encode().to_vec(), 0u64, 0u64);
    while let Some((&op, rest)) = input.split_first() {
        input = rest;
        let n = u64::from(op >> 4);
        let txn = TxnId {
            run: 1,
            worker: 0,
            n,
        };
        let mut payload = Vec::new();
        match op % 16 {
            0..=3 => payload = set(op),
            4 | 5 => entry::put_piece(&mut payload, txn, &[0, 1], &set(op)),
            6 | 7 => entry::put_done(&mut payload, txn),
            8 | 9 => synced = seq,
            10 => {
                let (own, rest) = input.split_at((n as usize + 1).min(input.len()));
                input = rest;
                if is_modest(own) {
                    payload = own.to_vec();
                }
            }
            11 => payload = vec![0x42],
            12 => bytes.resize(bytes.len() + n as usize, 0),
            _ => {
                disk.0.insert(header.file().name().to_string(), bytes);
                header.index += 1 + u32::from(op == 0xFF);
                seq = seq.saturating_sub(if op % 16 == 13 { n % 4 } else { 0 });
                header.first_seq = seq;
                header.run += u64::from(op % 16 == 14);
                if op % 16 == 15 {
                    (header.generation, header.index) = (header.generation + 1, 0);
                }
                bytes = header.encode().to_vec();
            }
        }
        if !payload.is_empty() {
            frame::encode(
                &mut bytes,
                header.frame_seed(),
                seq,
                synced.min(seq),
                &payload,
            );
            seq += 1;
        }
    }
    disk.0.insert(header.file().name().to_string(), bytes);
}

fn write_snapshots(disk: &mut Disk, keys: u8) {
    let mut snapshots = Vec::new();
    for worker in 0..WORKERS {
        let header = header(FileKind::Snapshot, worker);
        let mut bytes = header.encode().to_vec();
        for key in 0..keys {
            frame::encode(
                &mut bytes,
                header.frame_seed(),
                u64::from(key),
                0,
                &set(key),
            );
        }
        let mut end = Vec::new();
        let count = u64::from(keys);
        entry::put_snapshot_end(&mut end, count, count);
        frame::encode(&mut bytes, header.frame_seed(), count, 0, &end);
        snapshots.push(SnapshotFile {
            worker,
            file: header.file().name(),
            bytes: bytes.len() as u64,
            keys: count,
            crc: crc32fast::hash(&bytes),
            next_seq: 0,
        });
        disk.0.insert(header.file().name().to_string(), bytes);
    }
    write_manifest(disk, snapshots);
}

fn write_manifest(disk: &mut Disk, snapshots: Vec<SnapshotFile>) {
    let manifest = Manifest {
        generation: 1,
        logs_from: 1,
        logs_until: None,
        workers: WORKERS,
        hash_seed: SEED,
        run: 1,
        saved_ms: 0,
        snapshots,
    };
    disk.0.insert("manifest".into(), manifest.encode());
}

/// The input's bytes as files.
fn raw(disk: &mut Disk, input: &[u8]) {
    let mut parts = input
        .chunks(input.len().div_ceil(4).max(1))
        .map(<[u8]>::to_vec);
    write_manifest(disk, Vec::new());
    for (worker, index) in [(0, 0), (0, 1), (1, 0)] {
        let name = DataFile::Log {
            generation: 1,
            worker,
            index,
        };
        disk.0
            .insert(name.name().to_string(), parts.next().unwrap_or_default());
    }
    if let Some(manifest) = parts.next() {
        disk.0.insert("manifest".into(), manifest);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[mode, first, flips], input)) = data.split_first_chunk::<3>() else {
        return;
    };
    let mut disk = Disk::default();
    if mode == 0 {
        raw(&mut disk, input);
    } else {
        let (flips, ops) = input.split_at((usize::from(flips % 4) * 4).min(input.len()));
        let (one, two) = ops.split_at(usize::from(first).min(ops.len()));
        write_log(&mut disk, 0, one);
        write_log(&mut disk, 1, two);
        write_snapshots(&mut disk, mode % 4);
        for flip in flips.chunks_exact(4) {
            let count = disk.0.len();
            let Some(bytes) = disk.0.values_mut().nth(usize::from(flip[0]) % count) else {
                continue;
            };
            let at = usize::from(flip[1]) << 8 | usize::from(flip[2]);
            match bytes.get_mut(at) {
                Some(byte) => *byte ^= flip[3],
                None => bytes.truncate(at % (bytes.len() + 1)),
            }
        }
    }
    let report = check(&mut disk, 9).expect("files in memory");
    let started = start(&mut disk.clone());
    assert_eq!(
        report.is_fine(),
        started.is_ok(),
        "{:?} {started:?}",
        report.damage
    );
    if let Ok(keys) = started {
        assert_eq!(start(&mut disk), Ok(keys));
    } else if let Some(repair) = report.repair {
        disk.repair(repair);
        let again = check(&mut disk, 9).expect("files in memory");
        assert!(again.is_fine(), "{:?}", again.damage);
        start(&mut disk).expect("repaired");
    }
});
