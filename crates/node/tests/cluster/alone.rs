//! Data that a node wrote while it was alone, and clusters that it comes into.

use crate::node::{Node, config, connect_all, settings};
use crate::plain::text;
use rufous_coordinator::meeting::Meeting;
use rufous_node::node::Node as Server;
use rufous_resp::reply::Reply;
use rufous_server::config::Config;
use std::path::Path;
use std::time::{Duration, Instant};

fn kept(folder: &Path, meeting: &Meeting) -> Config {
    Config {
        folder: true,
        appendonly: true,
        dir: folder.display().to_string(),
        ..config(2, settings(meeting))
    }
}

/// Runs a node that is in no cluster, to do this.
fn alone<T>(folder: &Path, act: impl FnOnce(&mut dyn FnMut(&[&str]) -> Reply) -> T) -> T {
    let server = Server::start(&Config {
        cluster: None,
        ..kept(folder, &Meeting::default())
    });
    let server = server.expect("starts");
    let mut client = server.connect().expect("connected");
    let done = act(&mut |words| loop {
        let reply = client.call(words).expect("answered");
        match &reply {
            Reply::Error(error) if error.starts_with(b"LOADING") => {}
            _ => return reply,
        }
    });
    server.handle().stop();
    server.join();
    done
}

fn fill(folder: &Path) {
    alone(folder, |call| {
        for n in 0..100 {
            assert_eq!(text(call(&["SET", &format!("key:{n}"), "v"])), "OK");
        }
    });
}

/// What a key has, once there is somebody who answers for it.
fn get(node: &mut Node, key: &str) -> String {
    let begun = Instant::now();
    loop {
        let reply = text(node.call(&["GET", key]));
        let waits = ["CLUSTERDOWN ", "TRYAGAIN ", "LOADING "];
        if !waits.iter().any(|wait| reply.starts_with(wait)) {
            return reply;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{key}: {reply}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn data_of_no_cluster_is_not_dropped_for_that_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let meeting = Meeting::default();
    let mut node = Node::start(1, settings(&meeting));
    node.until("it has all slots", |info| info["cluster_epoch"] == "1");
    // However often it is tried.
    for _ in 0..2 {
        let server = Server::start(&kept(folder.path(), &meeting)).expect("starts");
        server.join();
    }
    alone(folder.path(), |call| {
        assert_eq!(call(&["DBSIZE"]), Reply::Integer(100));
    });
    node.until("it has all slots", |info| {
        info["cluster_slots_served"] == "16384"
    });
}

#[test]
fn data_of_no_cluster_is_that_of_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let meeting = Meeting::default();
    let mut nodes = vec![Node::of(&kept(folder.path(), &meeting))];
    nodes[0].until("it has all slots", |info| {
        info["cluster_slots_served"] == "16384"
    });
    nodes.push(Node::start(1, settings(&meeting)));
    connect_all(&mut nodes);
    for _ in 0..2 {
        nodes[1].until("it has some", |info| info["cluster_slots_served"] != "0");
        for n in 0..100 {
            assert_eq!(get(&mut nodes[1], &format!("key:{n}")), "v", "{n}");
        }
        // The data is of a cluster by now, and others have slots.
        nodes.remove(0).stop();
        nodes.insert(0, Node::of(&kept(folder.path(), &meeting)));
        connect_all(&mut nodes);
    }
}
