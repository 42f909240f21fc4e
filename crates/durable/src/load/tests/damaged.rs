//! Files that are damaged, missing or incomplete.

use super::*;

#[test]
fn a_torn_tail_is_cut() {
    let mut log = Log::new(0, 1);
    log.set("a").set("b").sync().set("c");
    let two = log.bytes.len();
    log.set("d").set("e");
    for flip in two..log.bytes.len() {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        // More than one bit, which is as good as torn.
        disk.files.get_mut(&name).unwrap()[flip] ^= 3;
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

/// Not even one that ends between two frames, or behind the last one.
#[test]
fn a_log_that_is_shorter_than_it_was_made_stops_the_start() {
    let mut log = Log::reserving(600);
    log.set("a").set("b").set("c");
    let mut whole = disk(1);
    let name = log.store(&mut whole);
    assert_eq!(start_twice(&mut whole.clone()).keys[0], ["a", "b", "c"]);
    for bytes in 1..600 {
        let mut disk = whole.clone();
        disk.files.get_mut(&name).unwrap().truncate(bytes);
        let damage = refused(&mut disk);
        assert_eq!(&*damage.file, name, "{bytes} bytes");
        assert_eq!(disk.files[&name].len(), bytes, "it is not touched");
    }
    // Its frames are in a later one: nothing is missing.
    log.next(&mut whole, |header| header.first_seq = 0);
    log.set("a").set("b").store(&mut whole);
    whole.files.get_mut(&name).unwrap().truncate(100);
    assert_eq!(start_twice(&mut whole).keys[0], ["a", "b"]);
}

/// A file that was not reserved may end anywhere: where space was scarce, and in older versions.
#[test]
fn a_log_without_reserved_space_may_end_anywhere() {
    let mut log = Log::new(0, 1);
    log.set("a").set("b").set("c");
    for bytes in HEADER_BYTES..log.bytes.len() {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        disk.files.get_mut(&name).unwrap().truncate(bytes);
        start_twice(&mut disk);
    }
}

/// What a start cuts off becomes zeros: the file must not become shorter than it was made.
#[test]
fn a_torn_tail_in_reserved_space_is_cleared() {
    let mut log = Log::reserving(600);
    log.set("a");
    let one = log.bytes.len();
    log.set("b").set("c");
    for flip in one..log.bytes.len() {
        let mut disk = disk(1);
        let name = log.store(&mut disk);
        disk.files.get_mut(&name).unwrap()[flip] ^= 3;
        let first = start(&mut disk).expect("it is a torn tail");
        assert!(first.loaded[0].torn.is_some());
        assert_eq!(disk.files[&name].len(), 600);
        let again = start(&mut disk).expect("it was cleared");
        assert!(again.loaded[0].torn.is_none(), "byte {flip}");
        assert_eq!(again.keys, first.keys);
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
        // Later frames say that the first three had been synced. Of the others nothing says so, but
        // no loss of power changes a bit.
        let damage = refused(&mut disk);
        assert_eq!(&*damage.file, name);
        let at = HEADER_BYTES + frame * ((last - HEADER_BYTES) / 4);
        assert_eq!(damage.offset, Some(at as u64), "{damage}");
        assert!(damage.to_string().contains("but for one bit"), "{damage}");
        let ops = &disk.ops;
        assert!(ops.iter().all(|op| matches!(op, DiskOp::Read { .. })));
        assert_eq!(disk.files.len(), before.len());
    }
}

/// The last frame that was acknowledged with `always`: no later one says that it had been synced.
#[test]
fn a_flipped_bit_in_the_last_frame_is_no_torn_tail() {
    let mut log = Log::reserving(2000);
    log.set("a").sync();
    let one = log.bytes.len();
    log.frame(&set("b", &"values".repeat(100)));
    let mut whole = disk(1);
    let name = log.store(&mut whole);
    for bit in one * 8..log.bytes.len() * 8 {
        let mut disk = whole.clone();
        disk.files.get_mut(&name).unwrap()[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(&*refused(&mut disk).file, name, "bit {bit}");
    }
    for torn in one + 1..log.bytes.len() {
        let mut disk = whole.clone();
        disk.files.get_mut(&name).unwrap()[torn..].fill(0);
        assert_eq!(start_twice(&mut disk).keys[0], ["a"], "from byte {torn}");
    }
}

#[test]
fn headers_that_are_damaged_stop_the_start() {
    for sync in [false, true] {
        let mut log = Log::new(0, 1);
        log.set("a");
        if sync {
            log.sync();
        }
        log.set("b");
        for at in 0..HEADER_BYTES {
            let mut flipped = disk(1);
            let name = log.store(&mut flipped);
            let mut zeroed = flipped.clone();
            flipped.files.get_mut(&name).unwrap()[at] ^= 0x10;
            zeroed.files.get_mut(&name).unwrap()[..=at].fill(0);
            for mut disk in [flipped, zeroed] {
                if sync {
                    assert_eq!(&*refused(&mut disk).file, name);
                    continue;
                }
                // Lost with the power, as the later frames may have been.
                let start = start_twice(&mut disk);
                assert_eq!(start.keys, [[""; 0]]);
                assert!(start.loaded[0].torn.is_some());
            }
        }
    }
    let mut log = Log::new(0, 1);
    let mut disk = disk(1);
    let name = log.set("x").store(&mut disk);
    let bytes = disk.files.get_mut(&name).unwrap();
    bytes[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let crc = crc32fast::hash(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(refused(&mut disk).kind, DamageKind::Newer);
}

/// The first write of a generation is lost, a later one is not.
#[test]
fn a_lost_header_says_nothing_of_the_generation_before() {
    for snapshot in [false, true] {
        for synced in [7, 8] {
            let mut disk = disk(1);
            let mut log = Log::new(0, 1);
            if snapshot {
                with_snapshot(&mut disk, &["a"]);
                go_on_with(&mut disk, 7);
                log.seq = 7;
                log.header.first_seq = 7;
            } else {
                for _ in 0..7 {
                    log.set("a");
                }
                log.next(&mut disk, |h| (h.generation, h.index) = (2, 0));
            }
            log.synced = 7;
            log.bytes = log.header.encode().to_vec();
            log.set("b");
            let lost = log.bytes.len();
            log.synced = synced;
            let name = log.set("c").store(&mut disk);
            disk.files.get_mut(&name).unwrap()[..lost].fill(0);
            if synced > 7 {
                assert_eq!(&*refused(&mut disk).file, name);
                continue;
            }
            let start = start_twice(&mut disk);
            assert_eq!(start.keys, [["a"]]);
            assert_eq!(start.loaded[0].next_seq, 7);
            assert_eq!(
                start.loaded[0].torn.as_ref().map(|t| (t.seq, t.frames)),
                Some((7, 1))
            );
        }
    }
}

/// The first segment of a run is lost, its second is not.
#[test]
fn a_run_proves_nothing_of_itself() {
    let mut disk = disk(1);
    let mut log = Log::new(0, 1);
    log.set("a").next(&mut disk, |h| h.run = 2).sync();
    let lost = log.set("b").name();
    log.next(&mut disk, |h| (h.generation, h.index) = (2, 0));
    log.set("c").store(&mut disk);
    disk.files.get_mut(&lost).unwrap().fill(0);
    let start = start_twice(&mut disk);
    assert_eq!(start.keys, [["a"]]);
    assert_eq!(start.loaded[0].torn.as_ref().map(|t| t.frames), Some(1));
}

#[test]
fn a_log_that_begins_inside_the_snapshot_stops_the_start() {
    let mut disk = disk(1);
    with_snapshot(&mut disk, &["a"]);
    let name = Log::new(0, 1).set("b").store(&mut disk);
    assert_eq!(start_twice(&mut disk).keys, [["a", "b"]]);
    go_on_with(&mut disk, 1);
    assert_eq!(&*refused(&mut disk).file, name);
}

/// A segment of which nothing was committed was given up, and another begun.
#[test]
fn a_void_segment_need_not_be_readable() {
    for at in [0, 20, HEADER_BYTES + 3] {
        for fill in [0, 7] {
            let mut disk = disk(1);
            let mut log = Log::new(0, 1);
            log.set("a").next(&mut disk, |_| {});
            let void = log.set("old").set("older").name();
            log.next(&mut disk, |h| h.first_seq = 1).sync();
            log.set("b").store(&mut disk);
            disk.files.get_mut(&void).unwrap()[at..HEADER_BYTES + 9].fill(fill);
            assert_eq!(start_twice(&mut disk).keys, [["a", "b"]]);
        }
    }
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
    // The whole log of one worker, while the other has frames.
    let mut disk = disk(2);
    Log::new(1, 2).set("a").store(&mut disk);
    assert_eq!(&*refused(&mut disk).file, Log::new(0, 2).name());
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
    assert_eq!(
        damage.to_string(),
        format!("{name}: cannot read it: no such file")
    );
}
