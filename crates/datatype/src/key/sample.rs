//! Keys and operations to try the algebra with.

use super::typed::{sample_op, sample_value};
use super::{Deadline, Key, Only, Op, Put, Set, Type, Value};
use crate::expire::ExpireCondition;
use rufous_base::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Sets and strings more often than others, so that operations meet keys of their type.
fn of(rng: &mut Rng) -> Type {
    match rng.below(4) {
        0 => Type::Set,
        1 => Type::Text,
        _ => Type::ALL[rng.below(Type::ALL.len() as u64) as usize],
    }
}

fn deadline(rng: &mut Rng) -> i64 {
    100 + 100 * rng.below(3) as i64
}

pub(crate) fn state(rng: &mut Rng) -> Key {
    if rng.below(8) == 0 {
        return Key::default();
    }
    let value = sample_value(of(rng), rng);
    let deadline = (rng.below(2) == 0).then(|| deadline(rng));
    Key::new(value, deadline)
}

pub(crate) fn op(rng: &mut Rng) -> Op<'static> {
    if rng.below(2) == 0 {
        return Op::Typed(sample_op(of(rng), rng));
    }
    key_op(rng)
}

/// Often of the key's own type.
pub(crate) fn op_for(key: &Key, rng: &mut Rng) -> Op<'static> {
    match key.value() {
        Some(value) if rng.below(3) > 0 => Op::Typed(sample_op(value.of(), rng)),
        _ => op(rng),
    }
}

/// Small keys to try operations of a type on: none, some of the type with one element and with more, and
/// one of another type, each with a deadline and without.
pub(crate) fn small_keys(of: Type) -> Vec<Key> {
    const LARGER: usize = 3;
    // Strings have one element each.
    let single = if of == Type::Text { 12 } else { 5 };
    let mut rng = Rng::new(of as u64);
    let mut all = vec![Key::default()];
    let mut known = BTreeMap::<u64, BTreeSet<Vec<u8>>>::new();
    let mut values = vec![match of {
        Type::Text => sample_value(Type::Bag, &mut rng),
        _ => Value::text(b"5"),
    }];
    for _ in 0..4_000 {
        let value = sample_value(of, &mut rng);
        let alike = known.entry(value.len().min(3)).or_default();
        let most = if value.len() == 1 { single } else { LARGER };
        if !value.is_empty() && alike.len() < most && alike.insert(value.canonical()) {
            values.push(value);
        }
    }
    for value in values {
        all.extend([None, Some(200)].map(|deadline| Key::new(value.clone(), deadline)));
    }
    all
}

/// Operations of a type and of keys, each once.
pub(crate) fn ops(of: Type) -> Vec<Op<'static>> {
    // Numbers have limits that few operations reach.
    let most = if of == Type::Text { 7 } else { 4 };
    let mut rng = Rng::new(of as u64);
    let (mut all, mut kinds) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for _ in 0..4_000 {
        let op = Op::Typed(sample_op(of, &mut rng));
        let text = format!("{op:?}");
        let kind = text.split([' ', '{']).next().unwrap_or_default();
        let known = kinds.entry(kind.to_owned()).or_default();
        if *known < most && !all.contains_key(&text) {
            *known += 1;
            all.insert(text, op);
        }
    }
    for _ in 0..600 {
        let op = key_op(&mut rng);
        all.entry(format!("{op:?}")).or_insert(op);
    }
    // One of another type.
    let other = if of == Type::Set {
        Type::List
    } else {
        Type::Set
    };
    for _ in 0..8 {
        let op = Op::Typed(sample_op(other, &mut rng));
        all.entry(format!("{op:?}")).or_insert(op);
    }
    all.into_values().collect()
}

/// Of keys of any type.
fn key_op(rng: &mut Rng) -> Op<'static> {
    match rng.below(14) {
        0 => Op::Exists,
        1 => Op::Type,
        2 => Op::Ttl,
        3 => Op::Dump,
        4 | 5 => Op::Delete,
        6 => Op::Take,
        7 => Op::Expired {
            now: deadline(rng) + 1,
        },
        8 | 9 => Op::Expire {
            at: deadline(rng),
            only: condition(rng),
        },
        10 => Op::Persist,
        11 | 12 => Op::Set(set(rng)),
        _ => Op::Put(put(rng)),
    }
}

fn condition(rng: &mut Rng) -> ExpireCondition {
    let mut condition = ExpireCondition::default();
    match rng.below(8) {
        0 => condition.nx = true,
        1 => condition.xx = true,
        2 => condition.gt = true,
        3 => condition.lt = true,
        _ => {}
    }
    condition
}

fn set(rng: &mut Rng) -> Set<'static> {
    let value: &[u8] = [&b"5"[..], b"x"][rng.below(2) as usize];
    let deadlines = [Deadline::Keep, Deadline::Clear, Deadline::At(deadline(rng))];
    let only = [None, None, Some(Only::New), Some(Only::Known)];
    Set {
        value,
        deadline: deadlines[rng.below(3) as usize],
        only: only[rng.below(4) as usize],
        get: rng.below(4) == 0,
    }
}

fn put(rng: &mut Rng) -> Put<'static> {
    static KEYS: OnceLock<[Key; 2]> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        [
            Key::new(Value::text(b"moved"), Some(300)),
            Key::new(sample_value(Type::Set, &mut Rng::new(7)), None),
        ]
    });
    Put {
        key: &keys[rng.below(2) as usize],
        only_new: rng.below(4) == 0,
    }
}
