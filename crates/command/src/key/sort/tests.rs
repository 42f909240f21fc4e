//! What SORT replies and stores, and which other keys it says that it reads.

use crate::testing::Rig;
use rufous_base::Args;
use rufous_datatype::object::Registered;
use rufous_datatype::sorted_set::{Builder, SortedSet};
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::{Entry, OwnedValue};

#[test]
fn numbers_end_at_a_zero_byte() {
    let mut rig = Rig::new();
    for bytes in [&b"2\0x"[..], b"\0\xff", b"1", b""] {
        rig.run(&[b"RPUSH", b"k", bytes]);
    }
    let sorted = b"*4\r\n$0\r\n\r\n$2\r\n\0\xff\r\n$1\r\n1\r\n$3\r\n2\0x\r\n";
    assert_eq!(rig.run(&[b"SORT", b"k"]), sorted);
}

#[test]
fn as_it_is_or_elements_again() {
    let mut rig = Rig::new();
    rig.check("RPUSH k 2 1", ":2");
    rig.check("SORT k BY nosort", "*2 '2' '1'");
    rig.check("SORT k BY nosort DESC LIMIT 0 1", "*1 '1'");
    rig.check("SORT k GET # GET x", "*4 '1' $-1 '2' $-1");
    let mut scores = Builder::new(rig.shard.tuning());
    scores.set(b"a", 2.0);
    scores.set(b"b", 1.0);
    let entry = Entry {
        value: OwnedValue::Object(SortedSet::wrap(scores.finish(rig.shard.tuning()))),
        expire_at: None,
        access: 0,
    };
    let key = rig.shard.key(b"z");
    rig.shard.insert_entry(0, key, entry, rig.now);
    rig.check("SORT z BY nosort", "*2 'b' 'a'");
    rig.check("SORT z BY nosort DESC LIMIT 0 1", "*1 'a'");
    rig.check("SORT z ALPHA", "*2 'a' 'b'");
}

/// A list, its weights out of order, objects and hashes.
fn with_weights() -> Rig {
    let mut rig = Rig::new();
    rig.check("RPUSH k 1 2 3 4", ":4");
    rig.check("MSET w_1 30 w_2 -1 w_3 2e1 o_1 one o_3 three", "+OK");
    rig.check("HSET h_1 w 1 name eins", ":2");
    rig.check("HSET h_2 w 9", ":1");
    rig.check("HSET h_4 w 5 name vier", ":2");
    rig
}

fn bulks(values: &[&str]) -> String {
    let bulk = |value: &&str| match *value {
        "-" => "$-1\r\n".to_owned(),
        value => format!("${}\r\n{value}\r\n", value.len()),
    };
    let values: String = values.iter().map(bulk).collect();
    format!("*{}\r\n{values}", values.matches('$').count())
}

#[test]
fn by_the_values_of_other_keys() {
    let mut rig = with_weights();
    // A missing weight is 0.
    rig.check("SORT k BY w_*", &bulks(&["2", "4", "3", "1"]));
    rig.check("SORT_RO k BY w_* DESC", &bulks(&["1", "3", "4", "2"]));
    rig.check("SORT k BY w_* LIMIT 1 2", &bulks(&["4", "3"]));
    // By bytes, a missing one is before all others.
    rig.check("SORT k BY w_* ALPHA", &bulks(&["4", "2", "3", "1"]));
    rig.check("SORT k BY w_* ALPHA DESC", &bulks(&["1", "3", "2", "4"]));
    rig.check("SORT k BY h_*->w", &bulks(&["3", "1", "4", "2"]));
    rig.check("SORT k BY h_*->none", &bulks(&["1", "2", "3", "4"]));
    rig.check("SORT k BY none_* DESC", &bulks(&["4", "3", "2", "1"]));
    // Of two patterns the last counts; of one that names no key it is enough.
    rig.check("SORT k BY h_*->w BY w_*", &bulks(&["2", "4", "3", "1"]));
    rig.check("SORT k BY none BY w_*", &bulks(&["1", "2", "3", "4"]));
    rig.check("SET w_4 x", "+OK");
    let error = "-ERR One or more scores can't be converted into double\r\n";
    rig.check("SORT k BY w_*", error);
    rig.check("SORT k BY w_* STORE d", error);
    rig.check("SORT k BY w_* ALPHA", &bulks(&["2", "3", "1", "4"]));
    rig.check("SORT none BY w_*", "*0");
}

#[test]
fn values_of_other_keys() {
    let mut rig = with_weights();
    rig.check(
        "SORT k GET # GET o_* DESC",
        &bulks(&["4", "-", "3", "three", "2", "-", "1", "one"]),
    );
    rig.check(
        "SORT k BY w_* GET h_*->name GET w_*",
        &bulks(&["-", "-1", "vier", "-", "-", "2e1", "eins", "30"]),
    );
    // A hash has no value, a string no fields.
    rig.check("SORT k GET h_* LIMIT 0 1", &bulks(&["-"]));
    rig.check("SORT k GET o_*->name LIMIT 0 1", &bulks(&["-"]));
    rig.check(
        "SORT k BY nosort GET o_*",
        &bulks(&["one", "-", "three", "-"]),
    );
    rig.check("HSET h_1-> a 1", ":1");
    rig.check("SET o_1-> arrow", "+OK");
    rig.check("SORT k GET o_*-> LIMIT 0 1", &bulks(&["arrow"]));
    // What is gone is missing.
    rig.check("PEXPIRE o_1 10", ":1");
    rig.advance_ms(10);
    rig.check("SORT k GET o_* LIMIT 0 1", &bulks(&["-"]));
}

#[test]
fn values_of_other_keys_are_stored() {
    let mut rig = with_weights();
    rig.check("SORT k BY w_* GET o_* STORE d", ":4");
    rig.check("LRANGE d 0 -1", &bulks(&["", "", "three", "one"]));
    // The destination may be one of them.
    rig.check("SORT k BY nosort GET o_* STORE o_3", ":4");
    rig.check("LRANGE o_3 0 -1", &bulks(&["one", "", "three", ""]));
    rig.check("SADD s 2 1", ":2");
    rig.check("SORT s BY nosort GET w_* STORE d", ":2");
    rig.check("LRANGE d 0 -1", &bulks(&["30", "-1"]));
}

#[test]
fn tells_which_other_keys_it_reads() {
    let mut rig = with_weights();
    let mut others = |line: &str| -> Vec<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for word in &words {
            spans.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&bytes, &spans, &mut []);
        let all = super::others(&mut rig.shard, 0, &args, rig.now, true);
        let name = |key: &KeyName| String::from_utf8_lossy(&key.1).into_owned();
        all.iter().map(name).collect()
    };
    assert_eq!(
        others("SORT k BY w_* LIMIT 0 1"),
        ["w_1", "w_2", "w_3", "w_4"]
    );
    assert_eq!(others("SORT k BY nosort GET a*b GET # LIMIT 1 1"), ["a2b"]);
    assert_eq!(others("SORT k GET h_*->w DESC LIMIT 0 2"), ["h_3", "h_4"]);
    assert_eq!(others("SORT k BY none BY w_*").len(), 0);
    assert_eq!(others("SORT k STORE a*").len(), 0);
    assert_eq!(others("SORT o_1 BY w_*").len(), 0);
    assert_eq!(others("SORT none BY w_*").len(), 0);
}

/// It is ordered no further than the limit needs.
#[test]
fn a_limit_gives_a_part_of_what_all_would_be() {
    let mut rig = Rig::new();
    let mut rng = rufous_base::rng::Rng::new(5);
    for _ in 0..300 {
        let element = rng.below(90).to_string();
        let weight = rng.below(40).to_string();
        rig.run(&[b"RPUSH", b"k", element.as_bytes()]);
        rig.run(&[b"SET", format!("w_{element}").as_bytes(), weight.as_bytes()]);
    }
    let elements = |reply: Vec<u8>| {
        let text = String::from_utf8(reply).expect("text");
        let lines = text.split("\r\n").skip(2).step_by(2);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for by in [
        "",
        " DESC",
        " ALPHA",
        " ALPHA DESC",
        " BY w_*",
        " BY w_* DESC",
        " BY w_* ALPHA",
    ] {
        let mut ask = |limit: &str| {
            let request = format!("SORT k{by}{limit}");
            let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            elements(rig.run(&words))
        };
        let all = ask("");
        assert_eq!(all.len(), 300);
        for (from, count) in [
            (0, 0),
            (0, 1),
            (0, 10),
            (17, 30),
            (295, 5),
            (295, 50),
            (400, 1),
        ] {
            let some = ask(&format!(" LIMIT {from} {count}"));
            let expected = &all[from.min(300)..(from + count).min(300)];
            assert_eq!(some, expected, "{by}, {from}, {count}");
        }
    }
}

/// Keys are read at one instant, so their number is bounded, whatever the limit.
#[test]
fn more_keys_than_the_bound_are_refused_and_none_is_read() {
    const MOST: usize = 262_144;
    let mut rig = Rig::new();
    let names: Vec<String> = (0..=MOST).map(|n| n.to_string()).collect();
    let list = names[1..].iter().map(String::as_bytes);
    let words: Vec<&[u8]> = [&b"RPUSH"[..], b"k"].into_iter().chain(list).collect();
    rig.run(&words);
    rig.check("SORT k BY w_* LIMIT 0 1", "*1 '1'");
    rig.check("RPUSH k 0", &format!(":{}", MOST + 1));
    let refused = String::from_utf8(rig.run(&[b"SORT", b"k", b"BY", b"w_*", b"LIMIT", b"0", b"1"]));
    let refused = refused.expect("text");
    assert!(
        refused.starts_with("-ERR BY and GET would read more than 262144 keys at once"),
        "{refused}"
    );
    rig.check("SORT k LIMIT 0 1", "*1 '0'");
    rig.check("SORT k BY nosort LIMIT 0 1", "*1 '1'");
}

crate::testing::transcripts! {
    by_number_or_bytes_in_either_direction: "
        SORT k => *0
        RPUSH k 10 9 -1.5 1e1 => :4
        SORT k => *4 '-1.5' '9' '10' '1e1'
        SORT_RO k asc => *4 '-1.5' '9' '10' '1e1'
        SORT k DESC LIMIT 0 2 => *2 '1e1' '10'
        SORT k ALPHA LIMIT 1 2 => *2 '10' '1e1'
        SORT k LIMIT 4 2 => *0
        SORT k LIMIT -5 1 => *1 '-1.5'
        SORT k LIMIT 3 -1 => *1 '1e1'
        RPUSH k x => :5
        SORT k => -ERR One or more scores can't be converted into double
    "

    stores_a_list_in_place_of_anything: "
        SADD s 3 1 2 => :3
        SET d old PX 10 => +OK
        SORT s STORE d => :3
        LRANGE d 0 -1 => *3 '1' '2' '3'
        PTTL d => :-1
        SORT s GET # GET x STORE s => :6
        LRANGE s 0 1 => *2 '1' ''
        SORT none STORE d => :0
        EXISTS d => :0
    "

    refusals: "
        SET v 1 => +OK
        SORT v => -WRONGTYPE Operation against a key holding the wrong kind of value
        SORT k LIMIT 1 => -ERR syntax error
        SORT k STORE => -ERR syntax error
        SORT k UP => -ERR syntax error
        SORT_RO k STORE d => -ERR syntax error
        SORT k LIMIT x 1 => -ERR value is not an integer or out of range
    "
}
