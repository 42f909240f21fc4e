//! The log is switched on and off while the node runs: what INFO shows is kept, whichever way the
//! node ends, and a stop waits for what the settings promise.

use crate::audit::wire::Reply;
use crate::mount::Mount;
use crate::node::{Clients, Node, folder};
use std::time::Duration;

fn ok() -> Reply {
    Reply::Status("OK".into())
}

/// Without a log, but with a data folder.
const UNLOGGED: &str = "--appendonly no --save 86400 1000000000";

/// Stops the node right after its log was switched on, before a reply.
fn stop_at_once(node: &mut Node, by_signal: bool) {
    let mut client = node.client();
    let set = crate::audit::wire::words(&["CONFIG", "SET", "appendonly", "yes"]);
    let mut bytes = Vec::new();
    crate::audit::wire::encode(&set, &mut bytes);
    client.send(&bytes).expect("sent");
    // What has not arrived is not promised.
    node.until("it has arrived", || {
        node.info("aof_switching") == "1" || node.info("aof_enabled") == "1"
    });
    if by_signal {
        node.signal("TERM");
    } else {
        assert!(node.client().run(&["SHUTDOWN"]).is_err());
    }
    assert_eq!(node.wait().code(), Some(0), "{}", node.log());
}

#[test]
fn a_stop_waits_until_the_log_that_was_switched_on_holds() {
    for (round, workers) in [1, 2, 3].into_iter().enumerate() {
        for by_signal in [false, true] {
            let (_temporary, dir) = folder();
            let mut clients = Clients::new(2, 50);
            // Without save points nothing but the log keeps anything.
            let settings = format!("--appendonly no --save 86400 1000000000 --workers {workers}");
            let mut node = Node::start(&dir, &settings);
            assert_eq!(node.run("CONFIG SET save "), ok());
            clients.fill(&node);
            stop_at_once(&mut node, by_signal);
            let node = Node::start(&dir, &format!("--workers {}", 1 + round));
            clients.audit(&node);
        }
    }
}

#[test]
fn what_info_shows_is_kept_whenever_the_node_is_killed() {
    for workers in [1, 2, 3] {
        let (_temporary, dir) = folder();
        let mut clients = Clients::new(2, 200);
        let node = Node::start(&dir, &format!("{UNLOGGED} --workers {workers}"));
        clients.fill(&node);
        let load = clients.load(&node);
        assert_eq!(node.info("aof_enabled"), "0");
        // It answers when it is done.
        assert_eq!(node.run("CONFIG SET appendonly yes"), ok());
        assert_eq!(node.info("aof_enabled"), "1");
        assert_eq!(node.info("aof_switching"), "0");
        node.kill();
        clients.rest(load);
        let node = Node::start(&dir, "--workers 2");
        clients.audit(&node);
    }
}

/// The setting changes faster than it takes effect, beside other saves.
#[test]
fn quick_changes_of_the_setting_end_in_the_last_one() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(2, 200);
    let mut node = Node::start(&dir, "--workers 3");
    clients.fill(&node);
    for round in 0..6 {
        let load = clients.load(&node);
        let mut others = Vec::new();
        for setting in ["no", "yes", "no", "yes"] {
            let mut client = node.client();
            let set = crate::audit::wire::words(&["CONFIG", "SET", "appendonly", setting]);
            let mut bytes = Vec::new();
            crate::audit::wire::encode(&set, &mut bytes);
            client.send(&bytes).expect("sent");
            others.push(client);
            // Connections of their own have no common order.
            let value = |of: &str| Reply::Bulk(Some(of.as_bytes().to_vec()));
            let shown = Reply::Array(Some(vec![value("appendonly"), value(setting)]));
            node.until("the setting is shown", || {
                node.run("CONFIG GET appendonly") == shown
            });
            if round % 2 == 0 {
                let reply = node.run("BGSAVE SCHEDULE");
                assert!(matches!(reply, Reply::Status(_)), "{reply:?}");
            }
            std::thread::sleep(Duration::from_millis(round * 3));
        }
        node.until("the log is on", || node.info("aof_enabled") == "1");
        node.takes(&load, 100);
        match round % 3 {
            0 => node.kill(),
            _ => {
                node.signal("TERM");
                assert_eq!(node.wait().code(), Some(0), "{}", node.log());
            }
        }
        clients.rest(load);
        drop(others);
        node = Node::start(&dir, "--workers 3");
        clients.audit(&node);
    }
}

/// A save by schedule, and one by a switch, are shown as what they are.
#[test]
fn saves_that_no_client_asked_for_are_shown() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(1, 100);
    let node = Node::start(&dir, "--appendonly no --save 1 1 --workers 2");
    clients.fill(&node);
    let value = "x".repeat(1 << 20);
    for key in 0..40 {
        assert_eq!(node.run(&format!("SET large:{key} {value}")), ok());
    }
    let mut shown = false;
    node.until("a save by schedule is shown and counted", || {
        shown |= node.info("rdb_bgsave_in_progress") == "1";
        shown && node.info("rdb_saves") != "0"
    });
    node.run("CONFIG SET save ");
    node.wait_until_saved();
    let rewrites = node.info("aof_rewrites");
    assert_eq!(node.run("CONFIG SET appendonly yes"), ok());
    assert_ne!(node.info("aof_rewrites"), rewrites);
}

/// On a full disk the switch fails, and says so; it can be undone, and succeeds later.
#[test]
fn a_full_disk_during_the_switch_is_told_and_passes() {
    let Some(mount) = Mount::memory(4096) else {
        return;
    };
    let settings = format!("{UNLOGGED} --workers 2 --log-segment-size 256kb");
    let mut clients = Clients::new(2, 50);
    let mut node = Node::start(&mount.data(), &settings);
    clients.fill(&node);
    mount.fill();
    let reply = node.run("CONFIG SET appendonly yes");
    let Reply::Error(text) = reply else {
        panic!("{reply:?}");
    };
    assert!(text.contains("not in use yet"), "{text}");
    assert_eq!(node.info("aof_enabled"), "0");
    // Undone, writes are taken as before.
    assert_eq!(node.run("CONFIG SET appendonly no"), ok());
    node.until("writes are taken", || node.run("SET probe 1") == ok());
    node.run("DEL probe");
    clients.read_all(&node);
    node.run("CONFIG SET appendonly yes");
    mount.make_room();
    node.until("the log is on", || node.info("aof_enabled") == "1");
    let load = clients.load(&node);
    clients.rest_after(&node, load, 100);
    node.signal("TERM");
    assert_eq!(node.wait().code(), Some(0), "{}", node.log());
    let node = Node::start(&mount.data(), &settings);
    clients.audit(&node);
}
