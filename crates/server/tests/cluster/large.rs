//! Values that no message of one frame takes, where slots have copies: written,
//! copied to who joins, and there when the others have gone.

use crate::node::{Node, connect_all, settings};
use crate::plain::{connect, exchange, resp, text};
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;

const MIB: usize = 1 << 20;

fn start(meeting: &Meeting) -> Node {
    let settings = Settings {
        copies: 3,
        ..settings(meeting)
    };
    Node::start(2, settings)
}

/// Does a request at the node that has the key: others pass no large one on.
fn at_head(nodes: &mut [Node], words: &[&str]) -> Reply {
    for node in nodes {
        let reply = node.call(words);
        match &reply {
            Reply::Error(error) if String::from_utf8_lossy(error).contains("connect there") => {}
            _ => return reply,
        }
    }
    panic!("no node has the key");
}

fn all_whole(nodes: &mut [Node]) {
    for node in nodes {
        node.until("copies everywhere", |info| {
            info["cluster_slots_whole"] == "16384" && info["cluster_slots_member"] == "16384"
        });
    }
}

#[test]
fn what_is_large_goes_along_chains_and_to_who_joins() {
    let meeting = Meeting::default();
    let mut nodes = vec![start(&meeting), start(&meeting)];
    connect_all(&mut nodes);
    all_whole(&mut nodes);
    let large: String = ('a'..='z').cycle().take(20 * MIB).collect();
    let some = &large[..3 * MIB];
    assert_eq!(text(at_head(&mut nodes, &["SET", "large", &large])), "OK");
    for _ in 0..3 {
        at_head(&mut nodes, &["APPEND", "grows", &large[..6 * MIB]]);
    }
    at_head(
        &mut nodes,
        &["HSET", "{h}hash", "field", &large, "other", some],
    );
    let mut words = vec!["RPUSH", "{l}list"];
    words.extend([some; 8]);
    assert_eq!(at_head(&mut nodes, &words), Reply::Integer(8));
    // What it has in sum, and what it has at once.
    for n in 0..40 {
        at_head(
            &mut nodes,
            &["HSET", "sum", &n.to_string(), &large[..MIB / 2]],
        );
    }
    // One behind the other, faster than they leave.
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for n in 0..12 {
        requests.extend(resp(&["SET", &format!("{{p}}{n}"), &large[..5 * MIB]]));
        replies.extend(b"+OK\r\n");
    }
    exchange(&mut connect(nodes[0].address()), &requests, &replies);
    nodes.iter_mut().for_each(Node::has_the_same_sessions);

    nodes.push(start(&meeting));
    connect_all(&mut nodes);
    all_whole(&mut nodes);
    nodes.iter_mut().for_each(Node::has_the_same_sessions);
    let mut last = nodes.pop().expect("the last one");
    nodes.into_iter().for_each(Node::stop);
    last.until("it answers for all", |info| {
        info["cluster_slots_served"] == "16384"
    });
    assert_eq!(text(last.call(&["GET", "large"])), large);
    assert_eq!(last.call(&["STRLEN", "grows"]), Reply::Integer(18 << 20));
    assert_eq!(text(last.call(&["HGET", "{h}hash", "field"])), large);
    assert_eq!(text(last.call(&["HGET", "{h}hash", "other"])), some);
    assert_eq!(last.call(&["LLEN", "{l}list"]), Reply::Integer(8));
    assert_eq!(last.call(&["HLEN", "sum"]), Reply::Integer(40));
    for n in 0..12 {
        let len = last.call(&["STRLEN", &format!("{{p}}{n}")]);
        assert_eq!(len, Reply::Integer(5 << 20), "{n}");
    }
}
