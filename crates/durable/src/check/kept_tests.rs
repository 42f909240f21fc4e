//! Earlier saves: found, distinguished from the current data, and restored.

use super::super::super::entry;
use super::super::super::file::{FileHeader, FileKind};
use super::super::super::frame;
use super::super::super::load::testing::*;
use super::super::check;
use super::*;

/// A save of three keys, and the current data: a snapshot without keys and a log with one.
fn sample() -> Disk {
    let mut disk = disk(1);
    with_snapshots(&mut disk, &[&["a", "b", "c"]]);
    let kept = Manifest::decode(&disk.files[MANIFEST]).expect("a manifest");
    let copy = kept_name(1).to_string();
    disk.files.insert(copy, kept.without_logs().encode());
    let mut log = Log::new(0, 1);
    log.header.generation = 3;
    log.bytes = log.header.encode().to_vec();
    log.set("new").store(&mut disk);
    let header = FileHeader {
        kind: FileKind::Snapshot,
        ..log.header
    };
    let mut bytes = header.encode().to_vec();
    let mut end = Vec::new();
    entry::put_snapshot_end(&mut end, 0, 0);
    frame::encode(&mut bytes, header.frame_seed(), 0, 0, &end);
    let named = SnapshotFile {
        worker: 0,
        file: header.file().name(),
        bytes: bytes.len() as u64,
        keys: 0,
        crc: crc32fast::hash(&bytes),
        next_seq: 0,
    };
    disk.files.insert(named.file.to_string(), bytes);
    let present = Manifest {
        generation: 3,
        logs_from: 3,
        run: 9,
        snapshots: vec![named],
        ..kept
    };
    disk.files.insert(MANIFEST.into(), present.encode());
    disk
}

const SAVED: &str = "snap-0000000001-00000";
const PRESENT: &str = "snap-0000000003-00000";

fn chosen(disk: &mut Disk) -> Option<EarlierSave> {
    earlier_save(disk, 1).expect("files can be read")
}

/// The steps of `rufous saves restore`, up to the given one.
fn go_back(disk: &mut Disk, steps: usize) {
    let save = chosen(disk).expect("it is there");
    let back = plan_return(disk, &save).expect("files can be read");
    let back = back.expect("it is whole");
    disk.files.insert(MANIFEST.into(), back.manifest.encode());
    let gone = back.copies.iter().chain(&back.logs).chain(&back.snapshots);
    for file in gone.take(steps) {
        assert!(disk.files.remove(&**file).is_some(), "{file}");
    }
}

#[test]
fn an_earlier_save_is_no_part_of_the_present_data_and_nothing_left_over() {
    let mut disk = sample();
    let folder = disk.folder().expect("whole");
    assert_eq!((folder.kept, folder.strays), (vec![1], vec![]));
    assert_eq!(start_twice(&mut disk).keys, [["new"]]);
    let report = check(&mut disk, 5).expect("files can be read");
    assert!(report.is_fine() && report.notes.is_empty(), "{report:?}");
    assert_eq!(report.files.len(), 4, "{:?}", report.files);
    let saves = earlier_saves(&mut disk, Depth::Names).expect("files can be read");
    assert_eq!(saves, [chosen(&mut disk).expect("it is there")]);
    assert_eq!(saves[0].keys(), 3);
    assert_eq!(saves[0].bytes(), disk.files[SAVED].len() as u64);
}

#[test]
fn wherever_going_back_breaks_off_the_data_is_that_of_the_save() {
    for steps in 0..4 {
        let mut disk = sample();
        go_back(&mut disk, steps);
        let folder = disk.folder().expect("whole");
        let manifest = folder.manifest.expect("a manifest");
        assert_eq!((manifest.logs_from, manifest.run), (4, 9));
        assert_eq!(start_twice(&mut disk).keys, [["a", "b", "c"]], "{steps}");
        assert_eq!(chosen(&mut disk), None, "it is the present data");
        // The rest of the other data is recognised as stray.
        assert_eq!(folder.strays.len(), 2 - steps.saturating_sub(1), "{steps}");
    }
}

/// Its logs are removed: later logs must not be taken to follow it.
#[test]
fn its_own_manifest_is_not_to_be_taken_for_the_present_one() {
    let mut disk = sample();
    let copy = disk.files[&*kept_name(1)].clone();
    disk.files.insert(MANIFEST.into(), copy);
    assert_eq!(start_twice(&mut disk).keys, [["a", "b", "c"]]);
}

#[test]
fn every_flipped_byte_of_it_is_found_and_stops_no_start() {
    for name in [&*kept_name(1), SAVED] {
        for at in 0..sample().files[name].len() {
            let mut disk = sample();
            if let Some(bytes) = disk.files.get_mut(name) {
                bytes[at] ^= 0x55;
            }
            let save = chosen(&mut disk).expect("it is there");
            assert!(save.damage.is_some(), "{name} at {at}");
            assert_eq!(plan_return(&mut disk, &save).expect("read"), None);
            let report = check(&mut disk, 5).expect("files can be read");
            assert!(report.is_fine() && report.notes.len() == 1, "{report:?}");
            assert_eq!(start(&mut disk).expect("whole").keys, [["new"]]);
        }
    }
}

#[test]
fn a_lost_manifest_is_made_of_present_files_alone_and_one_can_go_back() {
    let mut disk = sample();
    disk.files.remove(MANIFEST);
    let report = check(&mut disk.clone(), 5).expect("files can be read");
    let note = &report.notes[0];
    assert!(
        note.contains("generation 3") && report.repair.is_some(),
        "{note}"
    );
    // The log does not follow the earlier save.
    disk.files.remove(PRESENT);
    let report = check(&mut disk, 5).expect("files can be read");
    assert!(
        !report.notes.iter().any(|n| n.contains("generation 1 is")),
        "{report:?}"
    );
    go_back(&mut disk, 9);
    assert_eq!(start_twice(&mut disk).keys, [["a", "b", "c"]]);
}

/// The manifest may be incomplete.
#[test]
fn a_copy_of_the_present_manifest_is_none_of_an_earlier_save() {
    let mut disk = sample();
    disk.files.insert(kept_name(3).to_string(), vec![0; 5]);
    let saves = earlier_saves(&mut disk, Depth::Contents).expect("files can be read");
    assert_eq!(saves.len(), 1);
    assert_eq!(disk.folder().expect("whole").kept, [1]);
    go_back(&mut disk, 9);
    assert_eq!(disk.files.len(), 2, "the manifest, and one snapshot");
}
