//! What actors ask of their disk, done on a real one.

mod moved;

use crate::common::*;
use rufous_base::disk::{DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply, DiskRequest, Lane};
use rufous_base::{Effects, Input};
use rufous_runtime::start;
use rufous_skip::{Missing, skip};
use std::any::Any;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

/// A node whose actor asks what a test asks, and tells it the answers.
struct Asking {
    stream: TcpStream,
    requests: Arc<Mutex<Vec<DiskRequest>>>,
    answers: Receiver<DiskDone>,
    asked: u64,
    _node: Box<dyn Any>,
}

fn asking(folder: Option<&Path>) -> Asking {
    let mut config = config(1);
    config.data_dir = folder.map(Path::to_path_buf);
    let requests: Arc<Mutex<Vec<DiskRequest>>> = Arc::default();
    let taken = Arc::clone(&requests);
    let (tell, answers) = channel();
    let node = start(config, move |_| {
        let (requests, tell) = (Arc::clone(&taken), tell.clone());
        by::<(), _>(move |_, input, fx: &mut Effects<()>| match input {
            Input::Received { .. } => fx.disk.append(&mut requests.lock().expect("whole")),
            Input::Disk(done) => tell.send(done).expect("the test listens"),
            _ => {}
        })
    })
    .expect("starts");
    Asking {
        stream: client(&node),
        requests,
        answers,
        asked: 0,
        _node: Box::new(node),
    }
}

impl Asking {
    /// Asks for several things at once; returns the number of the first.
    fn ask(&mut self, lane: Lane, ops: impl IntoIterator<Item = DiskOp>) -> u64 {
        let first = self.asked;
        let mut requests = self.requests.lock().expect("whole");
        for op in ops {
            let id = self.asked;
            self.asked += 1;
            requests.push(DiskRequest { id, lane, op });
        }
        drop(requests);
        self.stream.write_all(b"!").expect("sent");
        first
    }

    fn next(&self) -> (u64, Result<DiskReply, DiskError>) {
        let done = self.answers.recv().expect("answered");
        (done.id, done.result)
    }

    /// Asks for one thing and waits for it.
    fn once(&mut self, lane: Lane, op: DiskOp) -> Result<DiskReply, DiskError> {
        let asked = self.ask(lane, [op]);
        let (id, result) = self.next();
        assert_eq!(id, asked);
        result
    }

    fn done(&mut self, lane: Lane, op: DiskOp) {
        let wrote = match &op {
            DiskOp::Write { bytes, .. } => DiskReply::Wrote(bytes.clone()),
            _ => DiskReply::Done,
        };
        assert_eq!(self.once(lane, op), Ok(wrote));
    }

    fn fails(&mut self, lane: Lane, op: DiskOp, kind: DiskErrorKind) {
        let wanted = match &op {
            DiskOp::Write { bytes, .. } => bytes.clone(),
            _ => Vec::new(),
        };
        let error = self.once(lane, op.clone()).expect_err("must fail");
        assert_eq!(error.kind, kind, "{op:?}: {error}");
        assert!(error.bytes == wanted, "given back whole");
        assert!(!error.text.is_empty());
    }

    fn reads(&mut self, lane: Lane, file: &str, bytes: &[u8]) {
        let read = self.once(lane, read(file, 0, 1 << 20));
        assert_eq!(read, Ok(DiskReply::Read(bytes.to_vec())));
    }
}

fn create(file: &str, reserve: u64) -> DiskOp {
    let file = file.into();
    DiskOp::Create { file, reserve }
}

fn write(file: &str, at: u64, bytes: &[u8]) -> DiskOp {
    DiskOp::Write {
        file: file.into(),
        at,
        bytes: bytes.to_vec(),
        sync: true,
    }
}

fn unsynced(file: &str, at: u64) -> DiskOp {
    DiskOp::Write {
        file: file.into(),
        at,
        bytes: b"small".to_vec(),
        sync: false,
    }
}

fn read(file: &str, at: u64, bytes: usize) -> DiskOp {
    let file = file.into();
    DiskOp::Read { file, at, bytes }
}

fn remove(file: &str) -> DiskOp {
    DiskOp::Remove { file: file.into() }
}

fn rename(from: &str, to: &str) -> DiskOp {
    let (from, to) = (from.into(), to.into());
    DiskOp::Rename { from, to }
}

fn sync(file: &str) -> DiskOp {
    DiskOp::Sync { file: file.into() }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn each_request_does_what_it_says() {
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    let lane = Lane::Bulk;
    disk.done(lane, create("a", 8192));
    let metadata = fs::metadata(folder.path().join("a")).expect("made");
    assert_eq!((metadata.len(), metadata.mode() & 0o777), (8192, 0o600));
    assert!(metadata.blocks() * 512 >= 8192, "room is reserved");
    disk.reads(lane, "a", &[0; 8192]);
    disk.done(lane, write("a", 100, b"hello"));
    let hello = Ok(DiskReply::Read(b"\0hello\0".to_vec()));
    assert_eq!(disk.once(lane, read("a", 99, 7)), hello);
    // Not more than there is, however much is asked for.
    let truncate = DiskOp::Truncate {
        file: "a".into(),
        bytes: 105,
    };
    disk.done(lane, truncate);
    let end = disk.once(lane, read("a", 103, usize::MAX));
    assert_eq!(end, Ok(DiskReply::Read(b"lo".to_vec())));
    let beyond = disk.once(lane, read("a", u64::MAX, 1));
    assert_eq!(beyond, Ok(DiskReply::Read(Vec::new())));
    disk.done(lane, write("a", 110, b"far"));
    let gap = disk.once(lane, read("a", 103, 100));
    assert_eq!(gap, Ok(DiskReply::Read(b"lo\0\0\0\0\0far".to_vec())));
    disk.done(lane, sync("a"));
    disk.done(lane, DiskOp::SyncNames);
    disk.done(lane, DiskOp::SyncNames);
    disk.done(lane, remove("a"));
    assert!(!folder.path().join("a").exists());
    disk.done(lane, remove("a"));
}

#[test]
fn small_writes_are_whole_whoever_carries_them_out() {
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    let room = 300_000;
    for round in 1..=3u8 {
        disk.done(Lane::Bulk, create("log", room));
        let mut model = Vec::new();
        for n in 0..40usize {
            let bytes = vec![round * 50 + n as u8; 1 + n * n * 13];
            let (file, at) = ("log".into(), model.len() as u64);
            model.extend_from_slice(&bytes);
            let op = DiskOp::Write {
                file,
                at,
                bytes,
                sync: n % 16 == 15,
            };
            disk.done(Lane::Log, op);
            if n % 10 == 9 {
                disk.done(Lane::Sync, sync("log"));
            }
        }
        assert!(model.len() < room as usize);
        model.resize(room as usize, 0);
        disk.reads(Lane::Bulk, "log", &model);
    }
    // Several at once, and what follows finds the file gone.
    let ops = (0..3).map(|n| unsynced("log", n));
    let first = disk.ask(Lane::Log, ops);
    for n in 0..3 {
        let (id, result) = disk.next();
        assert_eq!(id, first + n, "in order");
        assert!(result.is_ok());
    }
    disk.done(Lane::Bulk, remove("log"));
    disk.fails(Lane::Log, unsynced("log", 0), DiskErrorKind::NotFound);
}

#[test]
fn only_files_are_listed() {
    let folder = folder();
    fs::write(folder.path().join("one"), b"1").expect("written");
    fs::write(folder.path().join("four"), b"four").expect("written");
    fs::create_dir(folder.path().join("folder")).expect("made");
    fifo(&folder.path().join("fifo"));
    std::os::unix::fs::symlink("four", folder.path().join("link")).expect("made");
    let mut disk = asking(Some(folder.path()));
    let Ok(DiskReply::Files(mut files)) = disk.once(Lane::Bulk, DiskOp::List) else {
        panic!("no list");
    };
    files.sort_by(|a, b| a.file.cmp(&b.file));
    let files: Vec<(&str, u64)> = files.iter().map(|f| (&*f.file, f.bytes)).collect();
    assert_eq!(files, [("four", 4), ("one", 1)]);
}

#[test]
fn a_lane_keeps_its_order_and_waits_for_no_other() {
    let folder = folder();
    let stuck = folder.path().join("stuck");
    fifo(&stuck);
    let mut disk = asking(Some(folder.path()));
    let mut log = vec![read("stuck", 0, 1), create("log", 0)];
    log.extend((0..200).map(|n: u64| write("log", n / 2, &[n as u8])));
    log.extend([write("missing", 0, b"lost"), read("log", 0, 1000)]);
    let count = log.len() as u64;
    let first = disk.ask(Lane::Log, log);
    disk.done(Lane::Bulk, create("bulk", 0));
    disk.done(Lane::Bulk, write("bulk", 0, b"side by side"));
    disk.done(Lane::Sync, sync("bulk"));
    disk.reads(Lane::Sync, "bulk", b"side by side");
    assert!(!folder.path().join("log").exists(), "the log's lane waits");
    open(&stuck);
    for n in first..first + count {
        let (id, result) = disk.next();
        assert_eq!(id, n);
        if n == first + count - 1 {
            let last: Vec<u8> = (0..100).map(|n| 2 * n + 1).collect();
            assert_eq!(
                result,
                Ok(DiskReply::Read(last)),
                "each over the one before"
            );
        } else if n == first + count - 2 {
            let error = result.expect_err("there is no such file");
            assert_eq!(
                (error.kind, &*error.bytes),
                (DiskErrorKind::NotFound, &b"lost"[..])
            );
        } else {
            result.expect("done");
        }
    }
}

#[test]
fn a_name_means_the_same_file_in_every_lane() {
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    for round in 0..3_u8 {
        disk.done(Lane::Log, create("now", 0));
        disk.done(Lane::Log, write("now", 0, &[round]));
        disk.done(Lane::Sync, sync("now"));
        disk.reads(Lane::Sync, "now", &[round]);
        disk.done(Lane::Bulk, create("next", 0));
        disk.done(Lane::Bulk, write("next", 0, b"replaced"));
        disk.done(Lane::Bulk, rename("next", "now"));
        for lane in Lane::ALL {
            disk.reads(lane, "now", b"replaced");
        }
        disk.done(Lane::Log, write("now", 2, b"PL"));
        disk.reads(Lane::Bulk, "now", b"rePLaced");
        disk.fails(Lane::Log, write("next", 0, b"?"), DiskErrorKind::NotFound);
        disk.done(Lane::Bulk, remove("now"));
        for lane in Lane::ALL {
            disk.fails(lane, sync("now"), DiskErrorKind::NotFound);
        }
    }
}

#[test]
fn a_new_file_leaves_another_name_of_the_old_one_alone() {
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    disk.done(Lane::Bulk, create("a", 0));
    disk.done(Lane::Bulk, write("a", 0, b"kept"));
    fs::hard_link(folder.path().join("a"), folder.path().join("backup")).expect("linked");
    disk.done(Lane::Log, create("a", 4096));
    disk.reads(Lane::Bulk, "a", &[0; 4096]);
    disk.reads(Lane::Bulk, "backup", b"kept");
}

#[test]
fn the_room_of_a_removed_file_is_free_soon_though_lanes_have_used_it() {
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    disk.done(Lane::Log, create("a", 0));
    for lane in Lane::ALL {
        disk.done(lane, write("a", 0, b"open"));
    }
    let held = || {
        let ours = fs::canonicalize(folder.path()).expect("there");
        let open = fs::read_dir("/proc/self/fd").expect("Linux");
        let paths = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        paths.filter(|path| path.starts_with(&ours)).count()
    };
    assert_eq!(held(), 3);
    disk.done(Lane::Bulk, remove("a"));
    // The test runner's limit is the only clock.
    while held() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn only_names_inside_the_folder_are_taken() {
    let folder = folder();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("made");
    fs::write(folder.path().join("outside"), b"outside").expect("written");
    let mut disk = asking(Some(&inside));
    for name in ["", ".", "..", "../outside", "a/b", "/etc/hostname", "a\0b"] {
        let ops = [
            create(name, 0),
            write(name, 0, b"x"),
            read(name, 0, 1),
            remove(name),
            rename(name, "a"),
            rename("outside", name),
            sync(name),
        ];
        for op in ops {
            disk.fails(Lane::Bulk, op, DiskErrorKind::Io);
        }
    }
    let outside = fs::read(folder.path().join("outside")).expect("still there");
    assert_eq!(outside, b"outside");
    assert_eq!(fs::read_dir(&inside).expect("there").count(), 0);
}

#[test]
fn errors_say_what_kind_they_are_of() {
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    for op in [
        write("none", 0, b"x"),
        read("none", 0, 1),
        sync("none"),
        rename("none", "other"),
    ] {
        disk.fails(Lane::Log, op, DiskErrorKind::NotFound);
    }
    disk.done(Lane::Log, create("a", 0));
    disk.fails(
        Lane::Log,
        write("a", u64::MAX - 1, b"xyz"),
        DiskErrorKind::Io,
    );
    // A pipe can be written to and not synced.
    let fifo_path = folder.path().join("fifo");
    fifo(&fifo_path);
    disk.fails(Lane::Sync, sync("fifo"), DiskErrorKind::Sync);
    let mut none = asking(None);
    for op in [create("a", 0), write("a", 0, b"xyz"), DiskOp::List] {
        none.fails(Lane::Log, op, DiskErrorKind::Io);
    }
}

/// A file system of its own, gone at the end of the test.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, with the reason printed, where this machine does not let us.
    fn new(path: PathBuf) -> Option<Self> {
        fs::create_dir(&path).expect("made");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "rufous-test"])
            .arg(&path)
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(path)),
            _ => {
                skip(Missing::Permission("permission to mount a tmpfs (root)"));
                None
            }
        }
    }

    fn remount(&self, how: &str) {
        let how = format!("remount,{how}");
        let status = Command::new("mount")
            .args(["-o", &how])
            .arg(&self.0)
            .status();
        assert!(status.expect("runs").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_says_so_and_takes_again_what_fits_later() {
    let folder = folder();
    let Some(small) = Mounted::new(folder.path().join("small")) else {
        return;
    };
    let mut disk = asking(Some(&small.0));
    disk.fails(Lane::Bulk, create("large", 2 << 20), DiskErrorKind::Full);
    assert!(!small.0.join("large").exists(), "nothing is left of it");
    disk.done(Lane::Log, create("log", 0));
    let much = vec![b'm'; 2 << 20];
    disk.fails(Lane::Log, write("log", 0, &much), DiskErrorKind::Full);
    disk.reads(Lane::Log, "log", &much[..1 << 20]);
    disk.fails(
        Lane::Log,
        write("log", 1 << 20, b"more"),
        DiskErrorKind::Full,
    );
    small.remount("size=4m");
    disk.done(Lane::Log, write("log", 0, &much));
}

#[test]
fn a_file_system_that_became_read_only_is_told_as_that() {
    let folder = folder();
    let Some(mounted) = Mounted::new(folder.path().join("mounted")) else {
        return;
    };
    let mut disk = asking(Some(&mounted.0));
    disk.done(Lane::Log, create("log", 0));
    disk.done(Lane::Log, write("log", 0, b"before"));
    // No file may be open for writing then.
    drop(disk);
    mounted.remount("ro");
    let mut disk = asking(Some(&mounted.0));
    disk.fails(Lane::Log, write("log", 0, b"after!"), DiskErrorKind::Denied);
    disk.fails(Lane::Bulk, create("new", 0), DiskErrorKind::Denied);
    disk.fails(Lane::Bulk, remove("log"), DiskErrorKind::Denied);
    disk.reads(Lane::Log, "log", b"before");
    mounted.remount("rw");
    disk.done(Lane::Log, write("log", 0, b"after!"));
}

#[test]
fn a_folder_without_permission_is_told_as_that() {
    if rustix::process::geteuid().is_root() {
        skip(Missing::Permission("a user other than root"));
        return;
    }
    let folder = folder();
    let mut disk = asking(Some(folder.path()));
    let allow = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path(), permissions).expect("ours");
    };
    allow(0o500);
    disk.fails(Lane::Log, create("log", 0), DiskErrorKind::Denied);
    allow(0o700);
    disk.done(Lane::Log, create("log", 0));
}
