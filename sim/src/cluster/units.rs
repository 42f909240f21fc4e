//! Keys with collections, keys that are written together by transactions, watched keys, and lists
//! that clients wait for. What clients see of them is judged like that of the plain keys: one order
//! of all commands explains it. Every eighth seed has them.

use super::clients::{Client, Door};
use super::plan::{KEYS, Plan};
use super::spread;
use super::wishes::Aim;
use super::world::World;
use crate::engine::random::Random;
use crate::history::{Kind, Outcome, Unit};
use crate::model::act::Act;
use crate::model::{Op, Step};
use crate::node::workload::{self, Unique};
use rufous_resp::Reply;

/// Each shares a slot with a plain key; and all keys of one have the same slot, but for those of text:
/// the first is watched while the second is written.
const FURTHER: [(Kind, &[&str]); 7] = [
    (Kind::Group, &["{a}g1", "{a}g2"]),
    (Kind::Text, &["{b}t", "{c}t"]),
    (Kind::Pair, &["{d}p1", "{d}p2"]),
    (Kind::Hash, &["{c}h"]),
    (Kind::List, &["{b}l1", "{b}l2"]),
    (Kind::Set, &["{d}s1", "{d}s2"]),
    (Kind::Sorted, &["{c}z"]),
];

pub(super) fn keys_of(unit: usize) -> Vec<Vec<u8>> {
    let keys = FURTHER[unit - KEYS.len()].1.iter();
    keys.map(|key| key.as_bytes().to_vec()).collect()
}

pub(super) fn key_of(unit: usize, key: usize) -> &'static str {
    FURTHER[unit - KEYS.len()].1[key]
}

/// One of the keys that an operation is about: of those of all slots.
pub(super) fn place_of(op: &Op) -> usize {
    match op.steps() {
        [Step::Get(key) | Step::Set { key, .. }, ..] => *key,
        _ => 0,
    }
}

/// The length of a long element.
const LONG: u64 = 200;

/// A client has watched the key of a unit on this connection, and has seen this in it.
#[derive(Debug)]
pub(super) struct Watched {
    unit: usize,
    wire: usize,
    seen: Option<Vec<u8>>,
}

/// What a client has to do with the units.
pub(super) struct Further {
    random: Random,
    watched: Option<Watched>,
    /// The connection whose watch the next transaction relies on.
    relies_on: Option<usize>,
    /// Replies to a wish that were heard.
    heard: Vec<Reply>,
}

impl Further {
    pub(super) fn new(seed: u64, number: usize) -> Self {
        Self {
            random: Random::new(seed, &format!("units of client {number}")),
            watched: None,
            relies_on: None,
            heard: Vec::new(),
        }
    }

    /// How long a client with a watched key waits: often for so long that its slot may leave.
    pub(super) fn hesitates(&mut self) -> Option<u64> {
        self.watched.as_ref()?;
        let is_long = self.random.chance(0.5);
        is_long.then(|| self.random.skewed(100_000, 6_000_000))
    }

    /// The connection is gone, and with it all watches and what was half heard.
    pub(super) fn lost(&mut self) {
        self.watched = None;
        self.heard.clear();
    }

    /// The next transaction relies on what this connection has.
    pub(super) fn rely_on(&mut self, wire: usize) {
        self.relies_on = Some(wire);
    }

    /// One of the replies to a wish of so many. Returns the one that counts, once all are there: the last, or an error before
    /// it; `all`: all of them.
    pub(super) fn hear(&mut self, (replies, all): (usize, bool), reply: Reply) -> Option<Reply> {
        self.heard.push(reply);
        if self.heard.len() < replies {
            return None;
        }
        let mut heard = std::mem::take(&mut self.heard);
        if all {
            return Some(Reply::Array(heard));
        }
        let early = heard
            .iter()
            .position(|reply| matches!(reply, Reply::Error(_)));
        Some(heard.swap_remove(early.unwrap_or(heard.len() - 1)))
    }
}

impl Plan {
    /// Whether clients use the units: see [`Plan::has_pairs`].
    pub fn has_units(&self) -> bool {
        self.seed % 8 == 2
    }

    /// All units: the plain keys are the first.
    pub(super) fn units(&self) -> Vec<Unit> {
        let plain = KEYS
            .iter()
            .map(|key| (Kind::Text, std::slice::from_ref(key)));
        let further = FURTHER.iter().filter(|_| self.has_units()).copied();
        let unit = |(kind, keys): (Kind, &[&str])| Unit {
            kind,
            db: 0,
            keys: keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
        };
        let spread = spread::units().filter(|_| self.has_spread());
        plain.chain(further).map(unit).chain(spread).collect()
    }

    pub(super) fn unique(&self) -> Unique {
        Unique::new(LONG, 0.0)
    }
}

/// Whether what it does depends on clocks: those of nodes are far apart.
fn has_deadline(step: &Step) -> bool {
    matches!(
        step,
        Step::Set { px: Some(_), .. } | Step::Expire(..) | Step::Persist(_) | Step::Pttl(_)
    )
}

fn waits(step: &Step) -> bool {
    matches!(step, Step::Act(Act::Pop(_)))
}

impl Aim {
    /// Whether an error is what the command comes to, rather than a refusal.
    pub(super) fn comes_to(&self, error: &[u8]) -> bool {
        let is_result = error.starts_with(b"WRONGTYPE") || error.starts_with(b"ERR ");
        let is_undone = matches!(self, Self::Commit(begun) if begun.is_undone(error));
        matches!(self, Self::Unit(..)) && is_result || is_undone
    }
}

impl Client {
    /// Whether the wish relies on a watch that went with its connection.
    pub(super) fn has_lost_its_watch(&self, aim: &Aim) -> bool {
        let here = self.connection.as_ref().map(|connection| connection.wire);
        aim.is_guarded() && self.further.relies_on != here
    }
}

impl World {
    pub(super) fn next_of_units(&mut self, client: usize) -> Option<Aim> {
        let found = &mut self.clients[client];
        if !self.plan.has_units() {
            return None;
        }
        let here = found.connection.as_ref().map(|connection| connection.wire);
        let further = &mut found.further;
        let watched = further.watched.take().filter(|w| Some(w.wire) == here);
        if let Some(Watched { unit, wire, seen }) = watched {
            further.relies_on = Some(wire);
            let key = further.random.index(2);
            let op = workload::guarded(&mut further.random, (0, seen), key, &mut self.unique);
            return Some(Aim::Unit(unit, op));
        }
        if !further.random.chance(0.6) {
            return None;
        }
        let unit = KEYS.len() + further.random.index(FURTHER.len());
        let what = &self.history.units[unit];
        let follows = found.door == Door::Redirecting;
        if follows && what.kind == Kind::Text && further.random.chance(0.4) {
            return Some(Aim::Watch(unit));
        }
        loop {
            let op = workload::choose(&mut further.random, what, &mut self.unique);
            let is_one = matches!(op, Op::One(_));
            let is_for_all = is_one && !op.steps().iter().any(waits);
            if !op.steps().iter().any(has_deadline) && (follows || is_for_all) {
                return Some(Aim::Unit(unit, op));
            }
        }
    }

    /// A client has watched the key of a unit, and has read it.
    pub(super) fn note_watched(&mut self, client: usize, unit: usize, outcome: &Outcome) {
        let found = &mut self.clients[client];
        let (Outcome::Seen(reply), Some(connection)) = (outcome, &found.connection) else {
            return;
        };
        let seen = match reply {
            Reply::Bulk(value) => Some(value.clone()),
            _ => None,
        };
        found.further.watched = Some(Watched {
            unit,
            wire: connection.wire,
            seen,
        });
    }

    /// Whether a transaction did not run, since a watched key was touched, or has left.
    pub(super) fn was_touched(&mut self, op: &Op, outcome: &Outcome) -> bool {
        if op.steps().iter().any(waits) && matches!(outcome, Outcome::Seen(Reply::Array(_))) {
            self.reach("elements were waited for");
        }
        let Op::Transaction { guard, .. } = op else {
            return false;
        };
        let Outcome::Seen(reply) = outcome else {
            return false;
        };
        let is_guarded = guard.is_some();
        let is = is_guarded && matches!(reply, Reply::Null | Reply::NullArray);
        match (is, is_guarded) {
            (true, _) => self.reach("a watched key was touched"),
            (false, true) => self.reach("a watched key was as it had been"),
            (false, false) => self.reach("a transaction was executed"),
        }
        is
    }

    /// Reads of each key of the units that are not plain keys.
    pub(super) fn looks_at_units(&self) -> Vec<(String, Aim)> {
        let mut all = Vec::new();
        for (number, unit) in self.history.units.iter().enumerate().skip(KEYS.len()) {
            for (key, name) in unit.keys.iter().enumerate() {
                let look = Op::One(workload::read(unit.kind, key));
                let name = String::from_utf8_lossy(name).into_owned();
                let aim = match number.checked_sub(spread::place_of(0)) {
                    Some(unit) if self.plan.has_spread() => Aim::Spread(unit, look),
                    _ => Aim::Unit(number, look),
                };
                all.push((name, aim));
            }
        }
        all
    }
}
