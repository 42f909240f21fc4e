//! Disks that fill up: writes are refused with the reason, reads go on, nobody
//! else notices, and when there is room again writes are taken without a
//! restart. Nothing acknowledged is lost.

use crate::audit::wire::{Connection, Reply};
use crate::mount::Mount;
use crate::node::{Clients, Node};

/// How many keys a stranger tries, so that each worker has some.
const PROBES: usize = 24;

/// Has strangers write until they are refused; what they read is served all
/// the same.
#[track_caller]
pub(crate) fn wait_until_refused(node: &Node) -> String {
    let mut refusal = String::new();
    node.until("writes are refused and reads go on", || {
        for n in 0..PROBES {
            let mut client = node.client();
            client.impatient();
            // Whose write finds out is closed, or waits for room if it was on its way between
            // workers: nobody knows what will become of it.
            if let Ok(Reply::Error(text)) = client.run(&["SET", &format!("probe:{n}"), "1"]) {
                refusal = text;
            }
        }
        !refusal.is_empty()
    });
    let mut client = node.client();
    for n in 0..PROBES {
        let reply = client.run(&["GET", &format!("probe:{n}")]);
        assert!(matches!(reply, Ok(Reply::Bulk(_))), "{reply:?}");
    }
    assert!(refusal.starts_with("MISCONF "), "{refusal}");
    refusal
}

/// Takes away what the strangers wrote.
#[track_caller]
pub(crate) fn sweep(node: &Node) {
    let mut client = node.client();
    for n in 0..PROBES {
        let reply = client.run(&["DEL", &format!("probe:{n}")]);
        assert!(matches!(reply, Ok(Reply::Int(_))), "{reply:?}");
    }
}

/// The node says what is wrong, to everybody who may want to know.
#[track_caller]
pub(crate) fn assert_tells(node: &Node, why: &str) {
    node.until("INFO tells of the error", || {
        node.info("aof_last_write_status") == "err" && node.info("aof_last_error").contains(why)
    });
    let log = node.log();
    assert!(
        log.contains("writes are refused") && log.contains(why),
        "{log}"
    );
}

/// Clients were refused for this reason alone.
#[track_caller]
pub(crate) fn assert_only_misconf(clients: &Clients, why: &str) {
    for text in clients.refusals() {
        // EXEC says that what was queued before it was refused.
        let misconf = text.starts_with("MISCONF ") && text.contains(why);
        assert!(misconf || text.starts_with("EXECABORT "), "{text}");
    }
}

/// A client that was there before and only reads.
struct Reader(Connection);

impl Reader {
    #[track_caller]
    fn reads(&mut self) {
        let value = Reply::Bulk(Some(b"1".to_vec()));
        assert_eq!(self.0.run(&["GET", "read"]).expect("not closed"), value);
    }
}

fn fills_up(fsync: &str) {
    let Some(mount) = Mount::memory(12 << 10) else {
        return;
    };
    let settings = format!("--appendfsync {fsync} --workers 2");
    let mut clients = Clients::new(3, 300);
    let mut node = Node::start(&mount.data(), &settings);
    clients.fill(&node);
    let mut reader = Reader(node.client());
    assert!(reader.0.run(&["INCR", "read"]).is_ok());
    for round in 0..2 {
        let id = node.id();
        let load = clients.load(&node);
        node.takes(&load, 100);
        mount.fill();
        wait_until_refused(&node);
        assert_tells(&node, "No space left");
        reader.reads();
        assert_eq!(node.run("PING"), Reply::Status("PONG".into()));
        mount.make_room();
        node.takes(&load, 200);
        node.until("INFO tells that it is over", || {
            node.info("aof_last_write_status") == "ok"
        });
        reader.reads();
        assert_eq!(node.id(), id, "without a restart");
        node.takes(&load, 200);
        node.kill();
        clients.rest(load);
        assert_only_misconf(&clients, "No space left");
        node = Node::start(
            &mount.data(),
            &format!("{settings} --workers {}", 3 - round),
        );
        assert_eq!(node.run("DEL read"), Reply::Int(1));
        sweep(&node);
        clients.audit(&node);
        reader = Reader(node.client());
        assert!(reader.0.run(&["INCR", "read"]).is_ok());
    }
}

#[test]
fn a_full_disk_with_each_write_synced() {
    fills_up("always");
}

#[test]
fn a_full_disk_with_a_sync_each_second() {
    fills_up("everysec");
}

/// Killed while it is full: what was acknowledged is there, whether or not a
/// start waits for room.
#[test]
fn killed_on_a_full_disk() {
    let Some(mount) = Mount::memory(12 << 10) else {
        return;
    };
    let mut clients = Clients::new(3, 300);
    let node = Node::start(&mount.data(), "--appendfsync always");
    clients.fill(&node);
    let load = clients.load(&node);
    node.takes(&load, 100);
    mount.fill();
    wait_until_refused(&node);
    node.kill();
    clients.rest(load);
    mount.fill();
    for workers in [2, 3] {
        let mut starting = Node::spawn(&mount.data(), &format!("--workers {workers}"));
        if starting.serves() {
            clients.audit_in_trouble(&starting);
        } else {
            let log = starting.log();
            assert!(log.contains("No space left"), "{log}");
        }
        starting.kill();
    }
    mount.make_room();
    let node = Node::start(&mount.data(), "--workers 1");
    sweep(&node);
    clients.audit(&node);
    let load = clients.load(&node);
    clients.rest_after(&node, load, 200);
}

#[test]
fn a_disk_that_fills_up_while_it_saves() {
    let Some(mount) = Mount::memory(12 << 10) else {
        return;
    };
    let mut clients = Clients::new(3, 1_500);
    let mut node = Node::start(&mount.data(), "--appendfsync everysec");
    clients.fill(&node);
    for command in ["BGSAVE", "BGREWRITEAOF"] {
        mount.fill();
        node.run(command);
        node.until("the save fails", || {
            node.info("rdb_last_bgsave_status") == "err"
        });
        let why = node.info("snapshot_last_error");
        assert!(why.contains("No space left"), "{why}");
        if command == "BGREWRITEAOF" {
            assert_eq!(node.info("aof_last_bgrewrite_status"), "err");
        } else {
            let Reply::Error(text) = node.run("SAVE") else {
                panic!("there is no room");
            };
            assert!(text.starts_with("ERR "), "{text}");
        }
        clients.read_all(&node);
        mount.make_room();
        node.until("writes are taken", || {
            node.run("SET again 1") == Reply::Status("OK".into())
        });
        assert_eq!(node.run("SAVE"), Reply::Status("OK".into()));
        assert_eq!(node.info("rdb_last_bgsave_status"), "ok");
        assert_eq!(node.run("DEL again"), Reply::Int(1));
        let load = clients.load(&node);
        clients.rest_after(&node, load, 300);
        node.kill();
        node = Node::start(&mount.data(), "--workers 3");
        clients.audit(&node);
    }
}
