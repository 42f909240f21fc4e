//! The data folder is moved or removed while the node runs: that is noticed before anything more
//! is acknowledged, and a stop says so. Files that are shortened are no torn tails.

use crate::audit::wire::Reply;
use crate::full::wait_until_refused;
use crate::node::{Clients, Node, folder};
use std::fs;
use std::process::Command;

#[test]
fn nothing_is_acknowledged_after_the_folder_was_moved_away() {
    for mode in ["always", "everysec"] {
        let (_temporary, dir) = folder();
        let elsewhere = dir.with_file_name("elsewhere");
        let mut clients = Clients::new(2, 200);
        let node = Node::start(&dir, &format!("--appendfsync {mode}"));
        clients.fill(&node);
        let load = clients.load(&node);
        node.takes(&load, 200);
        fs::rename(&dir, &elsewhere).expect("moved");
        let refusal = wait_until_refused(&node);
        assert!(refusal.contains("removed or renamed"), "{refusal}");
        clients.rest(load);
        // What was acknowledged until then is in the folder that was moved.
        node.kill();
        let mut node = Node::start(&elsewhere, "");
        for n in 0..24 {
            node.run(&format!("DEL probe:{n}"));
        }
        clients.audit(&node);
        node.signal("TERM");
        assert_eq!(node.wait().code(), Some(0), "{}", node.log());
    }
}

#[test]
fn a_folder_that_comes_back_is_used_again() {
    let (_temporary, dir) = folder();
    let elsewhere = dir.with_file_name("elsewhere");
    let mut clients = Clients::new(2, 100);
    let mut node = Node::start(&dir, "--appendfsync always");
    clients.fill(&node);
    fs::rename(&dir, &elsewhere).expect("moved");
    wait_until_refused(&node);
    fs::rename(&elsewhere, &dir).expect("moved back");
    node.until("writes are taken again", || {
        (0..24).all(|n| {
            let reply = node.client().run(&["DEL", &format!("probe:{n}")]);
            matches!(reply, Ok(Reply::Int(_)))
        })
    });
    let load = clients.load(&node);
    clients.rest_after(&node, load, 200);
    node.signal("TERM");
    assert_eq!(node.wait().code(), Some(0), "{}", node.log());
    let node = Node::start(&dir, "");
    clients.audit(&node);
}

#[test]
fn a_stop_says_that_the_folder_is_gone() {
    for settings in [
        "--appendfsync always",
        "--appendfsync everysec",
        "--appendonly no --save 3600 1",
    ] {
        for moved in [false, true] {
            let (_temporary, dir) = folder();
            let mut node = Node::start(&dir, settings);
            node.run("SET key value");
            node.run("SAVE");
            if moved {
                fs::rename(&dir, dir.with_file_name("elsewhere")).expect("moved");
            } else {
                fs::remove_dir_all(&dir).expect("removed");
            }
            node.signal("TERM");
            let status = node.wait();
            let log = node.log();
            assert_eq!(status.code(), Some(1), "{settings}: {log}");
            assert!(log.contains("removed or renamed"), "{settings}: {log}");
        }
    }
}

/// Wherever it is cut, be it between two frames or behind the last one.
#[test]
fn a_log_that_was_shortened_stops_the_start() {
    let (_temporary, dir) = folder();
    let node = Node::start(&dir, "--workers 1 --appendfsync always");
    for key in 0..100 {
        let set = format!("SET key:{key} value");
        assert_eq!(node.run(&set), Reply::Status("OK".into()));
    }
    node.kill();
    let log = dir.join("log-0000000001-00000-00000000");
    let whole = fs::read(&log).expect("read");
    let used = whole.iter().rposition(|b| *b != 0).expect("frames") + 1;
    for bytes in [1, 63, 64, 65, used / 2, used - 1, used, whole.len() - 1] {
        fs::write(&log, &whole[..bytes]).expect("written");
        let said = Node::refused("", &dir, "--workers 1");
        assert!(said.contains("check-data"), "{bytes}: {said}");
    }
    let repair = Command::new(env!("CARGO_BIN_EXE_rufous"))
        .args(["check-data", "--repair", "--dir"])
        .arg(&dir)
        .output()
        .expect("run");
    let said = String::from_utf8_lossy(&repair.stdout).into_owned();
    let node = Node::start(&dir, "--workers 1");
    assert_eq!(node.run("DBSIZE"), Reply::Int(100), "{said}");
    node.kill();
    // As made again, it starts as often as one likes.
    let node = Node::start(&dir, "--workers 1");
    assert_eq!(node.run("DBSIZE"), Reply::Int(100));
}
