//! Messages in one: what is joined, what is read, and what is refused.

use crate::common::{envelope, joined};
use rufous_chain::{Item, Message};
use rufous_wire::Body;
use rufous_wire::message::*;

fn write(slot: u16, effects: &[&[u8]]) -> Part {
    let item = |(seq, effect): (u64, &&[u8])| Item {
        seq,
        effect: (**effect).into(),
    };
    Part::Chain(Message::Items {
        slot,
        since: 3,
        all: 2,
        items: (5..).zip(effects).map(item).collect(),
    })
}

fn ack(slot: u16) -> Part {
    let (since, seq) = (3, 1 << 50);
    Part::Chain(Message::Ack { slot, since, seq })
}

/// Adds parts to one message after another, and expects them back.
fn count_of_messages(
    parts: &[Part],
    common: impl Fn(&[u8]) -> Option<std::ops::Range<usize>>,
) -> usize {
    let (mut all, mut joining) = (Vec::new(), Joining::default());
    for part in parts {
        let range = part.only_effect().and_then(&common);
        if !joining.add(part, range.clone()) {
            all.push(std::mem::take(&mut joining).finish());
            assert!(joining.add(part, range));
        }
    }
    all.push(joining.finish());
    let mut read = Vec::new();
    for joined in &all {
        read.extend(joined.each());
        assert_eq!(envelope(Body::Joined(joined.clone())).check(), Ok(()));
    }
    assert_eq!(read, parts);
    all.len()
}

#[test]
fn parts_come_as_they_were_added() {
    let all: Vec<Part> = joined().each().collect();
    assert_eq!(all.len(), 5);
    let slots: Vec<_> = joined().slots().collect();
    assert_eq!(slots, [Some(16_383), Some(0), Some(16_383), Some(4), None]);
    let bodies = Body::Joined(joined()).parts().expect("it has parts");
    for body in &bodies {
        assert_eq!(envelope(body.clone()).check(), Ok(()));
        assert_eq!(body.parts(), None);
    }
    assert_eq!(bodies, all.into_iter().map(Body::from).collect::<Vec<_>>());
}

#[test]
fn a_message_is_bounded() {
    let acks: Vec<Part> = (0..MAX_PARTS as u16 + 1).map(ack).collect();
    assert_eq!(count_of_messages(&acks, |_| None), 2);
    let small: Vec<Part> = (0..100).map(|slot| write(slot, &[&[1; 10_000]])).collect();
    assert_eq!(count_of_messages(&small, |_| None), 4, "26 in each");
    // Of what is alike, the effects are bounded.
    let large: Vec<Part> = (0..8)
        .map(|slot| write(slot, &[&vec![1; 5 << 20]]))
        .collect();
    assert_eq!(
        count_of_messages(&large, |all| Some(9..all.len())),
        3,
        "three in each"
    );
    let others: Vec<Part> = (0..9)
        .map(|n| write(n, &[&[n as u8 / 3; 100_000]]))
        .collect();
    assert_eq!(count_of_messages(&others, |all| Some(0..all.len())), 2);
}

#[test]
fn what_is_large_or_of_another_kind_is_not_joined() {
    let mut joining = Joining::default();
    assert!(!joining.add(&write(1, &[&[1; 20_000]]), None));
    assert!(!joining.add(&write(1, &[&vec![1; 17 << 20]]), Some(0..17 << 20)));
    let (slot, since, seq) = (1, 2, 3);
    let items = Vec::new();
    let others = [
        Message::State {
            slot,
            since,
            seq,
            items,
        },
        Message::Behind { slot, since },
        Message::Ask { asked_us: 1 },
    ];
    for message in others {
        assert!(!joining.add(&Part::Chain(message), None));
    }
    assert!(joining.is_empty());
}

#[test]
fn what_no_node_joins_is_refused() {
    let check = |expected, parts: &[u8]| {
        let parts = parts.to_vec().into();
        let check = envelope(Body::Joined(Joined { parts })).check();
        assert_eq!(check, Err(expected));
    };
    let slot = |head: &[u8], rest: &[u8]| [head, &[0x80, 0x80, 1], rest].concat();
    check("no parts, or too many", &[]);
    check("no parts, or too many", &[0, 1, 1, 1].repeat(MAX_PARTS + 1));
    check("a part of an unknown kind", &[5, 1, 1, 1]);
    check("there is no such slot", &slot(&[0], &[1, 1]));
    check("there is no such slot", &slot(&[1], &[1, 1, 0]));
    check("there is no such slot", &slot(&[2], &[1, 1, 1, 0, 0, 0]));
    check("there is no such slot", &[4, 0x81, 0x80, 1, 1, 1, 1, 1, 7]);
    check("an epoch without a slot", &[4, 0, 1, 1, 1, 1, 7]);
    check("a message without a slot", &[4, 0, 0, 0, 0, 1, 7]);
    check("a message of nothing", &[4, 1, 1, 1, 1, 0]);
    check("a write like none before it", &[3, 1, 1, 1, 1, 0, 0]);
    check(
        "writes of a slot that are not in order",
        &[1, 1, 1, 1, 2, 4, 0, 4, 0],
    );
    let many = [
        &[
            1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
        ][..],
        &[4, 0],
    ];
    check("a part that is cut", &many.concat());
    let base = [&[2, 1, 1, 1, 1, 0, 0x80, 0x80, 0x40, 0][..], &[7; 1 << 20]].concat();
    let like = [3, 1, 1, 1, 1, 0, 0].repeat(16);
    check("too many writes at once", &[base, like].concat());
    let whole = joined().parts;
    let cut = (1..whole.len()).filter(|len| {
        let parts = whole.slice(..*len);
        envelope(Body::Joined(Joined { parts })).check().is_ok()
    });
    assert_eq!(cut.count(), 4, "between parts alone");
}
