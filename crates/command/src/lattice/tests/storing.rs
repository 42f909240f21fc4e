//! Commands that store a value, copy or rename a key: on lattice keys they write the difference to what the replica shows.

use super::{Carts, on_replicas};
use crate::testing::Rig;
use rufous_datatype::object::Tag;
use std::sync::Arc;

/// Two replicas.
fn two() -> [Rig; 2] {
    [Rig::new(), Rig::new()].map(|mut rig| {
        rig.shard.lattice_mut().set_keying(Some(Arc::new(Carts)));
        rig
    })
}

/// Runs a request on a replica, at a later time than all before it.
fn run(rigs: &mut [Rig; 2], at: usize, request: &str) -> (String, bool) {
    for rig in rigs.iter_mut() {
        rig.now.unix_us += 1_000;
        rig.now.mono_us += 1_000;
    }
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let (reply, refused) = on_replicas(&mut rigs[at], &words);
    (String::from_utf8_lossy(&reply).into_owned(), refused)
}

#[track_caller]
fn check(rigs: &mut [Rig; 2], at: usize, request: &str, expected: &str) {
    let (reply, refused) = run(rigs, at, request);
    assert_eq!(
        (&*reply, refused),
        (&*format!("{expected}\r\n"), false),
        "{request}"
    );
}

/// Each sends the other its states.
fn exchange(rigs: &mut [Rig; 2], keys: &[&str]) {
    for key in keys {
        let chunks = [0, 1].map(|at| {
            let (rig, mut chunks) = (&mut rigs[at], Vec::new());
            let name = rig.shard.key(key.as_bytes());
            rig.shard.show_replica(0, name, rig.now, &mut |tag, chunk| {
                chunks.push((tag, chunk.to_vec()));
            });
            chunks
        });
        for (at, chunks) in [(1, &chunks[0]), (0, &chunks[1])] {
            let rig = &mut rigs[at];
            let name = rig.shard.key(key.as_bytes());
            for (tag, chunk) in chunks {
                let done = rig.shard.merge(0, name, *tag, chunk, rig.now);
                assert!(done.is_ok(), "{key}");
            }
            rig.shard.check();
        }
    }
}

/// What both replicas show: lines of a reply, in order.
#[track_caller]
fn shown(rigs: &mut [Rig; 2], request: &str) -> Vec<String> {
    let both = [0, 1].map(|at| {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let reply = String::from_utf8_lossy(&rigs[at].run(&words)).into_owned();
        let lines = reply
            .split("\r\n")
            .filter(|line| !line.starts_with(['$', '*']));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    });
    assert_eq!(both[0], both[1], "{request}");
    both[0].clone()
}

#[test]
fn what_is_stored_replaces_what_was_shown_and_leaves_what_others_add() {
    let cases = [
        (
            "SADD cart:d old keep",
            "SADD cart:d new",
            "SREM cart:d keep",
            "SADD cart:x keep fresh",
            "SMEMBERS cart:d",
            [
                "SUNIONSTORE cart:d cart:x",
                "SDIFFSTORE cart:d cart:x cart:none",
                "SINTERSTORE cart:d cart:x cart:x",
            ],
        ),
        (
            "ZADD cart:d 1 old 2 keep",
            "ZADD cart:d 3 new",
            "ZREM cart:d old",
            "ZADD cart:x 5 keep 6 fresh",
            "ZRANGE cart:d 0 -1",
            [
                "ZUNIONSTORE cart:d 1 cart:x",
                "ZRANGESTORE cart:d cart:x 0 -1",
                "ZDIFFSTORE cart:d 1 cart:x",
            ],
        ),
        (
            "GEOADD cart:d 1 1 old 2 2 keep",
            "GEOADD cart:d 3 3 new",
            "ZREM cart:d old",
            "GEOADD cart:x 5 5 keep 5 6 fresh",
            "ZRANGE cart:d 0 -1",
            [
                "GEOSEARCHSTORE cart:d cart:x FROMLONLAT 5 5 BYRADIUS 900 km",
                "GEORADIUS cart:x 5 5 900 km STORE cart:d",
                "GEORADIUSBYMEMBER cart:x keep 900 km STOREDIST cart:d",
            ],
        ),
    ];
    for (first, other, removal, source, read, stores) in cases {
        for store in stores {
            let mut rigs = two();
            run(&mut rigs, 0, first);
            run(&mut rigs, 0, source);
            exchange(&mut rigs, &["cart:d", "cart:x"]);
            // Before and after the command, by the clock.
            run(&mut rigs, 1, removal);
            check(&mut rigs, 0, store, ":2");
            check(&mut rigs, 1, other, ":1");
            exchange(&mut rigs, &["cart:d"]);
            assert_eq!(shown(&mut rigs, read), ["fresh", "keep", "new"], "{store}");
            let key = rigs[0].shard.key(b"cart:d");
            let value = rigs[0].shard.read(0, key, rigs[0].now).expect("there");
            assert!(value.tag().is_some_and(Tag::is_replicated));
        }
    }
}

#[test]
fn an_empty_result_deletes_what_was_shown_and_a_deadline_goes() {
    for (add, other, store) in [
        (
            "SADD cart:d a b",
            "SADD cart:d new",
            "SINTERSTORE cart:d cart:d cart:none",
        ),
        (
            "ZADD cart:d 1 a",
            "ZADD cart:d 1 new",
            "ZINTERSTORE cart:d 2 cart:d cart:none",
        ),
    ] {
        let mut rigs = two();
        run(&mut rigs, 0, add);
        exchange(&mut rigs, &["cart:d"]);
        check(&mut rigs, 1, other, ":1");
        check(&mut rigs, 0, store, ":0");
        check(&mut rigs, 0, "EXISTS cart:d", ":0");
        exchange(&mut rigs, &["cart:d"]);
        assert_eq!(shown(&mut rigs, "EXISTS cart:d"), [":1"], "{store}");
    }
    let mut rigs = two();
    run(&mut rigs, 0, "SADD cart:d a");
    run(&mut rigs, 0, "PEXPIRE cart:d 5000");
    check(&mut rigs, 0, "SUNIONSTORE cart:d cart:d", ":1");
    check(&mut rigs, 0, "PTTL cart:d", ":-1");
}

#[test]
fn nothing_is_stored_over_a_value_of_another_type() {
    let mut rigs = two();
    run(&mut rigs, 0, "SADD cart:s a");
    run(&mut rigs, 0, "SET cart:t 1");
    for request in [
        "SUNIONSTORE cart:t cart:s",
        "COPY cart:s cart:t REPLACE",
        "RENAME cart:s cart:t",
        "RENAME cart:t cart:s",
    ] {
        let (_, refused) = run(&mut rigs, 0, request);
        assert!(refused, "{request}");
        check(&mut rigs, 0, "SMISMEMBER cart:s a b", "*2\r\n:1\r\n:0");
        check(&mut rigs, 0, "GET cart:t", "$1\r\n1");
    }
    // What is counted cannot be taken away.
    run(&mut rigs, 0, "PFADD cart:p a b");
    run(&mut rigs, 0, "SET cart:q 1");
    for request in ["COPY cart:p cart:q REPLACE", "RENAME cart:p cart:r"] {
        assert!(run(&mut rigs, 0, request).1, "{request}");
        check(&mut rigs, 0, "PFCOUNT cart:p", ":2");
    }
    check(&mut rigs, 0, "GET cart:q", "$1\r\n1");
    check(&mut rigs, 0, "COPY cart:p strict REPLACE", ":1");
    check(&mut rigs, 0, "PFCOUNT strict", ":2");
}

#[test]
fn a_copy_is_a_value_of_its_own_at_either_kind_of_key() {
    let values = [
        ("SET {} apple", "GET {}"),
        ("INCRBY {} 7", "GET {}"),
        ("SADD {} a b", "SMEMBERS {}"),
        ("HSET {} f 1 g 2", "HGETALL {}"),
        ("ZADD {} 1 a 2.5 b", "ZRANGE {} 0 -1 WITHSCORES"),
    ];
    for (write, read) in values {
        for (from, to) in [
            ("cart:a", "cart:b"),
            ("cart:a", "strict"),
            ("strict", "cart:b"),
            ("note:a", "cart:b"),
            ("cart:a", "note:b"),
        ] {
            let mut rigs = two();
            let (write, of) = (write.replace("{}", from), read.replace("{}", from));
            let read = read.replace("{}", to);
            run(&mut rigs, 0, &write);
            run(&mut rigs, 0, &format!("PEXPIRE {from} 5000"));
            let before = run(&mut rigs, 0, &of);
            check(&mut rigs, 0, &format!("COPY {from} {to} REPLACE"), ":1");
            assert_eq!(run(&mut rigs, 0, &of), before, "{write}");
            assert_eq!(run(&mut rigs, 0, &read), before, "{write}, {to}");
            let ttl = run(&mut rigs, 0, &format!("PTTL {to}")).0;
            assert!(ttl.starts_with(":49"), "{write}, {to}: {ttl}");
            let key = rigs[0].shard.key(to.as_bytes());
            let value = rigs[0]
                .shard
                .clone_entry(0, key, rigs[0].now)
                .expect("there");
            let is_lattice = to != "strict";
            assert_eq!(value.value.is_replicated(), is_lattice, "{write}, {to}");
            // A name of its own: neither changes the other.
            check(&mut rigs, 0, &format!("DEL {to}"), ":1");
            assert_eq!(run(&mut rigs, 0, &of), before, "{write}");
            check(&mut rigs, 0, &format!("RENAME {from} {to}"), "+OK");
            assert_eq!(run(&mut rigs, 0, &read), before, "{write}, {to}");
            check(&mut rigs, 0, &format!("EXISTS {from}"), ":0");
            let (reply, _) = run(&mut rigs, 0, &format!("RENAME {from} {to}"));
            assert!(reply.starts_with("-ERR no such key"), "{reply}");
            check(&mut rigs, 0, &format!("RENAME {to} {to}"), "+OK");
            assert_eq!(run(&mut rigs, 0, &read), before, "{write}, {to}");
        }
    }
}

#[test]
fn what_others_add_to_a_renamed_key_stays_at_the_name_that_they_gave() {
    let mut rigs = two();
    run(&mut rigs, 0, "SADD cart:a x y");
    run(&mut rigs, 0, "SADD cart:b old");
    exchange(&mut rigs, &["cart:a", "cart:b"]);
    check(&mut rigs, 1, "SADD cart:a late", ":1");
    check(&mut rigs, 1, "SADD cart:b new", ":1");
    check(&mut rigs, 0, "RENAME cart:a cart:b", "+OK");
    exchange(&mut rigs, &["cart:a", "cart:b"]);
    assert_eq!(shown(&mut rigs, "SMEMBERS cart:a"), ["late"]);
    assert_eq!(shown(&mut rigs, "SMEMBERS cart:b"), ["new", "x", "y"]);
}
