//! Transactions of level serializable, and savepoints, on one node.

use super::{assert_nothing_left, begin, bulk, info, node};
use crate::front::transaction::tests::WORKERS;

const NULL: &str = "*-1\r\n";
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn it_commits_only_if_nothing_that_it_has_read_was_changed() {
    for workers in WORKERS {
        for key in KEYS {
            // What another client does between, and whether that is a change.
            let between = [
                (format!("GET {key}"), false),
                (format!("SET {key} 5"), true),
                (format!("DEL {key}"), true),
                (format!("EXPIRE {key} 100"), true),
                ("SET other 1".to_owned(), false),
            ];
            for (other, changes) in between {
                let mut rig = node(workers);
                let (client, writer) = (rig.connect(0), rig.connect(workers - 1));
                rig.check(&format!("SET {key} 1"), "+OK\r\n");
                begin(&mut rig, client, "serializable");
                rig.check_on(client, &format!("GET {key}"), &bulk("1"));
                rig.check_on(client, "INCR sum", ":1\r\n");
                rig.run_on(writer, &other);
                // It is read as it was.
                rig.check_on(client, &format!("GET {key}"), &bulk("1"));
                let reply = if changes { NULL } else { "*1\r\n:1\r\n" };
                rig.check_on(client, "COMMIT", reply);
                rig.check("EXISTS sum", if changes { ":0\r\n" } else { ":1\r\n" });
                let ended = ["transactions_committed", "transactions_rolled_back"];
                let ended = ended.map(|field| info(&mut rig, field));
                assert_eq!(ended, [u64::from(!changes), u64::from(changes)]);
                assert_nothing_left(&mut rig);
            }
        }
    }
}

/// Also where nothing is written: what was read was there at one time.
#[test]
fn one_that_only_reads_is_told_whether_it_was_all_true_at_once() {
    for workers in WORKERS {
        for changes in [false, true] {
            let mut rig = node(workers);
            let client = rig.connect(0);
            rig.check("MSET a 1 b 1", "+OK\r\n");
            begin(&mut rig, client, "SERIALIZABLE");
            rig.check_on(client, "GET a", &bulk("1"));
            if changes {
                rig.check("MSET a 2 b 2", "+OK\r\n");
            }
            rig.check_on(client, "GET b", &bulk(if changes { "2" } else { "1" }));
            rig.check_on(client, "COMMIT", if changes { NULL } else { "*0\r\n" });
            assert_nothing_left(&mut rig);
        }
    }
}

/// Each reads what the other one writes: in no order have both seen this.
#[test]
fn of_two_that_read_what_the_other_writes_one_commits() {
    for workers in WORKERS {
        let mut rig = node(workers);
        let clients = [rig.connect(0), rig.connect(workers - 1)];
        rig.check("MSET on:1 1 on:2 1", "+OK\r\n");
        for (client, own) in clients.into_iter().zip(["on:1", "on:2"]) {
            begin(&mut rig, client, "serializable");
            rig.check_on(
                client,
                "MGET on:1 on:2",
                &format!("*2\r\n{}", bulk("1").repeat(2)),
            );
            rig.check_on(client, &format!("SET {own} 0"), "+OK\r\n");
        }
        rig.check_on(clients[0], "COMMIT", "*1\r\n+OK\r\n");
        rig.check_on(clients[1], "COMMIT", NULL);
        rig.check(
            "MGET on:1 on:2",
            &format!("*2\r\n{}{}", bulk("0"), bulk("1")),
        );
        assert_nothing_left(&mut rig);
    }
}

#[test]
fn it_has_no_keys_of_lattice_keyspaces() {
    let mut rig = node(2);
    let client = rig.connect(0);
    begin(&mut rig, client, "serializable");
    for request in ["GET l:a", "SET o:a 1"] {
        let refused = rig.run_on(client, request);
        assert!(
            refused.starts_with("-ERR a key is in keyspace '"),
            "{refused}"
        );
    }
    rig.check_on(client, "SET a 1", "+OK\r\n");
    rig.check_on(client, "COMMIT", "*1\r\n+OK\r\n");
    let refused = rig.run("KEYSPACE CREATE x PREFIX x: REGIME lattice LEVEL serializable");
    assert!(refused.starts_with("-ERR unknown level"), "{refused}");
}

#[test]
fn the_end_of_its_connection_ends_its_watches() {
    for workers in WORKERS {
        for held in [false, true] {
            let mut rig = node(workers);
            let client = rig.connect(0);
            begin(&mut rig, client, "serializable");
            if held {
                // Its keys are not held yet when the client leaves.
                rig.send_only(client, b"MGET a b c d\r\n");
            } else {
                rig.run_on(client, "MGET a b c d");
            }
            rig.close(client);
            rig.advance_ms(5);
            assert_nothing_left(&mut rig);
        }
    }
}

#[test]
fn a_transaction_goes_back_to_a_savepoint() {
    for workers in WORKERS {
        for level in ["read-committed", "item-cut", "serializable"] {
            let mut rig = node(workers);
            let client = rig.connect(0);
            rig.check("SET a 10", "+OK\r\n");
            begin(&mut rig, client, level);
            rig.check_on(client, "INCR a", ":11\r\n");
            rig.check_on(client, "SAVEPOINT one", "+OK\r\n");
            rig.check_on(client, "INCR a", ":12\r\n");
            rig.check_on(client, "RPUSH b x", ":1\r\n");
            rig.check_on(client, "SAVEPOINT two", "+OK\r\n");
            rig.check_on(client, "DEL a b", ":2\r\n");
            rig.check_on(client, "SET c 1", "+OK\r\n");
            rig.check_on(client, "ROLLBACK TO two", "+OK\r\n");
            rig.check_on(client, "GET a", &bulk("12"));
            rig.check_on(client, "LLEN b", ":1\r\n");
            rig.check_on(client, "EXISTS c", ":0\r\n");
            rig.check_on(client, "RELEASE SAVEPOINT two", "+OK\r\n");
            rig.check_on(client, "ROLLBACK TO SAVEPOINT one", "+OK\r\n");
            rig.check_on(client, "GET a", &bulk("11"));
            rig.check_on(client, "EXISTS b", ":0\r\n");
            rig.check_on(client, "INCRBY d 7", ":7\r\n");
            rig.check_on(client, "COMMIT", "*2\r\n:11\r\n:7\r\n");
            rig.check(
                "MGET a b c d",
                "*4\r\n$2\r\n11\r\n$-1\r\n$-1\r\n$1\r\n7\r\n",
            );
            assert_nothing_left(&mut rig);
        }
    }
}

#[test]
fn savepoints_are_of_transactions_that_can_go_back() {
    let mut rig = node(2);
    let client = rig.connect(0);
    for request in ["SAVEPOINT x", "RELEASE x", "ROLLBACK TO x"] {
        let refused = rig.run_on(client, request);
        assert!(refused.contains(" without BEGIN"), "{request}: {refused}");
    }
    begin(&mut rig, client, "read-uncommitted");
    for request in ["SAVEPOINT x", "RELEASE x", "ROLLBACK TO x"] {
        let refused = rig.run_on(client, request);
        assert!(refused.contains("level read-uncommitted"), "{refused}");
    }
    rig.check_on(client, "COMMIT", "*0\r\n");
    begin(&mut rig, client, "item-cut");
    rig.check_on(client, "SET a 1", "+OK\r\n");
    let missing = "-ERR no savepoint 'x' in this transaction\r\n";
    rig.check_on(client, "ROLLBACK TO x", missing);
    rig.check_on(client, "RELEASE x", missing);
    for request in [
        "ROLLBACK x",
        "ROLLBACK TO x y",
        "RELEASE POINT x",
        "ROLLBACK TO",
    ] {
        let refused = rig.run_on(client, request);
        assert!(
            refused.starts_with("-ERR syntax") || refused.contains("arguments"),
            "{refused}"
        );
    }
    for _ in 0..1024 {
        rig.check_on(client, "SAVEPOINT x", "+OK\r\n");
    }
    let refused = rig.run_on(client, "SAVEPOINT x");
    assert!(refused.contains("at most 1024 savepoints"), "{refused}");
    rig.check_on(client, "ROLLBACK TO x", "+OK\r\n");
    rig.check_on(client, "COMMIT", "*1\r\n+OK\r\n");
    assert_nothing_left(&mut rig);
}
