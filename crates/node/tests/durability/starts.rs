//! Folders on which a node must not start: it says which file, where and what to
//! do, ends with an error, and leaves everything as it was. And folders that
//! look bad but are what a crash leaves.

use crate::audit::wire::Reply;
use crate::mount::{Mount, succeeds};
use crate::node::{Clients, Node, folder};
use rufous_skip::{Missing, skip};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

const KEYS: usize = 100;

/// One worker, each write acknowledged before the next; then killed.
fn written(dir: &Path) {
    let node = Node::start(dir, "--workers 1 --appendfsync always");
    let mut client = node.client();
    for n in 0..KEYS {
        let reply = client.run(&["SET", &format!("k{n}"), &format!("value {n}")]);
        assert_eq!(reply.expect("answered"), Reply::Status("OK".into()));
    }
    node.kill();
}

/// How many of the keys are there: the first ones, without a gap.
#[track_caller]
fn first_keys(node: &Node) -> usize {
    let Reply::Int(count) = node.run("DBSIZE") else {
        panic!("no number");
    };
    for n in 0..KEYS {
        let value = (n < count as usize).then(|| format!("value {n}").into_bytes());
        assert_eq!(
            node.run(&format!("GET k{n}")),
            Reply::Bulk(value),
            "k{n} of {count}"
        );
    }
    count as usize
}

/// All files but the lock, whose contents mean nothing.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("listed");
    let paths = entries.map(|entry| entry.expect("listed").path());
    let files = paths.filter(|path| !path.ends_with("lock"));
    // A node that runs may remove one meanwhile.
    files
        .filter_map(|path| Some((path.clone(), std::fs::read(&path).ok()?)))
        .collect()
}

/// The log file with the last frames, and where they end.
fn log_file(dir: &Path) -> (PathBuf, Vec<u8>, usize) {
    let all = contents(dir).into_iter();
    let mut logs = all.filter(|(path, bytes)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("log-") && bytes.iter().any(|byte| *byte != 0)
    });
    let (path, bytes) = logs.next_back().expect("a log");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("used") + 1;
    (path, bytes, end)
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

/// CRC-32 (IEEE 802.3), as headers and the manifest have it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
        })
    })
}

/// What the program says, and whether it succeeded.
fn check_data(dir: &Path, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rufous"));
    let output = command.arg("check-data").arg("--dir").arg(dir).args(more);
    let output = output.output().expect("run");
    let all = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&all).into_owned(),
    )
}

/// A start that fails, naming all this, and changes nothing.
#[track_caller]
fn assert_refused(dir: &Path, settings: &str, said: &[&str]) {
    let before = contents(dir);
    let log = Node::refused("", dir, settings);
    for text in said {
        assert!(log.contains(text), "{text:?} is missing: {log}");
    }
    let after = contents(dir);
    let changed = before
        .iter()
        .filter(|(path, bytes)| after.get(*path) != Some(bytes));
    let changed: Vec<_> = changed.map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "a start that fails changed {changed:?}");
    assert_eq!(after.len(), before.len());
}

#[test]
fn a_corrupt_middle_stops_the_start_until_it_is_repaired() {
    let (_temporary, dir) = folder();
    written(&dir);
    let (path, mut bytes, end) = log_file(&dir);
    let at = end / 2;
    bytes[at] ^= 0x10;
    std::fs::write(&path, &bytes).expect("written");
    let file = name(&path);
    for workers in [1, 3] {
        let said = [&file, "at byte", "rufous check-data", "--repair"];
        assert_refused(&dir, &format!("--workers {workers}"), &said);
    }
    let (fine, said) = check_data(&dir, &[]);
    assert!(
        !fine && said.contains("damaged: ") && said.contains(&file),
        "{said}"
    );
    let before = contents(&dir);
    let (fine, said) = check_data(&dir, &["--repair"]);
    assert!(fine && said.contains("given up: "), "{said}");
    let copy = std::fs::read(dir.join(format!("{file}.damaged-1"))).expect("a copy");
    assert!(copy == before[&path], "the copy is what there was");
    let node = Node::start(&dir, "--workers 2");
    let count = first_keys(&node);
    assert!((1..KEYS - 1).contains(&count), "{count}");
}

#[test]
fn a_damaged_snapshot_or_manifest_stops_the_start() {
    let (_temporary, dir) = folder();
    written(&dir);
    let node = Node::start(&dir, "--workers 2");
    assert_eq!(node.run("SAVE"), Reply::Status("OK".into()));
    node.until("what was before the save is removed", || {
        let names = contents(&dir).into_keys();
        names.filter(|path| name(path).starts_with("snap-")).count() == 2
    });
    node.kill();
    for kind in ["snap-", "manifest"] {
        let mut all = contents(&dir).into_iter();
        let (path, bytes) = all
            .find(|(path, _)| name(path).starts_with(kind))
            .expect("there");
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        std::fs::write(&path, damaged).expect("written");
        assert_refused(&dir, "", &[&name(&path), "rufous check-data"]);
        std::fs::remove_file(&path).expect("removed");
        assert_refused(&dir, "", &[&name(&path), "missing"]);
        std::fs::write(&path, bytes).expect("written");
    }
    let node = Node::start(&dir, "--workers 1");
    assert_eq!(first_keys(&node), KEYS);
}

#[test]
fn a_torn_tail_is_cut_and_told() {
    let (_temporary, dir) = folder();
    written(&dir);
    for lost in 1..4 {
        let (path, mut bytes, end) = log_file(&dir);
        // No loss of power makes a file shorter than it was made, so such a file is damaged.
        std::fs::write(&path, &bytes[..end - 3]).expect("written");
        assert_refused(&dir, "", &[&name(&path), "never shortened"]);
        bytes[end - 3..].fill(0);
        std::fs::write(&path, bytes).expect("written");
        let node = Node::start(&dir, "--workers 1 --appendfsync always");
        assert_eq!(first_keys(&node), KEYS - lost);
        let log = node.log();
        assert!(
            log.contains("which was truncated") && log.contains(&name(&path)),
            "{log}"
        );
        let cut: u64 = node.info("load_cut_bytes").parse().expect("a number");
        assert!(cut > 0);
        node.kill();
    }
    // It is cut for good: the next start finds nothing to cut.
    let node = Node::start(&dir, "--workers 2");
    assert_eq!(first_keys(&node), KEYS - 3);
    assert_eq!(node.info("load_cut_bytes"), "0");
}

#[test]
fn data_of_a_newer_version_is_refused() {
    let (_temporary, dir) = folder();
    written(&dir);
    let node = Node::start(&dir, "--workers 1");
    assert_eq!(node.run("SAVE"), Reply::Status("OK".into()));
    node.run("SET later 1");
    // What the save has superseded goes at leisure, and means nothing to a start.
    while contents(&dir)
        .iter()
        .any(|(path, _)| name(path).contains("-0000000001-"))
    {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    node.kill();
    for (path, bytes) in contents(&dir) {
        let mut newer = bytes.clone();
        if name(&path) == "manifest" {
            let text = String::from_utf8(newer).expect("text");
            let text = text.replace("rufous-manifest 1", "rufous-manifest 2");
            let (body, _) = text.rsplit_once("crc ").expect("a checksum");
            newer = format!("{body}crc {:08x}\n", crc(body.as_bytes())).into_bytes();
        } else if bytes.iter().all(|byte| *byte == 0) {
            continue;
        } else {
            newer[8] = 3;
            let sum = crc(&newer[..60]);
            newer[60..64].copy_from_slice(&sum.to_le_bytes());
        }
        std::fs::write(&path, newer).expect("written");
        assert_refused(&dir, "", &[&name(&path), "newer"]);
        let (fine, _) = check_data(&dir, &["--repair"]);
        assert!(!fine, "nothing of a newer version is given up");
        std::fs::write(&path, bytes).expect("written");
    }
    let node = Node::start(&dir, "--workers 1");
    assert_eq!(node.run("GETDEL later"), Reply::Bulk(Some(b"1".to_vec())));
    assert_eq!(first_keys(&node), KEYS);
}

#[test]
fn a_folder_that_is_in_use_is_refused_and_its_node_goes_on() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(2, 200);
    let node = Node::start(&dir, "");
    let load = clients.load(&node);
    let log = Node::refused("", &dir, "--workers 1");
    let user = format!("in use by process {}", node.id());
    assert!(
        log.contains(&user) && log.contains(&*dir.to_string_lossy()),
        "{log}"
    );
    let (fine, said) = check_data(&dir, &["--repair"]);
    assert!(!fine && said.contains(&user), "{said}");
    clients.rest_after(&node, load, 500);
    node.kill();
    let node = Node::start(&dir, "");
    clients.audit(&node);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let Some(mount) = Mount::memory(8 << 10) else {
        return;
    };
    written(&mount.data());
    assert!(mount.remount("ro"));
    let log = Node::refused("", &mount.data(), "");
    assert!(log.contains("read-only") && log.contains("--dir"), "{log}");
    assert!(check_data(&mount.data(), &[]).0, "it can be looked at");
    assert!(mount.remount("rw"));
    assert_eq!(first_keys(&Node::start(&mount.data(), "")), KEYS);
}

/// A user that is nobody in particular.
const NOBODY: u32 = 65_534;

#[test]
fn a_folder_or_file_of_somebody_else_is_refused() {
    let as_nobody = format!("--reuid={NOBODY} --regid={NOBODY} --clear-groups");
    let mut arguments: Vec<&str> = as_nobody.split(' ').collect();
    arguments.extend([env!("CARGO_BIN_EXE_rufous"), "--version"]);
    if !succeeds("setpriv", &arguments) {
        skip(Missing::Permission(
            "permission to run the program as another user (root)",
        ));
        return;
    }
    let prelude = format!("set -- setpriv {as_nobody} \"$@\"");
    let (temporary, dir) = folder();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(temporary.path(), open).expect("set");
    written(&dir);
    let refused = |said: &[&str]| {
        let before = contents(&dir);
        let log = Node::refused(&prelude, &dir, "");
        for text in said {
            assert!(log.contains(text), "{text:?} is missing: {log}");
        }
        assert!(contents(&dir) == before);
    };
    refused(&["belongs to user 0", "runs as user 65534", "chown -R"]);
    let give = |path: &Path| chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    give(&dir);
    refused(&["cannot write to the data folder", "ermission denied"]);
    give(&dir.join("lock"));
    refused(&["ermission denied", "manifest"]);
    give(&dir.join("manifest"));
    refused(&["ermission denied", "log-"]);
    contents(&dir).keys().for_each(|path| give(path));
    let node = Node::start_with(&prelude, &dir, "--workers 2");
    assert_eq!(first_keys(&node), KEYS);
}

/// The clock was set back between two starts: what was written "later" is as
/// good as anything, and saves go on by their schedule.
#[test]
fn a_clock_that_was_set_back_does_no_harm() {
    let (_temporary, dir) = folder();
    written(&dir);
    let node = Node::start(&dir, "");
    assert_eq!(node.run("SAVE"), Reply::Status("OK".into()));
    node.kill();
    let path = dir.join("manifest");
    let text = std::fs::read_to_string(&path).expect("read");
    let is_time = |line: &&str| line.starts_with("saved-ms ");
    let saved = text.lines().find(is_time).expect("a time");
    let text = text.replace(saved, "saved-ms 4000000000000");
    let (body, _) = text.rsplit_once("crc ").expect("a checksum");
    let text = format!("{body}crc {:08x}\n", crc(body.as_bytes()));
    std::fs::write(&path, text).expect("written");
    let node = Node::start(&dir, "--workers 1 --appendonly no --save 1 1");
    assert_eq!(first_keys(&node), KEYS);
    let saves = node.info("rdb_saves");
    assert_eq!(
        node.run("SET short 1 PX 600000"),
        Reply::Status("OK".into())
    );
    node.until("the schedule saves", || node.info("rdb_saves") != saves);
    node.kill();
    let node = Node::start(&dir, "--appendonly no --save 1 1");
    assert_eq!(node.run("GETDEL short"), Reply::Bulk(Some(b"1".to_vec())));
    assert_eq!(first_keys(&node), KEYS);
}
