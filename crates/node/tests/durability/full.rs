//! Disks that fill up: writes are refused with the reason, reads go on, nobody
//! else notices, and when there is room again writes are taken without a
//! restart. Nothing acknowledged is lost.

use crate::audit::wire::{Connection, Reply, encode, words};
use crate::mount::Mount;
use crate::node::{Clients, Node};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many keys a stranger tries, so that each worker has some.
const PROBES: usize = 24;

/// Has strangers write until they are refused; what they read is served all
/// the same.
#[track_caller]
pub(crate) fn wait_until_refused(node: &Node) -> String {
    let mut refusal = String::new();
    node.until("writes are refused and reads go on", || {
        for n in 0..PROBES {
            // Whose write finds out is closed, wherever it was on its way between workers; nobody
            // is left waiting for room.
            match node.client().run(&["SET", &format!("probe:{n}"), "1"]) {
                Ok(Reply::Error(text)) => refusal = text,
                Ok(_) => {}
                Err(error) => assert!(is_closed(&error), "{error}"),
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

fn is_closed(error: &std::io::Error) -> bool {
    // Answers that do not come end in another one.
    !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
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

/// Whoever asks for a save hears why there can be none.
#[track_caller]
fn assert_saves_tell(node: &Node, why: &str) {
    for command in ["SAVE", "BGSAVE", "BGREWRITEAOF"] {
        let reply = node.run(command);
        let Reply::Error(text) = &reply else {
            panic!("{command}: {reply:?}");
        };
        assert!(text.starts_with("ERR ") && text.contains(why), "{text}");
    }
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
        assert_saves_tell(&node, "No space left");
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
            assert_eq!(clients.findings(&starting).lost, [""; 0]);
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
            assert!(text.contains("No space left"), "{text}");
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

/// Says so when it goes, also in a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keys that expire are logged; but who only reads depends on none of that, and
/// is answered when it cannot be written.
#[test]
fn readers_outlast_the_log_of_what_expires() {
    // More than there is room for in the segments that are made already.
    const KEYS: usize = 4_000;
    let key = |n: usize| format!("{n:0>100}");
    let Some(mount) = Mount::memory(12 << 10) else {
        return;
    };
    let node = Node::start(&mount.data(), "--appendfsync always --workers 2");
    // Until none has expired before the disk is full.
    let full = [4_000, 16_000, 60_000].iter().any(|delay| {
        let mut client = node.client();
        for n in 0..KEYS {
            let after = (delay + n / 2).to_string();
            let set = client.run(&["SET", &key(n), "1", "PX", &after]);
            assert_eq!(set.expect("answered"), Reply::Status("OK".into()));
        }
        mount.fill();
        let in_time = node.run("DBSIZE") == Reply::Int(KEYS as i64);
        if !in_time {
            mount.make_room();
        }
        in_time
    });
    assert!(full, "this machine is too slow");
    // So many at once that there is no turn without some.
    let mut request = Vec::new();
    (0..200).for_each(|n| encode(&words(&["GET", &key(n * KEYS / 200)]), &mut request));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let mut client = node.client();
            while !is_over.load(Ordering::Relaxed) {
                client.send(&request).expect("not closed");
                for _ in 0..200 {
                    let reply = client.read().expect("not closed");
                    assert!(matches!(reply, Reply::Bulk(_)), "{reply:?}");
                }
            }
        };
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        let _over = Over(&is_over);
        node.until("the log cannot be written, or all is gone", || {
            let is_closed = readers.iter().any(|reader| reader.is_finished());
            let fails = node.info("aof_last_write_status") == "err";
            is_closed || fails || node.run("DBSIZE") == Reply::Int(0)
        });
    });
    assert_eq!(node.info("aof_last_write_status"), "err");
}
