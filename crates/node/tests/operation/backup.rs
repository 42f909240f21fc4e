//! Backups with the real program: made under load, whole, of one instant.

use crate::program::{Client, Node, bulk, eventually, program, run, simple, stderr, stdout};
use rufous_resp::Reply;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Pairs of keys that are always set together, to the same value.
const PAIRS: usize = 40;

fn backup(args: &[&str]) -> Output {
    run(program(&["backup"]).args(args))
}

#[track_caller]
fn create(port: u16, dir: &Path, to: &Path) -> String {
    let output = backup(&[
        "create",
        "--server",
        &format!("127.0.0.1:{port}"),
        "--dir",
        &dir.display().to_string(),
        "--to",
        &to.display().to_string(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).trim().to_owned()
}

fn started(dir: &Path, more: &[&str]) -> Node {
    let dir = dir.display().to_string();
    let mut args = vec!["--dir", &dir, "--appendonly", "yes"];
    args.extend_from_slice(more);
    Node::start(&args)
}

/// Sets pairs to rising values until told to stop.
fn drive(mut client: Client, stop: &AtomicBool, rounds: &AtomicU64) {
    let mut value = 0;
    while !stop.load(Ordering::Relaxed) {
        value += 1;
        for pair in 0..PAIRS {
            let reply = client.call(&format!("MSET left:{pair} {value} right:{pair} {value}"));
            assert_eq!(reply, simple("OK"));
        }
        rounds.store(value, Ordering::Relaxed);
    }
}

/// Every pair is equal, and no pair is behind one that was set before it by
/// more than the round that was under way. Returns the value of the last pair.
#[track_caller]
fn check_one_instant(client: &mut Client) -> u64 {
    let mut values = Vec::new();
    for pair in 0..PAIRS {
        let Reply::Array(both) = client.call(&format!("MGET left:{pair} right:{pair}")) else {
            panic!("no array");
        };
        assert_eq!(both[0], both[1], "pair {pair}");
        let Reply::Bulk(text) = &both[0] else {
            panic!("pair {pair} is missing: {both:?}");
        };
        let text = String::from_utf8_lossy(text);
        values.push(text.parse::<u64>().expect("a number"));
    }
    assert!(values.windows(2).all(|two| two[0] >= two[1]), "{values:?}");
    assert!(values[0] - values[PAIRS - 1] <= 1, "{values:?}");
    values[PAIRS - 1]
}

#[test]
fn a_backup_under_load_shows_one_instant() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, to) = (dir.path().join("data"), dir.path().join("backups"));
    let node = started(&data, &[]);
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        let client = node.client();
        scope.spawn(|| drive(client, &stop, &rounds));
        for before in 1..4 {
            eventually("there is load", || {
                (rounds.load(Ordering::Relaxed) >= 2 * before).then_some(())
            });
            let least = rounds.load(Ordering::Relaxed);
            made.push((create(node.port, &data, &to), least));
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(node);
    let listed = backup(&["list", "--from", &to.display().to_string()]);
    for (number, (id, least)) in made.iter().enumerate() {
        assert!(stdout(&listed).contains(id), "{}", stdout(&listed));
        let restored = dir.path().join(format!("restored-{number}"));
        let (from, folder) = (to.display().to_string(), restored.display().to_string());
        for command in [
            &["verify", "--from", &from, "--backup", id][..],
            &["restore", "--from", &from, "--backup", id, "--dir", &folder],
        ] {
            let output = backup(command);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        let again = backup(&["restore", "--from", &from, "--dir", &folder]);
        assert_eq!(again.status.code(), Some(1));
        assert!(
            stderr(&again).contains("is not empty"),
            "{}",
            stderr(&again)
        );
        // With another number of workers than it was made with.
        let workers = (1 + number).to_string();
        let node = started(&restored, &["--workers", &workers]);
        let found = check_one_instant(&mut node.client());
        assert!(found >= *least, "{found} of at least {least}");
    }
}

#[test]
fn damage_is_found_and_what_is_there_does_not_travel_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, to) = (dir.path().join("data"), dir.path().join("backups"));
    let node = started(&data, &[]);
    let mut client = node.client();
    for key in 0..200 {
        assert_eq!(
            client.call(&format!("SET {key} {}", "x".repeat(100))),
            simple("OK")
        );
    }
    assert_eq!(client.call("SAVE"), simple("OK"));
    let first = create(node.port, &data, &to);
    let files = || std::fs::read_dir(to.join("files")).expect("files").count();
    let before = files();
    let second = create(node.port, &data, &to);
    assert_eq!(files(), before, "nothing changed in between");
    assert_ne!(first, second);
    let from = to.display().to_string();
    // The largest file is a snapshot.
    let entries = std::fs::read_dir(to.join("files")).expect("files");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let largest = paths
        .max_by_key(|path| path.metadata().map_or(0, |found| found.len()))
        .expect("a file");
    let mut bytes = std::fs::read(&largest).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&largest, &bytes).expect("written");
    let output = backup(&["verify", "--from", &from]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is damaged"),
        "{}",
        stderr(&output)
    );
    std::fs::remove_file(&largest).expect("removed");
    let output = backup(&["verify", "--from", &from]);
    assert!(
        stderr(&output).contains("is missing"),
        "{}",
        stderr(&output)
    );
    // The next backup heals what is missing, and prune keeps only that.
    let third = create(node.port, &data, &to);
    let output = backup(&["prune", "--from", &from, "--keep", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = backup(&["verify", "--from", &from]);
    assert!(stdout(&output).contains(&third), "{}", stderr(&output));
    let gone = backup(&["verify", "--from", &from, "--backup", &first]);
    assert!(stderr(&gone).contains("no backup"), "{}", stderr(&gone));
    assert_eq!(client.call("GET 7"), bulk(&"x".repeat(100)));
}

#[test]
fn a_worker_that_logged_nothing_since_the_snapshot_is_no_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, to) = (dir.path().join("data"), dir.path().join("backups"));
    let node = started(&data, &[]);
    let mut client = node.client();
    assert_eq!(client.call("SAVE"), simple("OK"));
    // One key is one worker's, and the other has nothing to log.
    assert_eq!(client.call("SET key value"), simple("OK"));
    create(node.port, &data, &to);
    let restored = dir.path().join("restored");
    let output = backup(&[
        "restore",
        "--from",
        &to.display().to_string(),
        "--dir",
        &restored.display().to_string(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    drop(node);
    let node = started(&restored, &[]);
    assert_eq!(node.client().call("GET key"), bulk("value"));
}
