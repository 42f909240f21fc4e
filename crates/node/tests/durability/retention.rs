//! Earlier saves are kept, gone back to and given up.

use crate::audit::wire::Reply;
use crate::node::Node;
use std::path::Path;
use std::process::{Command, Output};

/// `rufous saves`; words stand between blanks.
fn saves(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rufous"))
        .arg("saves")
        .args(line.split(' '))
        .arg("--dir")
        .arg(dir)
        .env_clear()
        .output()
        .expect("run")
}

#[track_caller]
fn told(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains(why), "{errors}");
}

/// The numbers of the earlier saves, by `rufous saves list`.
#[track_caller]
fn listed(dir: &Path) -> Vec<u64> {
    let text = told(&saves(dir, "list"));
    let number = |line: &str| line.split('\t').next().and_then(|n| n.parse().ok());
    let all = text.lines().map(|line| number(line).expect("a number"));
    all.collect()
}

const KEYS: usize = 40;

/// Gives every key the value, and saves or not. Values are large enough for
/// several frames and segments.
#[track_caller]
fn fill(node: &Node, value: &str, save: bool) {
    let mut client = node.client();
    for key in 0..KEYS {
        let (key, value) = (format!("key{key}"), format!("{value}-{key}").repeat(500));
        let reply = client.run(&["SET", &key, &value]).expect("answered");
        assert_eq!(reply, Reply::Status("OK".into()));
    }
    let own = format!("only-{value}");
    client.run(&["SET", &own, value]).expect("answered");
    if save {
        let reply = client.run(&["SAVE"]).expect("answered");
        assert_eq!(reply, Reply::Status("OK".into()));
    }
}

/// Whether the data is that of [`fill`], and `own` are the only other keys.
#[track_caller]
fn holds(node: &Node, value: &str, own: &[&str]) {
    let mut client = node.client();
    for key in 0..KEYS {
        let wanted = format!("{value}-{key}").repeat(500).into_bytes();
        let reply = client.run(&["GET", &format!("key{key}")]);
        assert_eq!(reply.expect("answered"), Reply::Bulk(Some(wanted)));
    }
    for own in own {
        let reply = client.run(&["GET", &format!("only-{own}")]);
        let wanted = own.as_bytes().to_vec();
        assert_eq!(reply.expect("answered"), Reply::Bulk(Some(wanted)));
    }
    let size = client.run(&["DBSIZE"]).expect("answered");
    assert_eq!(size, Reply::Int((KEYS + own.len()) as i64));
}

/// A clean end.
fn stop(mut node: Node) {
    node.signal("TERM");
    assert!(node.wait().success(), "{}", node.log());
}

#[test]
fn one_goes_back_to_an_earlier_save_and_forth_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    let node = Node::start(dir, "--snapshot-retention 2");
    for value in ["one", "two", "three"] {
        fill(&node, value, true);
    }
    fill(&node, "four", false);
    assert_eq!(node.info("earlier_saves_kept"), "2");
    // The number of a save is that of its generation; the log of the start had the first.
    assert_eq!(listed(dir), [2, 3]);
    refused(&saves(dir, "restore 2"), "in use by process");
    node.kill();
    refused(&saves(dir, "restore 4"), "no earlier save 4");

    told(&saves(dir, "restore 2"));
    assert_eq!(listed(dir), [3]);
    let node = Node::start(dir, "--snapshot-retention 2");
    holds(&node, "one", &["one"]);
    fill(&node, "five", false);
    node.kill();
    let node = Node::start(dir, "--snapshot-retention 2");
    holds(&node, "five", &["one", "five"]);
    fill(&node, "six", true);
    assert_eq!(listed(dir), [2, 3]);
    stop(node);

    // With another number of workers, and what was put aside.
    told(&saves(dir, "restore 3"));
    let node = Node::start(dir, "--snapshot-retention 2 --workers 3");
    holds(&node, "two", &["one", "two"]);
    stop(node);
    let before = Node::start(&dir.join("replaced-1"), "");
    holds(&before, "four", &["one", "two", "three", "four"]);
    stop(before);
    let before = Node::start(&dir.join("replaced-2"), "");
    holds(&before, "six", &["one", "five", "six"]);
    stop(before);
}

#[test]
fn a_start_leaves_earlier_saves_alone_and_lowering_the_setting_removes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    let node = Node::start(dir, "--snapshot-retention 3");
    for value in ["one", "two", "three", "four"] {
        fill(&node, value, true);
    }
    stop(node);
    let node = Node::start(dir, "--snapshot-retention 0");
    assert_eq!(listed(dir), [2, 3, 4]);
    assert_eq!(node.info("earlier_saves_kept"), "3");
    // It is the same as before: nothing was asked for.
    node.run("CONFIG SET snapshot-retention 3");
    node.run("CONFIG SET snapshot-retention 1");
    node.until("surplus saves go", || listed(dir) == [4]);
    let reply = node.run("CONFIG GET snapshot-retention");
    let words = ["snapshot-retention", "1"].map(|w| Reply::Bulk(Some(w.into())));
    assert_eq!(reply, Reply::Array(Some(words.to_vec())));
    let names = || {
        let entries = std::fs::read_dir(dir).expect("a folder");
        let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("an entry").file_name();
        let names = entries.map(name).filter_map(|name| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|n| n.starts_with("snap-")).collect();
        names.sort();
        names
    };
    node.until("their snapshots go", || {
        names()
            .iter()
            .all(|n| !n.contains("-0000000002-") && !n.contains("-0000000003-"))
    });
    assert_eq!(names().len(), 4, "two workers, two saves: {:?}", names());
    holds(&node, "four", &["one", "two", "three", "four"]);
    stop(node);
    let checked = Command::new(env!("CARGO_BIN_EXE_rufous"))
        .args(["check-data", "--dir"])
        .arg(dir)
        .env_clear()
        .output()
        .expect("run");
    let text = told(&checked);
    assert!(
        text.contains("manifest-0000000004: an earlier save with 43 keys"),
        "{text}"
    );
    assert!(!text.contains("left over"), "{text}");
    // What is damaged in an earlier save stops nobody but who wants to go back to it.
    std::fs::write(dir.join("snap-0000000004-00001"), "damaged").expect("written");
    refused(&saves(dir, "restore 4"), "is damaged");
    let node = Node::start(dir, "");
    holds(&node, "four", &["one", "two", "three", "four"]);
    stop(node);
}
