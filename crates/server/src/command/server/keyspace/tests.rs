//! `KEYSPACE` as clients use it, over workers that run in steps.

use crate::config::Config;
use crate::front::testing::Rig;
use rufous_kernel::keyspace::{Keyspace, Regime};

fn carts(workers: usize) -> Rig {
    let mut rig = Rig::new(workers);
    rig.check(
        "KEYSPACE CREATE carts PREFIX cart: REGIME lattice",
        "+OK\r\n",
    );
    rig
}

#[test]
fn a_keyspace_is_made_shown_changed_and_dropped() {
    for workers in [1, 3] {
        let mut rig = carts(workers);
        let other = rig.connect(workers - 1);
        rig.check("KEYSPACE LIST", "*1\r\n$5\r\ncarts\r\n");
        let shown = rig.run_on(other, "KEYSPACE DESCRIBE carts");
        let shown: Vec<_> = shown.split("\r\n").skip(2).step_by(2).collect();
        let expected = "name carts prefix cart: regime lattice level eventual threads all \
            replicas 1 resolve newest cut no evict yes gossip-ms 100";
        assert_eq!(shown.join(" "), expected);
        rig.check("KEYSPACE ALTER carts LEVEL pram GOSSIP 5", "+OK\r\n");
        let shown = rig.run_on(other, "KEYSPACE DESCRIBE carts");
        assert!(shown.contains("$4\r\npram\r\n"), "{shown}");
        assert!(
            shown.contains("$3\r\nyes\r\n$9\r\ngossip-ms\r\n$1\r\n5\r\n"),
            "{shown}"
        );
        rig.check("KEYSPACE ALTER carts REGIME strict", "+OK\r\n");
        rig.check("KEYSPACE DROP carts", "+OK\r\n");
        rig.check("KEYSPACE LIST", "*0\r\n");
        rig.check("KEYSPACE DROP carts", "-ERR no such keyspace\r\n");
        rig.check("KEYSPACE DESCRIBE carts", "-ERR no such keyspace\r\n");
        rig.check("KEYSPACE ALTER carts CUT no", "-ERR no such keyspace\r\n");
        assert!(
            rig.run("KEYSPACE HELP")
                .contains("CREATE name PREFIX prefix")
        );
    }
}

/// Requests, and how their refusals begin.
const NONSENSE: [(&str, &str); 19] = [
    (
        "KEYSPACE CREATE x PREFIX y",
        "wrong number of arguments for 'keyspace|create' command",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME loose",
        "the regime is 'lattice' or 'strict'",
    ),
    (
        "KEYSPACE CREATE x PREFIX y LEVEL eventual",
        "REGIME is missing",
    ),
    (
        "KEYSPACE CREATE x REGIME strict CUT no",
        "PREFIX is missing",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME strict CUT yes",
        "a strict keyspace has one owner",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice REGIME",
        "syntax error",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice REGIME strict",
        "syntax error",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice THREADS 0",
        "threads are 'all' or",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice THREADS 1 CUT",
        "CUT needs a replica",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice REPLICAS 3",
        "replicas on other nodes",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice RESOLVE largest",
        "only LEVEL causal keeps",
    ),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice GOSSIP 0",
        "the gossip period must be",
    ),
    (
        "KEYSPACE CREATE carts PREFIX y REGIME lattice",
        "a keyspace with this name exists",
    ),
    (
        "KEYSPACE CREATE x PREFIX cart: REGIME lattice",
        "keyspace 'carts' has this prefix",
    ),
    (
        "KEYSPACE CREATE x/y PREFIX y REGIME lattice",
        "a keyspace's name has",
    ),
    ("KEYSPACE ALTER carts TIER cold", "syntax error"),
    (
        "KEYSPACE CREATE x PREFIX y REGIME lattice LEVEL causal THREADS 2",
        "this LEVEL promises an order of writes to several keys: it needs a replica on every worker",
    ),
    (
        "KEYSPACE ALTER carts LEVEL monotonic-writes THREADS 1",
        "this LEVEL promises an order",
    ),
    (
        "KEYSPACE ALTER carts LEVEL pram CUT no",
        "LEVEL pram promises an order of writes to several keys, which needs CUT yes",
    ),
];

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut rig = carts(2);
    for (request, why) in NONSENSE {
        let reply = rig.run(request);
        assert!(
            reply.starts_with(&format!("-ERR {why}")),
            "{request}: {reply}"
        );
    }
    rig.check("KEYSPACE LIST", "*1\r\n$5\r\ncarts\r\n");
    rig.check("MULTI", "+OK\r\n");
    rig.check(
        "KEYSPACE DROP carts",
        "-ERR Command not allowed inside a transaction\r\n",
    );
}

#[test]
fn connections_at_different_workers_agree_after_a_while() {
    let mut rig = carts(2);
    let (a, b) = (rig.connect(0), rig.connect(1));
    for n in 0..20 {
        rig.run_on(a, &format!("INCRBY cart:n{} 2", n % 4));
        rig.run_on(b, &format!("INCR cart:n{}", n % 4));
    }
    rig.run_on(a, "SET cart:v 1");
    assert_eq!(rig.run_on(a, "GET cart:v"), "$1\r\n1\r\n");
    assert_eq!(rig.run_on(b, "GET cart:v"), "$-1\r\n");
    rig.advance_ms(1_000);
    for client in [a, b] {
        assert_eq!(rig.run_on(client, "GET cart:v"), "$1\r\n1\r\n");
        for n in 0..4 {
            assert_eq!(
                rig.run_on(client, &format!("GET cart:n{n}")),
                "$2\r\n15\r\n"
            );
        }
        assert_eq!(rig.run_on(client, "DBSIZE"), ":5\r\n");
        let keys = rig.run_on(client, "KEYS *");
        assert!(keys.starts_with("*5\r\n"), "{keys}");
    }
    rig.run_on(b, "DEL cart:v cart:n0");
    rig.advance_ms(1_000);
    assert_eq!(
        rig.run_on(a, "MGET cart:v cart:n0 cart:n1"),
        "*3\r\n$-1\r\n$-1\r\n$2\r\n15\r\n"
    );
    assert_eq!(rig.run_on(a, "DBSIZE"), ":3\r\n");
}

#[test]
fn long_epochs_last_until_they_are_over_or_shortened() {
    let mut rig = carts(2);
    let (a, b) = (rig.connect(0), rig.connect(1));
    rig.run_on(a, "SADD cart:s milk");
    rig.advance_ms(1_000);
    rig.check_on(b, "SISMEMBER cart:s milk", ":1\r\n");
    for apart_ms in [0, 59_000, 61_000] {
        // So that the last epoch is longer ago than one of them lasts.
        rig.advance_ms(100_000);
        rig.check("KEYSPACE ALTER carts GOSSIP 60000", "+OK\r\n");
        assert!(
            rig.run("INFO keyspaces")
                .contains("replica_epoch_ms:60000\r\n")
        );
        rig.run_on(a, "SADD cart:s milk");
        // Something to be forgotten is no reason to hurry, either.
        rig.run_on(b, "SREM cart:s milk");
        rig.advance_ms(apart_ms);
        let is_over = u8::from(apart_ms > 60_000);
        rig.check_on(b, "SISMEMBER cart:s milk", &format!(":{is_over}\r\n"));
        rig.check("KEYSPACE ALTER carts GOSSIP 100", "+OK\r\n");
        rig.advance_ms(1_000);
        for client in [a, b] {
            rig.check_on(client, "SISMEMBER cart:s milk", ":1\r\n");
        }
    }
}

#[test]
fn what_needs_all_replicas_is_refused_also_within_transactions() {
    for workers in [1, 2] {
        let mut rig = carts(workers);
        let refused = "-ERR 'setnx' cannot be coordination-free: ";
        assert!(rig.run("SETNX cart:1 x").starts_with(refused));
        rig.check("SETNX other x", ":1\r\n");
        assert!(
            rig.run("WATCH other cart:1")
                .starts_with("-ERR 'watch' cannot be")
        );
        assert!(rig.run("SWAPDB 0 1").starts_with("-ERR 'swapdb' cannot be"));
        assert!(
            rig.run("SORT a STORE cart:1")
                .starts_with("-ERR 'sort' cannot be")
        );
        rig.check("MULTI", "+OK\r\n");
        rig.check("SET cart:1 x", "+QUEUED\r\n");
        assert!(
            rig.run("LPUSH cart:2 x")
                .starts_with("-ERR 'lpush' cannot be")
        );
        let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
        rig.check("EXEC", aborted);
        rig.check("EXISTS cart:1", ":0\r\n");
        rig.check("MULTI", "+OK\r\n");
        for request in ["SET cart:1 x", "INCR cart:2", "SET other y", "GET cart:1"] {
            rig.check(request, "+QUEUED\r\n");
        }
        rig.check("EXEC", "*4\r\n+OK\r\n:1\r\n+OK\r\n$1\r\nx\r\n");
        rig.check("MULTI", "+OK\r\n");
        rig.check("SWAPDB 0 1", "+QUEUED\r\n");
        let reply = rig.run("EXEC");
        assert!(
            reply.starts_with("*1\r\n-ERR 'swapdb' cannot be"),
            "{reply}"
        );
        // What was queued before the keyspace was made is looked at again.
        let other = rig.connect(0);
        rig.run_on(other, "MULTI");
        rig.run_on(other, "SETNX later:1 x");
        rig.check(
            "KEYSPACE CREATE later PREFIX later: REGIME lattice",
            "+OK\r\n",
        );
        let reply = rig.run_on(other, "EXEC");
        assert!(reply.starts_with("*1\r\n-ERR 'setnx' cannot be"), "{reply}");
    }
}

#[test]
fn the_files_keyspaces_are_there_before_any_client_is_served() {
    let shared = Keyspace {
        regime: Regime::Lattice,
        threads: 0,
        ..Keyspace::new("shared", b"s:")
    };
    let keyspaces = vec![shared, Keyspace::new("strict", b"s:strict:")];
    for workers in [1, 3] {
        let config = Config {
            keyspaces: keyspaces.clone(),
            ..Config::in_memory()
        };
        let mut rig = Rig::with_config(workers, config);
        let client = rig.connect(workers - 1);
        let reply = rig.run_on(client, "SET s:1 x");
        assert!(
            reply == "+OK\r\n" || reply.starts_with("-LOADING"),
            "{reply}"
        );
        // Every worker has a first step.
        rig.connect(0);
        rig.advance_ms(1_000);
        rig.check("KEYSPACE LIST", "*2\r\n$6\r\nshared\r\n$6\r\nstrict\r\n");
        assert!(rig.run("SETNX s:2 x").starts_with("-ERR 'setnx' cannot be"));
        rig.check("SETNX s:strict:2 x", ":1\r\n");
    }
}
