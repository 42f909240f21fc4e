//! Keyspaces of `LEVEL causal` over workers that run in steps.

use super::testing::{Client, Rig};

fn notes(workers: usize, options: &str) -> Rig {
    let mut rig = Rig::new(workers);
    let create = "KEYSPACE CREATE notes PREFIX note: REGIME lattice LEVEL causal";
    rig.check(format!("{create} {options}").trim_end(), "+OK\r\n");
    rig
}

/// Token and values of a key.
fn all(rig: &mut Rig, client: Client, key: &str) -> (String, Vec<String>) {
    let reply = rig.run_on(client, &format!("CAUSAL.GET {key}"));
    let mut words = reply.split("\r\n").skip(2).step_by(2);
    let token = words.next().expect("a token").to_owned();
    let values = words.filter(|word| !word.is_empty());
    (token, values.map(str::to_owned).collect())
}

fn values(rig: &mut Rig, client: Client, key: &str) -> Vec<String> {
    all(rig, client, key).1
}

#[test]
fn connections_at_different_workers_write_beside_each_other() {
    for options in ["", "CUT"] {
        let mut rig = notes(2, options);
        let (a, b, c) = (rig.connect(0), rig.connect(1), rig.connect(1));
        rig.run_on(a, "SET note:1 one");
        rig.run_on(b, "SET note:1 two");
        rig.advance_ms(1_000);
        for client in [a, c] {
            assert_eq!(values(&mut rig, client, "note:1").len(), 2);
        }
        // Both have replaced only their own value; a third client has read both.
        rig.run_on(b, "SET note:1 three");
        let (token, mut both) = all(&mut rig, c, "note:1");
        both.sort();
        assert_eq!(both, ["one", "three"]);
        rig.run_on(c, "SET note:1 merged");
        rig.advance_ms(1_000);
        assert_eq!(values(&mut rig, a, "note:1"), ["merged"]);
        // The value that c's token has seen is replaced already.
        let reply = rig.run_on(a, &format!("CAUSAL.DEL note:1 {token}"));
        assert_eq!(reply, ":0\r\n");
        assert_eq!(rig.run_on(b, "GET note:1"), "$6\r\nmerged\r\n");
        assert_eq!(rig.run_on(b, "DEL note:1"), ":1\r\n");
        rig.advance_ms(1_000);
        assert_eq!(rig.run_on(a, "EXISTS note:1"), ":0\r\n");
    }
}

#[test]
fn a_token_goes_from_worker_to_worker() {
    let mut rig = notes(3, "GOSSIP 2000");
    let clients = [rig.connect(0), rig.connect(1), rig.connect(2)];
    let reply = rig.run_on(clients[0], "CAUSAL.SET note:1 \"\" one");
    let token = reply.split("\r\n").nth(1).expect("a token").to_owned();
    // A worker that has not received the write yet replaces it all the same.
    rig.advance_ms(1);
    let reply = rig.run_on(clients[1], &format!("CAUSAL.SET note:1 {token} two"));
    assert!(reply.starts_with('$'), "{reply}");
    assert_eq!(values(&mut rig, clients[1], "note:1"), ["two"]);
    rig.advance_ms(5_000);
    for client in clients {
        assert_eq!(values(&mut rig, client, "note:1"), ["two"]);
    }
    let reply = rig.run_on(clients[2], &format!("CAUSAL.SET note:2 {token} two"));
    assert!(reply.starts_with("-ERR the token is not one"), "{reply}");
    let reply = rig.run_on(clients[2], "CAUSAL.GET strict");
    assert!(
        reply.starts_with("-ERR the key has no concurrent"),
        "{reply}"
    );
}

/// Keys whose only replica is at this worker, or at another one.
fn near_and_far(rig: &Rig) -> (String, String) {
    let owner = |key: &String| rig.fronts[0].kernel.placement().owner(key.as_bytes()).0;
    let mut names = (0..100).map(|n| format!("note:{n}"));
    let near = names.clone().find(|key| owner(key) == 0);
    // No such key exists if all workers have a replica.
    let far = names.find(|key| owner(key) == 1);
    let far = far.or_else(|| Some("note:100".to_owned()));
    near.zip(far).expect("both")
}

/// A strict key of another worker than the first.
fn strict_far(rig: &Rig) -> String {
    let placement = rig.fronts[0].kernel.placement();
    let mut all = (0..).map(|n| format!("s{n}"));
    let far = all.find(|key| placement.owner(key.as_bytes()).0 == 1);
    far.expect("one of many")
}

#[test]
fn a_session_is_known_wherever_its_commands_run() {
    let mut rig = notes(2, "");
    let (near, far) = near_and_far(&rig);
    let strict = strict_far(&rig);
    let (a, b) = (rig.connect(0), rig.connect(0));
    for key in [&near, &far] {
        rig.run_on(a, &format!("SET {key} one"));
        // Read at one worker, written by a command over both.
        rig.run_on(b, &format!("GET {key}"));
    }
    rig.run_on(b, &format!("MSET {near} two {strict} 1 {far} two"));
    for key in [&near, &far] {
        assert_eq!(values(&mut rig, a, key), ["two"]);
    }
    // Read by a command over both, written at one.
    let c = rig.connect(0);
    rig.run_on(c, &format!("MGET {near} {strict} {far}"));
    for key in [&near, &far] {
        rig.run_on(c, &format!("SET {key} three"));
        assert_eq!(values(&mut rig, a, key), ["three"]);
    }
    // Written by a command over both, then at one.
    let d = rig.connect(0);
    rig.run_on(d, &format!("MSET {near} four {strict} 2 {far} four"));
    for key in [&near, &far] {
        rig.run_on(d, &format!("SET {key} five"));
        assert_eq!(values(&mut rig, a, key), ["five", "three"]);
    }
}

#[test]
fn a_session_goes_on_in_its_transactions() {
    for workers in [1, 2] {
        let mut rig = notes(workers, "");
        let (near, far) = near_and_far(&rig);
        let (a, b) = (rig.connect(0), rig.connect(0));
        for key in [&near, &far] {
            rig.run_on(a, &format!("SET {key} one"));
        }
        rig.run_on(b, &format!("GET {far}"));
        for request in [
            "MULTI".into(),
            format!("SET {near} two"),
            format!("SET {far} two"),
            format!("GET {near}"),
            format!("SET {near} three"),
            "EXEC".into(),
        ] {
            rig.run_on(b, &request);
        }
        // What it has read before and within the transaction.
        assert_eq!(values(&mut rig, a, &far), ["two"], "{workers}");
        assert_eq!(values(&mut rig, a, &near), ["three"], "{workers}");
        rig.run_on(b, &format!("SET {near} four"));
        assert_eq!(values(&mut rig, a, &near), ["four"], "{workers}");
    }
}

#[test]
fn no_other_client_inherits_what_one_has_seen() {
    let mut rig = notes(1, "");
    let a = rig.connect(0);
    rig.run_on(a, "SET note:1 one");
    rig.disconnect(a);
    let b = rig.connect(0);
    rig.run_on(b, "SET note:1 two");
    assert_eq!(values(&mut rig, b, "note:1"), ["two", "one"]);
    let info = rig.run("INFO keyspaces");
    assert!(info.contains("causal_contexts:2"), "{info}");
    assert!(info.contains("causal_concurrent_writes:1"), "{info}");
}

#[test]
fn where_a_keyspace_picks_no_value_plain_reads_say_so() {
    let mut rig = notes(2, "RESOLVE refuse");
    let (a, b) = (rig.connect(0), rig.connect(1));
    rig.run_on(a, "SET note:1 one");
    rig.run_on(b, "SET note:1 two");
    rig.advance_ms(1_000);
    for request in ["GET note:1", "INCR note:1", "GETSET note:1 x"] {
        let reply = rig.run_on(a, request);
        assert!(
            reply.starts_with("-ERR '") && reply.contains("CAUSAL.GET"),
            "{reply}"
        );
    }
    assert_eq!(values(&mut rig, a, "note:1").len(), 2);
    rig.check("KEYSPACE ALTER notes RESOLVE smallest", "+OK\r\n");
    rig.check("GET note:1", "$3\r\none\r\n");
    rig.check("KEYSPACE ALTER notes RESOLVE largest", "+OK\r\n");
    rig.check("GET note:1", "$3\r\ntwo\r\n");
    rig.check("KEYSPACE ALTER notes LEVEL eventual", "+OK\r\n");
    rig.check("GET note:1", "$3\r\ntwo\r\n");
}

#[test]
fn increments_of_all_workers_add_up() {
    let mut rig = notes(2, "");
    let (a, b) = (rig.connect(0), rig.connect(1));
    for _ in 0..10 {
        rig.run_on(a, "INCR note:n");
        rig.run_on(b, "INCRBY note:n 2");
    }
    rig.advance_ms(1_000);
    for client in [a, b] {
        assert_eq!(values(&mut rig, client, "note:n"), ["30"]);
    }
    rig.run_on(a, "SET note:n 100");
    rig.advance_ms(1_000);
    rig.run_on(a, "INCR note:n");
    rig.run_on(b, "INCR note:n");
    rig.advance_ms(1_000);
    assert_eq!(rig.run_on(a, "GET note:n"), "$3\r\n102\r\n");
    assert_eq!(values(&mut rig, b, "note:n"), ["102"]);
}

#[test]
fn what_a_transaction_reads_apart_was_seen_and_what_it_writes_apart_was_not() {
    for workers in [1, 2] {
        let mut rig = notes(workers, "");
        let (near, far) = near_and_far(&rig);
        let (a, b) = (rig.connect(0), rig.connect(0));
        for key in [&near, &far] {
            rig.run_on(a, &format!("SET {key} one"));
            rig.run_on(b, "BEGIN item-cut");
            rig.run_on(b, &format!("GET {key}"));
            rig.run_on(a, &format!("SET {key} two"));
            rig.run_on(b, &format!("SET {key} mine"));
            assert!(rig.run_on(b, "COMMIT").starts_with("*1"));
            // The value that it has read is replaced; that value was replaced already.
            assert_eq!(values(&mut rig, a, key), ["mine", "two"], "{workers}");
            // Rolling back does not mark as seen what is written concurrently with the transaction.
            let c = rig.connect(0);
            rig.run_on(c, "BEGIN");
            rig.run_on(a, &format!("SET {key} three"));
            rig.run_on(c, &format!("SET {key} apart"));
            rig.run_on(c, "ROLLBACK");
            rig.run_on(c, &format!("SET {key} four"));
            assert_eq!(values(&mut rig, a, key), ["four", "three"], "{workers}");
        }
    }
}
