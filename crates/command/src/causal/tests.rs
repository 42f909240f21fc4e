//! What they do, on one replica.

use crate::testing::Rig;
use rufous_base::WorkerId;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_kernel::keyspace::Resolve;
use rufous_kernel::replicate::replicas::Replicas;
use rufous_kernel::shard::{Contexts, Keyed, Keying};
use std::sync::Arc;

#[derive(Debug)]
struct Notes;

impl Keying for Notes {
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        key.starts_with(b"note:").then_some(Keyed {
            strings: Tag::Siblings,
            is_shared: true,
        })
    }

    fn resolve(&self, key: &[u8]) -> Resolve {
        match key {
            b"note:refuse" => Resolve::Refuse,
            b"note:largest" => Resolve::Largest,
            _ => Resolve::Newest,
        }
    }

    fn is_replica(&self, replica: u16) -> bool {
        replica < 2
    }
}

struct World {
    rig: Rig,
    replicas: Replicas,
    contexts: Contexts,
}

impl World {
    fn new() -> Self {
        let mut rig = Rig::new();
        rig.shard.lattice_mut().set_keying(Some(Arc::new(Notes)));
        Self {
            rig,
            replicas: Replicas::new(WorkerId(0), 2),
            contexts: Contexts::default(),
        }
    }

    /// A client's request; returns the reply, without the protocol.
    fn ask(&mut self, client: u64, request: &[&[u8]]) -> Vec<String> {
        let stamp = self.replicas.stamp(self.rig.now);
        self.rig.shard.begin_lattice(Writer { stamp });
        let contexts = std::mem::take(&mut self.contexts);
        self.rig.shard.lattice_mut().begin_session(client, contexts);
        let reply = self.rig.run(request);
        let (contexts, concurrent) = self.rig.shard.lattice_mut().end_session();
        self.contexts = contexts;
        let ended = self.rig.shard.end_lattice().expect("begun");
        assert_eq!(ended.refused, None);
        self.replicas.observe(ended.next);
        if let Some(count) = concurrent {
            return vec![format!("{count} values")];
        }
        let text = String::from_utf8_lossy(&reply).into_owned();
        let lines = text.lines().filter(|line| !line.starts_with(['*', '$']));
        lines.map(str::to_owned).collect()
    }

    fn say(&mut self, client: u64, request: &str) -> Vec<String> {
        let words: Vec<_> = request.split(' ').map(str::as_bytes).collect();
        self.ask(client, &words)
    }
}

#[test]
fn a_session_replaces_what_it_has_seen_and_stands_beside_the_rest() {
    let mut world = World::new();
    world.say(1, "SET note:a one");
    world.say(1, "SET note:a two");
    world.say(2, "SET note:a other");
    let all = world.say(3, "CAUSAL.GET note:a");
    assert_eq!(all[1..], ["other", "two"]);
    assert_eq!(world.say(2, "GET note:a"), ["other"]);
    world.say(2, "SET note:a both");
    assert_eq!(world.say(1, "CAUSAL.GET note:a")[1..], ["both"]);
    assert_eq!(world.say(4, "GETSET note:a mine"), ["both"]);
    assert_eq!(world.say(1, "CAUSAL.GET note:a")[1..], ["mine"]);
    world.say(5, "SET note:a beside");
    assert_eq!(world.say(4, "DEL note:a"), [":1"]);
    assert_eq!(world.say(1, "GET note:a"), ["beside"]);
    assert_eq!(world.say(1, "DEL note:a"), [":1"]);
    assert_eq!(world.say(1, "EXISTS note:a"), [":0"]);
    assert_eq!(world.say(1, "CAUSAL.GET note:a").len(), 1);
}

#[test]
fn a_lost_context_loses_no_value() {
    let mut world = World::new();
    world.say(1, "SET note:a one");
    world.contexts = Contexts::default();
    world.say(1, "SET note:a two");
    assert_eq!(world.say(1, "CAUSAL.GET note:a")[1..], ["two", "one"]);
}

#[test]
fn every_command_that_reads_a_string_has_seen_it() {
    for read in [
        "GET note:a",
        "MGET other note:a",
        "STRLEN note:a",
        "GETRANGE note:a 0 1",
        "GETBIT note:a 1",
        "BITCOUNT note:a",
        "LCS note:a note:b",
    ] {
        let mut world = World::new();
        world.say(1, "SET note:a one");
        world.say(2, read);
        world.say(2, "SET note:a two");
        let all = world.say(3, "CAUSAL.GET note:a");
        assert_eq!(all[1..], ["two"], "{read}");
    }
    let mut world = World::new();
    world.say(1, "SET note:a one");
    world.say(2, "EXISTS note:a");
    world.say(2, "SET note:a two");
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["two", "one"]);
}

#[test]
fn tokens_do_for_clients_without_sessions() {
    let mut world = World::new();
    let first = world.say(1, "CAUSAL.SET note:a  one");
    let token = first[0].clone();
    let second = world.say(2, "CAUSAL.SET note:a  two");
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["two", "one"]);
    // Its own, through another connection.
    let next = world.say(4, &format!("CAUSAL.SET note:a {token} three"));
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["three", "two"]);
    assert_eq!(
        world.say(5, &format!("CAUSAL.DEL note:a {}", second[0])),
        [":1"]
    );
    assert_eq!(world.say(5, &format!("CAUSAL.DEL note:a {token}")), [":0"]);
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["three"]);
    assert_eq!(
        world.say(6, &format!("CAUSAL.DEL note:a {}", next[0])),
        [":1"]
    );
    let none = world.say(3, "CAUSAL.GET note:a");
    world.say(7, &format!("CAUSAL.SET note:a {} again", none[0]));
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["again"]);
}

#[test]
fn tokens_of_other_keys_and_none_at_all_are_refused() {
    let mut world = World::new();
    let token = world.say(1, "CAUSAL.SET note:a  one")[0].clone();
    let refused = "-ERR the token is not one of this key";
    for request in [
        format!("CAUSAL.SET note:b {token} x"),
        format!("CAUSAL.DEL note:b {token}"),
        format!("CAUSAL.SET note:a {} x", &token[..token.len() - 1]),
        format!("CAUSAL.SET note:a {} x", "0".repeat(1 << 20)),
        "CAUSAL.SET note:a x x".into(),
    ] {
        let said = world.say(1, &request);
        assert!(said[0].starts_with(refused), "{said:?}");
    }
    for request in ["CAUSAL.GET k", "CAUSAL.SET k  v", "CAUSAL.DEL k "] {
        let said = world.say(1, request);
        assert!(
            said[0].starts_with("-ERR the key has no concurrent values"),
            "{said:?}"
        );
    }
    world.say(1, "SADD note:s a");
    let said = world.say(1, "CAUSAL.GET note:s");
    assert!(said[0].starts_with("-WRONGTYPE"), "{said:?}");
}

#[test]
fn a_token_says_nothing_of_what_is_yet_to_come() {
    use rufous_datatype::replicated::token;
    use rufous_lattice::{Stamp, VersionVector};
    let mut world = World::new();
    world.say(1, "SET note:a one");
    let mut all = VersionVector::default();
    for replica in 0..u16::MAX {
        all.raise(Stamp {
            time: if replica < 2 { u64::MAX } else { 1 },
            replica,
            step: 0,
        });
    }
    let huge = token::encode(0, b"note:a", &all.clone().into());
    let said = world.ask(2, &[b"CAUSAL.SET", b"note:a", &huge, b"liar"]);
    assert!(said[0].starts_with("-ERR the token"), "{said:?}");
    let some = all.only(|replica| replica < 600);
    let token = token::encode(0, b"note:a", &some.into());
    let said = world.ask(2, &[b"CAUSAL.SET", b"note:a", &token, b"liar"]);
    let seen = token::decode(0, b"note:a", said[0].as_bytes()).expect("a token");
    assert!(seen.all.is_empty(), "its own write alone");
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["liar", "one"]);
}

#[test]
fn the_keyspace_says_what_a_plain_read_shows() {
    let mut world = World::new();
    for key in ["note:a", "note:largest", "note:refuse"] {
        world.say(1, &format!("SET {key} 10"));
        world.say(2, &format!("SET {key} 9"));
    }
    assert_eq!(world.say(3, "GET note:a"), ["9"]);
    assert_eq!(world.say(3, "GET note:largest"), ["10"]);
    assert_eq!(world.say(3, "INCR note:largest"), [":11"]);
    assert_eq!(world.say(4, "GET note:largest"), ["11"]);
    for request in [
        "GET note:refuse",
        "INCR note:refuse",
        "INCRBYFLOAT note:refuse 1",
        "GETSET note:refuse 1",
        "MGET note:a note:refuse",
        "BITOP NOT strict note:refuse",
    ] {
        assert_eq!(world.say(3, request), ["2 values"]);
    }
    assert_eq!(world.say(3, "EXISTS strict"), [":0"]);
    let all = world.say(3, "CAUSAL.GET note:refuse");
    assert_eq!(all[1..], ["9", "10"]);
    world.say(3, "SET note:refuse 7");
    assert_eq!(world.say(4, "GET note:refuse"), ["7"]);
}

#[test]
fn increments_add_to_what_is_shown() {
    let mut world = World::new();
    assert_eq!(world.say(1, "INCR note:n"), [":1"]);
    assert_eq!(world.say(2, "INCRBY note:n 5"), [":6"]);
    assert_eq!(world.say(3, "CAUSAL.GET note:n")[1..], ["6"]);
    assert_eq!(world.say(1, "DECR note:n"), [":5"]);
    assert_eq!(world.say(4, "INCRBYFLOAT note:n 0.5"), ["5.5"]);
    assert_eq!(world.say(3, "CAUSAL.GET note:n")[1..], ["5.5"]);
    let said = world.say(1, "INCR note:n");
    assert!(
        said[0].starts_with("-ERR value is not an integer"),
        "{said:?}"
    );
    assert_eq!(world.say(4, "DEL note:n"), [":1"]);
    assert_eq!(world.say(4, "INCR note:n"), [":1"]);
}

#[test]
fn who_has_written_has_not_read_what_was_there_before() {
    let mut world = World::new();
    world.say(1, "SET note:a theirs");
    world.say(2, "SET note:a mine");
    world.say(2, "SET note:a again");
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["again", "theirs"]);
    let token = world.say(4, "CAUSAL.SET note:a  other")[0].clone();
    world.say(5, &format!("CAUSAL.SET note:a {token} more"));
    let all = world.say(3, "CAUSAL.GET note:a");
    assert_eq!(all[1..], ["more", "again", "theirs"]);
    assert_eq!(world.say(2, "DEL note:a"), [":1"]);
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["more", "theirs"]);
}

#[test]
fn who_has_read_nothing_deletes_what_is_shown() {
    for delete in ["DEL note:a", "UNLINK note:a", "GETDEL note:a"] {
        let mut world = World::new();
        world.say(1, "SET note:a one");
        world.say(2, "SET note:a two");
        let said = world.say(3, delete);
        assert_eq!(
            said,
            [if delete.starts_with("GET") {
                "two"
            } else {
                ":1"
            }]
        );
        assert_eq!(world.say(4, "EXISTS note:a"), [":0"]);
        // It is as if he had read it: what he writes then is no sibling.
        let token = world.say(4, "CAUSAL.GET note:a")[0].clone();
        world.say(3, "SET note:a again");
        let written = world.say(5, &format!("CAUSAL.SET note:a {token} beside"));
        assert_eq!(world.say(4, "CAUSAL.GET note:a")[1..], ["beside", "again"]);
        assert_eq!(world.say(3, "DEL note:a"), [":1"], "its own");
        assert_eq!(world.say(4, "CAUSAL.GET note:a")[1..], ["beside"]);
        let gone = format!("CAUSAL.DEL note:a {}", written[0]);
        assert_eq!(world.say(5, &gone), [":1"]);
        assert_ne!(world.say(6, delete), [":1"]);
    }
    // Of what he has seen some is there no more: he has not seen the rest.
    let mut world = World::new();
    world.say(1, "SET note:a one");
    world.say(2, "GET note:a");
    world.say(1, "SET note:a two");
    assert_eq!(world.say(2, "DEL note:a"), [":0"]);
    assert_eq!(world.say(1, "GET note:a"), ["two"]);
    // Also where none of several values answers.
    world.say(1, "SET note:refuse one");
    world.say(2, "SET note:refuse two");
    assert_eq!(world.say(1, "GETDEL note:refuse"), ["2 values"]);
    assert_eq!(world.say(3, "DEL note:refuse"), [":1"]);
    assert_eq!(world.say(1, "EXISTS note:refuse"), [":0"]);
}

impl World {
    fn wait_ms(&mut self, ms: u64) {
        self.rig.now.unix_us += ms * 1000;
        self.rig.shard.check();
    }
}

#[test]
fn each_value_lives_its_time() {
    let mut world = World::new();
    world.say(1, "SET note:a short PX 100");
    world.say(2, "SET note:a long PX 900");
    world.say(3, "SET note:a ever");
    assert_eq!(world.say(4, "TTL note:a"), [":-1"]);
    world.say(3, "GETDEL note:none");
    assert_eq!(world.say(3, "PEXPIRE note:a 500"), [":1"], "its own");
    assert_eq!(world.say(4, "PTTL note:a"), [":500"]);
    assert_eq!(
        world.say(4, "CAUSAL.GET note:a")[1..],
        ["ever", "long", "short"]
    );
    world.wait_ms(100);
    assert_eq!(world.say(4, "CAUSAL.GET note:a")[1..], ["ever", "long"]);
    world.wait_ms(400);
    assert_eq!(world.say(4, "GET note:a"), ["long"]);
    assert_eq!(world.say(4, "PTTL note:a"), [":400"]);
    world.wait_ms(400);
    assert!(world.say(4, "GET note:a").is_empty());
    assert_eq!(world.say(4, "EXISTS note:a"), [":0"]);
    // Several at once.
    for n in 0..5 {
        world.say(10 + n, &format!("SET note:b v{n} PX {}", 10 + n));
    }
    world.say(1, "SET note:b v PX 500");
    world.wait_ms(100);
    assert_eq!(world.say(4, "GET note:b"), ["v"]);
    assert_eq!(world.say(4, "CAUSAL.GET note:b")[1..], ["v"]);
}

#[test]
fn deadlines_are_given_to_what_was_seen_and_can_be_taken_back() {
    let mut world = World::new();
    world.say(1, "SET note:a one EX 10");
    assert_eq!(world.say(2, "GETEX note:a EX 20"), ["one"]);
    world.say(3, "SET note:a two");
    assert_eq!(world.say(2, "EXPIRE note:a 30"), [":1"]);
    world.wait_ms(30_000);
    assert_eq!(world.say(4, "CAUSAL.GET note:a")[1..], ["two"]);
    assert_eq!(
        world.say(2, "EXPIRE note:a 30"),
        [":0"],
        "it has seen nothing of this"
    );
    assert_eq!(world.say(5, "EXPIRE note:a 30"), [":1"]);
    assert_eq!(world.say(6, "PERSIST note:a"), [":1"]);
    assert_eq!(world.say(6, "PERSIST note:a"), [":0"]);
    assert_eq!(world.say(5, "TTL note:a"), [":-1"]);
    assert_eq!(world.say(5, "GETEX note:a PX 700"), ["two"]);
    world.say(5, "SET note:a three KEEPTTL");
    assert_eq!(world.say(4, "PTTL note:a"), [":700"]);
    world.say(5, "SET note:a 4");
    assert_eq!(world.say(4, "TTL note:a"), [":-1"]);
    assert_eq!(world.say(5, "PEXPIRE note:a 300"), [":1"]);
    assert_eq!(world.say(5, "INCR note:a"), [":5"]);
    assert_eq!(world.say(5, "INCRBYFLOAT note:a 0.5"), ["5.5"]);
    assert_eq!(world.say(4, "PTTL note:a"), [":300"]);
    // A time that is over takes away what was seen.
    world.say(6, "SET note:a beside");
    assert_eq!(world.say(5, "EXPIRE note:a -1"), [":1"]);
    assert_eq!(world.say(7, "CAUSAL.GET note:a")[1..], ["beside"]);
}

#[test]
fn a_count_that_has_never_been_written_lives_its_time_and_begins_anew() {
    let mut world = World::new();
    for _ in 0..2 {
        assert_eq!(world.say(1, "INCR note:n"), [":1"]);
        assert_eq!(world.say(1, "EXPIRE note:n 1"), [":1"]);
        assert_eq!(world.say(2, "INCR note:n"), [":2"]);
        assert_eq!(world.say(2, "TTL note:n"), [":1"]);
        world.wait_ms(1000);
        assert_eq!(world.say(2, "EXISTS note:n"), [":0"]);
    }
}

#[test]
fn tokens_write_values_with_deadlines() {
    let mut world = World::new();
    let token = world.say(1, "CAUSAL.SET note:a  one EX 5")[0].clone();
    world.say(2, "CAUSAL.SET note:a  two PXAT 99999999999999");
    world.wait_ms(5000);
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["two"]);
    // This token has seen what expired; the new value replaces it.
    world.say(1, &format!("CAUSAL.SET note:a {token} three"));
    assert_eq!(world.say(3, "CAUSAL.GET note:a")[1..], ["three", "two"]);
    let all = world.say(3, "CAUSAL.GET note:a")[0].clone();
    world.say(3, &format!("CAUSAL.SET note:a {all} dead EXAT 1"));
    assert_eq!(world.say(3, "EXISTS note:a"), [":0"]);
    for bad in ["EX", "EX 1 PX", "EX 1 PX 1", "KEEPTTL", "NX 1"] {
        let said = world.say(1, &format!("CAUSAL.SET note:a  v {bad}"));
        assert_eq!(said, ["-ERR syntax error"], "{bad}");
    }
    let said = world.say(1, "CAUSAL.SET note:a  v EX 0");
    assert_eq!(said, ["-ERR invalid expire time in 'causal.set' command"]);
}
