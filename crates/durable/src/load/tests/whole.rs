//! Files of a node that ended in any way.

use super::*;

#[test]
fn snapshot_and_log_make_the_data() {
    let mut disk = disk(1);
    with_snapshot(&mut disk, &["a", "b", "c"]);
    let mut log = Log::new(0, 1);
    let mut delete = Vec::new();
    Effect::Delete { db: 0, key: b"b" }.encode(&mut delete);
    log.set("d").frame(&delete).next(&mut disk, |_| {});
    log.set("e")
        .next(&mut disk, |h| (h.generation, h.index) = (2, 0));
    let name = log.set("f").store(&mut disk);
    let start = start_twice(&mut disk);
    assert_eq!(start.keys, [["a", "c", "d", "e", "f"]]);
    let loaded = &start.loaded[0];
    assert_eq!((loaded.keys, loaded.frames, loaded.next_seq), (3, 4, 4));
    assert_eq!(loaded.last.map(|h| h.file().name().to_string()), Some(name));
    // Loaded data is durable before any request is served.
    let synced = disk
        .ops
        .iter()
        .filter(|op| matches!(op, DiskOp::Sync { .. }));
    assert_eq!(synced.count(), 3);
}

/// After a failed sync, reads may return the data as if it had succeeded, and further syncs succeed
/// without writing anything.
#[test]
fn what_may_not_have_been_synced_is_written_again() {
    for synced in [0, 1, 3] {
        let mut disk = disk(1);
        let mut log = Log::new(0, 1);
        log.set("a").set("b");
        log.synced = synced.min(2);
        log.set("c");
        let known = match synced {
            0 => 0,
            1 => HEADER_BYTES + (log.bytes.len() - HEADER_BYTES) / 3,
            _ => log.bytes.len(),
        };
        log.next(&mut disk, |_| {});
        log.synced = synced;
        log.set("d").store(&mut disk);
        let loaded = disk.files.clone();
        let mut kept = loaded.clone();
        for (name, from) in [
            ("log-0000000001-00000-00000000", known),
            ("log-0000000001-00000-00000001", 0),
        ] {
            kept.get_mut(name).unwrap()[from..].fill(0);
        }
        let start = start(&mut disk).expect("whole");
        assert_eq!(start.keys, [["a", "b", "c", "d"]]);
        let sync = |op: &DiskOp| matches!(op, DiskOp::Sync { .. });
        let before = disk.ops.iter().position(sync).unwrap();
        for op in &disk.ops[..before] {
            if let DiskOp::Write {
                file, at, bytes, ..
            } = op
            {
                let (from, to) = (*at as usize, *at as usize + bytes.len());
                kept.get_mut(&**file).unwrap()[from..to].copy_from_slice(bytes);
            }
        }
        assert!(kept == loaded && disk.files == loaded);
    }
}

/// The operating system may drop data that it could not write, between two reads.
#[test]
fn what_may_not_have_been_synced_may_change_meanwhile() {
    let first = "log-0000000001-00000-00000000";
    let (mut disk, mut log) = (disk(1), Log::new(0, 1));
    log.set("a").set("b").sync().set("c");
    let known = log.bytes.len();
    // Given up after a failed sync: the next segment has the frame.
    log.set("void")
        .next(&mut disk, |header| header.first_seq = 3);
    let second = log.set("d").set("e").store(&mut disk);
    let whole = disk.files.clone();
    let proven = HEADER_BYTES + (known - HEADER_BYTES) / 3 * 2;
    for from in proven..known + 20 {
        let mut disk = disk.clone();
        let start = start_on_a_changing(&mut disk, |disk| {
            disk.files.get_mut(first).unwrap()[from..].fill(0);
            disk.files.get_mut(&second).unwrap().fill(0);
        });
        let start = start.unwrap_or_else(|damage| panic!("{from}: {damage}"));
        assert_eq!(start.keys, [["a", "b", "c", "d", "e"]]);
        assert_eq!(disk.files[first][..known], whole[first][..known]);
        assert_eq!(disk.files[&second], whole[&second]);
        assert_eq!(start_twice(&mut disk).keys, start.keys);
    }
    let damage = start_on_a_changing(&mut disk, |disk| {
        disk.files.get_mut(first).unwrap()[proven - 1] ^= 1;
    });
    let damage = damage.err().expect("that was synced").to_string();
    assert!(damage.contains("not what it was a moment ago"), "{damage}");
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

/// Entries of books are not in a database of clients.
#[test]
fn a_log_has_the_books_of_slots() {
    let (mut disk, mut log) = (disk(1), Log::new(0, 1));
    let (mut from, now) = (Shard::new(1), Now::default());
    from.observers_mut().set_journaling(true);
    (0..3).for_each(|n| from.set_book(9, &[n; 18], (&[n; 40], b""), now));
    from.remove_book(9, &[1; 18], now);
    // What many slots have is there once.
    let common = [5; 2000];
    (20..40).for_each(|slot| from.set_book(slot, &[9; 18], (&common, &[slot as u8]), now));
    assert!(from.journal().len() < 2 * common.len());
    log.frame(from.journal()).set("a").store(&mut disk);
    assert_eq!(start_twice(&mut disk).keys, [["a"]]);
    let plans = disk.folder().expect("fine").plans;
    let (mut loader, mut shard) = (Loader::new(plans[0].clone()), Shard::new(SEED));
    drive(&mut loader, &mut disk, &mut shard);
    let verdicts = judge(&plans, &[loader.summary()]).expect("whole");
    loader.resolve(verdicts.into_iter().next().expect("of one worker"));
    drive(&mut loader, &mut disk, &mut shard);
    assert_eq!((shard.books().count(), shard.books_in(9)), (22, 2));
    for slot in 20..40 {
        let entry = shard.book(slot, &[9; 18]).expect("an entry");
        assert_eq!(entry.split_last(), Some((&(slot as u8), &common[..])));
    }
    for n in 0..3 {
        let entry = (n != 1).then(|| vec![n; 40]);
        assert_eq!(shard.book(9, &[n; 18]), entry);
    }
}

/// As earlier versions refuse a log with entries of books.
#[test]
fn a_database_that_a_version_does_not_know_stops_a_start() {
    for frame in [&[9, 16][..], &[9, 17], &[4, 17, 1, b'k']] {
        let (mut disk, mut log) = (disk(1), Log::new(0, 1));
        log.set("a").frame(frame).set("b").store(&mut disk);
        let damage = refused(&mut disk).to_string();
        assert!(damage.contains("what no log does"), "{damage}");
    }
}
