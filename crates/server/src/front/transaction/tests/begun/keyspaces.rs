//! Transactions that were begun without a level: the keyspaces of their keys give it.

use super::super::{WORKERS, all};
use super::{assert_nothing_left, begin, bulk, info};
use crate::front::testing::{Client, Rig};

const OTHER_KEYSPACE: &str = "-ERR the transaction has written keys of LEVEL read-uncommitted";

/// Keys that begin with `u:`, `c:`, `i:` and `l:` have a replica at every worker, at a level each; others are strict.
fn node(workers: usize) -> Rig {
    let mut rig = Rig::new(workers);
    for (prefix, level) in [
        ("u:", "read-uncommitted"),
        ("c:", "read-committed"),
        ("i:", "item-cut"),
        ("l:", "eventual"),
    ] {
        let create = format!(
            "KEYSPACE CREATE {level} PREFIX {prefix} REGIME lattice LEVEL {level} GOSSIP 5"
        );
        rig.check(&create, "+OK\r\n");
    }
    rig
}

/// The level of the one transaction that is open.
fn level(rig: &mut Rig) -> String {
    let list = rig.run("TXN LIST");
    let mut words = list.split(' ');
    let level = words.find_map(|word| word.strip_prefix("level="));
    level.expect("a transaction").into()
}

/// What another client of each worker reads, once replicas have exchanged their changes.
fn seen_by_others(rig: &mut Rig, key: &str) -> String {
    rig.advance_ms(30);
    let mut seen: Vec<_> = (0..rig.fronts.len())
        .map(|worker| {
            let other = rig.connect(worker);
            let seen = rig.run_on(other, &format!("GET {key}"));
            rig.close(other);
            seen
        })
        .collect();
    seen.dedup();
    seen.concat()
}

#[test]
fn writes_are_seen_at_once_where_the_keyspace_says_so_and_else_after_commit() {
    let of_keyspaces = [
        ("u:a", "read-uncommitted"),
        ("c:a", "read-committed"),
        ("i:a", "item-cut"),
        ("l:a", "read-committed"),
        ("a", "read-committed"),
    ];
    for workers in WORKERS {
        for (key, expected) in of_keyspaces {
            // The level that BEGIN gives wins.
            for given in ["", "read-uncommitted", "read-committed", "item-cut"] {
                let expected = if given.is_empty() { expected } else { given };
                let mut rig = node(workers);
                let client = rig.connect(0);
                begin(&mut rig, client, given);
                rig.check_on(client, &format!("SET {key} 1"), "+OK\r\n");
                assert_eq!(level(&mut rig), expected, "{key}, {given}");
                let at_once = expected == "read-uncommitted";
                let seen = seen_by_others(&mut rig, key);
                assert_eq!(seen, if at_once { bulk("1") } else { "$-1\r\n".into() });
                rig.check_on(client, &format!("GET {key}"), &bulk("1"));
                let committed = if at_once { "*0\r\n" } else { "*1\r\n+OK\r\n" };
                rig.check_on(client, "COMMIT", committed);
                assert_eq!(seen_by_others(&mut rig, key), bulk("1"), "{key}, {given}");
                // What stays is said.
                begin(&mut rig, client, given);
                rig.check_on(client, &format!("SET {key} 2"), "+OK\r\n");
                let ended = rig.run_on(client, "ROLLBACK");
                assert_eq!(ended.contains("its writes stay"), at_once, "{ended}");
                let left = if at_once { "2" } else { "1" };
                assert_eq!(seen_by_others(&mut rig, key), bulk(left), "{key}, {given}");
                assert_nothing_left(&mut rig);
            }
        }
    }
}

#[test]
fn what_is_read_again_is_the_same_from_the_first_key_of_an_item_cut_on() {
    for workers in WORKERS {
        for (given, key, stays) in [
            ("", "i:a", true),
            ("", "c:a", false),
            ("", "u:a", false),
            ("", "a", false),
            ("read-committed", "i:a", false),
            ("item-cut", "a", true),
        ] {
            let mut rig = node(workers);
            let client = rig.connect(0);
            rig.check(&format!("SET {key} 1 EX 10"), "+OK\r\n");
            rig.advance_ms(30);
            begin(&mut rig, client, given);
            rig.check_on(client, &format!("GET {key}"), &bulk("1"));
            rig.check(&format!("SET {key} 2"), "+OK\r\n");
            rig.advance_ms(20_000);
            let again = if stays { "1" } else { "2" };
            rig.check_on(client, &format!("GET {key}"), &bulk(again));
            rig.check_on(client, "COMMIT", "*0\r\n");
            assert_nothing_left(&mut rig);
        }
        // Keys of other keyspaces are kept from then on, and time stands still.
        let mut rig = node(workers);
        let client = rig.connect(0);
        rig.check("MSET a 1 c:a 1", "+OK\r\n");
        begin(&mut rig, client, "");
        rig.check_on(client, "GET a", &bulk("1"));
        rig.check("SET a 2", "+OK\r\n");
        rig.check_on(client, "GET a", &bulk("2"));
        rig.advance_ms(5_000);
        rig.check_on(client, "SET b 1 PX 1000", "+OK\r\n");
        assert_eq!(level(&mut rig), "read-committed");
        rig.check_on(client, "EXISTS i:a", ":0\r\n");
        assert_eq!(level(&mut rig), "item-cut");
        rig.check_on(client, "GET a", &bulk("2"));
        rig.check("MSET a 3 i:a 3", "+OK\r\n");
        rig.advance_ms(5_000);
        rig.check_on(client, "MGET a i:a", &format!("*2\r\n{}$-1\r\n", bulk("2")));
        rig.check_on(client, "PTTL b", ":1000\r\n");
        rig.check_on(client, "ROLLBACK", "+OK\r\n");
        assert_nothing_left(&mut rig);
    }
}

/// As at the level that is given: of two transactions the same one wins on every key.
#[test]
fn what_keyspaces_have_written_at_once_has_one_time_at_all_keys() {
    for workers in WORKERS {
        for first_at in 0..workers {
            let mut rig = node(workers);
            let clients = [rig.connect(first_at), rig.connect(workers - 1)];
            for client in clients {
                begin(&mut rig, client, "");
            }
            let keys = ["u:a", "u:b", "u:c", "u:d"];
            for (at, key) in keys.iter().enumerate() {
                for n in [at % 2, 1 - at % 2] {
                    rig.check_on(clients[n], &format!("SET {key} {n}"), "+OK\r\n");
                    rig.advance_ms(30);
                }
            }
            for client in clients {
                rig.check_on(client, "COMMIT", "*0\r\n");
            }
            for key in keys {
                assert_eq!(seen_by_others(&mut rig, key), bulk("1"));
            }
            assert_nothing_left(&mut rig);
        }
    }
}

#[test]
fn what_is_written_at_once_cannot_be_mixed_with_what_is_kept_for_commit() {
    for workers in WORKERS {
        let mut rig = node(workers);
        let client = rig.connect(0);
        begin(&mut rig, client, "");
        rig.check_on(client, "GET u:a", "$-1\r\n");
        rig.check_on(client, "SET u:a 1", "+OK\r\n");
        for refused in [
            "SET c:a 1",
            "SET l:a 1",
            "SET a 1",
            "MSET u:a 2 c:a 2",
            "GET i:a",
            "MGET a i:a",
            "SET i:a 1",
        ] {
            let reply = rig.run_on(client, refused);
            assert!(reply.starts_with(OTHER_KEYSPACE), "{refused}: {reply}");
            assert!(reply.contains("give a level to BEGIN"), "{reply}");
        }
        // The transaction goes on, and reads what is committed of others.
        rig.check_on(client, "MGET c:a l:a a", "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
        rig.check_on(client, "SET u:b 1", "+OK\r\n");
        assert!(rig.run_on(client, "SAVEPOINT p").contains("not for"));
        assert!(rig.run_on(client, "COMMIT TOKEN t").contains("at once"));
        rig.check_on(client, "COMMIT", "*0\r\n");
        // In the other order, or in one command, it is read committed, as one of them demands.
        for first in ["GET c:a", "GET a", "MSET u:c 1 c:c 1", "SAVEPOINT p"] {
            begin(&mut rig, client, "");
            rig.run_on(client, first);
            rig.check_on(client, "SET u:d 1", "+OK\r\n");
            assert_eq!(level(&mut rig), "read-committed", "{first}");
            assert_eq!(seen_by_others(&mut rig, "u:d"), "$-1\r\n", "{first}");
            rig.check_on(client, "SET a 1", "+OK\r\n");
            rig.check_on(client, "ROLLBACK", "+OK\r\n");
        }
        assert_nothing_left(&mut rig);
    }
}

#[test]
fn keys_that_are_watched_before_have_all_of_it_wait_for_commit() {
    for workers in WORKERS {
        for touched in [false, true] {
            let mut rig = node(workers);
            let client = rig.connect(0);
            rig.check_on(client, "WATCH a", "+OK\r\n");
            begin(&mut rig, client, "");
            rig.check_on(client, "SET u:a 1", "+OK\r\n");
            if touched {
                rig.check("SET a 1", "+OK\r\n");
            }
            let committed = if touched { "*-1\r\n" } else { "*1\r\n+OK\r\n" };
            rig.check_on(client, "COMMIT", committed);
            let seen = seen_by_others(&mut rig, "u:a");
            assert_eq!(seen == "$-1\r\n", touched, "{seen}");
            assert_nothing_left(&mut rig);
        }
    }
}

/// Until it is known how it writes, it holds back what a transaction holds back that writes at once.
#[test]
fn a_transaction_that_keeps_its_writes_holds_nothing_back() {
    let graves = |rig: &mut Rig| {
        rig.check("SADD l:s x", ":1\r\n");
        rig.check("DEL l:s", ":1\r\n");
        rig.advance_ms(2_000);
        info(rig, "replica_graves_bytes") > 0
    };
    for workers in [2, 4] {
        let mut rig = node(workers);
        let client = rig.connect(0);
        begin(&mut rig, client, "");
        assert!(graves(&mut rig));
        rig.check_on(client, "GET c:a", "$-1\r\n");
        assert!(!graves(&mut rig));
        rig.check_on(client, "COMMIT", "*0\r\n");
        // One without commands holds it back for a minute.
        begin(&mut rig, client, "");
        assert!(graves(&mut rig));
        rig.advance_ms(60_000);
        assert!(!graves(&mut rig));
        rig.check_on(client, "SET u:a 1", "+OK\r\n");
        assert_eq!(level(&mut rig), "read-committed");
        rig.check_on(client, "COMMIT", "*1\r\n+OK\r\n");
        // One that writes at once ends then.
        begin(&mut rig, client, "");
        rig.check_on(client, "SET u:a 2", "+OK\r\n");
        rig.advance_ms(61_000);
        let refused = rig.run_on(client, "SET u:a 3");
        assert!(refused.contains("ends after 60 seconds"), "{refused}");
        assert!(rig.run_on(client, "COMMIT").contains("its writes stay"));
        assert_nothing_left(&mut rig);
    }
}

#[test]
fn keys_that_a_command_does_not_name_may_be_of_an_item_cut() {
    for workers in WORKERS {
        let mut rig = node(workers);
        rig.check("SADD s 1 2", ":2\r\n");
        rig.check("BEGIN", "+OK\r\n");
        let refused = rig.run("SORT_RO s BY i:w_*");
        assert!(refused.starts_with("-ERR BY and GET"), "{refused}");
        rig.check("ROLLBACK", "+OK\r\n");
        rig.check("BEGIN read-committed", "+OK\r\n");
        assert!(rig.run("SORT_RO s BY i:w_*").starts_with("*2"));
        rig.check("ROLLBACK", "+OK\r\n");
    }
}

#[test]
fn pipelines_of_all_keyspaces_are_answered_in_order_and_leave_nothing() {
    let pipeline = |rig: &mut Rig, client: Client, key: &str| {
        let add = format!("INCR {key}");
        all(
            rig,
            client,
            &[
                "BEGIN", &add, &add, "PING", "ROLLBACK", "BEGIN", &add, "COMMIT",
            ],
        )
    };
    for workers in WORKERS {
        let mut rig = node(workers);
        let client = rig.connect(0);
        for key in ["c:n", "i:n", "l:n", "n"] {
            let kept = "+OK\r\n:1\r\n:2\r\n+PONG\r\n+OK\r\n+OK\r\n:1\r\n*1\r\n:1\r\n";
            assert_eq!(pipeline(&mut rig, client, key), kept, "{key}");
        }
        let replies = pipeline(&mut rig, client, "u:n");
        assert!(replies.starts_with("+OK\r\n:1\r\n:2\r\n+PONG\r\n-ERR the transaction is over"));
        assert!(replies.ends_with("+OK\r\n:3\r\n*0\r\n"), "{replies}");
        assert_nothing_left(&mut rig);
        for after in 0..40 {
            let client = rig.connect(0);
            rig.send_only(client, b"BEGIN\r\nINCR u:n\r\nINCR u:m\r\nCOMMIT\r\n");
            for _ in 0..after {
                rig.deliver_one();
            }
            rig.close(client);
            rig.advance_ms(1_000);
            assert_nothing_left(&mut rig);
        }
    }
}
