//! What clients ask of Claret's types.

use super::collections::{member, members};
use crate::engine::random::Random;
use crate::history::Kind;
use crate::model::Step;
use crate::model::act::Act;
use crate::model::claret::{Part, Special};

/// Numbers so far apart that a sum of doubles would lose the smaller ones.
const HUGE: i64 = 1 << 60;

/// One command.
pub(super) fn step(r: &mut Random, kind: Kind, key: usize, long: u64) -> Step {
    let special = match kind {
        Kind::Ids => ids(r),
        Kind::Ranking => ranking(r, long),
        Kind::Bag => bag(r),
        _ => bounded(r),
    };
    Step::Act(Act::Special(key, special))
}

fn ids(r: &mut Random) -> Special {
    match r.below(8) {
        0..2 => Special::UidPeek,
        2 => Special::UidNext(Some(r.skewed(1, 50)), None),
        _ => Special::UidNext(None, None),
    }
}

fn ranking(r: &mut Random, long: u64) -> Special {
    match r.below(16) {
        0..3 => Special::RankRange,
        3 => Special::RankMax,
        4 => Special::RankScore(member(r, long)),
        5 => Special::RankPosition(member(r, long)),
        6 => Special::RankLen,
        _ => {
            let k = match r.chance(0.1) {
                true => r.between(1, 6),
                false => r.between(6, 40),
            };
            let score = |r: &mut Random| r.below(40) as i64 - 20;
            let all = members(r, long).into_iter();
            Special::RankAdd(k as u32, all.map(|m| (score(r), m)).collect())
        }
    }
}

fn bag(r: &mut Random) -> Special {
    if r.chance(0.4) {
        return Special::BagRead(match r.chance(0.5) {
            true => Part::Stats,
            false => r.pick(&Part::ALL).0,
        });
    }
    let number = |r: &mut Random| match r.below(20) {
        0 => HUGE,
        1 => -HUGE,
        _ => r.below(2_000) as i64 - 1_000,
    };
    Special::BagAdd((0..r.skewed(1, 5)).map(|_| number(r)).collect())
}

fn bounded(r: &mut Random) -> Special {
    let by = |r: &mut Random| r.below(9) as i64 - 4;
    match r.below(16) {
        0..3 => {
            let bound = |r: &mut Random, low: i64| r.chance(0.5).then(|| low + r.below(10) as i64);
            // Now and then out of its bounds, which is refused.
            let value = r.below(16) as i64 - 2;
            Special::CounterSet(value, bound(r, -8), bound(r, 8))
        }
        3 => Special::CounterBounds,
        4..7 => Special::CounterGet,
        7..11 => Special::CounterIncr(by(r)),
        _ => Special::CounterAdd(by(r)),
    }
}
