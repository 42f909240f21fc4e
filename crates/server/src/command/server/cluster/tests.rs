//! What clients are told of a mapping.

use crate::cluster::{PeerMessage, Settings};
use crate::config::Config;
use crate::front::Message;
use crate::front::testing::{Client, Rig};
use rufous_base::slot::slot_of;
use rufous_base::{ConnInfo, Effects, Origin};
use rufous_mapping::planner::{self, Limits, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use rufous_wire::Envelope;
use std::sync::Arc;

pub(super) fn mapping(ids: &[u8], copies: usize) -> Mapping {
    let mut seen = Seen::default();
    for id in ids {
        let member = Member {
            id: NodeId([*id; 20]),
            incarnation: 1,
            peer: format!("10.0.0.{id}:7000"),
            plain: format!("10.0.0.{id}:6379"),
            cluster: String::new(),
            zone: String::new(),
            weight: 100,
            workers: 2,
            drains: false,
            folder: Default::default(),
        };
        seen.alive.insert(member.id, member);
    }
    planner::next(&Mapping::new(copies), &seen, &Limits::default()).expect("a mapping")
}

/// A node with the id 0101….
pub(super) fn rig(ids: &[u8], copies: usize) -> Rig {
    let config = Config {
        cluster: Some(Settings::new("birds")),
        ..Config::in_memory()
    };
    let mut rig = Rig::with_config(2, config);
    let mapping = Arc::new(mapping(ids, copies));
    rig.tell_all(|| Message::Peer(PeerMessage::Mapping(Arc::clone(&mapping))));
    rig
}

/// The text of a bulk.
pub(super) fn text(reply: &str) -> &str {
    let (_, text) = reply.split_once("\r\n").expect("a bulk");
    text.strip_suffix("\r\n").expect("whole")
}

#[test]
fn a_node_alone_says_that_it_is_in_none() {
    let mut rig = Rig::new(1);
    for request in [
        "CLUSTER INFO",
        "CLUSTER MYID",
        "CLUSTER NODES",
        "CLUSTER SLOTS",
        "CLUSTER SHARDS",
        "CLUSTER KEYSLOT a",
        "CLUSTER COUNTKEYSINSLOT 1",
        "CLUSTER GETKEYSINSLOT 1 1",
        "CLUSTER STATUS",
        "CLUSTER DRAIN",
        "CLUSTER WEIGHT 50",
        "CLUSTER PREVIEW",
    ] {
        let disabled = "-ERR This instance has cluster support disabled\r\n";
        rig.check(request, disabled);
    }
    assert!(rig.run("CLUSTER HELP").starts_with("*"));
    let unknown = rig.run("CLUSTER NOSUCH");
    assert!(
        unknown.starts_with("-ERR unknown subcommand 'NOSUCH'"),
        "{unknown}"
    );
}

#[test]
fn one_node_has_all_slots() {
    let mut rig = rig(&[1], 1);
    let id = "01".repeat(20);
    rig.check("CLUSTER MYID", &format!("$40\r\n{id}\r\n"));
    rig.check("CLUSTER KEYSLOT {user1000}.following", ":3443\r\n");
    let line = format!("{id} 10.0.0.1:6379@7000 myself,master - 0 0 1 connected 0-16383\n");
    assert_eq!(text(&rig.run("CLUSTER NODES")), line);
    let node = format!("*4\r\n$8\r\n10.0.0.1\r\n:6379\r\n$40\r\n{id}\r\n*0\r\n");
    rig.check(
        "CLUSTER SLOTS",
        &format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}"),
    );
    let info = rig.run("CLUSTER INFO");
    for line in [
        "cluster_state:ok\r\n",
        "cluster_slots_assigned:16384\r\n",
        "cluster_known_nodes:1\r\n",
        "cluster_size:1\r\n",
        "cluster_current_epoch:1\r\n",
    ] {
        assert!(info.contains(line), "{line}: {info}");
    }
    let shards = rig.run("CLUSTER SHARDS");
    let expected =
        "*1\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n*14\r\n$2\r\nid\r\n";
    assert!(shards.starts_with(expected), "{shards}");
    assert!(shards.contains("$6\r\nhealth\r\n$6\r\nonline\r\n"));
    assert!(rig.run("INFO cluster").contains("cluster_enabled:1\r\n"));
}

#[test]
fn before_the_first_mapping_nobody_has_any() {
    let config = Config {
        cluster: Some(Settings::new("birds")),
        ..Config::in_memory()
    };
    let mut rig = Rig::with_config(1, config);
    rig.check("CLUSTER SLOTS", "*0\r\n");
    rig.check("CLUSTER SHARDS", "*0\r\n");
    assert_eq!(text(&rig.run("CLUSTER NODES")), "");
    assert!(rig.run("CLUSTER INFO").contains("cluster_state:fail\r\n"));
}

#[test]
fn several_nodes_have_all_slots_together_with_copies_elsewhere() {
    let mut rig = rig(&[1, 2, 3], 2);
    let nodes = rig.run("CLUSTER NODES");
    let lines: Vec<Vec<&str>> = text(&nodes)
        .lines()
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(lines.len(), 3);
    let mut covered = vec![0; 16384];
    for line in &lines {
        let is_own = line[0] == "01".repeat(20);
        // There are no sessions here.
        let (flags, link) = match is_own {
            true => ("myself,master", "connected"),
            false => ("master,fail?", "disconnected"),
        };
        assert_eq!((line[2], line[7]), (flags, link));
        for range in &line[8..] {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) =
                (first.parse().expect("a slot"), last.parse().expect("one"));
            covered[first..=last].iter_mut().for_each(|n| *n += 1);
        }
    }
    assert!(covered.iter().all(|times| *times == 1));
    // Each range has its head and one more.
    let slots = rig.run("CLUSTER SLOTS");
    let mut words = slots.split("\r\n").peekable();
    let ranges: usize = words.next().expect("a count")[1..].parse().expect("one");
    let mut next = 0;
    for _ in 0..ranges {
        assert_eq!(words.next(), Some("*4"));
        assert_eq!(words.next(), Some(format!(":{next}").as_str()));
        let last = words.next().expect("a slot")[1..].to_owned();
        next = last.parse::<u32>().expect("a slot") + 1;
        let mut ids = Vec::new();
        for _ in 0..2 {
            let node: Vec<&str> = words.by_ref().take(7).collect();
            assert_eq!((node[0], node[3], node[6]), ("*4", ":6379", "*0"));
            ids.push(node[5]);
        }
        assert_ne!(ids[0], ids[1]);
    }
    assert_eq!(next, 16384);
    assert!(rig.run("CLUSTER INFO").contains("cluster_state:fail\r\n"));
}

/// A client that goes where it is told to.
pub(super) fn redirected(rig: &mut Rig) -> Client {
    let info = ConnInfo {
        peer: "10.0.0.9:50000".into(),
        local: "10.0.0.1:7001".into(),
        is_local: true,
        origin: Origin::Redirected,
        certificate: None,
    };
    rig.connect_as(0, info)
}

/// Two nodes with half of the slots each, of which this is one; a key of each, this
/// node's first, and what is said of the other's.
pub(super) fn halves() -> (Rig, Client, [String; 2], String) {
    let mut rig = rig(&[1, 2], 1);
    let client = redirected(&mut rig);
    let own = |key: &String| {
        let mapping = mapping(&[1, 2], 1);
        let head = mapping.chains.of(slot_of(key.as_bytes())).head();
        head == mapping.number_of(NodeId([1; 20]))
    };
    let keys = || (0..).map(|n| format!("k{n}"));
    let here = keys().find(own).expect("a key of this node");
    let there = keys().find(|key| !own(key)).expect("a key of the other");
    let moved = format!("-MOVED {} 10.0.0.2:6379\r\n", slot_of(there.as_bytes()));
    (rig, client, [here, there], moved)
}

#[test]
fn who_follows_redirections_is_told_where_keys_are() {
    let (mut rig, client, [here, there], moved) = halves();
    assert_eq!(rig.run_on(client, &format!("SET {here} 1")), "+OK\r\n");
    assert_eq!(rig.run_on(client, &format!("GET {here}")), "$1\r\n1\r\n");
    for request in [
        "SET {} 1",
        "GET {}",
        "LPUSH {} a b",
        "MGET {} {}",
        "WATCH {}",
        "QUIET INCR {}",
    ] {
        assert_eq!(rig.run_on(client, &request.replace("{}", &there)), moved);
    }
    let crossed = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    assert_eq!(rig.run_on(client, &format!("MGET {here} {there}")), crossed);
    assert_eq!(rig.run_on(client, &format!("DEL {here} {here}.")), crossed);
    assert_eq!(rig.run_on(client, "PING"), "+PONG\r\n");
    assert!(rig.run_on(client, "HELLO").contains("\r\ncluster\r\n"));
    assert!(rig.run("HELLO").contains("\r\nstandalone\r\n"));
}

#[test]
fn transactions_are_of_one_slot_that_is_here() {
    let (mut rig, client, [here, there], moved) = halves();
    assert_eq!(rig.run_on(client, "MULTI"), "+OK\r\n");
    assert_eq!(rig.run_on(client, &format!("SET {there} 1")), moved);
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(rig.run_on(client, "EXEC"), aborted);
    assert_eq!(rig.run_on(client, "MULTI"), "+OK\r\n");
    for key in [format!("{{{here}}}a"), format!("{{{here}}}b")] {
        let queued = rig.run_on(client, &format!("SET {key} 1"));
        assert_eq!(queued, "+QUEUED\r\n");
    }
    assert_eq!(rig.run_on(client, "EXEC"), "*2\r\n+OK\r\n+OK\r\n");
    // Each is here, but not both together.
    let other = (0..).map(|n| format!("k{n}"));
    let mut other = other.filter(|key| slot_of(key.as_bytes()) != slot_of(here.as_bytes()));
    let other = other.find(|key| rig.run_on(client, &format!("GET {key}")) == "$-1\r\n");
    let other = other.expect("another of this node");
    assert_eq!(rig.run_on(client, "MULTI"), "+OK\r\n");
    for key in [&here, &other] {
        let queued = rig.run_on(client, &format!("SET {key} 2"));
        assert_eq!(queued, "+QUEUED\r\n");
    }
    let crossed = rig.run_on(client, "EXEC");
    assert!(crossed.starts_with("-CROSSSLOT"), "{crossed}");
    assert_eq!(rig.run_on(client, &format!("GET {other}")), "$-1\r\n");
    assert_eq!(rig.run_on(client, "EXEC"), "-ERR EXEC without MULTI\r\n");
}

/// The mapping in which a member that drains is none any more.
pub(super) fn without(no: NodeNo, mut mapping: Mapping) -> Mapping {
    let members = mapping.members.values();
    let mut seen = Seen {
        alive: members.map(|member| (member.id, member.clone())).collect(),
        draining: [no].into(),
        ..Seen::default()
    };
    while mapping.members.contains_key(&no) {
        for (slots, chain) in mapping.chains.ranges() {
            // Nobody waits for a write of the last member either.
            for no in chain.learner.iter().chain(chain.members.last()) {
                seen.learned.add(slots.clone(), *no, chain.since);
            }
        }
        mapping = planner::next(&mapping, &seen, &Limits::default()).expect("it leaves");
        if mapping.chains.ranges().all(|(_, chain)| !chain.names(no)) {
            seen.alive
                .retain(|id, _| mapping.number_of(*id) != Some(no));
        }
    }
    mapping
}

#[test]
fn a_node_that_is_no_member_any_more_answers_for_nothing() {
    let (mut rig, _, _, _) = halves();
    let served = |rig: &Rig| -> u64 {
        let figures = rig.fronts.iter().filter_map(|f| f.kernel.chain_figures());
        figures.map(|figures| figures.served).sum()
    };
    assert!(served(&rig) > 0);
    let first = mapping(&[1, 2], 1);
    let no = first.number_of(NodeId([1; 20])).expect("a member");
    // Of the epochs between it hears nothing.
    let last = Arc::new(without(no, first));
    rig.tell_all(|| Message::Peer(PeerMessage::Mapping(Arc::clone(&last))));
    assert_eq!(served(&rig), 0);
}

/// The other node's workers grant those of this one their leases.
pub(super) fn lease(rig: &mut Rig, from: NodeNo) {
    let now = rig.now;
    for at in 0..rig.fronts.len() {
        let (front, mut fx) = (&mut rig.fronts[at], Effects::default());
        let worker = front.kernel.id().0;
        let granted = rufous_chain::Message::Grant {
            asked_us: now.mono_us,
        };
        let envelope = Envelope {
            epoch: 1,
            from: worker.into(),
            to: worker.into(),
            body: Some(granted.into()),
        };
        front.hear_of_chains(now, from, envelope);
        front.settle_heard(now, &mut fx);
        rig.carry_out(at, fx);
    }
}

/// The node's leases run out, and no mapping says who has the slot.
#[test]
fn who_waits_for_a_slot_that_nobody_has_is_told_so_after_a_while() {
    let mut rig = rig(&[1, 2], 2);
    let first = mapping(&[1, 2], 2);
    let [own, other] = [1, 2].map(|n| first.number_of(NodeId([n; 20])).expect("a member"));
    let head = |key: &String| first.chains.of(slot_of(key.as_bytes())).head();
    let mut keys = (0..).map(|n| format!("k{n}"));
    let key = keys.find(|key| head(key) == Some(own)).expect("a key");
    let client = rig.connect(0);
    // The other node says that it has all there is, and goes on to grant leases.
    answer_for(&mut rig, other, slot_of(key.as_bytes()), first.epoch);
    lease(&mut rig, other);
    rig.check_on(client, &format!("BLPOP {key} 0"), "");
    rig.advance_ms(4_000);
    assert_eq!(rig.take(client), "");
    for _ in 0..20 {
        rig.advance_ms(300);
    }
    let reply = rig.take(client);
    assert!(reply.starts_with("-CLUSTERDOWN "), "{reply}");
}

/// The other member says that it has nothing of a slot.
pub(super) fn answer_for(rig: &mut Rig, from: NodeNo, slot: u16, since: u64) {
    let (now, mut fx) = (rig.now, Effects::default());
    for front in &mut rig.fronts {
        let worker = front.kernel.id().0;
        let state = rufous_chain::Message::State {
            slot,
            since,
            seq: 0,
            items: Vec::new(),
        };
        let envelope = Envelope {
            epoch: since,
            from: worker.into(),
            to: worker.into(),
            body: Some(state.into()),
        };
        front.hear_of_chains(now, from, envelope);
        front.settle_heard(now, &mut fx);
    }
}

#[test]
fn keys_of_slots_are_counted_and_named() {
    let mut rig = rig(&[1], 1);
    for n in 0..5 {
        rig.check(&format!("SET {{t}}{n} v"), "+OK\r\n");
        rig.check(&format!("SET other{n} v"), "+OK\r\n");
    }
    let slot = slot_of(b"{t}");
    rig.check(&format!("CLUSTER COUNTKEYSINSLOT {slot}"), ":5\r\n");
    // Whose time has come is counted until it goes, and not named.
    rig.check("SET {t}soon v PX 10", "+OK\r\n");
    rig.advance_ms(20);
    let names = rig.run(&format!("CLUSTER GETKEYSINSLOT {slot} 3"));
    assert!(names.starts_with("*3\r\n$4\r\n{t}"), "{names}");
    let all = rig.run(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
    assert!(all.starts_with("*5\r\n"), "{all}");
    rig.check(&format!("CLUSTER GETKEYSINSLOT {slot} 0"), "*0\r\n");
    for wrong in ["16384", "-1", "x"] {
        rig.check(
            &format!("CLUSTER COUNTKEYSINSLOT {wrong}"),
            "-ERR Invalid slot\r\n",
        );
        rig.check(
            &format!("CLUSTER GETKEYSINSLOT {wrong} 1"),
            "-ERR Invalid slot\r\n",
        );
    }
    let negative = rig.run(&format!("CLUSTER GETKEYSINSLOT {slot} -1"));
    assert_eq!(negative, "-ERR Invalid number of keys\r\n");
}

#[test]
fn copies_are_no_keys_of_a_slot() {
    let (mut rig, client, [here, _], _) = halves();
    rig.check(&format!("SET {here} 1 EX 100"), "+OK\r\n");
    rig.check_on(client, "DBSIZE", ":1\r\n");
    let count = format!("CLUSTER COUNTKEYSINSLOT {}", slot_of(here.as_bytes()));
    rig.check(&count, ":1\r\n");
    let first = mapping(&[1, 2], 1);
    let no = first.number_of(NodeId([1; 20])).expect("a member");
    let last = Arc::new(without(no, first));
    rig.tell_all(|| Message::Peer(PeerMessage::Mapping(Arc::clone(&last))));
    rig.check(&count, ":0\r\n");
    rig.check_on(client, "DBSIZE", ":0\r\n");
    rig.check_on(client, "RANDOMKEY", "$-1\r\n");
    assert!(!rig.run("INFO keyspace").contains("db0"));
}

/// A write comes that cannot be done to what is here: it is of a type that no slot has.
#[test]
fn damage_is_shown() {
    let mut rig = rig(&[1, 2], 2);
    let first = mapping(&[1, 2], 2);
    let other = first.number_of(NodeId([2; 20])).expect("a member");
    let slot = (0..16384).find(|slot| first.chains.of(*slot).head() == Some(other));
    let slot = slot.expect("one of the other's");
    let state = text(&rig.run("INFO cluster")).to_owned();
    assert!(state.contains("cluster_slots_broken:0\r\n"), "{state}");
    let (now, mut fx) = (rig.now, Effects::default());
    for front in &mut rig.fronts {
        let worker = front.kernel.id().0;
        let item = rufous_chain::Item {
            seq: 1,
            effect: b"no effect".as_slice().into(),
        };
        let items = rufous_chain::Message::Items {
            slot,
            since: first.epoch,
            all: 0,
            items: vec![item],
        };
        let envelope = Envelope {
            epoch: first.epoch,
            from: worker.into(),
            to: worker.into(),
            body: Some(items.into()),
        };
        front.hear_of_chains(now, other, envelope);
        front.settle_heard(now, &mut fx);
    }
    let state = text(&rig.run("INFO cluster")).to_owned();
    assert!(state.contains("cluster_slots_broken:1\r\n"), "{state}");
    let state = text(&rig.run("CLUSTER INFO")).to_owned();
    assert!(state.contains("cluster_state:fail\r\n"), "{state}");
    assert!(state.contains("cluster_slots_fail:1\r\n"), "{state}");
}

#[test]
fn without_a_mapping_nobody_answers_for_keys() {
    let config = Config {
        cluster: Some(Settings::new("birds")),
        ..Config::in_memory()
    };
    let mut rig = Rig::with_config(2, config);
    let client = redirected(&mut rig);
    for command in ["GET a", "MGET {a}1 {a}2"] {
        assert_eq!(rig.run_on(client, command), "", "it waits for a mapping");
        for _ in 0..10 {
            rig.advance_ms(190);
        }
        assert_eq!(rig.take(client), "", "{command}");
        rig.advance_ms(190);
        let reply = rig.take(client);
        let down = "-CLUSTERDOWN This node has no mapping of slots yet";
        assert!(reply.starts_with(down), "{reply}");
        // What follows a request that waited in vain does not wait as long again.
        rig.advance_ms(3_000);
    }
    rig.check("READONLY", "+OK\r\n");
    Rig::new(1).check(
        "READONLY",
        "-ERR This instance has cluster support disabled\r\n",
    );
}
