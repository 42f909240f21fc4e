//! Effects as bytes and back.

use super::*;

fn samples() -> Vec<Effect<'static>> {
    let (db, key) = (3, &b"key"[..]);
    let long = &[7u8; 300][..];
    vec![
        Effect::Set {
            db,
            key,
            value: b"",
            expire_at: None,
        },
        Effect::Set {
            db,
            key: b"",
            value: long,
            expire_at: Some(u64::MAX),
        },
        Effect::SetKeep {
            db,
            key: long,
            value: b"v",
        },
        Effect::Delete { db, key },
        Effect::Append {
            db,
            key,
            tail: b"tail",
        },
        Effect::Write {
            db,
            key,
            at: 1 << 40,
            bytes: b"x",
        },
        Effect::Expire {
            db,
            key,
            at: Some(5),
        },
        Effect::Expire { db, key, at: None },
        Effect::FlushDb { db: 15 },
        Effect::Keyspaces { bytes: b"table" },
        Effect::Horizon { time: 0 },
        Effect::Horizon { time: u64::MAX },
        Effect::Gone {
            db: 3,
            key: b"key",
            tag: Tag::SharedSet,
            cut: Stamp::from_bytes([7; Stamp::SIZE]),
        },
        Effect::SwapDb { a: 0, b: 15 },
        Effect::Node { number: u16::MAX },
        Effect::Reported { time: u64::MAX },
    ]
    .into_iter()
    .chain(samples_of_slots())
    .chain(samples_of_any_type())
    .collect()
}

fn samples_of_slots() -> [Effect<'static>; 3] {
    let whole = SlotMark::Whole {
        seq: u64::MAX,
        since: u64::MAX - 1,
    };
    [
        (0, None),
        (16_383, Some(SlotMark::Part)),
        (300, Some(whole)),
    ]
    .map(|(slot, mark)| Effect::Slot { slot, mark })
}

fn samples_of_any_type() -> Vec<Effect<'static>> {
    let (db, key) = (3, &b"key"[..]);
    let long = &[7u8; 300][..];
    vec![
        Effect::Ended {
            db: 3,
            key: b"key",
            tag: Tag::SharedHash,
            end: Stamp::from_bytes([7; Stamp::SIZE]),
        },
        Effect::Update {
            db,
            key,
            tag: Tag::Uid,
            ops: b"\x05\0\0\0\0\0\0\0",
        },
        Effect::Put {
            db,
            key,
            tag: Tag::Uid,
            chunk: b"",
            expire_at: None,
        },
        Effect::Put {
            db,
            key: long,
            tag: Tag::Uid,
            chunk: long,
            expire_at: Some(7),
        },
        Effect::More {
            db,
            key,
            tag: Tag::Uid,
            chunk: b"x",
        },
        Effect::Move {
            db,
            key,
            to_db: 15,
            to: b"",
        },
        Effect::Copy {
            db,
            key,
            to_db: 0,
            to: long,
        },
    ]
}

#[test]
fn what_is_encoded_decodes_and_no_part_of_it_does() {
    let mut all = Vec::new();
    for effect in samples() {
        let mut bytes = Vec::new();
        effect.encode(&mut bytes);
        let mut rest = &bytes[..];
        assert_eq!(Effect::decode(&mut rest), Ok(effect));
        assert!(rest.is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(Effect::decode(&mut &bytes[..cut]), Err(NotAnEffect));
        }
        all.extend_from_slice(&bytes);
    }
    let mut rest = &all[..];
    for effect in samples() {
        assert_eq!(Effect::decode(&mut rest), Ok(effect));
    }
    assert!(rest.is_empty());
}

#[test]
fn hostile_bytes_are_refused() {
    let cases: [&[u8]; 7] = [
        &[],
        &[0, 0],
        &[FLUSH_DB, 16],
        &[SWAP_DB, 0, 16],
        &[DELETE, 17, 1, b'k'],
        &[
            SET, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1,
        ],
        &[99, 0, 0, 0],
    ];
    for case in cases {
        assert_eq!(Effect::decode(&mut &case[..]), Err(NotAnEffect), "{case:?}");
    }
}

#[test]
fn golden_bytes_of_a_horizon() {
    let mut out = Vec::new();
    Effect::Horizon { time: 300 }.encode(&mut out);
    assert_eq!(out, [0x12, 0, 0xac, 0x02]);
}

#[test]
fn golden_bytes_of_a_node() {
    let mut out = Vec::new();
    Effect::Node { number: 300 }.encode(&mut out);
    assert_eq!(out, [0x15, 0, 0xac, 0x02]);
    assert_eq!(
        Effect::decode(&mut &[0x15, 0, 0x80, 0x80, 0x04][..]),
        Err(NotAnEffect)
    );
}

#[test]
fn golden_bytes_of_a_report() {
    let mut out = Vec::new();
    Effect::Reported { time: 300 }.encode(&mut out);
    assert_eq!(out, [0x20, 0, 0xac, 0x02]);
}

#[test]
fn golden_bytes_of_what_has_gone() {
    let (db, key) = (2, &b"k"[..]);
    let cut = Stamp {
        time: 300,
        replica: 4,
        step: 5,
    };
    let mut out = Vec::new();
    let tag = Tag::SharedSet;
    Effect::Gone { db, key, tag, cut }.encode(&mut out);
    let stamp = [0, 0, 0, 0, 0, 0, 1, 0x2c, 0, 4, 0, 5];
    assert_eq!(out, [&[0x13, 2, 1, b'k', 11][..], &stamp].concat());
    let (mut ended, end) = (Vec::new(), cut);
    Effect::Ended { db, key, tag, end }.encode(&mut ended);
    assert_eq!(ended, [&[0x16, 2, 1, b'k', 11][..], &stamp].concat());
    out.pop();
    assert_eq!(Effect::decode(&mut &out[..]), Err(NotAnEffect));
}

/// An entry of the book of slot 7.
const ENTRY: &[u8] = b"{\0\0}0123456789abcdefgh";

fn effects_on_an_entry() -> [Effect<'static>; 3] {
    let (db, key) = (16, ENTRY);
    [
        Effect::Set {
            db,
            key,
            value: b"v",
            expire_at: None,
        },
        Effect::Delete { db, key },
        Effect::Append {
            db,
            key,
            tail: b"more",
        },
    ]
}

#[test]
fn golden_bytes_of_entries_of_books() {
    let (key, golden) = (ENTRY, [&[1, 16, 22, 1][..], &[4, 16, 22], &[5, 16, 22, 4]]);
    let values = [&b"v"[..], b"", b"more"];
    for ((effect, golden), value) in effects_on_an_entry().into_iter().zip(golden).zip(values) {
        let (mut out, expected) = (Vec::new(), [golden, key, value].concat());
        effect.encode(&mut out);
        assert_eq!(out, expected);
        let mut rest = &out[..];
        assert_eq!(Effect::decode(&mut rest), Ok(effect));
        assert!(rest.is_empty());
        for cut in 0..out.len() {
            assert_eq!(Effect::decode(&mut &out[..cut]), Err(NotAnEffect));
        }
    }
}

/// An entry never expires, has no type, is not moved and not flushed; and no client's key is in that database.
#[test]
fn books_have_nothing_but_entries() {
    let of_entries = |bytes: &[u8]| matches!(bytes[0], SET | DELETE | APPEND);
    let mut tried = 0;
    for effect in samples() {
        let mut bytes = Vec::new();
        effect.encode(&mut bytes);
        let mut other_name = bytes.clone();
        other_name[1] = 16;
        assert_eq!(
            Effect::decode(&mut &other_name[..]),
            Err(NotAnEffect),
            "{effect:?}"
        );
        // The same effect on an entry.
        let Some((db, key)) = effect.keys().next() else {
            continue;
        };
        if db != 3 || key != b"key" {
            continue;
        }
        let at = bytes.windows(3).rposition(|part| part == key);
        let at = at.expect("the key is in it");
        let mut of_entry = [&bytes[..at], ENTRY, &bytes[at + key.len()..]].concat();
        (of_entry[1], of_entry[2]) = (16, ENTRY.len() as u8);
        tried += 1;
        let is_one = Effect::decode(&mut &of_entry[..]).is_ok();
        assert_eq!(is_one, of_entries(&of_entry), "{effect:?}");
    }
    assert!(tried > 8, "{tried}");
    // Nor does a key get there from another database.
    for kind in [MOVE, COPY] {
        let moved = [&[kind, 0, 1, 22, b'k'][..], ENTRY, &[16]].concat();
        assert_eq!(Effect::decode(&mut &moved[..]), Err(NotAnEffect));
    }
}
