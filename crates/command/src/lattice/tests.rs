//! The table is whole, and says what commands do.

mod storing;

use super::*;
use crate::testing::Rig;
use crate::{DataCommands, Flags, data_commands};
use rufous_base::WorkerId;
use rufous_datatype::object::Tag;
use rufous_datatype::rdb;
use rufous_datatype::replicated::Writer;
use rufous_kernel::Program;
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_kernel::placement::Placement;
use rufous_kernel::replicate::replicas::Replicas;
use rufous_kernel::shard::{Keyed, Keying};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

#[test]
fn no_command_that_writes_is_missing_and_none_is_there_twice() {
    let writes = data_commands().map(|command| &command.spec);
    let writes = writes.filter(|spec| spec.flags.has(Flags::WRITE));
    let writes: BTreeSet<_> = writes.map(|spec| spec.name).collect();
    let rows: BTreeSet<_> = ROWS.iter().map(|row| row.command).collect();
    assert_eq!(writes, rows);
    assert_eq!(rows.len(), ROWS.len());
    assert!(ROWS.is_sorted_by_key(|row| row.command));
}

fn refused(request: &str, lattice: &[&str]) -> Option<String> {
    let words: Vec<&str> = request.split(' ').collect();
    let mut bytes = Vec::new();
    let mut spans = Vec::new();
    for word in &words {
        spans.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word.as_bytes());
    }
    let spans: Vec<_> = spans.into_iter().collect();
    let args = Args::new(&bytes, &spans, &mut []);
    let mut all = data_commands();
    let command = all.find(|c| c.spec.name.eq_ignore_ascii_case(words[0]));
    let spec = &command.expect("a command").spec;
    assert!(spec.accepts(words.len()), "{request}");
    let name = |key: &[u8]| {
        let is = lattice.iter().any(|name| name.as_bytes() == key);
        is.then(|| Found {
            name: "carts".to_owned(),
            is_causal: key.starts_with(b"note:"),
        })
    };
    let row = row_of(spec)?;
    refusal((spec, row), &args, name).map(|failure| failure.text().to_owned())
}

#[test]
fn conditions_are_refused_and_the_same_words_as_values_are_not() {
    let check = |request: &str, is_refused: bool| {
        let said = refused(request, &["k"]);
        assert_eq!(said.is_some(), is_refused, "{request}: {said:?}");
        assert_eq!(refused(request, &[]), None);
    };
    check("SET k v", false);
    check("SET k nx", false);
    check("SET k v nx", true);
    check("SET k v EX 10 XX", true);
    check("SETNX k v", true);
    check("MSET a b k v", false);
    check("MSETNX a b k v", true);
    check("ZADD k 1 nx", false);
    check("ZADD k CH 1 nx", false);
    check("ZADD k CH NX 1 a", true);
    check("EXPIRE k 10", false);
    check("EXPIRE k 10 gt", true);
    check("GEOADD k xx 1 2 a", true);
    check("SUNIONSTORE k a b", false);
    check("SUNIONSTORE a k b", false);
    check("BITOP AND a k", false);
    check("SORT k", false);
    check("SORT k STORE a", false);
    check("SORT a STORE k", true);
    check("RENAME a k", false);
    check("RENAME k a", false);
    check("RENAMENX a k", true);
    check("RENAMENX k a", true);
    check("COPY a k", true);
    check("COPY a k DB 1", true);
    check("COPY a k REPLACE", false);
    check("COPY k a", false);
    check("SMOVE a k m", true);
    check("BLPOP a k 0", true);
    check("GET k", false);
    check("GETDEL k", true);
    assert_eq!(refused("GETDEL note:a", &["note:a"]), None);
}

/// Commands on strict keys do without what those on lattice keys need.
#[test]
fn requests_with_strict_keys_concern_no_lattice() {
    let mut placement = Placement::new(1);
    let carts = Keyspace {
        regime: Regime::Lattice,
        ..Keyspace::new("carts", b"cart:")
    };
    let table = Keyspaces::default().with(carts).expect("a keyspace");
    placement.set_keyspaces(&Arc::new(table));
    for (request, concerns, is_refused) in [
        ("SET a 1", false, false),
        ("SET cart:a 1", true, false),
        ("GET caret", false, false),
        ("APPEND a 1", false, false),
        ("APPEND cart:a 1", true, true),
        ("SET a 1 NX", false, false),
        ("SET cart:a 1 NX", true, true),
        ("MSET a 1 b 2", false, false),
        ("MSET a 1 cart:b 2", true, false),
        ("SMOVE a b cart:m", false, false),
        ("BITOP AND cart:a b", true, false),
        ("LMPOP 1 a LEFT", true, false),
        ("MSETNX a 1 cart:b 2", true, true),
        ("MSETNX a 1 b 2", false, false),
    ] {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let (bytes, mut spans) = (words.concat(), Vec::new());
        let mut at = 0;
        for word in &words {
            spans.push((at, word.len() as u32));
            at += word.len() as u32;
        }
        let args = Args::new(&bytes, &spans, &mut []);
        let id = DataCommands::find(words[0]).expect("a command");
        let may = DataCommands::may_concern_lattice(id, &args, &placement);
        let refused = DataCommands::refused_on_lattice(id, &args, &placement);
        assert_eq!(
            (may, refused.is_some()),
            (concerns, is_refused),
            "{request}"
        );
    }
}

#[derive(Debug)]
struct Carts;

impl Keying for Carts {
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        let strings = match key.get(..5)? {
            b"cart:" => Tag::Register,
            b"note:" => Tag::Siblings,
            _ => return None,
        };
        Some(Keyed {
            strings,
            is_shared: true,
        })
    }
}

#[test]
fn what_is_allowed_is_done_on_replicas_too() {
    let mut replicas = Replicas::new(WorkerId(0), 2);
    for row in ROWS {
        let (Means::Allowed { example, .. } | Means::Causal { example, .. }) = row.means else {
            continue;
        };
        let mut rig = Rig::new();
        rig.shard.lattice_mut().set_keying(Some(Arc::new(Carts)));
        let begin = [
            "SET cart:a 1",
            "SADD cart:s apple",
            "HSET cart:h f 1",
            "ZADD cart:z 1 a",
            example,
        ];
        for request in begin {
            let stamp = replicas.stamp(rig.now);
            rig.shard.begin_lattice(Writer { stamp });
            let words = request.split(' ').map(|word| word.trim_matches('"'));
            let words: Vec<_> = words.map(str::as_bytes).collect();
            // Whole databases are the server's.
            // A payload is tried by itself.
            if request.starts_with("RESTORE") {
                rig.shard.end_lattice();
                continue;
            }
            let reply = match example.starts_with("FLUSH") && request == example {
                true => b"+OK".to_vec(),
                false => rig.run(&words),
            };
            let reply = String::from_utf8_lossy(&reply);
            let ended = rig.shard.end_lattice().expect("begun");
            assert_eq!(ended.refused, None, "{request}");
            assert!(!reply.starts_with('-'), "{request}: {reply}");
            replicas.observe(ended.next);
        }
    }
}

/// Both clocks advance.
fn pass(rig: &mut Rig, us: u64) {
    rig.now.unix_us += us;
    rig.now.mono_us += us;
}

#[test]
fn collections_live_their_time_and_are_made_anew_without_one() {
    let mut rig = Rig::new();
    rig.shard.lattice_mut().set_keying(Some(Arc::new(Carts)));
    let mut replicas = Replicas::new(WorkerId(0), 2);
    let mut check = |rig: &mut Rig, request: &str, expected: &str| {
        let stamp = replicas.stamp(rig.now);
        rig.shard.begin_lattice(Writer { stamp });
        rig.check(request, expected);
        let ended = rig.shard.end_lattice().expect("begun");
        assert_eq!(ended.refused, None, "{request}");
        replicas.observe(ended.next);
        rig.shard.check();
    };
    for (add, key) in [
        ("SADD cart:s apple", "cart:s"),
        ("HINCRBY cart:h f 1", "cart:h"),
        ("ZINCRBY cart:z 1 a", "cart:z"),
        ("PFADD cart:p a b", "cart:p"),
    ] {
        let mut other = Rig::new();
        let first = other.run(&add.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        let first = String::from_utf8_lossy(&first).into_owned();
        for _ in 0..2 {
            check(&mut rig, add, &first);
            check(&mut rig, &format!("TTL {key}"), ":-1\r\n");
            check(&mut rig, &format!("EXPIRE {key} 100"), ":1\r\n");
            check(&mut rig, &format!("PERSIST {key}"), ":1\r\n");
            check(&mut rig, &format!("TTL {key}"), ":-1\r\n");
            check(&mut rig, &format!("EXPIRE {key} 100"), ":1\r\n");
            check(&mut rig, &format!("TTL {key}"), ":100\r\n");
            pass(&mut rig, 100_000_000);
            check(&mut rig, &format!("EXISTS {key}"), ":0\r\n");
            check(&mut rig, &format!("TTL {key}"), ":-2\r\n");
        }
        check(&mut rig, &format!("EXPIRE {key} 100"), ":0\r\n");
    }
    // What is added since its time is counted alone.
    check(&mut rig, "PFADD cart:p c", ":1\r\n");
    check(&mut rig, "PFCOUNT cart:p", ":1\r\n");
    check(&mut rig, "PEXPIRE cart:p 50", ":1\r\n");
    check(&mut rig, "PFADD cart:p d", ":1\r\n");
    check(&mut rig, "PFMERGE cart:p cart:p", "+OK\r\n");
    check(&mut rig, "PTTL cart:p", ":50\r\n");
    check(&mut rig, "PFCOUNT cart:p", ":2\r\n");
    pass(&mut rig, 50_000);
    check(&mut rig, "PFCOUNT cart:p", ":0\r\n");
    check(&mut rig, "TTL cart:p", ":-2\r\n");
    check(&mut rig, "EXPIREAT cart:p 2000000000", ":0\r\n");
    check(&mut rig, "PFADD cart:p c", ":1\r\n");
    check(&mut rig, "EXPIRE cart:p 0", ":1\r\n");
    check(&mut rig, "EXISTS cart:p", ":0\r\n");
}

/// Runs a request that writes to replicas; returns whether it was refused.
fn on_replicas(rig: &mut Rig, request: &[&[u8]]) -> (Vec<u8>, bool) {
    pass(rig, 1);
    let stamp = Replicas::new(WorkerId(0), 2).stamp(rig.now);
    rig.shard.begin_lattice(Writer { stamp });
    let reply = rig.run(request);
    let ended = rig.shard.end_lattice().expect("begun");
    rig.shard.check();
    (reply, ended.refused.is_some())
}

fn body(reply: &[u8]) -> Vec<u8> {
    let start = reply.iter().position(|&byte| byte == b'\n').expect("bulk") + 1;
    reply[start..reply.len() - 2].to_vec()
}

#[test]
fn payloads_have_the_plain_value_and_are_written_element_by_element() {
    let mut rig = Rig::new();
    rig.shard.lattice_mut().set_keying(Some(Arc::new(Carts)));
    let cases: [(&[&[u8]], &[u8]); 3] = [
        (&[b"SADD", b"cart:k", b"apple"], b"SMEMBERS"),
        (&[b"HSET", b"cart:k", b"f", b"1"], b"HGETALL"),
        (&[b"ZADD", b"cart:k", b"1.5", b"m"], b"ZPOPMIN"),
    ];
    for (write, read) in cases {
        let name: &[u8] = &[b"cart:".as_slice(), write[0]].concat();
        let mut write = write.to_vec();
        write[1] = name;
        on_replicas(&mut rig, &write);
        let payload = body(&rig.run(&[b"DUMP", name]));
        assert_eq!(
            rig.run(&[b"RESTORE", b"strict", b"0", &payload]),
            b"+OK\r\n"
        );
        let key = rig.shard.key(b"strict");
        let value = rig.shard.read(0, key, rig.now).expect("there");
        assert!(value.tag().is_some_and(|tag| !tag.is_replicated()));
        assert_eq!(body(&rig.run(&[b"DUMP", b"strict"])), payload);
        // Replaces the present value.
        let mut more = write.clone();
        let last = more.len() - 1;
        more[last] = b"7";
        on_replicas(&mut rig, &more);
        let request: [&[u8]; 5] = [b"RESTORE", name, b"5000", &payload, b"REPLACE"];
        assert_eq!(
            on_replicas(&mut rig, &request),
            (b"+OK\r\n".to_vec(), false)
        );
        let key = rig.shard.key(name);
        let value = rig.shard.read(0, key, rig.now).expect("there");
        assert!(value.tag().is_some_and(Tag::is_replicated));
        assert_eq!(body(&rig.run(&[b"DUMP", name])), payload);
        let ttl = rig.run(&[b"PTTL", name]);
        assert!(ttl == b":5000\r\n" || ttl == b":4999\r\n", "{ttl:?}");
        assert_ne!(rig.run(&[read, name]), b"*0\r\n");
        rig.run(&[b"DEL", b"strict"]);
    }
    // Of another type, nothing is changed.
    let payload = body(&rig.run(&[b"DUMP", b"cart:SADD"]));
    let request: [&[u8]; 5] = [b"RESTORE", b"cart:HSET", b"0", &payload, b"REPLACE"];
    assert!(on_replicas(&mut rig, &request).1);
    rig.check("HGET cart:HSET f", "'1'");
    rig.run(&[b"RPUSH", b"list", b"a"]);
    let payload = body(&rig.run(&[b"DUMP", b"list"]));
    let request: [&[u8]; 5] = [b"RESTORE", b"cart:list", b"0", &payload, b"REPLACE"];
    assert!(on_replicas(&mut rig, &request).1);
    let without = refused("restore cart:k 0 payload", &["cart:k"]);
    assert!(without.is_some_and(|refusal| refusal.contains("whether it exists")));
    assert_eq!(
        refused("restore cart:k 0 payload REPLACE", &["cart:k"]),
        None
    );
}

#[test]
fn no_payload_takes_a_replicated_value_to_a_strict_key() {
    let mut rig = Rig::new();
    rig.shard.lattice_mut().set_keying(Some(Arc::new(Carts)));
    on_replicas(&mut rig, &[b"SADD", b"cart:s", b"apple"]);
    let key = rig.shard.key(b"cart:s");
    let value = rig.shard.read(0, key, rig.now).expect("there");
    let tag = value.tag().expect("a set");
    assert!(tag.is_replicated());
    let chunk = |at, budget, out: &mut Vec<u8>| value.chunk(at, budget, out);
    let payload = rdb::dump(tag, value.len(), chunk);
    let refused = rig.run(&[b"RESTORE", b"strict", b"0", &payload]);
    assert_eq!(refused, b"-ERR Bad data format\r\n");
    rig.check("EXISTS strict", ":0");
}

#[test]
fn a_refusal_says_why_and_what_to_do() {
    assert_eq!(
        refused("setnx k v", &["k"]).as_deref(),
        Some(
            "ERR 'setnx' cannot be coordination-free: only all replicas together know whether \
             it exists. Keyspace 'carts' is of regime lattice; use a write \
             without a condition, of which the last wins, or a keyspace of regime strict"
        )
    );
}

#[test]
fn the_page_has_this_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keyspaces.md");
    let text = std::fs::read_to_string(&path).expect("docs/keyspaces.md");
    let (before, rest) = text.split_once("<!-- commands -->\n").expect("its begin");
    let (_, after) = rest.split_once("<!-- end -->").expect("its end");
    let wanted = format!("{before}<!-- commands -->\n{}<!-- end -->{after}", page());
    if std::env::var_os("RUFOUS_WRITE_PAGES").is_some() {
        std::fs::write(&path, &wanted).expect("written");
    } else {
        let how = "run this test with RUFOUS_WRITE_PAGES=1";
        assert!(text == wanted, "docs/keyspaces.md is old: {how}");
    }
}
