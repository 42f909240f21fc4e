//! Sessions that go on at other nodes: a token of one, and what the others show.

use crate::gossip::{bulk, configured, likes, serve};
use crate::node::{Node, connect_all};
use crate::plain::text;
use rufous_coordinator::meeting::Meeting;
use rufous_kernel::keyspace::Keyspace;
use rufous_resp::reply::Reply;

/// Nodes whose epochs are long, and do not end before that.
fn slow(meeting: &Meeting, workers: &[u64], threads: u16) -> Vec<Node> {
    let keyspace = Keyspace {
        threads,
        gossip_ms: 1_500,
        ..likes()
    };
    let of = |workers: &u64| {
        let all = vec![keyspace.clone()];
        Node::of(&configured(meeting, *workers as usize, all))
    };
    let mut nodes: Vec<Node> = workers.iter().map(of).collect();
    connect_all(&mut nodes);
    serve(&mut nodes, workers);
    nodes
}

fn token(node: &mut Node) -> String {
    text(node.call(&["SESSION", "TOKEN", "TIMEOUT", "20000"]))
}

#[test]
fn a_session_goes_on_at_any_node() {
    for threads in [0, 1] {
        let mut nodes = slow(&Meeting::default(), &[2, 1, 2], threads);
        let ok = Reply::Simple("OK".into());
        let mut late = 0;
        // Each writes what the one before has written, and more.
        for at in 0..6 {
            let (here, next) = (at % 3, (at + 1) % 3);
            let key = format!("likes:{at}");
            assert_eq!(nodes[here].call(&["SET", &key, "1"]), ok);
            let seen = token(&mut nodes[here]);
            match nodes[next].call(&["SESSION", "RESUME", &seen, "TIMEOUT", "0"]) {
                Reply::Error(why) => {
                    let why = String::from_utf8_lossy(&why).into_owned();
                    assert!(
                        why.starts_with("BEHIND after 0 ms, this node lacks changes of n"),
                        "{why}"
                    );
                    late += 1;
                }
                reply => assert_eq!(reply, ok),
            }
            let resume = ["SESSION", "RESUME", &seen, "TIMEOUT", "20000"];
            assert_eq!(nodes[next].call(&resume), ok);
            for before in 0..=at {
                let key = format!("likes:{before}");
                assert_eq!(nodes[next].call(&["GET", &key]), bulk("1"), "{at}");
            }
        }
        assert!(late > 0, "nothing had to be waited for");
    }
}

#[test]
fn tokens_are_of_one_cluster() {
    let mut nodes = slow(&Meeting::default(), &[1, 1], 0);
    let token = token(&mut nodes[0]);
    let mut other = token.clone();
    other.replace_range(4..5, if &token[4..5] == "0" { "1" } else { "0" });
    let Reply::Error(why) = nodes[1].call(&["SESSION", "RESUME", &other]) else {
        panic!("it is none");
    };
    assert!(why.starts_with(b"ERR the token is not one of this cluster"));
}
