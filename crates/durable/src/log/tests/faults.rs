//! Each fault on its own: the log's reports, and the files on disk.

use super::*;

fn frames(bench: &mut Bench, count: u64) {
    for _ in 0..count {
        bench.append(40);
        bench.rest();
    }
}

#[test]
fn a_full_disk_is_said_so_until_there_is_room() {
    for fsync in [Fsync::Always, Fsync::EverySec] {
        let mut bench = Bench::new(1, fsync);
        frames(&mut bench, 5);
        bench.disk.full = true;
        frames(&mut bench, 3);
        assert_eq!((bench.failed, bench.log.committed()), (1, 5));
        let trouble = bench.log.trouble().map(str::to_owned);
        assert!(trouble.is_some_and(|text| text.contains("Full")));
        assert!(!bench.log.needs_snapshot());
        // The write is tried again each second, and no reply can be sent meanwhile.
        bench.rest_for(3 * SECOND_US);
        assert_eq!((bench.failed, bench.log.committed()), (4, 5));
        assert!(bench.log.gauges().pending_bytes > 0);
        bench.disk.full = false;
        bench.rest_for(SECOND_US);
        assert_eq!((bench.log.trouble(), bench.log.committed()), (None, 8));
        assert_eq!(bench.log.gauges().pending_bytes, 0);
        assert_eq!(recover(&bench.disk.after_kill(), 1, 0).len(), 8);
    }
}

#[test]
fn no_room_for_a_whole_segment_is_no_reason_to_stop() {
    let mut bench = Bench::new(1, Fsync::Always);
    bench.poll();
    bench.disk.full = true;
    while bench.disk.waiting(Lane::Bulk) > 0 {
        let done = bench.disk.step().unwrap();
        assert_eq!(bench.log.on_done(bench.now, done), Outcome::Fine);
    }
    bench.disk.full = false;
    frames(&mut bench, 1);
    assert_eq!(bench.log.committed(), 1);
    let sizes: Vec<usize> = bench
        .disk
        .files
        .values()
        .map(|file| file.bytes.len())
        .collect();
    assert!(
        sizes[0] < SEGMENT as usize,
        "nothing was reserved: {sizes:?}"
    );
}

#[test]
fn a_closed_log_makes_no_segment() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 5);
    let step = |bench: &mut Bench| {
        let done = bench.disk.step().expect("a request");
        let _ = bench.log.on_done(bench.now, done);
        bench.poll();
    };
    while bench.disk.waiting(Lane::Bulk) == 0 {
        bench.append(40);
        bench.poll();
        step(&mut bench);
    }
    bench.disk.full = true;
    while bench.log.wake_at_us().is_none() {
        step(&mut bench);
    }
    bench.disk.full = false;
    bench.log.close();
    bench.rest();
    assert!(bench.log.is_closed());
    assert_eq!(bench.log.wake_at_us(), None);
    let files = bench.disk.files.len();
    bench.now.mono_us += 5 * SECOND_US;
    bench.rest();
    assert_eq!(bench.disk.files.len(), files);
}

#[test]
fn with_always_a_failed_sync_costs_a_segment_and_no_frame() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 5);
    bench.disk.no_sync = true;
    bench.append(40);
    bench.rest();
    assert!(bench.failed > 0);
    assert_eq!(bench.log.committed(), 5);
    assert!(bench.log.trouble().is_some() && !bench.log.has_lost());
    bench.disk.no_sync = false;
    bench.rest_for(2 * SECOND_US);
    assert_eq!((bench.log.trouble(), bench.log.committed()), (None, 6));
    frames(&mut bench, 5);
    assert_eq!(bench.log.synced(), 11);
    for _ in 0..10 {
        let files = bench.disk.after_power_loss();
        let logs = files.iter().filter_map(|(name, bytes)| read(name, bytes));
        let starts: Vec<u64> = logs.map(|log| log.header.first_seq).collect();
        assert_eq!(starts, [0, 5], "frame 5 went to another segment");
        assert_eq!(recover(&files, 1, 0).len(), 11);
    }
}

/// The block with the last committed frames is the one whose write failed.
#[test]
fn with_always_a_failed_sync_asks_for_a_snapshot_and_waits_for_none() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 5);
    bench.disk.no_sync = true;
    frames(&mut bench, 1);
    bench.disk.no_sync = false;
    bench.rest_for(2 * SECOND_US);
    frames(&mut bench, 1);
    assert_eq!((bench.log.trouble(), bench.log.committed()), (None, 7));
    assert!(bench.log.needs_snapshot());

    bench.log.prepare_generation(2);
    bench.rest();
    bench.log.begin_generation(2);
    frames(&mut bench, 3);
    bench.log.snapshot_installed(1);
    assert!(bench.log.needs_snapshot(), "that is not of what came since");
    bench.log.snapshot_installed(2);
    assert!(!bench.log.needs_snapshot());
}

/// A failed sync behind the cut does not affect the snapshot before it.
#[test]
fn a_sync_that_fails_after_the_cut_asks_for_another_snapshot() {
    let mut bench = Bench::new(1, Fsync::Always);
    bench.log.prepare_generation(2);
    bench.rest();
    bench.log.begin_generation(2);
    frames(&mut bench, 5);
    bench.disk.no_sync = true;
    frames(&mut bench, 1);
    bench.disk.no_sync = false;
    bench.rest_for(2 * SECOND_US);
    bench.log.snapshot_installed(2);
    assert!(bench.log.needs_snapshot());
}

#[test]
fn with_everysec_a_failed_sync_asks_for_a_snapshot() {
    let mut bench = Bench::new(1, Fsync::EverySec);
    frames(&mut bench, 5);
    bench.rest_for(2 * SECOND_US);
    assert_eq!(bench.log.synced(), 5);
    frames(&mut bench, 5);
    let synced = bench.log.synced();
    assert!(synced < 10);
    bench.disk.no_sync = true;
    bench.rest_for(2 * SECOND_US);
    bench.disk.no_sync = false;
    assert!(bench.log.needs_snapshot());
    // Replies that wait for it are sent once there is another segment.
    frames(&mut bench, 5);
    bench.rest_for(2 * SECOND_US);
    frames(&mut bench, 1);
    assert_eq!((bench.log.committed(), bench.log.synced()), (16, synced));
    assert!(bench.log.trouble().is_some());

    bench.log.prepare_generation(2);
    bench.rest();
    assert!(bench.log.generation_ready(2));
    bench.log.begin_generation(2);
    frames(&mut bench, 3);
    assert!(
        bench.log.needs_snapshot(),
        "not before the manifest names it"
    );
    bench.log.snapshot_installed(2);
    assert_eq!((bench.log.trouble(), bench.log.synced()), (None, 16));
    bench.rest_for(2 * SECOND_US);
    assert_eq!(bench.log.synced(), 19);
    bench
        .disk
        .files
        .retain(|name, _| name.starts_with("log-0000000002"));
    assert_eq!(recover(&bench.disk.after_power_loss(), 2, 16).len(), 3);
}

#[test]
fn a_segment_that_somebody_removed_asks_for_a_snapshot() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 5);
    bench.disk.files.clear();
    frames(&mut bench, 1);
    assert!(bench.log.needs_snapshot());
    bench.rest_for(2 * SECOND_US);
    assert!(bench.log.needs_snapshot());
}

#[test]
fn a_snapshot_takes_the_place_of_frames_that_cannot_be_written() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 5);
    bench.log.prepare_generation(2);
    bench.rest();
    bench.disk.full = true;
    frames(&mut bench, 5);
    bench.log.begin_generation(2);
    assert_eq!(bench.log.committed(), 5);
    bench.log.snapshot_installed(2);
    assert_eq!((bench.log.committed(), bench.log.trouble()), (10, None));
    assert_eq!(bench.log.gauges().pending_bytes, 0);
    bench.disk.full = false;
    bench.rest_for(2 * SECOND_US);
    frames(&mut bench, 2);
    assert_eq!(bench.log.committed(), 12);
    assert_eq!(recover(&bench.disk.after_power_loss(), 2, 10).len(), 2);
}

#[test]
fn a_generation_made_ready_takes_frames_at_once() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 3);
    bench.log.prepare_generation(2);
    assert!(!bench.log.generation_ready(2));
    bench.rest();
    assert!(bench.log.generation_ready(2));
    bench.log.begin_generation(2);
    bench.append(1);
    bench.poll();
    assert_eq!(bench.disk.waiting(Lane::Log), 1);
    bench.rest();
    assert_eq!(bench.log.committed(), 4);
    let found = recover(&bench.disk.after_power_loss(), 1, 0);
    assert_eq!(found.len(), 4, "both generations");
}

#[test]
fn a_log_that_holds_nothing_is_there_until_a_manifest_says_otherwise() {
    let mut bench = Bench::new(1, Fsync::Always);
    bench.rest();
    bench.log.begin_generation(2);
    frames(&mut bench, 3);
    assert_eq!(bench.log.committed(), 3);
    let generations: Vec<u64> = (bench.disk.files.keys())
        .filter_map(|name| DataFile::parse(name))
        .map(|file| file.generation())
        .collect();
    assert!(generations.contains(&1), "{generations:?}");
}

#[test]
fn a_large_frame_leaves_no_large_buffer() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 1);
    bench.append(64 << 20);
    frames(&mut bench, 20);
    assert_eq!(bench.log.committed(), 22);
    assert!(!bench.log.spare.is_empty(), "small ones are kept");
    let kept = bench.log.spare.iter().map(Vec::capacity);
    assert!(kept.max() <= Some(flow::KEEP_BYTES));
}

#[test]
fn a_run_goes_on_where_the_last_one_ended() {
    let mut bench = Bench::new(1, Fsync::Always);
    frames(&mut bench, 5);
    bench.log.close();
    bench.rest_for(SECOND_US);
    assert!(bench.log.is_closed());
    let mut log = writer(Fsync::Always);
    log.start(1, 9, 6);
    bench.log = log;
    frames(&mut bench, 3);
    assert_eq!((bench.log.committed(), bench.log.synced()), (9, 9));
    assert_eq!(recover(&bench.disk.after_power_loss(), 1, 0).len(), 9);
}

/// Every bit of a log whose frames were synced one after the other.
#[test]
fn a_flipped_bit_stops_the_start_unless_nothing_says_that_it_was_synced() {
    let mut bench = Bench::new(1, Fsync::Always);
    for _ in 0..60 {
        bench.append(30);
        bench.rest();
    }
    let files = bench.disk.after_kill();
    let used: Vec<_> = files.iter().filter(|file| file.1[0] != 0).collect();
    assert_eq!(used.len(), 2);
    for (at, &(name, bytes)) in used.iter().enumerate() {
        let frames = read(name, bytes).map_or(0, |read| read.frames.len());
        assert!(frames > 1);
        let end = frames * (24 + 38) + HEADER_BYTES;
        for bit in 0..bytes.len() * 8 {
            let mut flipped = files.clone();
            if let Some(bytes) = flipped.get_mut(name) {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let found = try_recover(&flipped, 1, 0).map(|found| found.len());
            let last = at + 1 == used.len() && bit / 8 >= end - (24 + 38);
            match found {
                // In the very last frame, which may never have been synced.
                Ok(59) => assert!(last && bit / 8 < end),
                Ok(60) => assert!(bit / 8 >= end),
                Ok(other) => panic!("{other} frames are left"),
                Err(_) => assert!(bit / 8 < end && !last),
            }
        }
    }
}
