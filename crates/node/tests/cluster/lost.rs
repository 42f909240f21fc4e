//! Lattice keys while a node is away for good: others start without it, and it can be removed.

use crate::gossip::{agree, bulk, serve, start_in};
use crate::node::{Node, connect_all, number};
use crate::plain::text;
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use std::path::Path;
use std::time::{Duration, Instant};

/// Three nodes with data in these folders.
fn three(meeting: &Meeting, folders: &[tempfile::TempDir; 3]) -> Vec<Node> {
    let all = folders.iter().zip([1, 2, 1]);
    let mut nodes: Vec<_> = all
        .map(|(folder, workers)| start_in(meeting, workers, folder.path()))
        .collect();
    connect_all(&mut nodes);
    serve(&mut nodes, &[1, 2, 1]);
    for node in &mut nodes {
        node.call(&["INCRBY", "likes:n", "5"]);
    }
    agree(&mut nodes, &["GET", "likes:n"], &bulk("15"));
    nodes
}

fn folders() -> [tempfile::TempDir; 3] {
    [0, 1, 2].map(|_| tempfile::tempdir().expect("a folder"))
}

/// What the node has recorded of its last start is gone: its log may lack something.
fn forget_run(folder: &Path) {
    std::fs::remove_file(folder.join("cluster").join("run")).expect("there");
}

/// The number of the node, as n2.
fn name(node: &mut Node) -> String {
    node.info()["cluster_node_number"].clone()
}

fn forget(node: &mut Node, name: &str) -> String {
    text(node.call(&["CLUSTER", "FORGET", name]))
}

/// Removes a node that has ended, as soon as the coordinator has noticed that.
fn remove(node: &mut Node, id: &str, members: u64) {
    let begun = Instant::now();
    loop {
        let said = forget(node, id);
        if said == "OK" {
            break;
        }
        assert!(said.contains("is alive"), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
    node.until("it is removed", |info| {
        number(info, "cluster_members") == members
    });
}

#[test]
fn one_dead_node_does_not_keep_another_from_serving_lattice_keys() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    nodes.pop().expect("a node").stop();
    nodes.pop().expect("a node").stop();
    nodes.push(start_in(&meeting, 2, folders[1].path()));
    // While it waits, it says so.
    let info = nodes[1].until("it waits", |info| {
        number(info, "cluster_gossip_workers_waiting") == 2
            && !info["cluster_lattice_waits"].is_empty()
    });
    assert!(!info["cluster_lattice_waits"].is_empty());
    let state = text(nodes[1].call(&["CLUSTER", "INFO"]));
    assert!(state.contains("cluster_state:fail"), "{state}");
    assert!(nodes[1].not_ready().is_some());
    serve(&mut nodes, &[1, 2]);
    nodes[1].until("it says that it serves", |info| {
        info["cluster_lattice_waits"].is_empty()
    });
    let waiting = number(&nodes[1].info(), "cluster_gossip_workers_waiting");
    assert_eq!(waiting, 0);
    // It goes on where it was.
    assert_eq!(nodes[1].call(&["INCR", "likes:n"]), Reply::Integer(16));
    nodes[1].call(&["DEL", "likes:gone"]);
    // The third one is back, and has missed nothing in the end.
    nodes.push(start_in(&meeting, 1, folders[2].path()));
    serve(&mut nodes, &[1, 2, 1]);
    assert!(matches!(
        nodes[2].call(&["INCR", "likes:n"]),
        Reply::Integer(16 | 17)
    ));
    agree(&mut nodes, &["GET", "likes:n"], &bulk("17"));
}

#[test]
fn a_node_that_may_lack_something_waits_until_the_dead_one_is_removed() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    let mut dead = nodes.pop().expect("a node");
    let (id, away) = (
        dead.id.clone(),
        format!("{} cannot be reached", name(&mut dead)),
    );
    dead.stop();
    nodes.pop().expect("a node").stop();
    forget_run(folders[1].path());
    nodes.push(start_in(&meeting, 2, folders[1].path()));
    nodes[1].until("it says what to do", |info| {
        let why = &info["cluster_lattice_waits"];
        why.contains(&away) && why.contains("rufous cluster forget")
    });
    std::thread::sleep(Duration::from_secs(8));
    let info = nodes[1].info();
    assert_eq!(number(&info, "cluster_gossip_workers_serving"), 0);
    let ready = nodes[1].not_ready().expect("it is not ready");
    assert!(
        ready.contains("lattice keys") || ready.contains("copies"),
        "{ready}"
    );
    let status = text(nodes[0].call(&["CLUSTER", "STATUS"]));
    assert!(status.contains(&format!(",waits={away}")), "{status}");
    remove(&mut nodes[0], &id, 2);
    serve(&mut nodes, &[1, 2]);
    assert_eq!(nodes[1].call(&["INCR", "likes:n"]), Reply::Integer(16));
    // From now on its files are known to be whole.
    nodes.pop().expect("a node").stop();
    nodes.remove(0).stop();
    let mut alone = [start_in(&meeting, 2, folders[1].path())];
    serve(&mut alone, &[2]);
    assert_eq!(alone[0].call(&["INCR", "likes:n"]), Reply::Integer(17));
}

#[test]
fn a_node_that_was_removed_joins_as_a_new_one_and_brings_nothing_back() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    nodes[2].call(&["SET", "likes:old", "1"]);
    agree(&mut nodes, &["GET", "likes:old"], &bulk("1"));
    let id = nodes[2].id.clone();
    let refused = forget(&mut nodes[0], &id);
    let alive = format!("ERR node {} is alive: ", name(&mut nodes[2]));
    assert!(refused.starts_with(&alive), "{refused}");
    let refused = forget(&mut nodes[2], &id);
    assert!(
        refused.starts_with("ERR the node does not remove itself"),
        "{refused}"
    );
    let refused = forget(&mut nodes[0], "n7");
    assert_eq!(refused, "ERR Unknown node n7");
    nodes.pop().expect("a node").stop();
    remove(&mut nodes[0], &id, 2);
    assert_eq!(forget(&mut nodes[1], &id), format!("ERR Unknown node {id}"));
    // Deleted, and forgotten by all that are left.
    assert_eq!(nodes[0].call(&["DEL", "likes:old"]), Reply::Integer(1));
    assert_eq!(nodes[1].call(&["INCR", "likes:n"]), Reply::Integer(16));
    agree(&mut nodes, &["GET", "likes:old"], &Reply::Null);
    std::thread::sleep(Duration::from_millis(300));
    nodes.push(start_in(&meeting, 1, folders[2].path()));
    serve(&mut nodes, &[1, 2, 1]);
    let own = &nodes[2].info()["cluster_node_number"];
    assert_eq!(own, "n3", "another number");
    agree(&mut nodes, &["GET", "likes:n"], &bulk("16"));
    agree(&mut nodes, &["GET", "likes:old"], &Reply::Null);
    assert!(matches!(
        nodes[2].call(&["INCR", "likes:n"]),
        Reply::Integer(17)
    ));
    agree(&mut nodes, &["GET", "likes:n"], &bulk("17"));
}

#[test]
fn a_new_node_waits_for_every_member_until_the_dead_one_is_removed() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    let dead = nodes.pop().expect("a node");
    let id = dead.id.clone();
    dead.stop();
    let folder = tempfile::tempdir().expect("a folder");
    nodes.push(start_in(&meeting, 1, folder.path()));
    nodes[2].until("it says what to do", |info| {
        let why = &info["cluster_lattice_waits"];
        why.contains("this node is new") && why.contains("rufous cluster forget")
    });
    remove(&mut nodes[1], &id, 3);
    serve(&mut nodes, &[1, 2, 1]);
    assert_eq!(nodes[2].call(&["INCR", "likes:n"]), Reply::Integer(16));
}
