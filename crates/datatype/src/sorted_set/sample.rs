//! States and operations of few members and scores, so that they meet.

use super::order::{Cut, Zone};
use super::score::rank_of;
use super::step::Step;
use super::{Only, Op, State};
use crate::algebra::Tuning;
use rufous_base::rng::Rng;

const MEMBERS: [&[u8]; 6] = [b"", b"a", b"b", b"ba", b"cd\0\xff", b"elephant"];
const SCORES: [f64; 10] = [
    f64::NEG_INFINITY,
    -1.5,
    -0.0,
    0.0,
    1.0,
    2.0,
    3.0,
    0.1,
    9_007_199_254_740_993.0,
    f64::INFINITY,
];
const STEPS: [f64; 7] = [1.0, -1.0, 2.0, 0.0, 0.1, f64::INFINITY, f64::NEG_INFINITY];

fn one<T: Copy>(of: &[T], rng: &mut Rng) -> T {
    of[rng.below(of.len() as u64) as usize]
}

pub(super) fn state(rng: &mut Rng) -> State {
    let mut state = State::default();
    for _ in 0..rng.below(7) {
        let step = Step::Add {
            score: one(&SCORES, rng),
            only: Only::default(),
        };
        state.step(one(&MEMBERS, rng), step, &Tuning::default());
    }
    state
}

fn only(rng: &mut Rng) -> Only {
    const USUAL: [u8; 8] = [
        0,
        0,
        Only::NEW,
        Only::KNOWN,
        Only::GREATER,
        Only::LESS,
        Only::KNOWN | Only::GREATER,
        Only::KNOWN | Only::LESS,
    ];
    let bits = match rng.below(8) {
        0 => rng.below(16) as u8,
        _ => one(&USUAL, rng),
    };
    Only::from_bits(bits).unwrap_or_default()
}

fn cut(rng: &mut Rng) -> Cut<'static> {
    let rank = rank_of(one(&SCORES, rng));
    let member = one(&MEMBERS, rng);
    match rng.below(6) {
        0 => Cut::START,
        1 => Cut::END,
        2 => Cut::Before(rank, member),
        3 => Cut::Behind(rank, member),
        n => Cut::Rank(rank + (n - 4)),
    }
}

fn zone(rng: &mut Rng) -> Zone<'static> {
    let (low, high) = (cut(rng), cut(rng));
    let zone = Zone { low, high };
    // Zones the wrong way round are of less interest.
    match zone.is_void() && rng.below(4) > 0 {
        true => Zone {
            low: high,
            high: low,
        },
        false => zone,
    }
}

pub(super) fn op(rng: &mut Rng) -> Op<'static> {
    let member = one(&MEMBERS, rng);
    match rng.below(16) {
        0..=3 => Op::Add {
            member,
            score: one(&SCORES, rng),
            only: only(rng),
        },
        4..=5 => Op::Increment {
            member,
            by: one(&STEPS, rng),
            only: match rng.below(2) {
                0 => Only::default(),
                _ => only(rng),
            },
        },
        6..=7 => Op::Remove { member },
        8 => Op::RemoveRange { zone: zone(rng) },
        9 => Op::Score { member },
        10 => Op::Rank {
            member,
            from_top: rng.below(2) == 0,
        },
        11 => Op::Length,
        12 => Op::Count { zone: zone(rng) },
        13 => Op::Range { zone: zone(rng) },
        14 => Op::Slice {
            start: rng.below(9) as i64 - 4,
            stop: rng.below(9) as i64 - 4,
        },
        _ => Op::Lex {
            low: member,
            high: (rng.below(3) > 0).then(|| one(&MEMBERS, rng)),
        },
    }
}
