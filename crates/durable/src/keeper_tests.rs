//! The keeper, with a disk that executes all requests, unless a test makes some fail.

use super::super::file::{DataFile, MANIFEST};
use super::super::manifest::kept_name;
use super::*;
use rufous_base::disk::{DiskError, DiskErrorKind, FileInfo};

fn first() -> Manifest {
    Manifest {
        generation: 0,
        logs_from: 1,
        logs_until: None,
        workers: 1,
        hash_seed: 1,
        run: 1,
        saved_ms: 0,
        snapshots: Vec::new(),
    }
}

fn snapshot(generation: u64) -> SnapshotFile {
    let worker = 0;
    SnapshotFile {
        worker,
        file: DataFile::Snapshot { generation, worker }.name(),
        bytes: 100,
        keys: 1,
        crc: 7,
        next_seq: 3,
    }
}

fn log(generation: u64) -> FileName {
    let (worker, index) = (0, 0);
    DataFile::Log {
        generation,
        worker,
        index,
    }
    .name()
}

/// A keeper and its files.
struct Bench {
    keeper: Keeper,
    asked: Vec<DiskRequest>,
    files: BTreeMap<FileName, Vec<u8>>,
    /// The executed requests, in order.
    history: Vec<String>,
    /// The requests that fail, in the words of [`Bench::history`].
    fails: &'static str,
}

impl Bench {
    fn new(retention: u64) -> Self {
        Self::with(first(), retention, [])
    }

    fn with<const N: usize>(manifest: Manifest, retention: u64, kept: [u64; N]) -> Self {
        let generation = manifest.logs_from;
        let mut keeper = Keeper::new(manifest, 1, generation, Now::default());
        keeper.log_begins(generation);
        keeper.found(wanted(retention), kept);
        Self {
            keeper,
            asked: Vec::new(),
            files: BTreeMap::from([(log(generation), Vec::new())]),
            history: Vec::new(),
            fails: "nothing",
        }
    }

    fn carry_out(&mut self, op: DiskOp) -> Result<DiskReply, DiskError> {
        let files = &mut self.files;
        let said = match &op {
            DiskOp::Write { file, .. } => format!("write {file}"),
            DiskOp::Rename { to, .. } => format!("rename to {to}"),
            DiskOp::Remove { file } => format!("remove {file}"),
            DiskOp::SyncNames => "sync names".into(),
            _ => String::new(),
        };
        if said.starts_with(self.fails) {
            return Err(DiskError {
                kind: DiskErrorKind::Io,
                text: "it broke".into(),
                bytes: Vec::new(),
            });
        }
        let mut reply = DiskReply::Done;
        match op {
            DiskOp::Create { file, .. } => drop(files.insert(file, Vec::new())),
            DiskOp::Write { file, bytes, .. } => drop(files.insert(file, bytes)),
            DiskOp::Rename { from, to } => {
                let bytes = files.remove(&from).expect("it is there");
                files.insert(to, bytes);
            }
            DiskOp::Remove { file } => drop(files.remove(&file)),
            DiskOp::List => {
                let info = |file: &FileName| FileInfo {
                    file: file.clone(),
                    bytes: 0,
                };
                reply = DiskReply::Files(files.keys().map(info).collect());
            }
            DiskOp::SyncNames => {}
            other => panic!("the keeper has no use for {other:?}"),
        }
        self.history.extend((!said.is_empty()).then_some(said));
        Ok(reply)
    }

    /// Executes requests until there are none left.
    fn serve(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..1000 {
            if self.asked.is_empty() {
                return events;
            }
            let request = self.asked.remove(0);
            let done = DiskDone {
                id: request.id,
                result: self.carry_out(request.op),
            };
            let now = Now::default();
            events.extend(self.keeper.on_disk(done, now, &mut self.asked));
        }
        panic!("it asks without end");
    }

    /// Continues a save until its manifest is to be written.
    fn begin_save(&mut self) -> u64 {
        let generation = self.keeper.next_generation();
        self.keeper
            .begin(generation, Purpose::Snapshot, Now::default());
        let file = snapshot(generation);
        self.files.insert(file.file.clone(), Vec::new());
        self.files.insert(log(generation), Vec::new());
        let (saved, now) = (Ok(file), Now::default());
        let event = (self.keeper).on_saved(generation, saved, now, &mut self.asked);
        assert_eq!(event, None);
        generation
    }

    fn save(&mut self) -> u64 {
        let generation = self.begin_save();
        assert_eq!(self.serve(), [Event::Installed { generation }]);
        generation
    }

    fn saves(&mut self, count: usize) {
        for _ in 0..count {
            self.save();
        }
    }

    /// The generations of existing files: kept manifests, snapshots, logs.
    fn generations(&self) -> [Vec<u64>; 3] {
        let mut all = [vec![], vec![], vec![]];
        for name in self.files.keys() {
            match DataFile::parse(name) {
                Some(DataFile::Snapshot { generation, .. }) => all[1].push(generation),
                Some(DataFile::Log { generation, .. }) => all[2].push(generation),
                None => all[0].extend(super::super::manifest::kept_generation(name)),
            }
        }
        all
    }

    fn has(&self, manifests: &[u64], snapshots: &[u64], logs: &[u64]) {
        let wanted = [manifests, snapshots, logs].map(<[u64]>::to_vec);
        assert_eq!(self.generations(), wanted);
    }
}

fn wanted(retention: u64) -> Schedule {
    Schedule {
        retention,
        ..Schedule::default()
    }
}

#[test]
fn a_save_ends_although_logging_is_switched_off_while_its_manifest_is_written() {
    let mut bench = Bench::new(0);
    let generation = bench.begin_save();
    bench.keeper.log_ends(&mut bench.asked);
    assert_eq!(bench.serve(), [Event::Installed { generation }]);
    assert!(!bench.keeper.is_saving());
    let manifest = bench.keeper.manifest();
    assert_eq!(manifest.snapshots, [snapshot(generation)]);
    assert_eq!(manifest.logs_until, Some(generation));
}

/// A keeper of a node that logs nothing.
fn unlogged() -> Bench {
    let mut bench = Bench::new(0);
    bench.keeper.log_ends(&mut bench.asked);
    assert_eq!(bench.serve(), [Event::Noted]);
    assert!(bench.keeper.end_is_noted() && !bench.keeper.log_holds());
    bench
}

#[test]
fn a_log_holds_once_a_save_that_began_with_it_is_in_the_manifest() {
    let mut bench = unlogged();
    // A save that began before the log says that no log follows.
    let before = bench.begin_save();
    bench.keeper.log_begins(before + 1);
    bench.serve();
    assert_eq!(bench.keeper.manifest().logs_until, Some(before));
    assert!(!bench.keeper.log_holds() && !bench.keeper.end_is_noted());

    bench.begin_save();
    assert!(!bench.keeper.log_holds(), "its manifest is not written yet");
    bench.serve();
    assert!(bench.keeper.log_holds());
    assert_eq!(bench.keeper.manifest().logs_until, None);
}

#[test]
fn a_log_that_ends_before_its_save_was_never_in_use() {
    let mut bench = unlogged();
    let until = bench.keeper.manifest().logs_until;
    let generation = bench.keeper.next_generation();
    bench.keeper.log_begins(generation);
    bench
        .keeper
        .begin(generation, Purpose::Rewrite, Now::default());
    bench.keeper.log_ends(&mut bench.asked);
    assert!(bench.asked.is_empty(), "the manifest stays as it is");
    assert_eq!(bench.keeper.manifest().logs_until, until);
    // A log that begins after that does not follow the save that is still under way.
    bench.keeper.log_begins(generation + 1);
    let (saved, now) = (Ok(snapshot(generation)), Now::default());
    (bench.keeper).on_saved(generation, saved, now, &mut bench.asked);
    assert_eq!(bench.serve(), [Event::Installed { generation }]);
    assert_eq!(bench.keeper.manifest().logs_until, Some(generation));
    assert!(!bench.keeper.log_holds());
}

#[test]
fn without_retention_only_the_last_save_stays() {
    let mut bench = Bench::new(0);
    for generation in 2..5 {
        assert_eq!(bench.save(), generation);
        bench.has(&[], &[generation], &[generation]);
    }
    assert_eq!(bench.keeper.kept(), 0);
}

#[test]
fn so_many_earlier_saves_stay_each_with_its_manifest() {
    let mut bench = Bench::new(2);
    bench.save();
    bench.has(&[], &[2], &[2]);
    bench.saves(3);
    bench.has(&[3, 4], &[3, 4, 5], &[5]);
    assert_eq!(bench.keeper.kept(), 2);
    for generation in [3, 4] {
        let bytes = &bench.files[&kept_name(generation)];
        let kept = Manifest::decode(bytes).expect("whole");
        assert_eq!(kept.snapshots, [snapshot(generation)]);
        assert!((0..9).all(|log| !kept.has_log(log)), "its logs are gone");
    }
    let present = &bench.files[&FileName::from(MANIFEST)];
    assert_eq!(Manifest::decode(present).expect("whole").generation, 5);
}

/// After a crash at any of these steps, every existing manifest names existing files.
#[test]
fn a_copy_is_on_disk_before_its_manifest_goes_and_goes_before_its_snapshots() {
    let mut bench = Bench::new(1);
    bench.save();
    bench.save();
    bench.history.clear();
    bench.save();
    let steps = [
        "write manifest-0000000003",
        "sync names",
        "write manifest.next",
        "rename to manifest",
        "sync names",
        "remove manifest-0000000002",
        "sync names",
        "remove log-0000000003-00000-00000000",
        "remove snap-0000000002-00000",
    ];
    assert_eq!(bench.history, steps);
}

#[test]
fn lowering_the_setting_removes_what_is_too_much() {
    let mut bench = Bench::new(3);
    bench.saves(4);
    bench.has(&[2, 3, 4], &[2, 3, 4, 5], &[5]);
    for (retention, left) in [(3, 3), (1, 1), (2, 1), (0, 0)] {
        (bench.keeper).set_schedule(wanted(retention), &mut bench.asked);
        assert_eq!(bench.serve(), []);
        assert_eq!(bench.keeper.kept(), left);
        let kept: Vec<u64> = (5 - left as u64..5).collect();
        let snapshots: Vec<u64> = (5 - left as u64..6).collect();
        bench.has(&kept, &snapshots, &[5]);
    }
}

/// A user may have forgotten the setting.
#[test]
fn a_start_removes_no_earlier_save_but_the_next_save_does() {
    let manifest = Manifest {
        generation: 5,
        logs_from: 5,
        snapshots: vec![snapshot(5)],
        ..first()
    };
    let mut bench = Bench::with(manifest, 0, [3, 4]);
    for generation in [3, 4] {
        bench.files.insert(kept_name(generation), Vec::new());
    }
    for generation in [2, 3, 4, 5] {
        bench.files.insert(snapshot(generation).file, Vec::new());
    }
    bench.keeper.clean(&mut bench.asked);
    bench.serve();
    bench.has(&[3, 4], &[3, 4, 5], &[5]);
    assert_eq!(bench.keeper.kept(), 2);
    bench.save();
    bench.has(&[], &[6], &[6]);
}

#[test]
fn a_save_fails_where_the_one_before_cannot_be_kept() {
    let mut bench = Bench::new(1);
    bench.save();
    bench.fails = "write manifest-";
    let generation = bench.begin_save();
    let text = "cannot write manifest-0000000002: it broke".into();
    assert_eq!(bench.serve(), [Event::Failed { text }]);
    assert_eq!(bench.keeper.manifest().generation, 2);
    // The unfinished copy is ignored, and the files of the save are removed.
    assert_eq!(bench.keeper.kept(), 0);
    bench.has(&[2], &[2], &[2, generation]);
    bench.fails = "nothing";
    bench.save();
    bench.has(&[2], &[2, 4], &[4]);
}

#[test]
fn a_copy_that_was_not_written_is_not_counted() {
    let mut bench = Bench::new(0);
    bench.save();
    bench.begin_save();
    // Too late for the save whose manifest is being written.
    bench.keeper.set_schedule(wanted(5), &mut bench.asked);
    bench.serve();
    assert_eq!(bench.keeper.kept(), 0);
    bench.has(&[], &[3], &[3]);
    bench.save();
    bench.has(&[3], &[3, 4], &[4]);
}

#[test]
fn what_cannot_be_removed_is_tried_again_at_the_next_save() {
    let mut bench = Bench::new(1);
    bench.saves(2);
    bench.fails = "remove";
    bench.save();
    // Snapshots stay as long as a manifest names them.
    bench.has(&[2, 3], &[2, 3, 4], &[3, 4]);
    bench.fails = "nothing";
    bench.save();
    bench.has(&[4], &[4, 5], &[5]);
}

/// As after restoring an earlier save: logs begin above all generations.
#[test]
fn snapshots_may_be_older_than_the_logs_that_follow_them() {
    let manifest = Manifest {
        generation: 3,
        logs_from: 8,
        snapshots: vec![snapshot(3)],
        ..first()
    };
    let mut bench = Bench::with(manifest, 2, [4]);
    bench.files.insert(kept_name(4), Vec::new());
    for generation in [3, 4, 7] {
        bench.files.insert(snapshot(generation).file, Vec::new());
    }
    bench.keeper.clean(&mut bench.asked);
    bench.serve();
    bench.has(&[4], &[3, 4], &[8]);
    let pin = bench.keeper.pin();
    assert_eq!(bench.save(), 9);
    bench.keeper.set_schedule(wanted(0), &mut bench.asked);
    bench.serve();
    bench.has(&[], &[3, 9], &[8, 9]);
    assert!(bench.keeper.unpin(pin, &mut bench.asked));
    bench.serve();
    bench.has(&[], &[9], &[9]);
}
