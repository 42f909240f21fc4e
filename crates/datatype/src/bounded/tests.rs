//! Escrows: what fits together.

use super::*;

fn wanted(op: Op) -> Held<Op> {
    Held { op, wanted: true }
}

/// Two are left: each two of three buyers are independent, the three are not.
#[test]
fn pairs_are_not_enough() {
    let mut stock = Vec::new();
    let counter = Counter {
        value: 2,
        min: 0,
        max: 9,
    };
    counter.write(&mut stock);
    let buy = wanted(Op::Add(-1));
    assert!(Bounded::admits(&[buy], &buy, &stock));
    assert!(!Bounded::admits(&[buy, buy], &buy, &stock));
    // What may be brought back does not help: it may never come.
    let returned = wanted(Op::Add(1));
    assert!(!Bounded::admits(&[buy, buy, returned], &buy, &stock));
    // An operation that is always refused does not conflict with others.
    let far = wanted(Op::Add(-100));
    assert!(Bounded::admits(&[buy, far], &buy, &stock));
    assert!(!Bounded::admits(&[buy], &wanted(Op::Incr(-1)), &stock));
}
