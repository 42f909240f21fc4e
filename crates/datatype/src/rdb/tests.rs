//! Payloads of redis-server 7.0.15 and of older forms, hostile ones, and round trips.

use super::*;
use proptest::prelude::*;

/// See its first lines for the format.
const PAYLOADS: &str = include_str!("payloads.txt");
const LIMIT: usize = 1 << 20;

fn unhex(text: &str) -> Vec<u8> {
    let text = if text == "-" { "" } else { text };
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

struct Fixture {
    name: &'static str,
    payload: Vec<u8>,
    value: RdbValue,
}

fn fixtures() -> Vec<Fixture> {
    let lines = PAYLOADS.lines().filter(|line| !line.starts_with('#'));
    lines.map(fixture).collect()
}

fn fixture(line: &'static str) -> Fixture {
    let (head, tail) = line.split_once(" : ").unwrap();
    let head: Vec<_> = head.split(' ').collect();
    let (mut items, mut scores) = (Items::default(), Vec::new());
    for word in tail.split(' ') {
        let (item, score) = word.split_once('=').unwrap_or((word, "0"));
        items.push(&unhex(item));
        scores.push(score.parse().unwrap());
    }
    let value = match head[1] {
        "string" => RdbValue::String(items.get(0).unwrap().to_vec()),
        "list" => RdbValue::List(items),
        "set" => RdbValue::Set(items),
        "hash" => RdbValue::Hash(items),
        "zset" => RdbValue::SortedSet(items, scores),
        kind => panic!("{kind}"),
    };
    Fixture {
        name: head[0],
        payload: unhex(head[2]),
        value,
    }
}

/// The same with its elements in order, unless it is a list.
fn sorted(value: &RdbValue) -> RdbValue {
    match value {
        RdbValue::Set(items) => {
            let mut all: Vec<_> = items.iter().collect();
            all.sort_unstable();
            RdbValue::Set(all.into_iter().collect())
        }
        RdbValue::Hash(items) => {
            let mut all: Vec<_> = items.pairs().collect();
            all.sort_unstable();
            RdbValue::Hash(all.into_iter().flat_map(|(f, v)| [f, v]).collect())
        }
        RdbValue::SortedSet(items, scores) => {
            let mut all: Vec<_> = items.iter().zip(scores).collect();
            all.sort_by_key(|(member, _)| *member);
            let scores = all.iter().map(|(_, score)| **score).collect();
            RdbValue::SortedSet(all.into_iter().map(|(member, _)| member).collect(), scores)
        }
        other => other.clone(),
    }
}

fn with_footer(body: &[u8]) -> Vec<u8> {
    seal(body.to_vec())
}

#[test]
fn every_form_is_read() {
    let fixtures = fixtures();
    assert_eq!(fixtures.len(), 30);
    for Fixture {
        name,
        payload,
        value,
    } in fixtures
    {
        assert_eq!(
            read(&payload, LIMIT).as_ref().map(sorted),
            Ok(value),
            "{name}"
        );
    }
}

#[test]
fn what_is_written_is_read_again() {
    for Fixture { name, value, .. } in fixtures() {
        assert_eq!(read(&write(&value), LIMIT), Ok(value), "{name}");
    }
}

#[test]
fn small_values_are_written_as_redis_does() {
    let plain = ["string-text", "string-int8", "string-int16", "string-int32"];
    for Fixture {
        name,
        payload,
        value,
    } in fixtures()
    {
        if plain.contains(&name) {
            assert_eq!(write(&value), payload, "{name}");
        }
    }
}

#[test]
fn every_changed_bit_of_the_footer_counts() {
    let payload = DumpWriter::string(b"value");
    for at in 0..payload.len() {
        let mut changed = payload.clone();
        changed[at] ^= 1;
        assert_eq!(read(&changed, LIMIT), Err(RdbError::Footer));
    }
    for len in 0..payload.len() {
        assert_eq!(read(&payload[..len], LIMIT), Err(RdbError::Footer));
    }
    let mut later = b"\0\x01a".to_vec();
    later.extend_from_slice(&(MAX_VERSION + 1).to_le_bytes());
    let sum = checksum::checksum(&later);
    later.extend_from_slice(&sum.to_le_bytes());
    assert_eq!(read(&later, LIMIT), Err(RdbError::Footer));
}

/// Cutting a value short anywhere, or adding to it, never leaves a valid one.
#[test]
fn values_end_where_they_should() {
    for Fixture { name, payload, .. } in fixtures() {
        let body = &payload[..payload.len() - FOOTER_LEN];
        for len in 0..body.len() {
            let cut = with_footer(&body[..len]);
            assert_eq!(read(&cut, LIMIT), Err(RdbError::Malformed), "{name} {len}");
        }
        let longer = with_footer(&[body, b"\0"].concat());
        assert_eq!(read(&longer, LIMIT), Err(RdbError::Malformed), "{name}");
    }
}

#[test]
fn counts_beyond_the_data_are_refused() {
    let malformed = |body: &[u8]| {
        assert_eq!(
            read(&with_footer(body), usize::MAX),
            Err(RdbError::Malformed),
            "{body:?}"
        );
    };
    for kind in [1, 2, 3, 4, 5, 14, 18] {
        malformed(&[kind, 0]);
        malformed(&[kind, 0x80, 0xff, 0xff, 0xff, 0xff, 0]);
        malformed(&[&[kind, 0x81][..], &[0xff; 8], b"\0"].concat());
    }
    malformed(&[&[0, 0x81][..], &[0xff; 8]].concat());
    malformed(b"\0\xc4\0");
    // Compressed to one byte: nothing becomes this long.
    malformed(&[&[0, 0xc3, 1, 0x81, 0][..], &[0xff; 7], b"a"].concat());
    malformed(b"\0\xc3\x01\x80\xff\xff\xff\xffa");
}

#[test]
fn types_that_are_unknown_are_refused() {
    for kind in [6, 7, 8, 15, 19, 21, 22, 255] {
        let payload = with_footer(&[kind, 1, b'a']);
        assert_eq!(read(&payload, LIMIT), Err(RdbError::Malformed));
    }
}

#[test]
fn duplicates_and_what_is_no_score_are_refused() {
    let malformed = |payload: Vec<u8>| {
        assert_eq!(read(&payload, LIMIT), Err(RdbError::Malformed));
    };
    let items = |all: &[&[u8]]| all.iter().copied().collect::<Items>();
    malformed(write(&RdbValue::Set(items(&[b"a", b"b", b"a"]))));
    malformed(write(&RdbValue::Hash(items(&[b"a", b"1", b"a", b"2"]))));
    let twice = RdbValue::SortedSet(items(&[b"a", b"a"]), vec![1.0, 2.0]);
    malformed(write(&twice));
    let nan = RdbValue::SortedSet(items(&[b"a"]), vec![f64::NAN]);
    malformed(write(&nan));
    malformed(with_footer(b"\x03\x01\x01a\xfd"));
    malformed(with_footer(b"\x03\x01\x01a\x03nan"));
    // Fields may equal values, and values one another.
    let fine = RdbValue::Hash(items(&[b"a", b"b", b"b", b"b"]));
    assert_eq!(read(&write(&fine), LIMIT), Ok(fine));
}

#[test]
fn integers_out_of_order_are_refused() {
    let set = |integers: &[i16]| {
        let mut body = vec![11, 8 + 2 * integers.len() as u8, 2, 0, 0, 0];
        body.extend_from_slice(&(integers.len() as u32).to_le_bytes());
        body.extend(integers.iter().flat_map(|n| n.to_le_bytes()));
        read(&with_footer(&body), LIMIT)
    };
    assert!(set(&[-5, 1, 2]).is_ok());
    assert_eq!(set(&[1, 1]), Err(RdbError::Malformed));
    assert_eq!(set(&[2, 1]), Err(RdbError::Malformed));
    assert_eq!(set(&[]), Err(RdbError::Malformed));
}

#[test]
fn the_limit_holds_for_what_is_decoded() {
    for Fixture {
        name,
        payload,
        value,
    } in fixtures()
    {
        if value == RdbValue::String(Vec::new()) {
            continue;
        }
        assert_eq!(read(&payload, 0), Err(RdbError::TooLarge), "{name}");
    }
    let payload = DumpWriter::string(&[b'a'; 100]);
    assert_eq!(read(&payload, 99), Err(RdbError::TooLarge));
    assert!(read(&payload, 100).is_ok());
}

#[test]
fn lengths_of_every_size() {
    for len in [0, 63, 64, 16_383, 16_384, 70_000] {
        let value = RdbValue::String(vec![b'x'; len]);
        assert_eq!(read(&write(&value), LIMIT), Ok(value));
        let list = RdbValue::List((0..len).map(|_| b"".as_slice()).collect());
        let expected = if len == 0 {
            Err(RdbError::Malformed)
        } else {
            Ok(list.clone())
        };
        assert_eq!(read(&write(&list), LIMIT * 4), expected);
    }
}

fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let item = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        (-40_000i64..40_000).prop_map(|n| n.to_string().into_bytes()),
    ];
    prop::collection::vec(item, 1..40)
}

proptest! {
    #[test]
    fn any_value_survives(mut all in items(), score in any::<f64>()) {
        let collect = |all: &[Vec<u8>]| all.iter().map(Vec::as_slice).collect::<Items>();
        let list = RdbValue::List(collect(&all));
        prop_assert_eq!(read(&write(&list), LIMIT), Ok(list));
        all.sort_unstable();
        all.dedup();
        let set = RdbValue::Set(collect(&all));
        prop_assert_eq!(read(&write(&set), LIMIT), Ok(set));
        let score = if score.is_nan() { -0.0 } else { score };
        let scored = RdbValue::SortedSet(collect(&all), vec![score; all.len()]);
        prop_assert_eq!(read(&write(&scored), LIMIT), Ok(scored));
        let pairs: Vec<_> = all.iter().flat_map(|item| [item.clone(), all[0].clone()]).collect();
        let hash = RdbValue::Hash(collect(&pairs));
        prop_assert_eq!(read(&write(&hash), LIMIT), Ok(hash));
    }

    /// Fixtures with some bytes changed are read or refused, and never beyond the limit.
    #[test]
    fn changed_payloads_are_read_or_refused(
        which in 0..30usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let fixture = &fixtures()[which];
        let mut body = fixture.payload[..fixture.payload.len() - FOOTER_LEN].to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if let Ok(value) = read(&with_footer(&body), LIMIT) {
            // Compared as bytes, since scores may be told apart only so.
            let written = write(&value);
            prop_assert_eq!(write(&read(&written, LIMIT).unwrap()), written);
        }
    }
}
