//! Nodes of this process that agree without installation.

use crate::node::{Node, config, connect_all, number, settings};
use rufous_coordinator::meeting::Meeting;
use rufous_node::node::{Node as Server, NodeError};
use rufous_server::cluster::Settings;
use rufous_server::config::Config;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn nodes_find_each_other_whatever_numbers_of_workers_they_have() {
    let meeting = Meeting::default();
    let workers = [1, 2, 3, 2];
    let start = |workers: &usize| Node::start(*workers, settings(&meeting));
    let mut nodes: Vec<Node> = workers.iter().map(start).collect();
    connect_all(&mut nodes);
    for node in &mut nodes {
        let info = node.info();
        assert_eq!(info["cluster_enabled"], "1");
        assert_eq!(info["cluster_node_id"], node.id);
        assert_eq!(info["cluster_coordinator"], "current");
        assert_eq!(number(&info, "cluster_nodes_alive"), 4);
        let states = (0..4).map(|no| info[&format!("cluster_node{no}")].clone());
        let connected = states.filter(|state| state.contains("state=connected"));
        assert_eq!(connected.count(), 3);
    }
    // They go on saying that they are there.
    for node in &mut nodes {
        node.until("messages both ways", |info| {
            number(info, "cluster_messages_received") >= 6
                && number(info, "cluster_messages_sent") >= 6
        });
    }
    // Mappings follow one another while slots are handed over: one is on its way at times.
    let begun = Instant::now();
    let mut epochs = Vec::new();
    while epochs.is_empty() || epochs.iter().any(|epoch| *epoch != epochs[0]) {
        assert!(
            begun.elapsed() < PATIENCE,
            "all act by the same mapping: {epochs:?}"
        );
        let each = nodes.iter_mut();
        epochs = each
            .map(|node| number(&node.info(), "cluster_epoch"))
            .collect();
    }
}

#[test]
fn a_node_that_stops_is_missed_at_once_and_another_may_come() {
    let meeting = Meeting::default();
    let mut nodes: Vec<Node> = (0..3).map(|_| Node::start(2, settings(&meeting))).collect();
    connect_all(&mut nodes);
    nodes.remove(1).stop();
    for node in &mut nodes {
        node.until("one is gone", |info| {
            number(info, "cluster_nodes_alive") == 2 && number(info, "cluster_connected_nodes") == 1
        });
    }
    nodes.push(Node::start(2, settings(&meeting)));
    for node in &mut nodes {
        node.until("a fourth is there", |info| {
            number(info, "cluster_members") == 4 && number(info, "cluster_connected_nodes") == 2
        });
    }
}

#[test]
fn without_the_coordinator_everything_stays_as_it_is() {
    let meeting = Meeting::default();
    let mut nodes: Vec<Node> = (0..2).map(|_| Node::start(2, settings(&meeting))).collect();
    connect_all(&mut nodes);
    let epoch = number(&nodes[0].info(), "cluster_epoch");
    meeting.set_away(true);
    let mut sent = Vec::new();
    for node in &mut nodes {
        let info = node.until("it is away", |info| info["cluster_coordinator"] == "away");
        sent.push(number(&info, "cluster_messages_sent"));
    }
    // A third comes, and is nobody yet.
    let mut third = Node::start(1, settings(&meeting));
    for (node, sent) in nodes.iter_mut().zip(sent) {
        let info = node.until("they go on talking", |info| {
            number(info, "cluster_messages_sent") >= sent + 4
        });
        assert_eq!(number(&info, "cluster_epoch"), epoch);
        assert_eq!(number(&info, "cluster_connected_nodes"), 1);
        node.has_the_same_sessions();
    }
    assert_eq!(number(&third.info(), "cluster_epoch"), 0);
    meeting.set_away(false);
    nodes.push(third);
    connect_all(&mut nodes);
    assert!(number(&nodes[0].info(), "cluster_epoch") > epoch);
}

#[test]
fn a_node_keeps_its_id_and_counts_its_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let with_folder = |cluster: Settings| Config {
        dir: folder.path().display().to_string(),
        folder: true,
        appendonly: true,
        ..config(1, cluster)
    };
    let meeting = Meeting::default();
    let mut other = Node::start(1, settings(&meeting));
    other.until("a mapping", |info| number(info, "cluster_epoch") == 1);
    let (mut ids, mut last) = (Vec::new(), 0);
    for start in 1..=3 {
        let mut node = Node::of(&with_folder(settings(&meeting)));
        let info = node.until("connected", |info| {
            number(info, "cluster_connected_nodes") == 1
        });
        let incarnation = number(&info, "cluster_incarnation");
        assert!(incarnation > last, "it rises with every start");
        last = incarnation;
        assert_eq!(number(&info, "cluster_members"), 2, "no other node");
        other.until("the new start is known", |info| {
            let line = &info["cluster_node1"];
            line.contains(&format!("incarnation={incarnation},"))
                && line.contains("state=connected")
        });
        node.call(&["SET", "start", &start.to_string()]);
        ids.push(node.id.clone());
        node.stop();
        other.until("it is gone", |info| {
            number(info, "cluster_nodes_alive") == 1
        });
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    // It cannot be told to be another one.
    let stranger = Settings {
        id: Some([0xee; 20]),
        ..settings(&meeting)
    };
    let refused = Server::start(&with_folder(stranger));
    assert!(matches!(refused, Err(NodeError::Cluster(_))));
}

#[test]
fn of_two_nodes_with_one_id_the_second_does_not_start() {
    let meeting = Meeting::default();
    let with_id = |id| Settings {
        id: Some([id; 20]),
        ..settings(&meeting)
    };
    let _one = Node::start(1, with_id(7));
    let second = Server::start(&config(1, with_id(7)));
    assert!(matches!(second, Err(NodeError::Cluster(_))));
    let _other = Node::start(1, with_id(8));
    let wrong = Settings {
        name: "a/b".into(),
        ..settings(&meeting)
    };
    let refused = Server::start(&config(1, wrong));
    assert!(matches!(refused, Err(NodeError::Cluster(_))));
}

#[test]
fn one_alone_has_all_slots() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        dir: folder.path().display().to_string(),
        folder: true,
        ..config(2, Settings::new("birds"))
    };
    for _ in 0..2 {
        let mut node = Node::of(&config);
        node.until("a mapping", |info| number(info, "cluster_epoch") > 0);
        node.call(&["SET", "a", "1"]);
        node.stop();
    }
}
