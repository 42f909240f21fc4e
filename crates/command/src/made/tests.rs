//! Long replies of every kind, and what becomes of them when the data changes.

use crate::testing::Rig;
use rufous_base::limits::MADE_AT_ONCE;
use rufous_base::{Apart, Output};
use std::collections::{BTreeMap, BTreeSet};

const ELEMENTS: usize = 20_000;

/// A list, a set, a hash and a sorted set of as many elements.
fn rig() -> Rig {
    let mut rig = Rig::new();
    for from in (0..ELEMENTS).step_by(1000) {
        let names = (from..from + 1000).map(name);
        let names: Vec<Vec<u8>> = names.map(String::into_bytes).collect();
        let numbers: Vec<Vec<u8>> = (from..from + 1000).map(|n| n.to_string().into()).collect();
        let mut words: [Vec<&[u8]>; 4] = [
            vec![b"RPUSH", b"list"],
            vec![b"SADD", b"set"],
            vec![b"HSET", b"hash"],
            vec![b"ZADD", b"sorted"],
        ];
        for (name, number) in names.iter().zip(&numbers) {
            words[0].push(name);
            words[1].push(name);
            words[2].extend([&name[..], number]);
            words[3].extend([&number[..], name]);
        }
        for words in words {
            rig.run(&words);
        }
    }
    rig
}

fn name(n: usize) -> String {
    format!("element-{n:05}")
}

fn ask(rig: &mut Rig, request: &str) -> Output {
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    rig.answer(&words)
}

/// The head of a reply, and the bulks in it.
fn parts(out: &Output) -> (String, Vec<String>) {
    let text = String::from_utf8(out.to_vec()).expect("text");
    let mut lines = text.split("\r\n").map(str::to_owned);
    let head = lines.next().unwrap_or_default();
    let rest = lines.filter(|line| !line.is_empty() && !line.starts_with(['$', '*']));
    (head, rest.collect())
}

/// Little of it is there before it is sent.
#[track_caller]
fn is_long(out: &Output) {
    assert!(out.is_made());
    let written = out.bytes.len();
    assert!(
        (MADE_AT_ONCE..MADE_AT_ONCE * 2).contains(&written),
        "{written}"
    );
}

#[test]
fn all_elements_come_once_and_in_order_where_there_is_one() {
    let mut rig = rig();
    let names: Vec<String> = (0..ELEMENTS).map(name).collect();
    let out = ask(&mut rig, "LRANGE list 0 -1");
    is_long(&out);
    assert_eq!(parts(&out), (format!("*{ELEMENTS}"), names.clone()));
    let (_, some) = parts(&ask(&mut rig, "LRANGE list 10 -11"));
    assert_eq!(some, names[10..ELEMENTS - 10]);
    let (_, up) = parts(&ask(&mut rig, "ZRANGE sorted 0 -1"));
    assert_eq!(up, names);
    let down = ask(&mut rig, "ZRANGE sorted 0 -1 REV WITHSCORES");
    is_long(&down);
    let (head, down) = parts(&down);
    assert_eq!(head, format!("*{}", 2 * ELEMENTS));
    let expected = (0..ELEMENTS).rev().flat_map(|n| [name(n), n.to_string()]);
    assert!(down.into_iter().eq(expected));
    let set = ask(&mut rig, "SMEMBERS set");
    is_long(&set);
    let (_, members) = parts(&set);
    assert_eq!(members.len(), ELEMENTS);
    assert!(
        members
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .eq(names.clone())
    );
    for request in ["SRANDMEMBER set 1000000", "HRANDFIELD hash 1000000"] {
        let out = ask(&mut rig, request);
        is_long(&out);
        let all: BTreeSet<String> = parts(&out).1.into_iter().collect();
        assert!(all.into_iter().eq(names.clone()), "{request}");
    }
}

#[test]
fn fields_and_values_are_in_the_same_order() {
    let mut rig = rig();
    let (_, fields) = parts(&ask(&mut rig, "HKEYS hash"));
    let (_, values) = parts(&ask(&mut rig, "HVALS hash"));
    let (head, both) = parts(&ask(&mut rig, "HGETALL hash"));
    assert_eq!(head, format!("*{}", 2 * ELEMENTS));
    let pairs = fields.iter().zip(&values);
    assert!(
        both.iter()
            .eq(pairs.clone().flat_map(|(field, value)| [field, value]))
    );
    assert!(
        pairs
            .clone()
            .all(|(field, value)| *field == name(value.parse().unwrap()))
    );
    assert_eq!(fields.iter().collect::<BTreeSet<_>>().len(), ELEMENTS);
    let out = rig.resp3().answer(&[b"HGETALL", b"hash"]);
    assert!(out.bytes.starts_with(format!("%{ELEMENTS}\r\n").as_bytes()));
}

#[test]
fn as_many_are_drawn_as_were_asked_for_and_all_have_a_chance() {
    let mut rig = rig();
    let draws = 10 * ELEMENTS;
    for (request, head) in [
        (format!("SRANDMEMBER set -{draws}"), format!("*{draws}")),
        (format!("HRANDFIELD hash -{draws}"), format!("*{draws}")),
        (format!("ZRANDMEMBER sorted -{draws}"), format!("*{draws}")),
        (
            format!("HRANDFIELD hash -{draws} WITHVALUES"),
            format!("*{}", 2 * draws),
        ),
        (
            format!("ZRANDMEMBER sorted -{draws} WITHSCORES"),
            format!("*{}", 2 * draws),
        ),
    ] {
        let out = ask(&mut rig, &request);
        is_long(&out);
        let (got, all) = parts(&out);
        assert_eq!(got, head, "{request}");
        let names: Vec<&String> = all.iter().filter(|text| text.starts_with('e')).collect();
        assert_eq!(names.len(), draws, "{request}");
        let mut times = BTreeMap::<&String, usize>::new();
        names
            .iter()
            .for_each(|name| *times.entry(name).or_default() += 1);
        assert!(
            times.len() > ELEMENTS * 99 / 100,
            "{request}: {}",
            times.len()
        );
        assert!(times.values().all(|n| *n < 40), "{request}");
        if all.len() > names.len() {
            let mut pairs = all.chunks(2);
            assert!(
                pairs.all(|pair| pair[0] == name(pair[1].parse().unwrap())),
                "{request}"
            );
        }
    }
    let pairs = rig
        .resp3()
        .run(&[b"HRANDFIELD", b"hash", b"-9000", b"WITHVALUES"]);
    let pairs = String::from_utf8(pairs).unwrap();
    assert!(pairs.starts_with("*9000\r\n*2\r\n"));
    assert_eq!(pairs.matches("*2\r\n").count(), 9000);
}

#[test]
fn packed_collections_are_drawn_from_as_well() {
    let mut rig = Rig::new();
    rig.check("SADD set a b", ":2");
    rig.check("HSET hash a 1 b 2", ":2");
    rig.check("ZADD sorted 1 a 2 b", ":2");
    for request in ["SRANDMEMBER set", "HRANDFIELD hash", "ZRANDMEMBER sorted"] {
        let out = ask(&mut rig, &format!("{request} -50000"));
        is_long(&out);
        let (_, all) = parts(&out);
        let a = all.iter().filter(|name| *name == "a").count();
        assert!(
            all.len() == 50_000 && (24_000..26_000).contains(&a),
            "{request}: {a}"
        );
    }
}

/// A reply shows one instant, however late its end is made.
#[test]
fn what_changes_later_is_not_in_the_reply() {
    let mut rig = rig();
    let requests = [
        "LRANGE list 0 -1",
        "SMEMBERS set",
        "HGETALL hash",
        "ZRANGE sorted 0 -1 WITHSCORES",
    ];
    let outs = requests.map(|request| ask(&mut rig, request));
    let before = outs.each_ref().map(Output::to_vec);
    let held = || -> Vec<usize> {
        let apart = outs.iter().flat_map(|out| &out.shared);
        let held = apart.map(|(_, apart)| match apart {
            Apart::Made(source) => source.held(),
            Apart::Value(_) => 0,
        });
        held.collect()
    };
    let held_at_first = held();
    for n in (0..ELEMENTS).step_by(300) {
        let name = name(n);
        rig.run(&[b"LSET", b"list", n.to_string().as_bytes(), b"element-xxxxx"]);
        rig.run(&[b"SREM", b"set", name.as_bytes()]);
        rig.run(&[b"HSET", b"hash", name.as_bytes(), b"x"]);
        rig.run(&[b"ZADD", b"sorted", b"-1", name.as_bytes()]);
    }
    assert_eq!(outs.each_ref().map(Output::to_vec), before);
    let held_later = held();
    let mut grown = held_at_first.iter().zip(&held_later);
    assert!(
        grown.all(|(first, later)| first < later),
        "{held_at_first:?}, {held_later:?}"
    );
    let draws = ask(&mut rig, "SRANDMEMBER set -60000");
    let drawn = draws.to_vec();
    for key in ["list", "set", "hash", "sorted"] {
        rig.run(&[b"DEL", key.as_bytes()]);
    }
    assert_eq!(outs.each_ref().map(Output::to_vec), before);
    assert!(draws.to_vec() == drawn);
}
