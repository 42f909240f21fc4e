//! Lattice keys while a node is away for good: others start without it, a start whose files may lack
//! something waits for it and says so, and it can be removed.

use crate::gossip::{agree, bulk, configured, likes, serve};
use crate::node::{Node, connect_all, number};
use crate::plain::text;
use crate::sick::all_whole;
use rufous_base::limits::GOSSIP_AWAY_US;
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::config::Config;
use std::path::Path;
use std::time::{Duration, Instant};

/// A node with two copies of slots: one that has died has the only copy of none.
fn start_in(meeting: &Meeting, workers: usize, folder: &Path) -> Node {
    let mut config = configured(meeting, workers, vec![likes()]);
    config.cluster.as_mut().expect("in a cluster").copies = 2;
    Node::of(&Config {
        folder: true,
        appendonly: true,
        dir: folder.display().to_string(),
        ..config
    })
}

/// Three nodes with data in these folders.
fn three(meeting: &Meeting, folders: &[tempfile::TempDir; 3]) -> Vec<Node> {
    let all = folders.iter().zip([1, 2, 1]);
    let mut nodes: Vec<_> = all
        .map(|(folder, workers)| start_in(meeting, workers, folder.path()))
        .collect();
    connect_all(&mut nodes);
    serve(&mut nodes, &[1, 2, 1]);
    // Before, one node has the only copies of all slots, and is not removed.
    all_whole(&mut nodes, 2);
    for node in &mut nodes {
        node.call(&["INCRBY", "likes:n", "5"]);
    }
    agree(&mut nodes, &["GET", "likes:n"], &bulk("15"));
    nodes
}

fn folders() -> [tempfile::TempDir; 3] {
    [0, 1, 2].map(|_| tempfile::tempdir().expect("a folder"))
}

/// The record of the node's last start is gone, as after a restart of its machine: its log may lack its
/// end.
fn doubt(folder: &Path) {
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
    all_whole(&mut nodes, 2);
    nodes.pop().expect("a node").stop();
    let begun = Instant::now();
    nodes.push(start_in(&meeting, 2, folders[1].path()));
    let info = nodes[1].until("it says that it waits", |info| {
        number(info, "cluster_gossip_workers_waiting") == 2
            && info["cluster_lattice_waits"].contains("goes on without them")
    });
    assert_eq!(number(&info, "cluster_gossip_workers_serving"), 0);
    serve(&mut nodes, &[1, 2]);
    let took = begun.elapsed();
    let wait = Duration::from_micros(GOSSIP_AWAY_US);
    assert!(took >= wait, "{took:?}: it may have come");
    assert!(took < 3 * wait, "{took:?}");
    nodes[1].until("it says that it serves", |info| {
        info["cluster_lattice_waits"].is_empty()
    });
    // It goes on where it was.
    assert_eq!(nodes[1].call(&["INCR", "likes:n"]), Reply::Integer(16));
    nodes[0].call(&["SET", "likes:since", "1"]);
    // The third one is back, and has missed nothing in the end.
    nodes.push(start_in(&meeting, 1, folders[2].path()));
    serve(&mut nodes, &[1, 2, 1]);
    let counted = nodes[2].call(&["INCR", "likes:n"]);
    assert!(
        matches!(counted, Reply::Integer(16 | 17)),
        "its own five are in it: {counted:?}"
    );
    agree(&mut nodes, &["GET", "likes:n"], &bulk("17"));
    agree(&mut nodes, &["GET", "likes:since"], &bulk("1"));
}

#[test]
fn a_start_whose_files_may_lack_something_waits_for_a_dead_node_until_that_is_removed() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    let mut dead = nodes.pop().expect("a node");
    let (id, away) = (
        dead.id.clone(),
        format!("{} cannot be reached", name(&mut dead)),
    );
    dead.stop();
    all_whole(&mut nodes, 2);
    nodes.pop().expect("a node").stop();
    doubt(folders[1].path());
    nodes.push(start_in(&meeting, 2, folders[1].path()));
    nodes[1].until("it says what to do", |info| {
        let why = &info["cluster_lattice_waits"];
        why.contains(&away)
            && why.contains("rufous cluster forget")
            && number(info, "cluster_gossip_workers_waiting") == 2
    });
    let state = text(nodes[1].call(&["CLUSTER", "INFO"]));
    assert!(state.contains("cluster_state:fail"), "{state}");
    let ready = nodes[1].not_ready().expect("it is not ready");
    assert!(
        ready.contains("lattice keys") || ready.contains("copies"),
        "{ready}"
    );
    // The other node reads it in the coordinator.
    eventually_says(&mut nodes[0], &format!(",waits={away}"));
    // However long that is.
    std::thread::sleep(Duration::from_micros(GOSSIP_AWAY_US) + Duration::from_secs(2));
    let info = nodes[1].info();
    assert_eq!(number(&info, "cluster_gossip_workers_serving"), 0);
    remove(&mut nodes[0], &id, 2);
    serve(&mut nodes, &[1, 2]);
    let info = nodes[1].until("it says that it serves", |info| {
        info["cluster_lattice_waits"].is_empty()
    });
    assert_eq!(number(&info, "cluster_gossip_workers_waiting"), 0);
    // It goes on where it was.
    assert_eq!(nodes[1].call(&["INCR", "likes:n"]), Reply::Integer(16));
    agree(&mut nodes, &["GET", "likes:n"], &bulk("16"));
    // From now on its files are known to have everything.
    let record = folders[1].path().join("cluster").join("run");
    let begun = Instant::now();
    while !std::fs::read_to_string(&record).is_ok_and(|text| !text.starts_with("boot -")) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    nodes.pop().expect("a node").stop();
    nodes.remove(0).stop();
    let mut alone = [start_in(&meeting, 2, folders[1].path())];
    serve(&mut alone, &[2]);
    assert_eq!(alone[0].call(&["INCR", "likes:n"]), Reply::Integer(17));
}

/// Waits until the status that a node shows contains this.
fn eventually_says(node: &mut Node, what: &str) {
    let begun = Instant::now();
    loop {
        let status = text(node.call(&["CLUSTER", "STATUS"]));
        if status.contains(what) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status}");
        std::thread::sleep(Duration::from_millis(20));
    }
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
fn a_new_node_begins_with_the_state_of_one_that_serves_while_another_is_dead() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    nodes.pop().expect("a node").stop();
    let folder = tempfile::tempdir().expect("a folder");
    nodes.push(start_in(&meeting, 1, folder.path()));
    serve(&mut nodes, &[1, 2, 1]);
    let info = nodes[2].info();
    assert_eq!(number(&info, "cluster_gossip_nodes_excused"), 1);
    assert_eq!(nodes[2].call(&["INCR", "likes:n"]), Reply::Integer(16));
    agree(&mut nodes, &["GET", "likes:n"], &bulk("16"));
}

#[test]
fn a_new_node_waits_for_a_dead_one_if_none_serves_until_that_is_removed() {
    let (meeting, folders) = (Meeting::default(), folders());
    let mut nodes = three(&meeting, &folders);
    let dead = nodes.pop().expect("a node");
    let id = dead.id.clone();
    dead.stop();
    all_whole(&mut nodes, 2);
    nodes.remove(0).stop();
    nodes.remove(0).stop();
    doubt(folders[0].path());
    nodes.push(start_in(&meeting, 1, folders[0].path()));
    let folder = tempfile::tempdir().expect("a folder");
    nodes.push(start_in(&meeting, 1, folder.path()));
    nodes[1].until("it says what to do", |info| {
        let why = &info["cluster_lattice_waits"];
        why.contains("reaches none that serves") && why.contains("rufous cluster forget")
    });
    std::thread::sleep(Duration::from_micros(GOSSIP_AWAY_US) + Duration::from_secs(2));
    let serving = |node: &mut Node| number(&node.info(), "cluster_gossip_workers_serving");
    assert_eq!(nodes.iter_mut().map(serving).sum::<u64>(), 0);
    nodes.push(start_in(&meeting, 2, folders[1].path()));
    // The first has to hear all, the one that is back has all, and the new one needs that.
    serve(&mut nodes[1..], &[1, 2]);
    remove(&mut nodes[1], &id, 3);
    serve(&mut nodes, &[1, 1, 2]);
    assert_eq!(nodes[1].call(&["INCR", "likes:n"]), Reply::Integer(16));
    agree(&mut nodes, &["GET", "likes:n"], &bulk("16"));
}
