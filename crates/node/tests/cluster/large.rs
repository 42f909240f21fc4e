//! Values that no message of one frame takes, where slots have copies: written,
//! copied to nodes that join, and there when the others have gone.

use crate::node::{Node, connect_all, has_all_copies, settings};
use crate::plain::{connect, exchange, heads, resp, spread, text};
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
        node.until("copies everywhere", has_all_copies);
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

/// What an error says after these words, up to the end of a word.
fn after<'a>(error: &'a str, words: &str) -> &'a str {
    let rest = error.split_once(words).unwrap_or_else(|| panic!("{error}"));
    rest.1.split([';', ' ']).next().expect("a word")
}

/// A request that no message between nodes takes is refused with what to do, and that can be
/// done; no session ends over it.
#[test]
fn what_is_too_large_to_be_passed_on_is_refused_with_where_it_can_be_sent() {
    let mut nodes = spread(&[2, 1, 2]);
    let large = "v".repeat(20 * MIB);
    let fits = &large[..15 * MIB];
    let mut refused = 0;
    for n in 0..100 {
        if refused == 2 {
            break;
        }
        let key = format!("key:{n}");
        assert_eq!(text(nodes[0].call(&["SET", &key, fits])), "OK");
        let Reply::Error(error) = nodes[0].call(&["SET", &key, &large]) else {
            continue;
        };
        let error = String::from_utf8(error).expect("text");
        refused += 1;
        assert!(error.starts_with("ERR "), "{error}");
        assert!(error.contains("16776192 bytes"), "{error}");
        let size: usize = after(&error, "request of ").parse().expect("its size");
        assert!((20 * MIB..21 * MIB).contains(&size), "{error}");
        // As it says: at that node it is done.
        let mut there = connect(after(&error, " at ").parse().expect("an address"));
        exchange(&mut there, &resp(&["SET", &key, &large]), b"+OK\r\n");
        // Replies of any size come back.
        assert_eq!(text(nodes[0].call(&["GET", &key])), large);
    }
    assert_eq!(refused, 2, "other nodes have keys");
    nodes.iter_mut().for_each(Node::has_the_same_sessions);
}

#[test]
fn no_part_of_a_request_for_several_nodes_is_too_large_either() {
    let mut nodes = spread(&[2, 1]);
    let keys = (0..70).map(|n| format!("{{{n}}}{}", "k".repeat(MIB)));
    let is_far = |key: &String| !heads(&mut nodes[0], key);
    let (mut far, near): (Vec<String>, Vec<String>) = keys.partition(is_far);
    far.truncate(17);
    assert_eq!((far.len(), near.len() >= 8), (17, true));
    let many = [&near[..1], &far].concat();
    let enough = [&near[..8], &far[..15]].concat();
    for command in ["MGET", "EXISTS", "DEL"] {
        let mut ask = |keys: &[String]| {
            let keys = keys.iter().map(String::as_str);
            let words: Vec<&str> = [command].into_iter().chain(keys).collect();
            nodes[0].call(&words)
        };
        let refused = text(ask(&many));
        assert!(refused.starts_with("ERR "), "{command}: {:.200}", refused);
        assert!(refused.contains("16776192 bytes"), "{:.200}", refused);
        // Where each part is small enough, all together may be more.
        let all = ask(&enough);
        assert!(
            matches!(&all, Reply::Array(all) if all.len() == 23) || all == Reply::Integer(0),
            "{command}: {:.200}",
            text(all)
        );
    }
    let pattern = &"p".repeat(20 * MIB);
    for words in [&["KEYS", pattern][..], &["SCAN", "0", "MATCH", pattern]] {
        let refused = text(nodes[0].call(words));
        assert!(refused.contains("16776192 bytes"), "{:.200}", refused);
    }
    nodes.iter_mut().for_each(Node::has_the_same_sessions);
}
