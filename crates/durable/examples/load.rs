//! Measures loading at a start, without the disk: keys a second from a
//! snapshot and from a log, of one core.
//!
//! `cargo run --release -p rufous-durable --example load -- 2000000`

use rufous_base::Now;
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, FileInfo};
use rufous_durable::{
    DataFile, Effect, FileHeader, FileKind, Folder, Loader, Manifest, SnapshotFile, Stage, entry,
    file, frame, load,
};
use rufous_store::shard::Shard;
use std::collections::HashMap;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HASH_SEED: u64 = 7;
const SEGMENT_BYTES: usize = 64 << 20;
const RUNS: usize = 3;

type Files = HashMap<String, Vec<u8>>;

fn header(kind: FileKind, index: u32, first_seq: u64) -> FileHeader {
    FileHeader {
        kind,
        generation: 1,
        worker: 0,
        workers: 1,
        index,
        run: 1,
        first_seq,
        salt: file::salt(HASH_SEED),
        reserved: 0,
    }
}

fn set(payload: &mut Vec<u8>, n: u64) {
    // Keys in no order, as clients bring them.
    let key = format!("key:{:012}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24);
    let effect = Effect::Set {
        db: 0,
        key: key.as_bytes(),
        value: &[b'v'; 32],
        expire_at: None,
    };
    effect.encode(payload);
}

fn snapshot(keys: u64, files: &mut Files) -> SnapshotFile {
    let header = header(FileKind::Snapshot, 0, 0);
    let mut bytes = header.encode().to_vec();
    let (mut payload, mut frames) = (Vec::new(), 0);
    for n in 0..keys {
        set(&mut payload, n);
        if payload.len() > 64 << 10 || n + 1 == keys {
            frame::encode(&mut bytes, header.frame_seed(), frames, 0, &payload);
            payload.clear();
            frames += 1;
        }
    }
    entry::put_snapshot_end(&mut payload, keys, frames);
    frame::encode(&mut bytes, header.frame_seed(), frames, 0, &payload);
    let named = SnapshotFile {
        worker: 0,
        file: header.file().name(),
        bytes: bytes.len() as u64,
        keys,
        crc: crc32fast::hash(&bytes),
        next_seq: 0,
    };
    files.insert(named.file.to_string(), bytes);
    named
}

fn log(keys: u64, keys_a_frame: u64, files: &mut Files) {
    let mut header = header(FileKind::Log, 0, 0);
    let mut bytes = header.encode().to_vec();
    let (mut payload, mut frames) = (Vec::new(), 0);
    for n in 0..keys {
        set(&mut payload, n);
        if (n + 1) % keys_a_frame == 0 || n + 1 == keys {
            frame::encode(&mut bytes, header.frame_seed(), frames, frames, &payload);
            payload.clear();
            frames += 1;
        }
        if bytes.len() > SEGMENT_BYTES || n + 1 == keys {
            files.insert(header.file().name().to_string(), std::mem::take(&mut bytes));
            header.index += 1;
            header.first_seq = frames;
            bytes = header.encode().to_vec();
        }
    }
}

fn read(files: &Files, op: DiskOp) -> DiskReply {
    let DiskOp::Read { file, at, bytes } = op else {
        return DiskReply::Done;
    };
    let all = files.get(&*file).map(Vec::as_slice).unwrap_or_default();
    let rest = all.get(at as usize..).unwrap_or_default();
    DiskReply::Read(rest[..rest.len().min(bytes)].to_vec())
}

fn drive(loader: &mut Loader, files: &Files, shard: &mut Shard) {
    let mut requests = Vec::new();
    loop {
        loader.poll(&mut requests);
        if requests.is_empty() {
            return;
        }
        let request = requests.remove(0);
        let done = DiskDone {
            id: request.id,
            result: Ok(read(files, request.op)),
        };
        loader.on_done(Now::default(), done, shard);
    }
}

/// Time on a processor: others may use the machine, too.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

fn measure(what: &str, keys: u64, files: &mut Files, snapshots: Vec<SnapshotFile>) {
    let manifest = Manifest {
        generation: 1,
        logs_from: 1,
        logs_until: None,
        workers: 1,
        hash_seed: HASH_SEED,
        run: 1,
        saved_ms: 0,
        snapshots,
    };
    let list: Vec<FileInfo> = (files.iter())
        .map(|(name, bytes)| FileInfo {
            file: name.as_str().into(),
            bytes: bytes.len() as u64,
        })
        .collect();
    let bytes: usize = files.values().map(Vec::len).sum();
    for _ in 0..RUNS {
        let folder = Folder::new(&list, Some(&manifest.encode())).expect("whole files");
        let mut shard = Shard::new(HASH_SEED);
        let start = cpu();
        let mut loader = Loader::new(folder.plans[0].clone());
        drive(&mut loader, files, &mut shard);
        let scanned = cpu().saturating_sub(start);
        let mut verdicts = load::judge(&folder.plans, &[loader.summary()]).expect("whole files");
        loader.resolve(verdicts.remove(0));
        drive(&mut loader, files, &mut shard);
        assert_eq!(loader.stage(), Stage::Finished);
        assert_eq!(shard.len(0) as u64, keys);
        let took = cpu().saturating_sub(start);
        println!(
            "{what}: {:.2} million keys/s ({:.2} s, of which {:.2} s before the logs are applied; {} MB)",
            keys as f64 / took.as_secs_f64() / 1e6,
            took.as_secs_f64(),
            scanned.as_secs_f64(),
            bytes >> 20,
        );
    }
}

fn main() {
    let keys = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let keys = keys.unwrap_or(2_000_000);
    let mut files = Files::new();
    let named = snapshot(keys, &mut files);
    measure("snapshot", keys, &mut files, vec![named]);
    for keys_a_frame in [1, 16] {
        let mut files = Files::new();
        log(keys, keys_a_frame, &mut files);
        let first = DataFile::parse(files.keys().next().map_or("", String::as_str));
        assert!(first.is_some());
        let what = format!("log, {keys_a_frame} keys a frame");
        measure(&what, keys, &mut files, Vec::new());
    }
}
