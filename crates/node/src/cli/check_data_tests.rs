//! `check-data` on real files.

use super::*;
use rufous_kernel::durable::{
    Effect, FileHeader, FileKind, Manifest, SnapshotFile, entry, file, frame,
};

const SEED: u64 = 3;
const LOG: &str = "log-0000000001-00000-00000000";
const SNAPSHOT: &str = "snap-0000000001-00000";

fn header(kind: FileKind) -> FileHeader {
    FileHeader {
        kind,
        generation: 1,
        worker: 0,
        workers: 1,
        index: 0,
        run: 1,
        first_seq: 0,
        salt: file::salt(SEED),
        reserved: 0,
    }
}

fn set(key: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    let effect = Effect::Set {
        db: 0,
        key,
        value: b"value",
        expire_at: None,
    };
    effect.encode(&mut payload);
    payload
}

/// A folder of one worker, with a snapshot and a log of three synced frames.
fn folder() -> tempfile::TempDir {
    let temporary = tempfile::tempdir().expect("a folder");
    let log = header(FileKind::Log);
    let mut bytes = log.encode().to_vec();
    for seq in 0..3 {
        frame::encode(&mut bytes, log.frame_seed(), seq, seq, &set(b"logged"));
    }
    write(temporary.path(), LOG, &bytes);
    let snapshot = header(FileKind::Snapshot);
    let mut bytes = snapshot.encode().to_vec();
    frame::encode(&mut bytes, snapshot.frame_seed(), 0, 0, &set(b"saved"));
    let mut end = Vec::new();
    entry::put_snapshot_end(&mut end, 1, 1);
    frame::encode(&mut bytes, snapshot.frame_seed(), 1, 1, &end);
    write(temporary.path(), SNAPSHOT, &bytes);
    let snapshot = SnapshotFile {
        worker: 0,
        file: SNAPSHOT.into(),
        bytes: bytes.len() as u64,
        keys: 1,
        crc: crc(&bytes),
        next_seq: 0,
    };
    let manifest = Manifest {
        generation: 1,
        logs_from: 1,
        logs_until: None,
        workers: 1,
        hash_seed: SEED,
        run: 1,
        saved_ms: 0,
        snapshots: vec![snapshot],
    };
    write(temporary.path(), "manifest", &manifest.encode());
    temporary
}

/// CRC-32, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

fn write(dir: &Path, name: &str, bytes: &[u8]) {
    fs::write(dir.join(name), bytes).expect("written");
}

fn read(dir: &Path, name: &str) -> Vec<u8> {
    fs::read(dir.join(name)).expect("read")
}

fn checked(dir: &Path, repair: bool) -> (bool, String) {
    let mut out = String::new();
    let fine = check_dir(dir, repair, &mut out).expect("it can be checked");
    (fine, out)
}

#[test]
fn a_whole_folder_is_fine_and_left_alone() {
    let folder = folder();
    let (fine, out) = checked(folder.path(), true);
    assert!(fine && out.contains("1 keys") && out.contains(LOG), "{out}");
    assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 4);
}

#[test]
fn damage_is_found_in_each_file_and_repaired_once_with_a_copy() {
    let whole = folder();
    for name in ["manifest", LOG, SNAPSHOT] {
        let bytes = read(whole.path(), name);
        // Each tenth byte: the kernel's tests try all.
        for at in (0..bytes.len()).step_by(10) {
            let folder = folder();
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x21;
            write(folder.path(), name, &damaged);
            let (fine, out) = checked(folder.path(), false);
            // The last frame of a log may have been torn.
            let is_tail = name == LOG && at >= bytes.len() - (bytes.len() - 64) / 3;
            assert_eq!(fine, is_tail, "{name} at {at}: {out}");
            assert_eq!(read(folder.path(), name), damaged, "only looked at");
            let (fine, out) = checked(folder.path(), true);
            assert!(fine, "{name} at {at}: {out}");
            if !is_tail {
                let copy = read(folder.path(), &format!("{name}.damaged-1"));
                assert_eq!(copy, damaged);
                let (fine, out) = checked(folder.path(), false);
                assert!(fine && !out.contains("damaged"), "{out}");
            }
        }
    }
}

#[test]
fn copies_never_replace_one_another() {
    let folder = folder();
    for n in 1..4 {
        write(folder.path(), SNAPSHOT, b"rubbish");
        let (fine, out) = checked(folder.path(), true);
        let copy = format!("{SNAPSHOT}.damaged-{n}");
        assert!(fine && out.contains(&copy), "{out}");
        assert_eq!(read(folder.path(), &copy), b"rubbish");
    }
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let folder = folder();
    let _node = lock_data_dir(folder.path()).expect("free");
    for repair in [false, true] {
        let error = check_dir(folder.path(), repair, &mut String::new());
        assert!(error.expect_err("in use").contains("in use"));
    }
    let nowhere = folder.path().join("nowhere");
    assert!(check_dir(&nowhere, false, &mut String::new()).is_err());
    assert!(!nowhere.exists());
}
