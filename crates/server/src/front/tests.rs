//! The order of replies, whatever lies between them: other workers, commands over several workers,
//! waits, and requests that arrive in pieces.

use super::testing::{Client, Rig};
use crate::config::Config;
use rufous_base::limits::MAX_PIPELINE_IN_FLIGHT;
use rufous_base::rng::Rng;
use rufous_base::{ConnInfo, Origin};
use std::sync::Arc;

/// A request of words separated by blanks, as RESP.
fn resp(request: &str) -> Vec<u8> {
    let words: Vec<_> = request.split(' ').collect();
    let mut bytes = Vec::new();
    rufous_resp::encode::request(&mut bytes, &words);
    bytes
}

/// Requests that go to all workers, wait for them, change the connection or fail, with their
/// replies.
fn mixed_pipeline() -> (Vec<u8>, String) {
    let (mut bytes, mut replies) = (Vec::new(), String::new());
    let mut add = |request: &str, reply: &str| {
        bytes.extend_from_slice(&resp(request));
        replies.push_str(reply);
    };
    for round in 0..3 {
        for key in 0..8 {
            add(&format!("SET key{key} {round}{key}"), "+OK\r\n");
        }
        add("PING", "+PONG\r\n");
        add("DBSIZE", ":8\r\n");
        for key in 0..8 {
            add(&format!("GET key{key}"), &format!("$2\r\n{round}{key}\r\n"));
        }
        add(
            "NOSUCH",
            "-ERR unknown command 'NOSUCH', with args beginning with: \r\n",
        );
        add(
            "GET",
            "-ERR wrong number of arguments for 'get' command\r\n",
        );
        add("SELECT 1", "+OK\r\n");
        add("DBSIZE", ":0\r\n");
        add("GET key0", "$-1\r\n");
        add("SELECT 0", "+OK\r\n");
        add("CONFIG SET timeout 0", "+OK\r\n");
        add("ECHO end", "$3\r\nend\r\n");
    }
    (bytes, replies)
}

#[test]
fn replies_come_in_the_order_of_requests() {
    for workers in 1..=4 {
        for at in 0..workers {
            let mut rig = Rig::new(workers);
            let client = rig.connect(at);
            let (bytes, replies) = mixed_pipeline();
            rig.send(client, &bytes);
            assert_eq!(
                rig.take(client),
                replies,
                "{workers} workers, connected to {at}"
            );
        }
    }
}

#[test]
fn requests_may_be_split_at_every_byte() {
    let (bytes, replies) = mixed_pipeline();
    for workers in [1, 3] {
        for split in 0..bytes.len() {
            let mut rig = Rig::new(workers);
            let client = rig.connect(0);
            rig.send(client, &bytes[..split]);
            rig.send(client, &bytes[split..]);
            assert_eq!(
                rig.take(client),
                replies,
                "{workers} workers, split at {split}"
            );
        }
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        for byte in &bytes {
            rig.send(client, std::slice::from_ref(byte));
        }
        assert_eq!(rig.take(client), replies, "{workers} workers, byte by byte");
    }
}

#[test]
fn pieces_of_several_clients_and_late_messages_in_any_order() {
    let (bytes, replies) = mixed_pipeline();
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(3);
        let client = rig.connect(rng.below(3) as usize);
        let other = rig.connect(rng.below(3) as usize);
        let mut at = 0;
        let mut pongs = 0;
        while at < bytes.len() {
            let end = (at + 1 + rng.below(200) as usize).min(bytes.len());
            rig.send_only(client, &bytes[at..end]);
            at = end;
            for _ in 0..rng.below(4) {
                rig.deliver_one();
            }
            if rng.below(3) == 0 {
                rig.send_only(other, b"PING\r\n");
                pongs += 1;
            }
        }
        rig.settle();
        assert_eq!(rig.take(client), replies, "seed {seed}");
        assert_eq!(rig.take(other), "+PONG\r\n".repeat(pongs), "seed {seed}");
    }
}

#[test]
fn a_reply_that_is_ready_waits_for_those_before_it() {
    let mut rig = Rig::new(2);
    let client = rig.connect(0);
    // foo is at worker 1 of 2, bar at worker 0.
    rig.send_only(client, b"GET foo\r\nPING\r\nGET bar\r\nDEBUG OWNER foo\r\n");
    assert_eq!(rig.take(client), "");
    rig.settle();
    assert_eq!(rig.take(client), "$-1\r\n+PONG\r\n$-1\r\n:1\r\n");
}

#[test]
fn nothing_overtakes_a_question_to_all_workers() {
    let mut rig = Rig::new(3);
    let client = rig.connect(0);
    rig.send_only(
        client,
        b"SET a 1\r\nSET b 1\r\nSET c 1\r\nDBSIZE\r\nSET d 1\r\nSET e 1\r\nDBSIZE\r\nPING\r\n",
    );
    assert!(
        rig.fronts[0].connections.suspended() == 1,
        "the question is under way"
    );
    rig.settle();
    let replies = "+OK\r\n+OK\r\n+OK\r\n:3\r\n+OK\r\n+OK\r\n:5\r\n+PONG\r\n";
    assert_eq!(rig.take(client), replies);
    assert!(
        rig.fronts
            .iter()
            .all(|front| front.connections.suspended() == 0)
    );
}

#[test]
fn a_pipeline_longer_than_may_be_under_way() {
    let mut rig = Rig::new(2);
    let client = rig.connect(0);
    let count = MAX_PIPELINE_IN_FLIGHT * 2 + 100;
    let bytes: Vec<u8> = (0..count)
        .flat_map(|i| format!("SET foo {i}\r\nGET foo\r\n").into_bytes())
        .collect();
    rig.send_only(client, &bytes);
    assert_eq!(rig.fronts[0].connections.suspended(), 1);
    rig.settle();
    let replies: String = (0..count)
        .map(|i| format!("+OK\r\n${}\r\n{i}\r\n", i.to_string().len()))
        .collect();
    assert!(rig.take(client) == replies, "all replies, in order");
}

#[test]
fn clients_of_one_turn_get_their_own_replies() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let clients: Vec<Client> = (0..5).map(|_| rig.connect(0)).collect();
        let requests: Vec<Vec<u8>> = (0..5)
            .map(|i| format!("SET key{i} {i}\r\nGET key{i}\r\nECHO {i}\r\nGET ke").into_bytes())
            .collect();
        let sends: Vec<_> = clients
            .iter()
            .copied()
            .zip(requests.iter().map(Vec::as_slice))
            .collect();
        rig.send_together(&sends);
        let rest: Vec<_> = clients
            .iter()
            .map(|client| (*client, &b"y9\r\n"[..]))
            .collect();
        rig.send_together(&rest);
        for (i, client) in clients.into_iter().enumerate() {
            let replies = format!("+OK\r\n$1\r\n{i}\r\n$1\r\n{i}\r\n$-1\r\n");
            assert_eq!(rig.take(client), replies, "client {i} of {workers} workers");
        }
    }
}

#[test]
fn a_malformed_request_ends_the_connection_after_the_replies_before_it() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        rig.send(
            client,
            b"SET a 1\r\nSET b 1\r\nSET c 1\r\n*1\r\nPING\r\nSET d 1\r\n",
        );
        let replies = "+OK\r\n+OK\r\n+OK\r\n-ERR Protocol error: expected '$', got 'P'\r\n";
        assert_eq!(rig.take(client), replies);
        assert!(rig.is_closed(client));
        rig.check("DBSIZE", ":3\r\n");
    }
}

#[test]
fn a_client_that_goes_while_replies_are_awaited_harms_nobody() {
    let mut rig = Rig::new(3);
    let client = rig.connect(0);
    let stays = rig.connect(0);
    rig.send_only(
        client,
        b"SET a 1\r\nSET b 1\r\nSET c 1\r\nDBSIZE\r\nGET a\r\n",
    );
    rig.check_on(stays, "CLIENT KILL ID 1", ":1\r\n");
    assert!(rig.is_closed(client));
    rig.check_on(stays, "DBSIZE", ":3\r\n");
    assert_eq!(rig.fronts[0].connections().count(), 1);
}

#[test]
fn a_large_argument_in_pieces() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let value = "v".repeat(300_000);
        for key in ["a", "b", "c"] {
            let client = rig.connect(0);
            let bytes = [
                resp(&format!("SET {key} {value}")),
                resp(&format!("GET {key}")),
            ]
            .concat();
            for piece in bytes.chunks(70_001) {
                rig.send(client, piece);
            }
            let replies = format!("+OK\r\n$300000\r\n{value}\r\n");
            assert!(rig.take(client) == replies, "{key} at {workers} workers");
        }
    }
}

#[test]
fn input_without_end_ends_the_connection() {
    let mut rig = Rig::with_config(
        1,
        Config {
            client_query_buffer_limit: 1 << 20,
            ..Config::in_memory()
        },
    );
    let client = rig.connect(0);
    rig.send(client, b"*1000000\r\n");
    let argument = resp(&"x".repeat(10_000))[4..].to_vec();
    for _ in 0..200 {
        rig.send(client, &argument);
    }
    assert!(rig.is_closed(client));
    rig.check("PING", "+PONG\r\n");
}

#[test]
fn strangers_are_turned_away_in_protected_mode() {
    let stranger = || ConnInfo {
        peer: "203.0.113.5:1".into(),
        local: "203.0.113.6:6379".into(),
        is_local: false,
        origin: Origin::Client,
        certificate: None,
    };
    let mut rig = Rig::new(1);
    let client = rig.connect_as(0, stranger());
    assert!(rig.take(client).starts_with("-DENIED "));
    assert!(rig.is_closed(client));
    rig.check("CONFIG SET protected-mode no", "+OK\r\n");
    let client = rig.connect_as(0, stranger());
    rig.check_on(client, "PING", "+PONG\r\n");
}

#[test]
fn silent_clients_are_dropped_after_the_timeout() {
    let mut rig = Rig::new(2);
    rig.check("CONFIG SET timeout 10", "+OK\r\n");
    let (silent, busy) = (rig.connect(1), rig.connect(1));
    for _ in 0..4 {
        rig.advance_ms(4_000);
        rig.check_on(busy, "PING", "+PONG\r\n");
    }
    assert!(rig.is_closed(silent) && !rig.is_closed(busy));
}

/// In a pipeline, a transaction, and where replies are not wanted; of this worker and of another.
#[test]
fn replies_that_are_made_while_they_are_sent_keep_their_place() {
    const DRAWS: usize = 20_000;
    let draw = format!("SRANDMEMBER set -{DRAWS}");
    let drawn = format!("*{DRAWS}\r\n{}", "$1\r\na\r\n".repeat(DRAWS));
    for (workers, at) in [(1, 0), (2, 0), (2, 1)] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(at);
        let (mut bytes, mut replies) = (Vec::new(), String::new());
        let mut add = |request: &str, reply: &str| {
            bytes.extend_from_slice(&resp(request));
            replies.push_str(reply);
        };
        add("SADD set a", ":1\r\n");
        for _ in 0..3 {
            add("GET none", "$-1\r\n");
            add(&draw, &drawn);
        }
        add("MULTI", "+OK\r\n");
        add(&draw, "+QUEUED\r\n");
        add("SREM set a", "+QUEUED\r\n");
        add(&draw, "+QUEUED\r\n");
        add("SADD set a", "+QUEUED\r\n");
        add("EXEC", &format!("*4\r\n{drawn}:1\r\n*0\r\n:1\r\n"));
        add("CLIENT REPLY SKIP", "");
        add(&draw, "");
        add("ECHO between", "$7\r\nbetween\r\n");
        add("BEGIN", "+OK\r\n");
        add(&draw, &drawn);
        // It has replies of what wrote, and the draw was answered at once.
        add("COMMIT", "*0\r\n");
        add("SREM set a", ":1\r\n");
        add("ECHO end", "$3\r\nend\r\n");
        rig.send(client, &bytes);
        let got = rig.take(client);
        let mut pairs = got.bytes().zip(replies.bytes());
        let same = pairs.position(|(got, right)| got != right);
        let rest = same.map(|same| &got[same..got.len().min(same + 40)]);
        assert!(
            got == replies,
            "{workers} workers, connected to {at}: {} of {} bytes, otherwise from {same:?}: {rest:?}",
            got.len(),
            replies.len()
        );
    }
}

#[test]
fn no_client_is_served_before_all_workers_have_loaded() {
    let mut rig = Rig::new(2);
    let shared = Arc::clone(&rig.fronts[0].shared);
    shared.loading.begin(2);
    let clients = [rig.connect(0), rig.connect(1)];
    for _ in 0..2 {
        for client in clients {
            let loading = "-LOADING Rufous is loading the dataset in memory (100 % so far)\r\n";
            rig.check_on(client, "GET k", loading);
        }
        shared.loading.finish_worker();
    }
    for client in clients {
        rig.check_on(client, "GET k", "$-1\r\n");
    }
}
