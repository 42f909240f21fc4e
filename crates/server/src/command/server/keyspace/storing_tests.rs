//! Commands that store results, copy and rename, where keys are at several workers and of both regimes, alone and in transactions; and
//! values of two types at one key.

use crate::front::testing::{Client, Rig};

/// Keys that begin with `l:` have a replica at every worker, those with `o:` at one.
fn node(workers: usize) -> Rig {
    let mut rig = Rig::new(workers);
    for create in [
        "KEYSPACE CREATE all PREFIX l: REGIME lattice GOSSIP 5",
        "KEYSPACE CREATE one PREFIX o: REGIME lattice THREADS 1 GOSSIP 5",
    ] {
        rig.check(create, "+OK\r\n");
    }
    rig
}

/// The words of a reply, in order.
fn words(rig: &mut Rig, client: Client, request: &str) -> Vec<String> {
    let reply = rig.run_on(client, request);
    let words = reply
        .split("\r\n")
        .filter(|word| !word.starts_with(['$', '*']));
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.retain(|word| !word.is_empty());
    words.sort();
    words
}

#[test]
fn keys_of_any_workers_and_regimes_are_stored_to_copied_and_renamed() {
    for workers in [1, 3] {
        for prefix in ["l:", "o:", ""] {
            for is_txn in [false, true] {
                let mut rig = node(workers);
                let (client, other) = (rig.connect(0), rig.connect(workers - 1));
                for n in 0..4 {
                    // Some are strict, and their workers differ.
                    let (from, to) = (format!("{prefix}from{n}"), format!("l:to{n}"));
                    let back = format!("o:back{n}");
                    rig.check_on(client, &format!("SADD {from} a b"), ":2\r\n");
                    rig.check_on(client, &format!("SADD {to} b c"), ":2\r\n");
                    rig.advance_ms(20);
                    rig.check_on(other, &format!("SADD {to} late"), ":1\r\n");
                    let requests = [
                        (format!("SUNIONSTORE {to} {from}"), ":2"),
                        (format!("COPY {to} {back} REPLACE"), ":1"),
                        (format!("RENAME {back} {from}x"), "+OK"),
                    ];
                    if is_txn {
                        rig.check_on(client, "MULTI", "+OK\r\n");
                    }
                    for (request, reply) in &requests {
                        let reply = if is_txn { "+QUEUED" } else { reply };
                        rig.check_on(client, request, &format!("{reply}\r\n"));
                    }
                    if is_txn {
                        rig.check_on(client, "EXEC", "*3\r\n:2\r\n:1\r\n+OK\r\n");
                    }
                    rig.advance_ms(30);
                    let why = format!("{workers} workers, {prefix}, {is_txn}");
                    for client in [client, other] {
                        let shown = words(&mut rig, client, &format!("SMEMBERS {to}"));
                        // At one worker the other client's member was seen.
                        let expected = ["a", "b", "late"];
                        let expected = &expected[..if workers == 1 { 2 } else { 3 }];
                        assert_eq!(shown, expected, "{why}");
                        let shown = words(&mut rig, client, &format!("SMEMBERS {from}x"));
                        assert_eq!(shown, ["a", "b"], "{why}");
                        rig.check_on(client, &format!("EXISTS {back}"), ":0\r\n");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_refused_says_why_and_what_to_use() {
    let mut rig = node(1);
    for (request, why) in [
        ("COPY l:a l:b", "use it with REPLACE"),
        ("RENAMENX l:a l:b", "use RENAME, which replaces"),
        ("SORT l:a STORE l:b", "a sorted set whose scores order them"),
        ("MOVE l:a 1", "write the one and delete the other"),
    ] {
        let reply = rig.run(request);
        assert!(reply.contains(why), "{request}: {reply}");
    }
    rig.check("SADD l:s a", ":1\r\n");
    rig.check("SET l:t 1", "+OK\r\n");
    let reply = rig.run("SUNIONSTORE l:t l:s");
    assert!(
        reply.contains("the key holds a value of another type"),
        "{reply}"
    );
    rig.check("PFADD l:p a", ":1\r\n");
    let reply = rig.run("RENAME l:p l:q");
    assert!(reply.contains("use PFMERGE"), "{reply}");
}

/// The deletion has not been sent yet when a command of another type changes nothing.
#[test]
fn a_deletion_is_not_forgotten_by_a_command_that_writes_nothing() {
    for request in [
        "SREM l:k x",
        "HDEL l:k f",
        "ZREM l:k x",
        "SDIFFSTORE l:k l:none",
        "SUNIONSTORE l:k l:none",
        "ZREMRANGEBYRANK l:k 0 -1",
        "PFMERGE l:k l:none",
        "HSETNX l:k f v",
        "HINCRBY l:k f x",
        "ZINCRBY l:k nan x",
        "ZADD l:k XX 1 x",
    ] {
        let mut rig = node(2);
        let clients = [rig.connect(0), rig.connect(1)];
        rig.check_on(clients[0], "SET l:k 1", "+OK\r\n");
        rig.advance_ms(50);
        rig.check_on(clients[1], "GET l:k", "$1\r\n1\r\n");
        rig.check_on(clients[0], "DEL l:k", ":1\r\n");
        rig.run_on(clients[0], request);
        rig.advance_ms(50);
        for client in clients {
            let reply = rig.run_on(client, "GET l:k");
            assert!(!reply.contains("$1\r\n1"), "{request}: {reply}");
        }
    }
}

#[test]
fn a_later_type_is_written_at_once_after_an_expiry() {
    let mut rig = node(1);
    for (first, second) in [
        ("SET l:k 1 PX 5", "SADD l:k a"),
        ("SET l:k 1 PX 5", "HINCRBY l:k f 1"),
        ("SADD l:k a", "ZADD l:k 1 a"),
    ] {
        rig.run(first);
        rig.run("PEXPIRE l:k 5");
        rig.advance_ms(9);
        rig.check(second, ":1\r\n");
        rig.check("DEL l:k", ":1\r\n");
        rig.advance_ms(500);
    }
}

#[test]
fn sets_of_both_regimes_are_sources_of_sorted_sets() {
    let mut rig = node(2);
    rig.check("SADD l:s a b", ":2\r\n");
    rig.check("ZADD l:z 1 a", ":1\r\n");
    rig.check("SADD s a", ":1\r\n");
    rig.check("ZUNION 2 l:s l:z", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
    rig.check("ZUNIONSTORE l:d 3 l:s l:z s", ":2\r\n");
    rig.check("ZINTERSTORE d 2 l:s s", ":1\r\n");
    rig.check("ZDIFFSTORE l:d 2 l:s l:z", ":1\r\n");
    rig.check("ZRANGE l:d 0 -1", "*1\r\n$1\r\nb\r\n");
}

#[test]
fn a_type_that_loses_is_counted() {
    let mut rig = node(2);
    let clients = [rig.connect(0), rig.connect(1)];
    rig.check_on(clients[0], "SET l:k 1", "+OK\r\n");
    rig.check_on(clients[1], "SADD l:k a", ":1\r\n");
    rig.advance_ms(50);
    for client in clients {
        rig.check_on(client, "SMEMBERS l:k", "*1\r\n$1\r\na\r\n");
    }
    let info = rig.run("INFO keyspaces");
    assert!(info.contains("replica_type_conflicts_lost:1\r\n"), "{info}");
    // Another type after a deletion: at once where it is a later one, and otherwise once all replicas have forgotten it.
    rig.check_on(clients[0], "SET l:j 1", "+OK\r\n");
    rig.check_on(clients[0], "DEL l:j", ":1\r\n");
    rig.check_on(clients[0], "SADD l:j x", ":1\r\n");
    rig.advance_ms(50);
    for client in clients {
        rig.check_on(client, "SMEMBERS l:j", "*1\r\n$1\r\nx\r\n");
    }
    rig.check_on(clients[0], "DEL l:k", ":1\r\n");
    let reply = rig.run_on(clients[0], "SET l:k 2");
    assert!(reply.contains("or did not long ago"), "{reply}");
    rig.advance_ms(500);
    rig.check_on(clients[0], "SET l:k 2", "+OK\r\n");
}
