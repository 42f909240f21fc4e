//! kill -9 under load, over and over: what was acknowledged is there again,
//! commands over several keys and transactions happened as a whole or not at
//! all, counters did not go back, and nothing expires early or comes back.

use crate::audit::wire::Reply;
use crate::node::{Clients, Node, folder};

/// Fewer and more workers than the time before.
const WORKERS: [usize; 6] = [1, 3, 2, 4, 4, 1];

/// What goes on beside the load when the node is killed.
const BESIDE: [&[&str]; 4] = [
    &[],
    &["BGSAVE"],
    &["BGREWRITEAOF"],
    &["BGSAVE", "BGREWRITEAOF"],
];

fn kill_loop(fsync: &str, writes: u64) {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(4, 400);
    let mut node = Node::start(&dir, &format!("--workers 2 --appendfsync {fsync}"));
    clients.fill(&node);
    for (round, workers) in WORKERS.into_iter().enumerate() {
        let load = clients.load(&node);
        node.takes(&load, writes);
        for line in BESIDE[round % BESIDE.len()] {
            node.run(line);
        }
        node.takes(&load, writes / 4);
        node.kill();
        clients.rest(load);
        node = Node::start(&dir, &format!("--workers {workers} --appendfsync {fsync}"));
        let findings = clients.audit(&node);
        println!(
            "{fsync}, round {round}, {workers} workers: {} keys, {} there, {} commands without an \
             answer happened, {} did not",
            findings.keys, findings.present, findings.happened, findings.not_happened
        );
    }
    assert_eq!(clients.refusals(), [""; 0]);
}

#[test]
fn killed_with_each_write_synced() {
    kill_loop("always", 400);
}

#[test]
fn killed_with_a_sync_each_second() {
    kill_loop("everysec", 3_000);
}

#[test]
fn killed_without_syncs() {
    kill_loop("no", 3_000);
}

/// The audit itself: whatever was not the clients' doing is seen.
#[test]
fn the_audit_sees_what_is_missing_old_half_or_too_much() {
    let (_temporary, dir) = folder();
    let node = Node::start(&dir, "");
    let spoil: [(&str, &str); 6] = [
        ("DEL r:1:0:0", "r:1:0:0"),
        ("SET c:0:1:0 0", "c:0:1:0"),
        ("APPEND g:0:3:2 x", "g:0:3:2"),
        ("SETRANGE t:1:4:1 0 x", "t:1:4:1"),
        ("PERSIST e:0:2:0", "e:0:2:0"),
        ("COPY w:0:5:0 w:0:5:1", "w:0:5:1"),
    ];
    for (line, key) in spoil {
        let mut clients = Clients::new(2, 12);
        node.run("FLUSHALL");
        clients.fill(&node);
        clients.audit(&node);
        if node.run(line) == Reply::Int(0) {
            // It had expired already.
            assert!(line.starts_with("PERSIST"), "{line}");
            continue;
        }
        let lost = clients.findings(&node).lost;
        assert_eq!(lost.len(), 1, "{line}: {lost:?}");
        assert!(lost[0].contains(key), "{line}: {lost:?}");
        // From there on it is what there is.
        clients.audit(&node);
    }
    let findings = Clients::new(1, 12).findings(&node);
    assert!(
        !findings.lost.is_empty(),
        "nothing was written: {findings:?}"
    );
}

/// A start that is itself killed, at whatever it was doing, leaves what there was.
#[test]
fn killed_while_it_starts() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(2, 2_000);
    let mut node = Node::start(&dir, "--workers 2");
    clients.fill(&node);
    for round in 0..6 {
        let load = clients.load(&node);
        node.takes(&load, 500);
        node.kill();
        clients.rest(load);
        for attempt in 0..3 {
            let workers = 1 + (round + attempt) % 4;
            let starting = Node::spawn(&dir, &format!("--workers {workers}"));
            // Anywhere between its first step and its last.
            let pause = (round * 3 + attempt) * 4;
            std::thread::sleep(std::time::Duration::from_millis(pause));
            starting.kill();
        }
        node = Node::start(&dir, &format!("--workers {}", 1 + round % 3));
        clients.audit(&node);
    }
}

/// Nothing but the log and one snapshot after another: old files go, and a
/// folder does not grow for ever.
#[test]
fn killed_while_one_save_follows_the_other() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(3, 600);
    let mut node = Node::start(&dir, "--workers 3");
    clients.fill(&node);
    for round in 0..4_usize {
        let load = clients.load(&node);
        for _ in 0..4 {
            node.run(["BGSAVE", "BGREWRITEAOF"][round % 2]);
            node.takes(&load, 200);
        }
        node.kill();
        clients.rest(load);
        node = Node::start(&dir, &format!("--workers {}", [3, 3, 2, 3][round]));
        clients.audit(&node);
    }
    node.run("BGSAVE");
    node.wait_until_saved();
    assert_eq!(node.info("rdb_last_bgsave_status"), "ok");
    node.until("earlier snapshots are removed", || {
        let names = std::fs::read_dir(&dir).expect("listed");
        let is_snapshot = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("snap-");
        let names = names.filter_map(|entry| Some(entry.ok()?.file_name()));
        names.filter(is_snapshot).count() == 3
    });
    assert_eq!(clients.refusals(), [""; 0]);
}
