//! Requests for a node that does not answer as it should: it goes, it does not have
//! the keys, it says nothing, it says nonsense.

use crate::fake::{Fake, with_fake};
use crate::node::{Node, number};
use crate::plain::{connect, exchange, resp};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn client(node: &Node) -> TcpStream {
    connect(node.address())
}

fn send(client: &mut TcpStream, requests: &[&[&str]]) {
    let all: Vec<u8> = requests.iter().flat_map(|words| resp(words)).collect();
    client.write_all(&all).expect("sent");
}

/// One line of a reply.
fn line(client: &mut TcpStream) -> String {
    let (mut all, mut byte) = (Vec::new(), [0]);
    while !all.ends_with(b"\r\n") {
        client.read_exact(&mut byte).expect("a reply");
        all.push(byte[0]);
    }
    String::from_utf8(all).expect("text").trim_end().to_owned()
}

/// It is asked for a key, so that the session is there.
fn is_reached(node: &mut Node, fake: &mut Fake) {
    fake.accept();
    node.until("connected", |info| {
        number(info, "cluster_connected_nodes") == 1
    });
}

#[test]
fn a_session_that_ends_leaves_writes_in_doubt_and_reads_are_sent_again() {
    for workers in [1, 3] {
        let (mut node, mut fake) = with_fake(workers);
        is_reached(&mut node, &mut fake);
        let keys = fake.keys(true, 3);
        let mut client = client(&node);
        let requests: [&[&str]; 4] = [
            &["GET", &keys[0]],
            &["SET", &keys[1], "1"],
            &["GET", &keys[2]],
            &["PING"],
        ];
        send(&mut client, &requests);
        let first = fake.asked_for(3);
        fake.hang_up();
        is_reached(&mut node, &mut fake);
        let again = fake.asked_for(2);
        let reads = [format!("GET {}", keys[0]), format!("GET {}", keys[2])];
        assert_eq!([&again[0].words, &again[1].words], [&reads[0], &reads[1]]);
        let old = first.iter().map(|asked| asked.number).max();
        assert!(Some(again[0].number) > old, "never the same number again");
        fake.answer(&again[1], "+two\r\n");
        fake.answer(&again[0], "+one\r\n");
        assert_eq!(line(&mut client), "+one");
        let doubt = line(&mut client);
        assert!(
            doubt.starts_with("-UNKNOWNRESULT The connection to node n1 at fake:1"),
            "{doubt}"
        );
        assert_eq!(line(&mut client), "+two");
        assert_eq!(line(&mut client), "+PONG");
        let info = node.info();
        assert_eq!(number(&info, "cluster_forwarded_in_doubt"), 1);
        assert_eq!(number(&info, "cluster_forwarded_again"), 2);
        assert_eq!(number(&info, "cluster_forwarded_under_way"), 0);
    }
}

#[test]
fn a_reply_of_an_earlier_session_is_taken_for_no_other() {
    let (mut node, mut fake) = with_fake(1);
    is_reached(&mut node, &mut fake);
    let key = &fake.keys(true, 1)[0];
    let mut client = client(&node);
    send(&mut client, &[&["GET", key]]);
    let old = fake.asked_for(1);
    fake.hang_up();
    is_reached(&mut node, &mut fake);
    fake.asked_for(1);
    fake.answer(&old[0], "+old\r\n");
    fake.is_refused();
    is_reached(&mut node, &mut fake);
    let again = fake.asked_for(1);
    fake.answer(&again[0], "+new\r\n");
    assert_eq!(line(&mut client), "+new");
    assert_eq!(node.info()["cluster_refused_reasons"], "8=1");
}

#[test]
fn replies_to_what_was_never_asked_end_the_session() {
    let (mut node, mut fake) = with_fake(2);
    is_reached(&mut node, &mut fake);
    for worker in [0, 1, 255] {
        let asked = crate::fake::Asked {
            worker,
            number: 77,
            round: 0,
            words: String::new(),
        };
        fake.answer(&asked, "+what?\r\n");
        fake.is_refused();
        is_reached(&mut node, &mut fake);
    }
    assert_eq!(node.info()["cluster_refused_reasons"], "8=3");
    let own = &fake.keys(false, 1)[0];
    exchange(&mut client(&node), &resp(&["SET", own, "1"]), b"+OK\r\n");
}

#[test]
fn who_has_not_the_keys_is_asked_again_in_order_and_not_for_ever() {
    let (mut node, mut fake) = with_fake(1);
    is_reached(&mut node, &mut fake);
    let keys = fake.keys(true, 2);
    let mut client = client(&node);
    let requests: [&[&str]; 3] = [
        &["SET", &keys[0], "1"],
        &["SET", &keys[0], "2"],
        &["GET", &keys[1]],
    ];
    send(&mut client, &requests);
    let first = fake.asked_for(3);
    // It has not heard of the mapping when the first comes; then it has.
    first.iter().for_each(|asked| fake.turn_away(asked));
    let again = fake.asked_for(3);
    let words = |all: &[crate::fake::Asked]| {
        let words = all.iter().map(|asked| asked.words.clone());
        words.collect::<Vec<_>>()
    };
    assert_eq!(words(&again), words(&first));
    assert!(again.iter().all(|asked| asked.round == first[0].round + 1));
    for (asked, reply) in again.iter().zip(["+OK\r\n", "+OK\r\n", "$-1\r\n"]) {
        fake.answer(asked, reply);
    }
    for expected in ["+OK", "+OK", "$-1"] {
        assert_eq!(line(&mut client), expected);
    }
    // And now it never has it.
    send(&mut client, &[&["SET", &keys[0], "3"], &["PING"]]);
    let begun = Instant::now();
    let mut times = 0;
    client.set_nonblocking(true).expect("set");
    while client.peek(&mut [0]).is_err() {
        if fake.is_asked(Duration::from_millis(50)) {
            let asked = fake.asked_for(1);
            fake.turn_away(&asked[0]);
            times += 1;
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    client.set_nonblocking(false).expect("set");
    let given_up = line(&mut client);
    assert!(
        given_up.starts_with("-TRYAGAIN The key is on its way"),
        "{given_up}"
    );
    assert_eq!(line(&mut client), "+PONG");
    assert!((3..=9).contains(&times), "{times}");
    fake.is_asked_nothing(Duration::from_millis(300));
}

#[test]
fn what_waits_here_for_keys_that_move_away_is_done_there() {
    for workers in [1, 2] {
        let (mut node, mut fake) = with_fake(workers);
        is_reached(&mut node, &mut fake);
        let keys = fake.keys(false, 3);
        let mut client = client(&node);
        fake.share_silently();
        node.until("it shares", |info| info["cluster_epoch"] == "3");
        let requests: [&[&str]; 3] = [
            &["SET", &keys[0], "1"],
            &["SET", &keys[0], "2"],
            &["GET", &keys[1]],
        ];
        send(&mut client, &requests);
        while number(&node.info(), "cluster_requests_waiting") == 0 {
            fake.is_asked_nothing(Duration::from_millis(1));
        }
        fake.take_over();
        // Together, or one after the other.
        let mut asked = VecDeque::new();
        for (request, reply) in requests.iter().zip(["+OK", "+OK", "$-1"]) {
            if asked.is_empty() {
                asked.extend(fake.asked_for_some());
            }
            let first = asked.pop_front().expect("one");
            assert_eq!(first.words, request.join(" "), "{workers}");
            fake.answer(&first, &format!("{reply}\r\n"));
            assert_eq!(line(&mut client), reply);
        }
    }
}

#[test]
fn a_key_that_moves_here_meanwhile_is_served_here() {
    for workers in [1, 2] {
        let (mut node, mut fake) = with_fake(workers);
        is_reached(&mut node, &mut fake);
        let keys = fake.keys(true, 3);
        let mut client = client(&node);
        let requests: [&[&str]; 4] = [
            &["INCR", &keys[0]],
            &["INCR", &keys[0]],
            &["MGET", &keys[0], &keys[1]],
            &["PING"],
        ];
        send(&mut client, &requests);
        // The third has keys of one node, and waits for nothing: it is there, too.
        let asked = fake.asked_for(3);
        fake.epoch = 4;
        asked.iter().for_each(|asked| fake.turn_away(asked));
        fake.is_asked_nothing(Duration::from_millis(300));
        fake.give_all_away();
        assert_eq!(line(&mut client), ":1");
        assert_eq!(line(&mut client), ":2");
        assert_eq!(line(&mut client), "*2");
        assert_eq!(line(&mut client), "$1");
        assert_eq!(line(&mut client), "2");
        assert_eq!(line(&mut client), "$-1");
        assert_eq!(line(&mut client), "+PONG");
        exchange(&mut client, &resp(&["GET", &keys[0]]), b"$1\r\n2\r\n");
        fake.is_asked_nothing(Duration::from_millis(200));
        let info = node.info();
        assert_eq!(number(&info, "cluster_forwarded"), 3);
    }
}

#[test]
fn what_is_behind_a_request_on_its_way_to_an_earlier_owner_waits() {
    let (mut node, mut fake) = with_fake(1);
    is_reached(&mut node, &mut fake);
    let key = &fake.keys(true, 1)[0];
    let mut client = client(&node);
    send(&mut client, &[&["SET", key, "first"]]);
    let asked = fake.asked_for(1);
    fake.give_all_away();
    node.until("it has all slots", |info| info["cluster_epoch"] == "4");
    // This could be done here at once.
    send(&mut client, &[&["SET", key, "second"]]);
    std::thread::sleep(Duration::from_millis(200));
    let mut other = connect(node.address());
    exchange(&mut other, &resp(&["GET", key]), b"$-1\r\n");
    fake.turn_away(&asked[0]);
    assert_eq!(line(&mut client), "+OK");
    assert_eq!(line(&mut client), "+OK");
    exchange(&mut other, &resp(&["GET", key]), b"$6\r\nsecond\r\n");
}

#[test]
fn a_node_that_cannot_be_reached_is_named_after_a_while_and_others_go_on() {
    let (mut node, mut fake) = with_fake(2);
    let (there, here) = (fake.keys(true, 1), fake.keys(false, 1));
    let mut waiting = client(&node);
    let begun = Instant::now();
    send(
        &mut waiting,
        &[&["SET", &there[0], "1"], &["GET", &there[0]], &["PING"]],
    );
    let mut other = client(&node);
    for _ in 0..50 {
        exchange(&mut other, &resp(&["SET", &here[0], "1"]), b"+OK\r\n");
    }
    let down = line(&mut waiting);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1_900), "{took:?}");
    let expected = "-CLUSTERDOWN Node n1 at fake:1, which has slot ";
    assert!(down.starts_with(expected), "{down}");
    assert!(line(&mut waiting).starts_with(expected));
    assert_eq!(line(&mut waiting), "+PONG");
    let took = begun.elapsed();
    std::thread::sleep(Duration::from_millis(4_500).saturating_sub(took));
    // Who waits when it comes is served.
    send(&mut waiting, &[&["SET", &there[0], "1"]]);
    is_reached(&mut node, &mut fake);
    let asked = fake.asked_for(1);
    fake.answer(&asked[0], "+OK\r\n");
    assert_eq!(line(&mut waiting), "+OK");
    // A read whose node has gone for good is given up, too.
    send(&mut waiting, &[&["GET", &there[0]], &["PING"]]);
    fake.asked_for(1);
    fake.listen_no_more();
    fake.hang_up();
    assert!(line(&mut waiting).starts_with(expected));
    assert_eq!(line(&mut waiting), "+PONG");
}

#[test]
fn a_node_that_stops_leaves_nobody_without_an_answer() {
    let (mut node, mut fake) = with_fake(2);
    is_reached(&mut node, &mut fake);
    let keys = fake.keys(true, 2);
    let mut client = client(&node);
    send(&mut client, &[&["GET", &keys[0]], &["SET", &keys[1], "1"]]);
    fake.asked_for(2);
    let begun = Instant::now();
    node.stop();
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(line(&mut client).starts_with("-CLUSTERDOWN This node is shutting down"));
    assert!(line(&mut client).starts_with("-UNKNOWNRESULT "));
}

#[test]
fn so_much_is_under_way_to_one_node_and_no_more() {
    const ALL: usize = 10_000;
    let (mut node, mut fake) = with_fake(1);
    is_reached(&mut node, &mut fake);
    let (there, here) = (fake.keys(true, 1), fake.keys(false, 1));
    let mut clients: Vec<TcpStream> = (0..4).map(|_| client(&node)).collect();
    let request = resp(&["INCR", &there[0]]);
    let each = ALL / clients.len();
    for client in &mut clients {
        client.write_all(&request.repeat(each)).expect("sent");
    }
    let mut asked = fake.asked_for(4096);
    fake.is_asked_nothing(Duration::from_millis(300));
    let mut other = client(&node);
    exchange(&mut other, &resp(&["SET", &here[0], "1"]), b"+OK\r\n");
    let mut answered = 0;
    while answered < ALL {
        for asked in asked.drain(..) {
            fake.answer_soon(&asked, ":1\r\n");
            answered += 1;
        }
        if answered < ALL {
            asked = fake.asked_for_some();
        }
    }
    fake.is_asked_nothing(Duration::from_millis(100));
    for client in &mut clients {
        exchange(client, b"", &b":1\r\n".repeat(each));
    }
}

#[test]
fn what_a_node_may_not_ask_is_refused_and_the_rest_is_done() {
    let (mut node, mut fake) = with_fake(2);
    is_reached(&mut node, &mut fake);
    let (here, there) = (fake.keys(false, 2), fake.keys(true, 1));
    let requests: [&[&str]; 9] = [
        &["SET", &here[0], "1"],
        &["NOSUCH", "x"],
        &["GET"],
        &["BGSAVE"],
        &["CONFIG", "SET", "maxmemory", "1"],
        &["SHUTDOWN"],
        &["MULTI"],
        &["SWAPDB", "0", "1"],
        &["INCR", &here[0]],
    ];
    fake.ask(500, 0, &requests);
    let answers = fake.answers(9);
    let text = |number: u64| answers[&number].clone().expect("done");
    assert_eq!(text(500), "+OK\r\n");
    assert!(text(501).starts_with("-ERR unknown command 'NOSUCH'"));
    assert!(text(502).starts_with("-ERR wrong number of arguments"));
    for number in 503..508 {
        let text = text(number);
        assert!(text.contains(" is not taken from other nodes"), "{text}");
    }
    assert_eq!(text(508), ":2\r\n");
    // One that is not here turns away what is behind it, until the sender knows.
    fake.ask(
        509,
        0,
        &[
            &["INCR", &here[0]],
            &["GET", &there[0]],
            &["INCR", &here[0]],
        ],
    );
    fake.ask(512, 0, &[&["INCR", &here[0]]]);
    fake.ask(513, 1, &[&["INCR", &here[0]]]);
    let answers = fake.answers(5);
    let expected = [
        (509, Some(":3\r\n".to_owned())),
        (510, None),
        (511, None),
        (512, None),
        (513, Some(":4\r\n".to_owned())),
    ];
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), expected);
    // The last number that there is.
    fake.ask(u64::MAX - 1, 1, &[&["INCR", &here[0]]]);
    let last = fake.answers(1);
    assert_eq!(last[&(u64::MAX - 1)].as_deref(), Some(":5\r\n"));
    let info = node.info();
    assert_eq!(number(&info, "cluster_not_served_here"), 3);
    node.call(&["SET", &here[0], "1"]);
}

#[test]
fn nonsense_ends_the_session_and_nothing_else() {
    let (mut node, mut fake) = with_fake(2);
    let own = fake.keys(false, 1).remove(0);
    let nonsense: [&[u8]; 4] = [
        b"*2\r\n$3\r\nGET\r\n",
        b"\xff\xfe\xfd",
        b"GET key\r\n",
        b"*1\r\n$1000000000000\r\nx\r\n",
    ];
    for (n, bytes) in nonsense.into_iter().enumerate() {
        is_reached(&mut node, &mut fake);
        fake.ask_bytes(n as u64, 0, vec![bytes.to_vec()]);
        fake.is_refused();
    }
    is_reached(&mut node, &mut fake);
    assert_eq!(node.info()["cluster_refused_reasons"], "8=4");
    exchange(&mut client(&node), &resp(&["SET", &own, "1"]), b"+OK\r\n");
}

#[test]
fn commands_about_all_keys_name_the_node_that_did_not_answer() {
    let (mut node, mut fake) = with_fake(2);
    is_reached(&mut node, &mut fake);
    let here = fake.keys(false, 1).remove(0);
    node.call(&["SET", &here, "1"]);
    let mut client = client(&node);
    send(&mut client, &[&["DBSIZE"], &["DBSIZE"], &["PING"]]);
    let asked = fake.asked_for(1);
    assert_eq!(asked[0].words, "DBSIZE");
    fake.answer(&asked[0], ":41\r\n");
    assert_eq!(line(&mut client), ":42");
    let asked = fake.asked_for(1);
    fake.answer(&asked[0], "+many\r\n");
    let wrong = line(&mut client);
    assert!(
        wrong.starts_with("-ERR nodes of this cluster answer"),
        "{wrong}"
    );
    assert_eq!(line(&mut client), "+PONG");
    // A read is asked for again, of that node: what is here is not counted twice.
    send(&mut client, &[&["DBSIZE"]]);
    fake.asked_for(1);
    fake.hang_up();
    is_reached(&mut node, &mut fake);
    let asked = fake.asked_for(1);
    fake.answer(&asked[0], ":5\r\n");
    assert_eq!(line(&mut client), ":6");
    send(&mut client, &[&["FLUSHALL"], &["PING"]]);
    fake.asked_for(1);
    fake.hang_up();
    let doubt = line(&mut client);
    assert!(
        doubt.starts_with("-UNKNOWNRESULT ") && doubt.contains("n1 at fake:1"),
        "{doubt}"
    );
    assert_eq!(line(&mut client), "+PONG");
    fake.listen_no_more();
    send(&mut client, &[&["FLUSHALL"]]);
    let down = line(&mut client);
    assert!(down.starts_with("-CLUSTERDOWN Node n1 at fake:1"), "{down}");
}
