//! `check` and a start have the same findings, and repaired data starts.

use super::super::load::testing::*;
use super::*;
use rufous_base::Now;
use rufous_store::shard::Shard;

impl Source for Disk {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        Ok(Disk::list(self))
    }

    fn read(&mut self, file: &str, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let all = self.files.get(file).ok_or(io::ErrorKind::NotFound)?;
        let rest = all.get(at as usize..).unwrap_or(&[]);
        Ok(rest[..rest.len().min(bytes)].to_vec())
    }
}

fn checked(disk: &mut Disk) -> Report {
    check(disk, 5).expect("files can be read")
}

fn repair(disk: &mut Disk, repair: Repair) {
    for change in repair.changes {
        match change {
            FileChange::Remove(file) => {
                disk.files.remove(&*file);
            }
            FileChange::Resize(file, bytes) => {
                let all = disk.files.entry(file.to_string()).or_default();
                all.resize(bytes as usize, 0);
            }
            FileChange::Write(file, at, bytes) => {
                let all = disk.files.entry(file.to_string()).or_default();
                let at = at as usize;
                all.resize(all.len().max(at + bytes.len()), 0);
                all[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
    }
}

/// Two workers with a snapshot each, and logs over two generations with commands over both workers.
fn sample() -> Disk {
    let mut disk = disk(2);
    let snapshots = [&["a", "b", "c"][..], &["d", "e"]];
    with_snapshots(&mut disk, &snapshots);
    for worker in 0..2 {
        let mut log = Log::new(worker, 2);
        log.set(&format!("f{worker}"))
            .piece(1, &format!("x{worker}"));
        log.sync().done(1).next(&mut disk, |_| {});
        log.set(&format!("g{worker}"))
            .piece(2, &format!("y{worker}"));
        log.next(&mut disk, |h| (h.generation, h.index) = (2, 0));
        log.sync().done(2).sync().set(&format!("h{worker}"));
        log.sync().set(&format!("i{worker}")).store(&mut disk);
    }
    disk
}

/// Checks that a start has the same findings as the check; then repairs the data and starts.
/// Returns whether it was damaged, and the keys of all workers at the end.
fn try_one(mut disk: Disk, what: &str) -> (bool, Vec<String>) {
    let report = checked(&mut disk);
    let started = start(&mut disk.clone());
    assert_eq!(report.is_fine(), started.is_ok(), "{what}: {report:?}");
    if let Err(damage) = &started {
        let first = report.damage.iter().any(|d| d.file == damage.file);
        assert!(first, "{what}: {damage} and {:?}", report.damage);
        let changes = report.repair.unwrap_or_else(|| panic!("{what}: no repair"));
        assert!(!changes.changes.is_empty(), "{what}");
        repair(&mut disk, changes);
        let again = checked(&mut disk);
        assert!(again.is_fine(), "{what}: {:?}", again.damage);
    } else {
        let changes = report.repair.unwrap_or_default();
        assert!(changes.changes.is_empty(), "{what}: {changes:?}");
    }
    let keys = start_twice(&mut disk).keys.concat();
    for pair in ["x", "y"] {
        let half = keys.iter().filter(|key| key.starts_with(pair)).count();
        assert_ne!(half, 1, "{what}: {keys:?}");
    }
    (started.is_err(), keys)
}

#[test]
fn a_whole_folder_is_fine() {
    let mut disk = sample();
    let report = checked(&mut disk);
    assert!(report.is_fine(), "{:?}", report.damage);
    assert_eq!(report.notes, [""; 0]);
    assert_eq!(report.files.len(), disk.files.len());
    assert_eq!(report.repair, Some(Repair::default()));
    let (damaged, keys) = try_one(disk, "whole");
    assert!(!damaged);
    assert_eq!(keys.len(), 5 + 2 * 6);
    assert!(checked(&mut Disk::default()).is_fine());
}

#[test]
fn every_flipped_byte_is_found_and_repaired() {
    let whole = sample();
    let (mut damaged, mut torn, mut nothing) = (0, 0, 0);
    for (name, bytes) in &whole.files {
        for at in 0..bytes.len() {
            let mut disk = whole.clone();
            if let Some(bytes) = disk.files.get_mut(name) {
                bytes[at] ^= 0x55;
            }
            let (bad, keys) = try_one(disk, &format!("{name} at {at}"));
            match bad {
                true => damaged += 1,
                // The end of a log, or zeros that carry no information.
                false if keys.len() < 17 => torn += 1,
                false => nothing += 1,
            }
            assert!(bad || name.starts_with("log-"), "{name} at {at}");
        }
    }
    assert!(damaged > 800 && torn > 50, "{damaged} {torn} {nothing}");
}

#[test]
fn every_cut_is_found_and_repaired() {
    let whole = sample();
    for (name, bytes) in &whole.files {
        for at in 0..bytes.len() {
            let mut disk = whole.clone();
            if let Some(bytes) = disk.files.get_mut(name) {
                bytes.truncate(at);
            }
            let (bad, _) = try_one(disk, &format!("{name} cut at {at}"));
            assert!(bad || name.starts_with("log-"), "{name} cut at {at}");
        }
        let mut disk = whole.clone();
        disk.files.remove(name);
        let (bad, _) = try_one(disk, &format!("without {name}"));
        let is_last = name.starts_with("log-0000000002");
        assert!(bad || is_last, "without {name}");
    }
}

#[test]
fn what_is_given_up_is_said() {
    let mut disk = sample();
    let name = "log-0000000001-00000-00000000";
    let second = HEADER_BYTES + 24 + set("f0", "v").len();
    disk.files.get_mut(name).expect("it is there")[second + 30] ^= 1;
    let report = checked(&mut disk);
    assert_eq!(report.damage.len(), 1);
    assert_eq!(report.damage[0].offset, Some(second as u64));
    let given_up = report.repair.expect("it can be repaired").given_up;
    // The other worker loses the frames behind the lost command.
    assert_eq!(given_up.len(), 2, "{given_up:?}");
    assert!(given_up[0].contains("worker 0") && given_up[0].contains("6 whole frames"));
    assert!(given_up[1].contains("worker 1") && given_up[1].contains("6 frames"));
}

#[test]
fn a_manifest_made_anew_knows_where_logs_go_on() {
    let mut disk = disk(1);
    with_snapshot(&mut disk, &["a"]);
    go_on_with(&mut disk, 7);
    let mut log = Log::new(0, 1);
    (log.seq, log.header.first_seq) = (7, 7);
    log.bytes = log.header.encode().to_vec();
    log.set("b").store(&mut disk);
    assert_eq!(start_twice(&mut disk).keys, [["a", "b"]]);
    disk.files.remove("manifest");
    let (damaged, keys) = try_one(disk, "without manifest");
    assert!(damaged);
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn newer_files_are_not_repaired() {
    for name in ["log-0000000001-00000-00000000", "snap-0000000001-00000"] {
        let mut disk = sample();
        let bytes = disk.files.get_mut(name).expect("it is there");
        bytes[8] = super::super::file::VERSION as u8 + 1;
        let crc = crc32fast::hash(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        let report = checked(&mut disk);
        assert_eq!(report.damage[0].kind, DamageKind::Newer);
        assert_eq!(report.repair, None);
        assert!(start(&mut disk).is_err());
    }
}

#[test]
fn a_log_that_was_shortened_is_repaired_to_what_is_left() {
    let mut log = Log::reserving(600);
    log.set("a");
    let one = log.bytes.len();
    log.set("b");
    let mut whole = disk(1);
    let name = log.store(&mut whole);
    for bytes in 1..600 {
        let mut disk = whole.clone();
        disk.files.get_mut(&name).unwrap().truncate(bytes);
        let (damaged, keys) = try_one(disk, &format!("{bytes} bytes"));
        assert!(damaged);
        let left = match bytes {
            bytes if bytes < one => 0,
            bytes if bytes < log.bytes.len() => 1,
            _ => 2,
        };
        assert_eq!(keys.len(), left, "{bytes} bytes");
    }
}

#[test]
fn books_of_slots_are_checked_as_keys_are() {
    let (mut disk, mut log, now) = (disk(1), Log::new(0, 1), Now::default());
    let mut shard = Shard::new(1);
    shard.observers_mut().set_journaling(true);
    shard.set_book(9, &[1; 18], (b"entry", b""), now);
    let name = log.frame(shard.journal()).set("a").store(&mut disk);
    assert!(checked(&mut disk).is_fine());
    assert_eq!(try_one(disk.clone(), "whole"), (false, vec!["a".into()]));
    // A byte of the entry is flipped.
    let bytes = disk.files.get_mut(&name).expect("the log");
    let at = bytes.windows(5).position(|part| part == b"entry");
    bytes[at.expect("it is in the log")] ^= 1;
    assert!(!checked(&mut disk).is_fine());
    assert!(try_one(disk, "damaged").0);
}
