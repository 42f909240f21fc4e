//! The clients' requests. Each written value is unique, so that a read identifies
//! the write it saw.

mod claret;
mod collections;
mod mixed;

pub use collections::{look, read};

use crate::engine::random::Random;
use crate::history::{Kind, Unit};
use crate::model::{Op, Step};
use crate::node::plan::Plan;

/// The keys of a run.
pub fn units(plan: &Plan) -> Vec<Unit> {
    let mut r = Random::new(plan.seed, "units");
    let mut units = Vec::new();
    let kinds = [
        (Kind::Text, plan.texts),
        (Kind::Counter, plan.counters),
        (Kind::Expiring, plan.expiring),
        (Kind::Group, plan.groups),
        (Kind::Pair, plan.pairs),
        (Kind::Hash, plan.hashes),
        (Kind::List, plan.lists),
        (Kind::Set, plan.sets),
        (Kind::Sorted, plan.sorted),
        (Kind::Ids, plan.ids),
        (Kind::Ranking, plan.rankings),
        (Kind::Bag, plan.bags),
        (Kind::Bounded, plan.bounded),
    ];
    for (kind, count) in kinds {
        for number in 0..count {
            let name = format!("{kind:?}{number}").to_lowercase();
            let keys = match kind {
                Kind::Group => r.between(2, 5),
                Kind::Pair => 2,
                kind if kind.is_of_collections() => r.between(1, 3),
                _ => 1,
            };
            // Where restarts may lose the end of each worker's log, two keys
            // that are moved about have to be in the same log.
            let moved = kind != Kind::Group && keys > 1;
            let together = moved && (plan.may_lose() || r.chance(0.5));
            let key = |k| match together {
                true => format!("{{{name}}}{k}").into_bytes(),
                false => format!("{name}:{k}").into_bytes(),
            };
            units.push(Unit {
                kind,
                db: usize::from(r.chance(0.2)),
                keys: (0..keys).map(key).collect(),
            });
        }
    }
    units
}

/// Numbers that no two writes share.
#[derive(Debug)]
pub struct Unique {
    last: u64,
    /// Bytes of a long element.
    long: u64,
    /// How often an update is quiet.
    quiet: f64,
}

impl Unique {
    pub fn of(plan: &Plan) -> Self {
        // Where memory is limited, one command must not be a multiple of it.
        let long = match plan.maxmemory {
            Some(_) => 50,
            None => plan.long,
        };
        Self::new(long, plan.quiet)
    }

    pub fn new(long: u64, quiet: f64) -> Self {
        Self {
            last: 0,
            long,
            quiet,
        }
    }

    fn take(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Mostly short, now and then long enough to fill a segment of the log.
    fn value(&mut self, r: &mut Random) -> Vec<u8> {
        let mut value = format!("v{}.", self.take()).into_bytes();
        let len = match r.below(10) {
            0 => r.skewed(50, 3_000),
            1 => r.skewed(1, 200),
            _ => 0,
        };
        value.resize(value.len() + len as usize, b'x');
        value
    }

    fn piece(&mut self) -> Vec<u8> {
        format!("a{}.", self.take()).into_bytes()
    }

    fn number(&mut self) -> i64 {
        // Far apart, so that sums of small steps stay apart, too.
        (self.take() * 10_000) as i64
    }
}

/// The next thing to ask of a unit.
pub fn choose(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Op {
    let op = match r.chance(0.1) {
        true => transaction(r, unit, unique),
        false => Op::One(step(r, unit, unique)),
    };
    mixed::hush(r, op, unique.quiet)
}

fn step(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Step {
    if unit.kind.is_of_collections() && r.chance(0.02) {
        return mixed::stranger(r, unit, unique);
    }
    match unit.kind {
        Kind::Text => text(r, unique, 0),
        Kind::Counter => counter(r, unique),
        Kind::Expiring => expiring(r, unique),
        Kind::Group => group(r, unit, unique),
        Kind::Pair => pair(r, unique),
        _ => collections::step(r, unit, unique),
    }
}

fn transaction(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Op {
    let steps = match unit.kind {
        Kind::Group if r.chance(0.5) => {
            let value = unique.value(r);
            let set = |key| Step::Set {
                key,
                value: value.clone(),
                px: None,
            };
            (0..unit.keys.len()).map(set).collect()
        }
        Kind::Group => (0..unit.keys.len()).map(Step::Get).collect(),
        Kind::Counter => vec![counter(r, unique), counter(r, unique), Step::Get(0)],
        Kind::Expiring => vec![expiring(r, unique), Step::Get(0)],
        Kind::Pair => vec![pair(r, unique), pair(r, unique), Step::Get(0), Step::Get(1)],
        Kind::Text => vec![text(r, unique, 0), text(r, unique, 0)],
        _ => return collections::transaction(r, unit, unique),
    };
    Op::Transaction { steps, guard: None }
}

/// A transaction that sets a key, and only goes through where the guard's key still holds this.
pub fn guarded(
    r: &mut Random,
    guard: (usize, Option<Vec<u8>>),
    key: usize,
    unique: &mut Unique,
) -> Op {
    Op::Transaction {
        steps: vec![set(r, unique, key)],
        guard: Some(guard),
    }
}

fn set(r: &mut Random, unique: &mut Unique, key: usize) -> Step {
    Step::Set {
        key,
        value: unique.value(r),
        px: None,
    }
}

fn text(r: &mut Random, unique: &mut Unique, key: usize) -> Step {
    match r.below(20) {
        0..7 => Step::Get(key),
        7..11 => set(r, unique, key),
        11..14 => Step::Append(key, unique.piece()),
        14 if r.chance(0.5) => Step::GetSet(key, unique.value(r)),
        14 => Step::SetNx(key, unique.value(r)),
        15 => Step::SetRange(key, r.index(20), unique.piece()),
        16 => Step::Del(vec![key]),
        17 => Step::GetDel(key),
        18 => Step::Strlen(key),
        _ => Step::Exists(key),
    }
}

fn counter(r: &mut Random, unique: &mut Unique) -> Step {
    match r.below(12) {
        0..3 => Step::Get(0),
        3..9 => Step::IncrBy(0, r.between(1, 9) as i64),
        9 => Step::IncrBy(0, -1),
        10 => Step::Set {
            key: 0,
            value: unique.number().to_string().into_bytes(),
            px: None,
        },
        _ => Step::Del(vec![0]),
    }
}

fn expiring(r: &mut Random, unique: &mut Unique) -> Step {
    let ms = r.skewed(5, 5_000);
    match r.below(16) {
        0..5 => Step::Get(0),
        5..9 => Step::Set {
            key: 0,
            value: unique.value(r),
            px: Some(ms),
        },
        9 => set(r, unique, 0),
        10 | 11 => Step::Expire(0, ms),
        12 => Step::Persist(0),
        13 => Step::Append(0, unique.piece()),
        _ => Step::Pttl(0),
    }
}

fn group(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Step {
    match r.below(10) {
        0..5 => Step::GetAll,
        5..9 => Step::SetAll(unique.value(r)),
        _ => Step::Del((0..unit.keys.len()).collect()),
    }
}

fn pair(r: &mut Random, unique: &mut Unique) -> Step {
    let key = r.index(2);
    match r.below(16) {
        0..4 => Step::GetAll,
        4..7 => set(r, unique, key),
        7..9 => text(r, unique, key),
        9..12 => Step::Rename(key, 1 - key),
        12..14 => Step::Copy(key, 1 - key, r.chance(0.7)),
        14 => Step::SetAll(unique.value(r)),
        _ => Step::Expire(key, r.skewed(5, 5_000)),
    }
}
