//! Clients that know nothing of the cluster: any node serves any key.

use crate::node::{Node, connect_all, number, settings};
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Nodes that have parts of the slots from the first mapping on.
pub(crate) fn spread(workers: &[usize]) -> Vec<Node> {
    let meeting = Meeting::default();
    meeting.set_away(true);
    let start = |workers: &usize| Node::start(*workers, settings(&meeting));
    let mut nodes: Vec<Node> = workers.iter().map(start).collect();
    meeting.set_away(false);
    connect_all(&mut nodes);
    nodes
}

/// Keys that a node has itself.
pub(crate) fn keys_of(node: &mut Node) -> u64 {
    let Reply::Bulk(text) = node.call(&["INFO", "keyspace"]) else {
        panic!("no text");
    };
    let text = String::from_utf8(text).expect("text");
    let keys = text.lines().filter_map(|line| line.split_once(":keys="));
    keys.filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok())
        .sum()
}

/// Whether a node answers for the slot of a key, which is empty.
pub(crate) fn heads(node: &mut Node, key: &str) -> bool {
    let before = keys_of(node);
    assert_eq!(text(node.call(&["SET", key, "1"])), "OK");
    let is_here = keys_of(node) > before;
    assert_eq!(node.call(&["DEL", key]), Reply::Integer(1));
    is_here
}

pub(crate) fn connect(at: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(at).expect("connected");
    let patience = Some(Duration::from_secs(120));
    socket.set_read_timeout(patience).expect("set");
    socket
}

/// Sends bytes and reads as many as are expected.
pub(crate) fn exchange(socket: &mut TcpStream, request: &[u8], expected: &[u8]) {
    let mut writing = socket.try_clone().expect("cloned");
    std::thread::scope(|scope| {
        scope.spawn(move || writing.write_all(request).expect("sent"));
        let mut reply = vec![0; expected.len()];
        socket.read_exact(&mut reply).expect("replies");
        let at = reply.iter().zip(expected).position(|(a, b)| a != b);
        if let Some(at) = at {
            let from = at.saturating_sub(40);
            let shown = |all: &[u8]| {
                String::from_utf8_lossy(&all[from..(at + 40).min(all.len())]).into_owned()
            };
            panic!("at {at}: {:?} for {:?}", shown(&reply), shown(expected));
        }
    });
}

pub(crate) fn resp(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    rufous_resp::encode::request(&mut bytes, words);
    bytes
}

pub(crate) fn text(reply: Reply) -> String {
    match reply {
        Reply::Bulk(text) | Reply::Simple(text) | Reply::Error(text) => {
            String::from_utf8_lossy(&text).into_owned()
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn any_node_serves_any_key() {
    let mut nodes = spread(&[2, 1, 3]);
    for n in 0..150 {
        let (key, value) = (format!("key:{n}"), format!("value {n}"));
        assert_eq!(text(nodes[n % 3].call(&["SET", &key, &value])), "OK");
    }
    for n in 0..150 {
        let (key, value) = (format!("key:{n}"), format!("value {n}"));
        for node in &mut nodes {
            assert_eq!(text(node.call(&["GET", &key])), value);
        }
    }
    let kept: Vec<u64> = nodes.iter_mut().map(keys_of).collect();
    assert_eq!(
        kept.iter().sum::<u64>(),
        150,
        "each key is at one node: {kept:?}"
    );
    assert!(
        kept.iter().all(|keys| *keys > 20),
        "and all have some: {kept:?}"
    );
    for round in 1..=3 {
        for n in 0..20 {
            let counted = nodes[(n + round) % 3].call(&["INCR", &format!("count:{n}")]);
            assert_eq!(counted, Reply::Integer(round as i64));
        }
    }
    // Errors come back as they are.
    for node in &mut nodes {
        for n in 0..10 {
            let key = format!("key:{n}");
            let wrong = text(node.call(&["LPUSH", &key, "x"]));
            assert!(wrong.starts_with("WRONGTYPE "), "{wrong}");
            let wrong = text(node.call(&["INCR", &key]));
            assert!(wrong.starts_with("ERR value is not an integer"), "{wrong}");
        }
    }
    for node in &mut nodes {
        let info = node.info();
        assert!(number(&info, "cluster_forwarded") > 100, "{info:#?}");
        assert!(number(&info, "cluster_served") > 100);
        assert_eq!(number(&info, "cluster_forwarded_under_way"), 0);
        assert_eq!(number(&info, "cluster_forwarded_in_doubt"), 0);
        node.has_the_same_sessions();
    }
}

#[test]
fn commands_on_several_keys_of_one_node_are_passed_on_whole() {
    let mut nodes = spread(&[2, 3, 2]);
    for n in 0..12 {
        let key = |part: &str| format!("{{{n}}}{part}");
        let (a, b) = (key("a"), key("b"));
        for node in &mut nodes {
            assert_eq!(text(node.call(&["MSET", &a, "1", &b, "2"])), "OK");
            assert_eq!(text(node.call(&["RENAME", &a, &key("c")])), "OK");
            let both = node.call(&["MGET", &key("c"), &b, &a]);
            let values = [Reply::Bulk(b"1".to_vec()), Reply::Bulk(b"2".to_vec())];
            let [c, b] = values;
            assert_eq!(both, Reply::Array(vec![c, b, Reply::Null]));
            assert_eq!(node.call(&["DEL", &key("c"), &key("b")]), Reply::Integer(2));
        }
    }
}

#[test]
fn a_pipeline_keeps_its_order_wherever_its_keys_are() {
    let nodes = spread(&[2, 3, 1]);
    for node in &nodes {
        let mut socket = connect(node.address());
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        let mut add = |words: &[&str], reply: &str| {
            requests.extend(resp(words));
            replies.extend_from_slice(reply.as_bytes());
        };
        for round in 0..20 {
            for n in 0..40 {
                add(
                    &["SET", &format!("k{n}"), &format!("{:03}", round)],
                    "+OK\r\n",
                );
            }
            add(&["PING"], "+PONG\r\n");
            for n in 0..40 {
                add(&["GET", &format!("k{n}")], &format!("$3\r\n{round:03}\r\n"));
                add(&["APPEND", &format!("k{n}"), "+"], ":4\r\n");
                add(&["STRLEN", &format!("k{n}")], ":4\r\n");
            }
            add(&["ECHO", "end"], "$3\r\nend\r\n");
            for n in 0..5 {
                add(&["SELECT", "1"], "+OK\r\n");
                add(&["GET", &format!("k{n}")], "$-1\r\n");
                add(&["SELECT", "0"], "+OK\r\n");
                let (a, b) = (format!("{{t{n}}}a"), format!("{{t{n}}}b"));
                add(&["MSET", &a, "x", &b, "y"], "+OK\r\n");
                add(&["MGET", &b, &a], "*2\r\n$1\r\ny\r\n$1\r\nx\r\n");
            }
        }
        exchange(&mut socket, &requests, &replies);
    }
}

#[test]
fn replies_are_written_as_the_client_wants_them() {
    let nodes = spread(&[1, 1]);
    for node in &nodes {
        let mut socket = connect(node.address());
        let hello = resp(&["HELLO", "3"]);
        socket.write_all(&hello).expect("sent");
        let mut first = vec![0; 4096];
        let got = socket.read(&mut first).expect("a reply");
        assert!(first[..got].starts_with(b"%7\r\n"));
        for n in 0..10 {
            let key = format!("h{n}{}", node.id);
            exchange(&mut socket, &resp(&["HSET", &key, "f", "v"]), b":1\r\n");
            exchange(
                &mut socket,
                &resp(&["HGETALL", &key]),
                b"%1\r\n$1\r\nf\r\n$1\r\nv\r\n",
            );
            exchange(&mut socket, &resp(&["GET", &format!("none{n}")]), b"_\r\n");
        }
    }
}

#[test]
fn large_values_are_passed_on_up_to_what_a_message_takes() {
    let mut nodes = spread(&[2, 2]);
    let (mut sent, mut refused) = (0, 0);
    let value = "v".repeat(15 << 20);
    let larger = "w".repeat(17 << 20);
    for n in 0..6 {
        let key = format!("large{n}");
        let door = n % 2;
        assert_eq!(text(nodes[door].call(&["SET", &key, &value])), "OK");
        for node in &mut nodes {
            assert_eq!(text(node.call(&["GET", &key])), value);
            assert_eq!(node.call(&["STRLEN", &key]), Reply::Integer(15 << 20));
        }
        let answer = text(nodes[door].call(&["SET", &key, &larger]));
        match answer.as_str() {
            "OK" => {
                sent += 1;
                // Replies have no such limit: they come in parts.
                for node in &mut nodes {
                    assert_eq!(text(node.call(&["GET", &key])), larger);
                }
            }
            why => {
                refused += 1;
                assert!(why.starts_with("ERR a request of 178"), "{}", &why[..80]);
                let at = nodes[1 - door].address().to_string();
                assert!(why.contains(&at), "{why}");
            }
        }
    }
    assert!(sent > 0 && refused > 0, "{sent} {refused}");
    nodes.iter_mut().for_each(Node::has_the_same_sessions);
}

#[test]
fn many_large_requests_and_replies_at_once_end_no_session() {
    let mut nodes = spread(&[2, 2]);
    let value = "x".repeat(1 << 20);
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for n in 0..60 {
        requests.extend(resp(&["SET", &format!("l{}", n % 10), &value]));
        replies.extend_from_slice(b"+OK\r\n");
    }
    for n in 0..60 {
        requests.extend(resp(&["GET", &format!("l{}", n % 10)]));
        replies.extend(format!("${}\r\n{value}\r\n", value.len()).into_bytes());
    }
    let doors: Vec<_> = nodes.iter().map(Node::address).collect();
    std::thread::scope(|scope| {
        for door in doors.iter().chain(&doors) {
            let (requests, replies) = (&requests, &replies);
            scope.spawn(move || exchange(&mut connect(*door), requests, replies));
        }
    });
    nodes.iter_mut().for_each(Node::has_the_same_sessions);
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let mut nodes = spread(&[1, 1]);
    let value = "x".repeat(1 << 20);
    for n in 0..10 {
        nodes[0].call(&["SET", &format!("l{n}"), &value]);
    }
    let mut slow = connect(nodes[0].address());
    let mut requests = Vec::new();
    let mut expected = Vec::new();
    for n in 0..400 {
        requests.extend(resp(&["GET", &format!("l{}", n % 10)]));
        expected.extend(format!("${}\r\n{value}\r\n", value.len()).into_bytes());
    }
    slow.write_all(&requests).expect("sent");
    // Of what it asked for, little is fetched before it reads.
    std::thread::sleep(Duration::from_millis(500));
    let fetched = number(&nodes[0].info(), "cluster_forwarded");
    assert!((1..60).contains(&fetched), "{fetched}");
    for n in 0..200 {
        let key = format!("other{n}");
        assert_eq!(text(nodes[0].call(&["SET", &key, "1"])), "OK");
        assert_eq!(text(nodes[1].call(&["GET", &key])), "1");
    }
    exchange(&mut slow, b"", &expected);
    nodes.iter_mut().for_each(Node::has_the_same_sessions);
}

#[test]
fn what_cannot_be_passed_on_says_where_to_go() {
    let mut nodes = spread(&[2, 2]);
    let mut here = 0;
    for n in 0..20 {
        let key = format!("list{n}");
        assert_eq!(nodes[0].call(&["BLPOP", &key, "0.01"]), Reply::NullArray);
        here += u32::from(heads(&mut nodes[0], &key));
    }
    assert!((4..17).contains(&here), "{here}");
    let all: Vec<String> = (0..20).map(|n| format!("list{n}")).collect();
    let mut words: Vec<&str> = all.iter().map(String::as_str).collect();
    words.insert(0, "BLPOP");
    words.push("0");
    let apart = text(nodes[0].call(&words));
    assert!(
        apart.starts_with("CROSSNODE Keys of this command are on several nodes"),
        "{apart}"
    );
    let sorted = text(nodes[0].call(&["SORT", "none", "BY", "w_*"]));
    assert!(
        sorted.starts_with("CROSSNODE Keys that match the patterns"),
        "{sorted}"
    );
}

#[test]
fn what_looks_at_each_key_for_itself_is_split() {
    let mut nodes = spread(&[2, 3, 1]);
    for node in &mut nodes {
        let set = ["CONFIG", "SET", "cluster-atomic-reads", "no"];
        assert_eq!(text(node.call(&set)), "OK");
    }
    let keys: Vec<String> = (0..30).map(|n| format!("split:{n}")).collect();
    let with = |name: &str| -> Vec<String> {
        let mut words = vec![name.to_owned()];
        words.extend(keys.iter().cloned());
        words
    };
    fn call(node: &mut Node, words: &[String]) -> Reply {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        node.call(&words)
    }
    for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 3 != 0) {
        assert_eq!(text(nodes[n % 3].call(&["SET", key, &n.to_string()])), "OK");
    }
    nodes[0].call(&["DEL", "split:1"]);
    nodes[0].call(&["LPUSH", "split:1", "no string"]);
    for node in &mut nodes {
        let values = |n: usize| match n {
            1 => Reply::Null,
            n if n % 3 == 0 => Reply::Null,
            n => Reply::Bulk(n.to_string().into_bytes()),
        };
        let expected = Reply::Array((0..30).map(values).collect());
        assert_eq!(call(node, &with("MGET")), expected);
        assert_eq!(call(node, &with("EXISTS")), Reply::Integer(20));
        assert_eq!(call(node, &with("TOUCH")), Reply::Integer(20));
        let quiet = node.call(&["QUIET", "DEL", "none:1", "none:2", "none:3", "none:4"]);
        assert_eq!(text(quiet), "OK");
        let twice = node.call(&["MGET", "split:2", "split:4", "split:2"]);
        let [a, b] = ["2", "4"].map(|value| Reply::Bulk(value.into()));
        assert_eq!(twice, Reply::Array(vec![a.clone(), b, a]));
    }
    assert_eq!(call(&mut nodes[2], &with("UNLINK")), Reply::Integer(20));
    for node in &mut nodes {
        assert_eq!(call(node, &with("DEL")), Reply::Integer(0));
        assert_eq!(keys_of(node), 0);
        assert!(number(&node.info(), "cluster_split") >= 3);
    }
    // In a pipeline, with what comes before and behind.
    let mut socket = connect(nodes[1].address());
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for round in 0..50 {
        for n in 0..6 {
            requests.extend(resp(&[
                "SET",
                &format!("split:{n}"),
                &format!("{round:02}"),
            ]));
            replies.extend_from_slice(b"+OK\r\n");
        }
        requests.extend(resp(&["MGET", "split:0", "split:1", "split:2", "split:3"]));
        replies.extend_from_slice(b"*4\r\n");
        for _ in 0..4 {
            replies.extend(format!("$2\r\n{round:02}\r\n").into_bytes());
        }
        requests.extend(resp(&["DEL", "split:0", "split:1", "split:2", "split:3"]));
        replies.extend_from_slice(b":4\r\n");
    }
    exchange(&mut socket, &requests, &replies);
}
