//! A node that is alive and cannot do its part: others replace it, and no client of theirs is
//! refused or waits for ever.

#[path = "../durability/mount.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod mount;

use crate::node::{Node, config, connect_all, number, settings};
use crate::plain::text;
use mount::Mount;
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;
use rufous_server::config::{AppendFsync, Config, DebugCommand};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

fn cluster(meeting: &Meeting) -> Settings {
    Settings {
        copies: 2,
        ..settings(meeting)
    }
}

/// A node with a log in this folder.
fn logged(meeting: &Meeting, folder: &Path) -> Node {
    Node::of(&Config {
        folder: true,
        appendonly: true,
        appendfsync: AppendFsync::Always,
        log_segment_size: 1 << 20,
        dir: folder.display().to_string(),
        ..config(2, cluster(meeting))
    })
}

pub(crate) fn all_whole(nodes: &mut [Node], copies: u64) {
    let slots = copies * 16_384;
    loop {
        let infos: Vec<_> = nodes.iter_mut().map(Node::info).collect();
        let sum = |field| infos.iter().map(|info| number(info, field)).sum::<u64>();
        if (sum("cluster_slots_whole"), sum("cluster_slots_served")) == (slots, 16_384) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes keys of many slots at these nodes; returns the errors.
fn write(nodes: &mut [Node], round: usize) -> Vec<String> {
    let mut errors = Vec::new();
    for n in 0..5 {
        for node in &mut *nodes {
            let reply = node.call(&["SET", &format!("key:{n}"), &round.to_string()]);
            if let Reply::Error(error) = reply {
                errors.push(String::from_utf8_lossy(&error).into_owned());
            }
        }
    }
    errors
}

#[test]
fn a_newcomer_that_no_node_reaches_takes_no_slot_out_of_service() {
    let meeting = Meeting::default();
    let mut nodes: Vec<Node> = (0..2).map(|_| Node::start(2, cluster(&meeting))).collect();
    connect_all(&mut nodes);
    all_whole(&mut nodes, 2);
    let stranger = Node::start(
        2,
        Settings {
            // It listens on another address.
            advertise: Some("127.0.0.2".into()),
            ..cluster(&meeting)
        },
    );
    nodes[0].until("it joins", |info| number(info, "cluster_members") == 3);
    for round in 0..20 {
        assert_eq!(
            write(&mut nodes, round),
            Vec::<String>::new(),
            "round {round}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let served: u64 = nodes
        .iter_mut()
        .map(|node| number(&node.info(), "cluster_slots_served"))
        .sum();
    assert_eq!(served, 16_384);
    let status = text(nodes[0].call(&["CLUSTER", "STATUS"]));
    assert!(status.contains("slots_served:16384"), "{status}");
    assert!(status.contains("unheard=0+1"), "{status}");
    stranger.stop();
}

#[test]
fn a_node_whose_disk_is_full_is_replaced_and_comes_back() {
    let Some(small) = Mount::memory(24 << 10) else {
        return;
    };
    let folders: Vec<_> = (0..2)
        .map(|_| tempfile::tempdir().expect("a folder"))
        .collect();
    let meeting = Meeting::default();
    let mut nodes: Vec<Node> = folders.iter().map(|f| logged(&meeting, f.path())).collect();
    nodes.push(logged(&meeting, &small.data()));
    connect_all(&mut nodes);
    all_whole(&mut nodes, 2);
    assert_eq!(write(&mut nodes, 0), Vec::<String>::new());

    small.fill();
    // What fits in space that is reserved is written.
    let value = "v".repeat(100_000);
    for n in 0..200 {
        let reply = nodes[n % 2].call(&["SET", &format!("large:{n}"), &value]);
        let known = ["MISCONF", "UNKNOWNRESULT", "CLUSTERDOWN"];
        let is_known = |error: &[u8]| {
            known
                .iter()
                .any(|known| error.starts_with(known.as_bytes()))
        };
        assert!(
            !matches!(&reply, Reply::Error(error) if !is_known(error)),
            "{reply:?}"
        );
    }
    let mut sick = nodes.pop().expect("the third");
    all_whole(&mut nodes, 2);
    assert_eq!(write(&mut nodes, 1), Vec::<String>::new());
    let status = text(nodes[0].call(&["CLUSTER", "STATUS"]));
    assert!(status.contains(",ails=worker "), "{status}");
    assert!(status.contains("slots_served:16384"), "{status}");
    assert_eq!(number(&sick.info(), "cluster_slots_served"), 0);

    small.make_room();
    sick.until("it takes part again", |info| {
        number(info, "cluster_slots_whole") > 0 && number(info, "cluster_slots_served") > 0
    });
    nodes.push(sick);
    all_whole(&mut nodes, 2);
    for n in 0..5 {
        for node in &mut nodes {
            assert_eq!(text(node.call(&["GET", &format!("key:{n}")])), "1");
        }
    }
}

/// One worker of four sleeps; the others, and the thread that the coordinator hears, go on.
#[test]
fn a_node_of_which_one_worker_stands_still_is_replaced_and_comes_back() {
    const SLEEPS: Duration = Duration::from_secs(30);
    let meeting = Meeting::default();
    let config = Config {
        enable_debug_command: DebugCommand::Local,
        ..config(4, cluster(&meeting))
    };
    let mut nodes: Vec<Node> = (0..3).map(|_| Node::of(&config)).collect();
    connect_all(&mut nodes);
    all_whole(&mut nodes, 2);
    assert_eq!(write(&mut nodes, 0), Vec::<String>::new());

    let sick = nodes.pop().expect("the third");
    let mut stream = TcpStream::connect(sick.address()).expect("connected");
    let begun = Instant::now();
    let sleep = format!("DEBUG SLEEP {}\r\n", SLEEPS.as_secs());
    stream.write_all(sleep.as_bytes()).expect("sent");
    let ails = |nodes: &mut [Node]| {
        let status = text(nodes[0].call(&["CLUSTER", "STATUS"]));
        status.contains(": it stands still")
    };
    while !ails(&mut nodes) {
        assert!(begun.elapsed() < SLEEPS, "it is not found");
        std::thread::sleep(Duration::from_millis(20));
    }
    all_whole(&mut nodes, 2);
    for round in 1..4 {
        assert_eq!(write(&mut nodes, round), Vec::<String>::new());
    }
    let status = text(nodes[0].call(&["CLUSTER", "STATUS"]));
    assert!(status.contains("slots_served:16384"), "{status}");
    assert!(begun.elapsed() < SLEEPS, "it took too long");
    assert!(sick.not_ready().expect("a reason").contains("stands still"));

    nodes.push(sick);
    all_whole(&mut nodes, 2);
    for n in 0..5 {
        for node in &mut nodes {
            assert_eq!(text(node.call(&["GET", &format!("key:{n}")])), "3");
        }
    }
    let stood = number(&nodes[2].info(), "cluster_workers_stood_still");
    assert_eq!(stood, 1);
}
