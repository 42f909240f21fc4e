//! Blocking commands whose keys are at another node: clients wait there, and nothing is popped for
//! one that its node knows to be gone.

use crate::fake::{Asked, Fake, with_fake};
use crate::node::{Node, number};
use crate::plain::{connect, exchange, resp, spread, text};
use rufous_resp::reply::Reply as Answer;
use rufous_wire::Body;
use rufous_wire::message::{EndWait, EndWaits, How, Replies, Reply};
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A node, one that is none, and the session between them.
fn pair(workers: usize) -> (Node, Fake) {
    let (mut node, mut fake) = with_fake(workers);
    reached(&mut node, &mut fake);
    (node, fake)
}

fn reached(node: &mut Node, fake: &mut Fake) {
    fake.accept();
    node.until("connected", |info| {
        number(info, "cluster_connected_nodes") == 1
    });
}

fn send(client: &mut TcpStream, words: &[&str]) {
    client.write_all(&resp(words)).expect("sent");
}

/// Waits until so many clients of the node wait for data.
fn until_blocked(node: &mut Node, count: u64) {
    let begun = Instant::now();
    loop {
        let info = text(node.call(&["INFO", "clients"]));
        let field = format!("blocked_clients:{count}\r\n");
        if info.contains(&field) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{info}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The fake node reports that a request waits.
fn waits(fake: &mut Fake, asked: &Asked) {
    let reply = Reply {
        number: asked.number,
        waits: true,
        ..Reply::default()
    };
    let replies = vec![reply];
    fake.say(asked.worker, Body::Replies(Replies { replies }));
}

/// A client whose request waits at the fake node.
fn waiting(node: &mut Node, fake: &mut Fake, words: &[&str]) -> (TcpStream, Asked) {
    let mut client = connect(node.address());
    send(&mut client, words);
    let asked = fake.asked_for(1).remove(0);
    assert_eq!(asked.words, words.join(" "));
    waits(fake, &asked);
    until_blocked(node, 1);
    (client, asked)
}

/// The next end of a wait at the fake node: its number, and how.
fn ended(fake: &mut Fake) -> (u64, u32) {
    match fake.next().body {
        Some(Body::EndWaits(ends)) if ends.ends.len() == 1 => {
            (ends.ends[0].number, ends.ends[0].how)
        }
        other => panic!("{other:?}"),
    }
}

fn element(key: &str) -> String {
    format!("*2\r\n${}\r\n{key}\r\n$1\r\nx\r\n", key.len())
}

fn client_of(node: &mut Node, command: &str) -> String {
    let all = text(node.call(&["CLIENT", "LIST"]));
    let its = all
        .lines()
        .find(|line| line.contains(&format!("cmd={command} ")));
    let its = its.expect("a client");
    let id = its.split(' ').find_map(|field| field.strip_prefix("id="));
    id.expect("a number").to_owned()
}

#[test]
fn a_client_waits_at_the_node_of_its_key_and_holds_up_no_other() {
    for workers in [1, 3] {
        let (mut node, mut fake) = pair(workers);
        let keys = fake.keys(true, 2);
        let (mut client, asked) = waiting(&mut node, &mut fake, &["BLPOP", &keys[0], "0"]);
        let mut other = connect(node.address());
        send(&mut other, &["GET", &keys[1]]);
        let get = fake.asked_for(1).remove(0);
        fake.answer(&get, "$-1\r\n");
        exchange(&mut other, b"", b"$-1\r\n");
        let info = node.info();
        assert_eq!(number(&info, "cluster_forwarded_under_way"), 0);
        assert_eq!(number(&info, "cluster_forwarded_blocked"), 1);
        // What the client sends meanwhile waits for the reply.
        send(&mut client, &["PING"]);
        let reply = element(&keys[0]);
        fake.answer(&asked, &reply);
        exchange(&mut client, b"", format!("{reply}+PONG\r\n").as_bytes());
        until_blocked(&mut node, 0);
        assert_eq!(number(&node.info(), "cluster_forwarded_blocked"), 0);
    }
}

#[test]
fn a_node_is_told_when_a_client_that_waits_there_is_gone_or_unblocked() {
    let (mut node, mut fake) = pair(2);
    let key = &fake.keys(true, 1)[0];
    let words: [&str; 3] = ["BLPOP", key, "0"];
    let (client, asked) = waiting(&mut node, &mut fake, &words);
    drop(client);
    let timed_out = How::TimedOut as u32;
    assert_eq!(ended(&mut fake), (asked.number, timed_out));
    // It has popped something before it heard of that: lost, as in Redis.
    fake.answer(&asked, &element(key));
    until_blocked(&mut node, 0);

    let (client, asked) = waiting(&mut node, &mut fake, &words);
    client.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!(ended(&mut fake), (asked.number, timed_out));
    fake.answer(&asked, "*-1\r\n");

    let (mut client, asked) = waiting(&mut node, &mut fake, &words);
    let id = client_of(&mut node, "blpop");
    for (count, how) in [(1, "TIMEOUT"), (0, "ERROR")] {
        let unblocked = node.call(&["CLIENT", "UNBLOCK", &id, how]);
        assert_eq!(unblocked, Answer::Integer(count), "it is told once");
    }
    assert_eq!(ended(&mut fake), (asked.number, timed_out));
    fake.answer(&asked, "*-1\r\n");
    exchange(&mut client, b"", b"*-1\r\n");
    drop(client);

    let (client, asked) = waiting(&mut node, &mut fake, &words);
    let id = client_of(&mut node, "blpop");
    let unblocked = node.call(&["CLIENT", "UNBLOCK", &id, "ERROR"]);
    assert_eq!(unblocked, Answer::Integer(1));
    assert_eq!(ended(&mut fake), (asked.number, How::Unblocked as u32));
    assert_eq!(
        text(node.call(&["CLIENT", "KILL", "ID", &id])),
        "Integer(1)"
    );
    fake.is_asked_nothing(Duration::from_millis(100));
    fake.answer(&asked, "-UNBLOCKED\r\n");
    drop(client);
    until_blocked(&mut node, 0);
}

#[test]
fn a_client_killed_before_its_request_waits_is_not_served() {
    let (mut node, mut fake) = pair(1);
    let key = &fake.keys(true, 1)[0];
    let mut client = connect(node.address());
    send(&mut client, &["BLPOP", key, "0"]);
    let asked = fake.asked_for(1).remove(0);
    let id = client_of(&mut node, "blpop");
    assert_eq!(
        text(node.call(&["CLIENT", "KILL", "ID", &id])),
        "Integer(1)"
    );
    assert_eq!(ended(&mut fake), (asked.number, How::TimedOut as u32));
    waits(&mut fake, &asked);
    // Its key has moved: it is not sent after it.
    fake.turn_away(&asked);
    fake.is_asked_nothing(Duration::from_millis(300));
    assert_eq!(number(&node.info(), "cluster_forwarded_waiting"), 0);
}

#[test]
fn a_session_that_ends_leaves_a_wait_in_doubt() {
    let (mut node, mut fake) = pair(2);
    let key = &fake.keys(true, 1)[0];
    let (mut client, _) = waiting(&mut node, &mut fake, &["BRPOPLPUSH", key, key, "0"]);
    fake.hang_up();
    exchange(&mut client, b"", b"-UNKNOWNRESULT ");
    until_blocked(&mut node, 0);
    reached(&mut node, &mut fake);
    fake.is_asked_nothing(Duration::from_millis(300));
}

#[test]
fn a_wait_follows_its_slot_to_another_node_and_to_this_one() {
    let (mut node, mut fake) = pair(2);
    let (there, here) = (fake.keys(true, 1).remove(0), fake.keys(false, 1).remove(0));
    let (mut client, asked) = waiting(&mut node, &mut fake, &["BLMPOP", "60", "1", &there, "LEFT"]);
    let mut second = connect(node.address());
    send(&mut second, &["BLPOP", &here, "60"]);
    until_blocked(&mut node, 2);
    // The slots of this node go.
    fake.share_silently();
    fake.take_over();
    let moved = fake.asked_for(1).remove(0);
    let (words, rest) = moved.words.rsplit_once(' ').expect("words");
    assert_eq!(words, format!("BLPOP {here}"));
    let rest: f64 = rest.parse().expect("seconds");
    assert!((1.0..60.0).contains(&rest), "{rest}");
    until_blocked(&mut node, 2);
    fake.answer(&moved, &element(&here));
    exchange(&mut second, b"", element(&here).as_bytes());
    until_blocked(&mut node, 1);
    fake.turn_away(&asked);
    let again = fake.asked_for(1).remove(0);
    let words: Vec<&str> = again.words.split(' ').collect();
    assert_eq!(
        (words[0], words[2..].join(" ")),
        ("BLMPOP", format!("1 {there} LEFT"))
    );
    fake.answer(&again, "*-1\r\n");
    exchange(&mut client, b"", b"*-1\r\n");
}

#[test]
fn a_wait_whose_slot_comes_here_is_served_here() {
    let (mut node, mut fake) = pair(2);
    let key = fake.keys(true, 1).remove(0);
    let (mut client, asked) = waiting(&mut node, &mut fake, &["BLPOP", &key, "0"]);
    fake.give_all_away();
    fake.turn_away(&asked);
    until_blocked(&mut node, 1);
    node.until("nothing is to be sent", |info| {
        number(info, "cluster_forwarded_waiting") == 0
            && number(info, "cluster_forwarded_blocked") == 0
    });
    assert_eq!(node.call(&["RPUSH", &key, "x", "y"]), Answer::Integer(2));
    exchange(&mut client, b"", element(&key).as_bytes());
    assert_eq!(node.call(&["LLEN", &key]), Answer::Integer(1));
}

#[test]
fn requests_of_another_node_wait_here_until_it_ends_them_or_is_gone() {
    for workers in [1, 3] {
        let (mut node, mut fake) = pair(workers);
        let key = fake.keys(false, 1).remove(0);
        let served = |node: &mut Node, count: u64| {
            node.until("they wait", |info| {
                number(info, "cluster_served_blocked") == count
            });
        };
        let answer = |fake: &mut Fake, number: u64| fake.answers(1)[&number].clone();
        let end = |fake: &mut Fake, number: u64, how: How| {
            let how = how as u32;
            let ends = vec![EndWait { number, how }];
            fake.say(0, Body::EndWaits(EndWaits { ends }));
        };
        for number in 1..=3 {
            fake.ask(number, 0, &[&["BLPOP", &key, "0"]]);
            assert_eq!(answer(&mut fake, number).as_deref(), Some("waits"));
        }
        served(&mut node, 3);
        until_blocked(&mut node, 0);
        // Later requests are not held up.
        fake.ask(4, 0, &[&["LLEN", &key]]);
        assert_eq!(answer(&mut fake, 4).as_deref(), Some(":0\r\n"));
        end(&mut fake, 1, How::TimedOut);
        assert_eq!(answer(&mut fake, 1).as_deref(), Some("*-1\r\n"));
        assert_eq!(node.call(&["RPUSH", &key, "x"]), Answer::Integer(1));
        assert_eq!(answer(&mut fake, 2), Some(element(&key)));
        end(&mut fake, 3, How::Unblocked);
        let unblocked = answer(&mut fake, 3).expect("done");
        assert!(unblocked.starts_with("-UNBLOCKED client"), "{unblocked}");
        fake.ask(5, 0, &[&["BLPOP", &key, "1.5"], &["BLPOP", &key, "0"]]);
        let both = fake.answers(2);
        assert!(both.values().all(|text| text.as_deref() == Some("waits")));
        assert_eq!(answer(&mut fake, 5).as_deref(), Some("*-1\r\n"));
        served(&mut node, 1);
        fake.hang_up();
        served(&mut node, 0);
        assert_eq!(node.call(&["RPUSH", &key, "x"]), Answer::Integer(1));
        assert_eq!(
            node.call(&["LLEN", &key]),
            Answer::Integer(1),
            "nothing is lost"
        );
    }
}

#[test]
fn clients_of_all_nodes_are_served_in_order_and_once() {
    let mut nodes = spread(&[2, 1, 3]);
    let mut waiting: Vec<(usize, String, TcpStream)> = Vec::new();
    for n in 0..24 {
        let key = format!("list{}", n % 4);
        let node = &mut nodes[n % 3];
        let mut client = connect(node.address());
        let words: [&str; 3] = ["BLPOP", &key, "0"];
        send(&mut client, &words);
        // One after the other, so that their order is known.
        let so_far = waiting.iter().filter(|(at, ..)| *at == n % 3).count() as u64;
        until_blocked(node, so_far + 1);
        waiting.push((n % 3, key, client));
    }
    for n in 0..24 {
        let (key, value) = (format!("list{}", n % 4), format!("v{n}"));
        let pushed = nodes[(n + 1) % 3].call(&["RPUSH", &key, &value]);
        assert_eq!(pushed, Answer::Integer(1));
    }
    for (n, (_, key, mut client)) in waiting.into_iter().enumerate() {
        let value = format!("v{n}");
        let mut expected = Vec::new();
        rufous_resp::encode::request(&mut expected, &[key.as_str(), &value]);
        exchange(&mut client, b"", &expected);
    }
    for node in &mut nodes {
        until_blocked(node, 0);
        assert_eq!(number(&node.info(), "cluster_forwarded_in_doubt"), 0);
        node.has_the_same_sessions();
    }
}

#[test]
fn nodes_that_stop_end_the_waits_of_their_clients_and_at_their_keys() {
    let mut nodes = spread(&[2, 2]);
    // Of each node a client that waits for a key of each.
    let mut waiting = Vec::new();
    let addresses: Vec<_> = nodes.iter().map(|node| node.address()).collect();
    for (n, address) in addresses.into_iter().enumerate() {
        for key in 0..8 {
            let key = format!("list{key}");
            let mut client = connect(address);
            send(&mut client, &["BLPOP", &key, "0"]);
            waiting.push((n, client));
        }
        until_blocked(&mut nodes[n], 8);
    }
    let there = number(&nodes[0].info(), "cluster_forwarded_blocked");
    assert!((1..8).contains(&there), "{there}");
    let second = nodes.remove(1);
    second.stop();
    let mut errors = std::collections::BTreeMap::<_, u64>::new();
    for (n, client) in &mut waiting {
        let patience = Some(Duration::from_millis(if *n == 1 { 20_000 } else { 3_000 }));
        client.set_read_timeout(patience).expect("set");
        let mut reply = [0; 100];
        let read = std::io::Read::read(client, &mut reply).unwrap_or(0);
        let reply = String::from_utf8_lossy(&reply[..read]).into_owned();
        *errors.entry((*n, reply)).or_default() += 1;
    }
    let own = "-UNBLOCKED the node is shutting down\r\n".to_owned();
    let of_key = "-UNBLOCKED the node that has the key is shutting down\r\n".to_owned();
    assert_eq!(errors.get(&(1, own)), Some(&8), "{errors:?}");
    assert_eq!(errors.get(&(0, of_key)), Some(&there), "{errors:?}");
    assert_eq!(
        errors.get(&(0, String::new())),
        Some(&(8 - there)),
        "{errors:?}"
    );
}
