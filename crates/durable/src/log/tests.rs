//! The log on a small disk that answers in any order, fails and loses power.

use super::super::entry;
use super::super::evidence::EvidenceFinder;
use super::super::file::{DataFile, FileHeader, HEADER_BYTES, salt};
use super::super::scan::{FrameReader, Step};
use super::super::testing::FakeDisk;
use super::*;
use rufous_base::disk::{DiskError, DiskErrorKind, FileName, Lane};
use std::collections::BTreeMap;

mod behind;
mod faults;

const SEGMENT: u64 = 2000;

fn writer(fsync: Fsync) -> LogWriter {
    let config = LogConfig {
        fsync,
        bounds: Bounds::default(),
        segment_bytes: SEGMENT,
    };
    let identity = Identity {
        worker: 3,
        workers: 4,
        run: 9,
        salt: salt(1),
    };
    LogWriter::new(config, identity)
}

/// A log with its disk and clock.
struct Bench {
    log: LogWriter,
    disk: FakeDisk,
    now: Now,
    failed: usize,
}

impl Bench {
    fn new(seed: u64, fsync: Fsync) -> Self {
        let mut log = writer(fsync);
        log.start(1, 0, 0);
        Self {
            log,
            disk: FakeDisk::new(seed),
            now: Now::default(),
            failed: 0,
        }
    }

    fn append(&mut self, bytes: usize) {
        let seq = self.log.appended();
        let payload = payload(seq, bytes);
        assert_eq!(self.log.append(&payload), seq);
    }

    fn poll(&mut self) {
        let mut requests = Vec::new();
        self.log.poll(self.now, &mut requests);
        self.disk.take(&mut requests);
    }

    fn step(&mut self) -> bool {
        self.poll();
        let Some(done) = self.disk.step() else {
            return false;
        };
        let (committed, synced) = (self.log.committed(), self.log.synced());
        if self.log.on_done(self.now, done) == Outcome::Failed {
            self.failed += 1;
            assert!(self.log.trouble().is_some());
        }
        assert!(self.log.committed() >= committed && self.log.synced() >= synced);
        assert!(self.log.committed() <= self.log.appended());
        true
    }

    /// Runs until no request is due now.
    fn rest(&mut self) {
        while self.step() {}
    }

    /// Runs as a driver that reads the clock only at the times requested.
    fn rest_for(&mut self, us: u64) {
        let end = self.now.mono_us + us;
        loop {
            self.rest();
            match self.log.wake_at_us() {
                Some(at) if at <= end => {
                    assert!(at > self.now.mono_us, "asks to be woken, but does nothing");
                    self.now.mono_us = at;
                }
                _ => break,
            }
        }
        self.now.mono_us = end;
    }
}

/// A payload that identifies its frame; of this many bytes or a few more.
fn payload(seq: u64, bytes: usize) -> Vec<u8> {
    let mut payload = seq.to_le_bytes().to_vec();
    payload.extend((0..bytes as u64).map(|n| (seq * 7 + n) as u8));
    payload
}

/// The readable part of one segment.
struct Read {
    header: FileHeader,
    frames: Vec<(u64, u64, Vec<u8>)>,
    /// Frames behind a bad place record that so many were synced.
    behind: u64,
}

fn read(name: &FileName, bytes: &[u8]) -> Option<Read> {
    if bytes.iter().all(|&byte| byte == 0) {
        return None;
    }
    let Ok(header) = FileHeader::decode(bytes) else {
        return Some(headless(name, bytes));
    };
    let mut reader = FrameReader::new(&header, bytes.len() as u64);
    reader.feed(&bytes[HEADER_BYTES..]);
    let mut read = Read {
        header,
        frames: Vec::new(),
        behind: 0,
    };
    loop {
        match reader.next() {
            Step::Frame(frame) => {
                let payload = frame.payload.to_vec();
                read.frames.push((frame.seq, frame.synced, payload));
            }
            Step::NeedMore => panic!("all has been fed"),
            Step::End { .. } => return Some(read),
            Step::Bad(bad) => {
                let (bytes_of_file, rest) = (bytes.len() as u64, reader.rest().to_vec());
                let offset = bytes_of_file - rest.len() as u64;
                let mut finder = EvidenceFinder::new(&header, bytes_of_file, offset, bad.seq);
                finder.feed(&rest);
                read.behind = finder.found().synced;
                return Some(read);
            }
        }
    }
}

/// A segment whose frames are unreadable, but may contain evidence.
fn headless(name: &FileName, bytes: &[u8]) -> Read {
    let file = DataFile::parse(name).expect("a name of ours");
    let mut header = FileHeader {
        first_seq: u64::MAX,
        ..writer(Fsync::No).header(file.generation())
    };
    header.worker = file.worker();
    let mut finder = EvidenceFinder::new(&header, bytes.len() as u64, 0, 0);
    finder.feed(bytes);
    Read {
        header,
        frames: Vec::new(),
        behind: finder.found().synced,
    }
}

type Files = BTreeMap<FileName, Vec<u8>>;

fn recover(files: &Files, generation: u64, seq: u64) -> Vec<Vec<u8>> {
    try_recover(files, generation, seq).expect("what was synced is lost")
}

/// The frames that a start would find, from `seq` of `generation` on. Fails with the number of a
/// frame that was synced and is lost.
fn try_recover(files: &Files, generation: u64, seq: u64) -> Result<Vec<Vec<u8>>, u64> {
    let logs = files.iter().filter(|(name, _)| {
        let file = DataFile::parse(name).expect("a name of ours");
        file.generation() >= generation
    });
    let reads: Vec<Read> = logs.filter_map(|(name, bytes)| read(name, bytes)).collect();
    let mut found = Vec::new();
    for (at, segment) in reads.iter().enumerate() {
        let next = seq + found.len() as u64;
        let later = &reads[at + 1..];
        let end = later.iter().map(|later| later.header.first_seq).min();
        if end == Some(next) {
            // The whole segment is void, whatever its header contains.
            continue;
        }
        if segment.header.first_seq != next {
            if proof(&reads[at..]) > next {
                return Err(next);
            }
            break;
        }
        let in_time = |frame: &&(u64, u64, Vec<u8>)| end.is_none_or(|end| frame.0 < end);
        found.extend(
            segment
                .frames
                .iter()
                .filter(in_time)
                .map(|frame| frame.2.clone()),
        );
        let next = seq + found.len() as u64;
        if end.is_some_and(|end| end > next) || end.is_none() {
            if proof(later).max(segment.behind) > next {
                return Err(next);
            }
            break;
        }
    }
    Ok(found)
}

fn proof(segments: &[Read]) -> u64 {
    let frames = segments.iter().flat_map(|segment| &segment.frames);
    let behind = segments.iter().map(|segment| segment.behind);
    frames.map(|frame| frame.1).chain(behind).max().unwrap_or(0)
}

#[test]
fn frames_are_committed_as_each_setting_says() {
    for fsync in [Fsync::Always, Fsync::EverySec, Fsync::No] {
        let mut bench = Bench::new(1, fsync);
        bench.rest();
        assert!(bench.log.generation_ready(1));
        for _ in 0..100 {
            bench.append(30);
            bench.append(1);
            bench.rest();
            assert_eq!(bench.log.committed(), bench.log.appended());
        }
        let gauges = bench.log.gauges();
        assert_eq!(gauges.pending_bytes, 0);
        assert_eq!(gauges.generation_bytes, 100 * (31 + 2 * (24 + 8)));
        match fsync {
            Fsync::Always => assert_eq!(bench.log.synced(), 200),
            // Only full segments.
            Fsync::No => assert!(bench.log.synced() > 100 && bench.log.synced() < 200),
            Fsync::EverySec => {
                bench.rest_for(SECOND_US);
                assert_eq!(bench.log.synced(), 200);
            }
        }
        assert_eq!(recover(&bench.disk.after_kill(), 1, 0).len(), 200);
        assert!(bench.disk.files.len() > 3, "segments follow one another");
    }
}

#[test]
fn what_comes_during_a_write_forms_the_next() {
    let mut bench = Bench::new(1, Fsync::Always);
    bench.rest();
    bench.append(1);
    bench.poll();
    for _ in 0..50 {
        bench.append(1);
        bench.poll();
    }
    assert_eq!(bench.disk.waiting(Lane::Log), 1);
    assert_eq!(bench.log.committed(), 0);
    bench.rest();
    assert_eq!((bench.log.committed(), bench.log.gauges().writes), (51, 2));
}

/// Random work, faults and settings; then the process or the power ends.
fn torture(seed: u64) {
    let fsync = [Fsync::Always, Fsync::EverySec, Fsync::No][seed as usize % 3];
    let mut bench = Bench::new(seed, fsync);
    let (mut from, mut cut) = ((1, 0), None);
    let steps = 50 + bench.disk.below(400);
    let faults = [0, 0, 40, 10][bench.disk.below(4)];
    let switches = seed.is_multiple_of(2);
    // Frames from here on have been appended with `always` set.
    let mut always_from = 0;
    for _ in 0..steps {
        match bench.disk.below(40) {
            0 => bench.now.mono_us += 700_000,
            1 => bench.disk.fail_one_in = faults,
            2 => bench.disk.full = faults > 0 && bench.disk.below(3) == 0,
            3 => bench.disk.fail_one_in = 0,
            4 if cut.is_none() => {
                let generation = bench.log.generation() + 1;
                bench.log.begin_generation(generation);
                cut = Some((generation, bench.log.appended()));
            }
            5 => {
                let ready =
                    cut.is_some_and(|(generation, _)| bench.log.generation_ready(generation));
                if let Some((generation, seq)) = cut.take_if(|_| ready) {
                    bench.log.snapshot_installed(generation);
                    from = (generation, seq);
                    bench.disk.files.retain(|name, _| {
                        DataFile::parse(name).is_some_and(|file| file.generation() >= generation)
                    });
                }
            }
            6 if switches => {
                let fsync = [Fsync::Always, Fsync::EverySec, Fsync::No][bench.disk.below(3)];
                if fsync == Fsync::Always && bench.log.fsync() != Fsync::Always {
                    always_from = bench.log.appended();
                }
                bench.log.set_fsync(fsync, Bounds::default());
            }
            7..20 => {
                let bytes = [1, 50, 300, 3000][bench.disk.below(4)];
                bench.append(bytes);
            }
            _ => {
                bench.now.mono_us += 1000;
                bench.step();
            }
        }
    }
    let (committed, synced) = (bench.log.committed(), bench.log.synced());
    let appended = bench.log.appended();
    let check = |files: Files, promised: u64| check(&files, from, promised, appended);
    check(bench.disk.after_kill(), committed);
    let always = bench.log.fsync() == Fsync::Always && committed > always_from;
    let promised = if always { committed } else { synced };
    for _ in 0..5 {
        let files = bench.disk.after_power_loss();
        check(files, promised);
    }
    settle(bench, cut);
}

/// Checks that a start finds all promised frames, and no invented ones.
fn check(files: &Files, from: (u64, u64), promised: u64, appended: u64) {
    let indices = files.keys().filter_map(|name| DataFile::parse(name));
    let mut expected = BTreeMap::new();
    for file in indices.filter(|file| file.generation() >= from.0) {
        let DataFile::Log { index, .. } = file else {
            continue;
        };
        let next = expected.entry(file.generation()).or_insert(0);
        assert_eq!(index, *next, "segments have no gaps");
        *next += 1;
    }
    let found = recover(files, from.0, from.1);
    let end = from.1 + found.len() as u64;
    assert!(end >= promised, "{end} of {promised} are left");
    assert!(end <= appended);
    for (payload_found, seq) in found.iter().zip(from.1..) {
        assert_eq!(payload_found[..8], seq.to_le_bytes());
        assert_eq!(*payload_found, payload(seq, payload_found.len() - 8));
    }
}

/// With a disk that works again, everything is written and the log is closed.
fn settle(mut bench: Bench, cut: Option<(u64, u64)>) {
    (bench.disk.full, bench.disk.fail_one_in) = (false, 0);
    bench.rest_for(10 * SECOND_US);
    if bench.log.needs_snapshot() {
        let generation = cut.map_or(bench.log.generation(), |cut| cut.0) + 1;
        bench.log.begin_generation(generation);
        bench.rest_for(SECOND_US);
        assert!(bench.log.generation_ready(generation));
        bench.log.snapshot_installed(generation);
    }
    bench.rest_for(2 * SECOND_US);
    assert_eq!(bench.log.trouble(), None);
    assert_eq!(bench.log.committed(), bench.log.appended());
    assert_eq!(bench.log.gauges().pending_bytes, 0);
    bench.log.close();
    bench.rest_for(3 * SECOND_US);
    assert!(bench.log.is_closed());
    let files = bench.disk.after_power_loss();
    let last = files
        .iter()
        .filter_map(|(name, bytes)| read(name, bytes))
        .filter(|read| !read.frames.is_empty())
        .max_by_key(|read| read.header.first_seq);
    let frames = last.expect("a segment").frames;
    let (seq, synced, mark) = frames.last().expect("the mark");
    assert_eq!((*seq, *synced), (bench.log.appended() - 1, *seq));
    assert_eq!(
        entry::entries(mark).collect::<Vec<_>>(),
        [Ok(entry::Entry::CleanEnd)]
    );
}

#[test]
fn what_is_promised_survives_every_end() {
    for seed in 0..1500 {
        let run = std::panic::catch_unwind(|| torture(seed));
        assert!(run.is_ok(), "seed {seed}");
    }
}
