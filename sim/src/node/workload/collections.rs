//! What clients ask of collections. Members come from a few, so that commands
//! meet; values are unique.

use super::{Unique, claret};
use crate::engine::random::Random;
use crate::history::{Kind, Unit};
use crate::model::act::{Act, End};
use crate::model::claret::{Part, Special};
use crate::model::pops::{How, Pop};
use crate::model::value::Name;
use crate::model::{Op, Step};

/// Elements of a large command: together, where they are long, more than what a
/// snapshot writes of a collection at first.
const MANY: u64 = 20;

/// Reads all that is at a key.
pub fn read(kind: Kind, key: usize) -> Step {
    let special = |special| Act::Special(key, special);
    Step::Act(match kind {
        Kind::Hash => Act::HGetAll(key),
        Kind::List => Act::LRange(key),
        Kind::Set => Act::SMembers(key),
        Kind::Sorted => Act::ZRange(key),
        Kind::Ids => special(Special::UidPeek),
        Kind::Ranking => special(Special::RankRange),
        Kind::Bag => special(Special::BagRead(Part::Stats)),
        Kind::Bounded => special(Special::CounterGet),
        _ => return Step::Get(key),
    })
}

/// Reads all that the unit holds.
pub fn look(unit: &Unit) -> Op {
    match unit.keys.len() {
        1 => Op::One(read(unit.kind, 0)),
        count => Op::Transaction {
            steps: (0..count).map(|key| read(unit.kind, key)).collect(),
            guard: None,
        },
    }
}

/// Some commands at once, and what they left.
pub(super) fn transaction(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Op {
    let mut steps: Vec<_> = (0..r.between(1, 3))
        .map(|_| super::step(r, unit, unique))
        .filter(|step| !step.hides_its_choice())
        .collect();
    if r.chance(0.5) || steps.is_empty() {
        steps.extend(look(unit).steps().iter().cloned());
    }
    Op::Transaction { steps, guard: None }
}

/// One command.
pub(super) fn step(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Step {
    let keys = unit.keys.len();
    let key = r.index(keys);
    if keys > 1 && r.chance(0.25) {
        let other = (key + r.index(keys)) % keys;
        return over_keys(r, unit.kind, (key, other), unique.long);
    }
    match r.below(40) {
        0 => return Step::Del(vec![key]),
        1 => return Step::Expire(key, r.skewed(5, 5_000)),
        2 => return Step::Persist(key),
        3 if r.chance(0.5) => return Step::Exists(key),
        3 => return Step::Act(Act::Type(key)),
        4 if r.chance(0.3) => return super::set(r, unique, key),
        _ => {}
    }
    on(r, unit.kind, key, unique)
}

/// One command on one key.
pub(super) fn on(r: &mut Random, kind: Kind, key: usize, unique: &mut Unique) -> Step {
    Step::Act(match kind {
        Kind::Hash => hash(r, key, unique),
        Kind::List => list(r, key, unique),
        Kind::Set => set(r, key, unique.long),
        Kind::Sorted => sorted(r, key, unique.long),
        kind => return claret::step(r, kind, key, unique.long),
    })
}

fn over_keys(r: &mut Random, kind: Kind, (from, to): (usize, usize), long: u64) -> Step {
    match r.below(8) {
        // Renaming a key to itself is a matter of its own.
        0 | 1 if from != to => return Step::Rename(from, to),
        2 | 3 if from != to => return Step::Copy(from, to, r.chance(0.7)),
        _ => {}
    }
    Step::Act(match kind {
        Kind::List | Kind::Sorted if r.chance(0.3) => Act::Pop(wait(r, kind, vec![from, to])),
        Kind::List => Act::LMove(from, to, end(r), end(r)),
        Kind::Set if r.chance(0.6) => Act::SMove(from, to, member(r, long)),
        Kind::Set => Act::SUnionStore(to),
        Kind::Sorted => Act::ZUnionStore(to),
        kind => return read(kind, from),
    })
}

/// Waits for elements, not for long.
fn wait(r: &mut Random, kind: Kind, keys: Vec<usize>) -> Pop {
    let most = r.between(1, 3);
    let how = match (kind, r.chance(0.5)) {
        (Kind::List, true) => How::One(end(r)),
        (Kind::List, false) => How::Some(end(r), most),
        (_, true) => How::Ranked(r.chance(0.5)),
        (_, false) => How::RankedSome(r.chance(0.5), most),
    };
    let ms = r.skewed(1, 500);
    Pop { how, keys, ms }
}

fn end(r: &mut Random) -> End {
    *r.pick(&[End::Left, End::Right])
}

pub(super) fn member(r: &mut Random, long: u64) -> Name {
    match r.below(8) {
        0 => format!("b{}:{long}", r.below(MANY)).into_bytes(),
        1 => format!("c{}:{}", r.below(4), r.skewed(10, 200)).into_bytes(),
        _ => format!("m{}", r.below(12)).into_bytes(),
    }
}

/// Now and then so many, and so long, that a snapshot writes them in parts.
pub(super) fn members(r: &mut Random, long: u64) -> Vec<Name> {
    if r.chance(0.06) {
        let long = |n| format!("b{n}:{long}").into_bytes();
        return (0..MANY).map(long).collect();
    }
    (0..r.skewed(1, 8)).map(|_| member(r, long)).collect()
}

impl Unique {
    fn element(&mut self, r: &mut Random) -> Name {
        let number = self.take();
        match r.below(10) {
            0 => format!("v{number}:{}", r.skewed(20, 200)).into_bytes(),
            _ => format!("v{number}").into_bytes(),
        }
    }

    fn long_element(&mut self) -> Name {
        format!("v{}:{}", self.take(), self.long).into_bytes()
    }
}

fn hash(r: &mut Random, key: usize, unique: &mut Unique) -> Act {
    match r.below(16) {
        0..4 => Act::HGetAll(key),
        4..8 => {
            let fields = members(r, unique.long).into_iter();
            Act::HSet(key, fields.map(|f| (f, unique.element(r))).collect())
        }
        8..11 => Act::HDel(key, members(r, unique.long)),
        11 if r.chance(0.2) => Act::HIncrBy(key, member(r, unique.long), 1),
        _ => {
            let field = format!("n{}", r.below(3)).into_bytes();
            Act::HIncrBy(key, field, r.between(1, 9) as i64)
        }
    }
}

fn list(r: &mut Random, key: usize, unique: &mut Unique) -> Act {
    match r.below(16) {
        0..4 => Act::LRange(key),
        4..8 => {
            let count = r.skewed(1, 6);
            let values = match r.chance(0.08) {
                true => (0..MANY).map(|_| unique.long_element()).collect(),
                false => (0..count).map(|_| unique.element(r)).collect(),
            };
            Act::Push(key, end(r), values)
        }
        8..12 => Act::Take(key, end(r)),
        12 => Act::Pop(wait(r, Kind::List, vec![key])),
        _ => Act::LSet(key, r.below(8) as i64 - 4, unique.element(r)),
    }
}

fn set(r: &mut Random, key: usize, long: u64) -> Act {
    match r.below(16) {
        0..4 => Act::SMembers(key),
        4..9 => Act::SAdd(key, members(r, long)),
        9..14 => Act::SRem(key, members(r, long)),
        _ => Act::SPop(key, None),
    }
}

fn sorted(r: &mut Random, key: usize, long: u64) -> Act {
    match r.below(16) {
        0..4 => Act::ZRange(key),
        4..8 => {
            let score = |r: &mut Random| r.below(40) as i64 - 20;
            Act::ZAdd(
                key,
                members(r, long)
                    .into_iter()
                    .map(|m| (score(r), m))
                    .collect(),
            )
        }
        8..11 => Act::ZIncrBy(key, r.below(20) as i64 - 10, member(r, long)),
        11..14 => Act::ZRem(key, members(r, long)),
        14 => Act::Pop(wait(r, Kind::Sorted, vec![key])),
        _ => Act::ZPopMin(key),
    }
}
