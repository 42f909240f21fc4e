//! Lists and operations that the algebra is tried with.

use super::{Op, Search, Side, State};
use crate::pack::{self, Pack};
use rufous_base::rng::Rng;

pub(super) fn state(rng: &mut Rng) -> State {
    let mut buf = Vec::new();
    for _ in 0..rng.below(9) {
        pack::push(&mut buf, some(rng));
    }
    State::packed(Pack(&buf))
}

pub(super) fn op(rng: &mut Rng) -> Op<'static> {
    let element = some(rng);
    let index = |rng: &mut Rng| rng.below(14) as i64 - 7;
    match rng.below(16) {
        0 | 1 => Op::PushFront { element },
        2 | 3 => Op::PushBack { element },
        4 => Op::PopFront {
            count: 1 + rng.below(3),
        },
        5 => Op::PopBack {
            count: 1 + rng.below(3),
        },
        6 => Op::Set {
            index: index(rng),
            element,
        },
        at @ (7 | 8) => Op::Insert {
            side: [Side::Before, Side::After][at as usize - 7],
            pivot: some(rng),
            element,
        },
        9 => Op::Remove {
            count: rng.below(5) as i64 - 2,
            element,
        },
        10 => Op::Trim {
            start: [0, -1, index(rng)][rng.below(3) as usize],
            stop: [-1, 12, index(rng)][rng.below(3) as usize],
        },
        11 => Op::Index { index: index(rng) },
        12 => Op::Range {
            start: index(rng),
            stop: index(rng),
        },
        13 => Op::Range { start: 0, stop: -1 },
        14 => Op::Length,
        _ => Op::Position(Search {
            element,
            rank: [1, 2, -1, -2][rng.below(4) as usize],
            count: rng.below(3),
            most: rng.below(4),
        }),
    }
}

/// Few, so that operations meet.
fn some(rng: &mut Rng) -> &'static [u8] {
    const ELEMENTS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"", b"longer"];
    ELEMENTS[rng.below(ELEMENTS.len() as u64) as usize]
}
