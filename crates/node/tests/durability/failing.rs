//! Disks that fail in other ways than by being full: syncs that fail because the
//! device has no blocks, a file system that goes read-only, one that stands
//! still, and a limit on the size of files.

use crate::audit::wire::Reply;
use crate::full::{assert_only_misconf, assert_tells, sweep, wait_until_refused};
use crate::mount::{Block, Mount, succeeds};
use crate::node::{Clients, Node, folder};
use rufous_skip::{Missing, skip};

/// A file system whose device runs out of blocks: writes succeed (into the page
/// cache) and the sync fails. What was acknowledged is elsewhere by then, and
/// what counts is what the device has, not what the page cache makes of it:
/// the file system is mounted anew before the next start.
fn fail_to_sync(block: Block, before_the_end: impl Fn(&Node, &str)) {
    let Some(below) = Mount::memory(32 << 10) else {
        return;
    };
    let image = below.path().join("image");
    let Some(mut mount) = Mount::ext4_of(block, &image, 64, "^has_journal,^metadata_csum") else {
        return;
    };
    for fsync in ["always", "everysec"] {
        let settings = format!("--appendfsync {fsync}");
        let mut clients = Clients::new(3, 300);
        let mut node = Node::start(&mount.path().join(fsync), &settings);
        clients.fill(&node);
        for round in 0..2 {
            let saved = node.info("snapshot_generation");
            let load = clients.load(&node);
            node.takes(&load, 100);
            below.fill();
            wait_until_refused(&node);
            assert_tells(&node, "error");
            below.make_room();
            node.takes(&load, 500);
            node.until("INFO tells that it is over", || {
                node.info("aof_last_write_status") == "ok"
            });
            before_the_end(&node, &saved);
            node.kill();
            clients.rest(load);
            drop(mount);
            mount = Mount::image(&image).expect("it was mounted before");
            let dir = mount.path().join(fsync);
            node = Node::start(&dir, &format!("{settings} --workers {}", 1 + round));
            sweep(&node);
            clients.audit(&node);
        }
    }
}

#[test]
fn syncs_that_fail() {
    fail_to_sync(Block::Page, |_, _| ());
}

/// A loop device confirms a write of which only the front found room, and the
/// next one to the same place fails. No log helps against the first; but the
/// second is known, and a snapshot takes the place of what came before it.
#[test]
fn syncs_that_fail_after_one_that_lied() {
    fail_to_sync(Block::Small, |node, saved| {
        node.until("a snapshot is written", || {
            node.info("snapshot_generation") != saved
        });
    });
}

/// ext4 gives up: everything but reading fails from then on, until it is
/// mounted anew.
#[test]
fn a_file_system_that_goes_read_only() {
    let (temporary, _) = folder();
    let image = temporary.path().join("image");
    let Some(mount) = Mount::ext4(&image, 64, "has_journal") else {
        return;
    };
    let mut clients = Clients::new(3, 300);
    let node = Node::start(&mount.data(), "--appendfsync always");
    clients.fill(&node);
    let load = clients.load(&node);
    node.takes(&load, 300);
    if !mount.abort() {
        skip(Missing::Permission(
            "permission to abort an ext4 file system",
        ));
        return;
    }
    wait_until_refused(&node);
    assert_tells(&node, "error");
    assert_eq!(node.run("PING"), Reply::Status("PONG".into()));
    let saved = node.run("BGSAVE");
    assert!(matches!(saved, Reply::Error(_)), "{saved:?}");
    node.kill();
    clients.rest(load);
    drop(mount);
    let Some(mount) = Mount::image(&image) else {
        panic!("it was mounted before");
    };
    let node = Node::start(&mount.data(), "--workers 3");
    sweep(&node);
    clients.audit(&node);
    let load = clients.load(&node);
    clients.rest_after(&node, load, 200);
    node.kill();
    let node = Node::start(&mount.data(), "");
    clients.audit(&node);
}

/// While nothing can be written, those who only read are served; those who
/// write get their answer when the disk goes on.
#[test]
fn a_file_system_that_stands_still() {
    let (temporary, _) = folder();
    let image = temporary.path().join("image");
    let Some(mut mount) = Mount::ext4(&image, 64, "has_journal") else {
        return;
    };
    let mut clients = Clients::new(3, 300);
    let node = Node::start(&mount.data(), "--appendfsync always --workers 1");
    let value = Reply::Bulk(Some(b"1".to_vec()));
    let (mut reader, mut writer) = (node.client(), node.client());
    assert!(reader.run(&["INCR", "slow"]).is_ok());
    if !mount.freeze() {
        skip(Missing::Permission("permission to freeze a file system"));
        return;
    }
    for _ in 0..100 {
        assert_eq!(reader.run(&["GET", "slow"]).expect("answered"), value);
    }
    assert_eq!(node.info("aof_last_write_status"), "ok");
    let mut request = Vec::new();
    crate::audit::wire::encode(
        &crate::audit::wire::words(&["SETRANGE", "slow", "0", "1"]),
        &mut request,
    );
    writer.send(&request).expect("sent");
    mount.thaw();
    assert_eq!(writer.read().expect("answered"), Reply::Int(1));
    let load = clients.load(&node);
    node.takes(&load, 200);
    assert!(mount.freeze());
    // Whatever is under way waits; it is neither refused nor lost.
    std::thread::sleep(std::time::Duration::from_millis(100));
    mount.thaw();
    node.takes(&load, 200);
    node.kill();
    clients.rest(load);
    assert_eq!(clients.refusals(), [""; 0]);
    let node = Node::start(&mount.data(), "--workers 2");
    assert_eq!(node.run("GETDEL slow"), value);
    clients.audit(&node);
}

/// A limit on the size of files that somebody sets, and takes away again. The
/// signal that comes with it must not end the node.
#[test]
fn a_limit_on_the_size_of_files() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(3, 300);
    let mut node = Node::start(&dir, "--appendfsync always");
    clients.fill(&node);
    let limit = |node: &Node, limit: &str| {
        let pid = node.id().to_string();
        succeeds("prlimit", &["--pid", &pid, &format!("--fsize={limit}")])
    };
    let load = clients.load(&node);
    node.takes(&load, 100);
    if !limit(&node, "4096:unlimited") {
        skip(Missing::Permission(
            "permission to use prlimit on another process",
        ));
        return;
    }
    wait_until_refused(&node);
    assert_tells(&node, "File too large");
    let saved = node.run("BGSAVE");
    assert!(matches!(saved, Reply::Error(_)), "{saved:?}");
    assert!(limit(&node, "unlimited:unlimited"));
    node.takes(&load, 300);
    assert_eq!(node.info("aof_last_write_status"), "ok");
    node.kill();
    clients.rest(load);
    assert_only_misconf(&clients, "File too large");
    node = Node::start(&dir, "--workers 3");
    sweep(&node);
    clients.audit(&node);
}
