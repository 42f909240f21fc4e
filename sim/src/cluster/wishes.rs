//! What clients ask for, and where.

use super::begun::{self, Begun};
use super::clients::Door;
use super::fleeting::FLEETING;
use super::loose::{Deed, LOOSE, Shape};
use super::plan::KEYS;
use super::spread;
use super::undone;
use super::units::{key_of, keys_of, place_of};
use super::world::World;
use crate::model::{Op, Step};
use rufous_base::slot::slot_of;
use rufous_resp::Reply;
use std::collections::VecDeque;

/// What is to be done with which key.
#[derive(Clone, Debug)]
pub(super) enum Aim {
    Strict(usize, Op),
    /// With the keys of a unit.
    Unit(usize, Op),
    /// With keys of several slots.
    Spread(usize, Op),
    /// The same, a transaction to its end.
    Begin(usize, Op),
    /// Its end.
    Commit(Begun),
    /// What became of one whose end was asked for at this time.
    Outcome(Begun, u64),
    /// A transaction that an error undoes.
    Undone(usize, Op),
    /// The first key of a unit is watched, and read.
    Watch(usize),
    /// With a key of the lattice keyspace.
    Loose(usize, Deed),
    /// [`PAIR`] is set to this value, or read.
    Pair(Option<Vec<u8>>),
    /// The key with deadlines is set to this value for so many milliseconds, or read.
    Fleeting(Option<(Vec<u8>, u64)>),
}

impl Aim {
    /// Whether it relies on a watch of its connection.
    pub(super) fn is_guarded(&self) -> bool {
        let is_exec = matches!(self, Self::Unit(_, Op::Transaction { guard: Some(_), .. }));
        is_exec || matches!(self, Self::Commit(_))
    }

    /// How many replies it gets: the last one counts.
    pub(super) fn replies(&self) -> usize {
        match self {
            Self::Unit(_, Op::Transaction { steps, .. })
            | Self::Spread(_, Op::Transaction { steps, .. }) => steps.len() + 2,
            Self::Begin(_, op) => op.steps().len() + 1,
            Self::Undone(_, op) => undone::replies(op),
            Self::Watch(_) => 2,
            _ => 1,
        }
    }

    /// Whether all of these count.
    pub(super) fn has_many(&self) -> bool {
        matches!(self, Self::Begin(..) | Self::Undone(..))
    }
}

/// Two keys of one slot that are only ever written together.
pub(super) const PAIR: [&str; 2] = ["{a}p", "{a}q"];

/// The length of a value that no connection takes at once,
const LARGE: usize = 400_000;
/// and of one of which two are more than a message between copies holds.
const LARGER: usize = 700_000;

/// The node that gets a request, whichever node has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) node: usize,
    /// Any, if none is named.
    pub(super) worker: Option<usize>,
    pub(super) door: Door,
}

#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) aim: Aim,
    pub(super) at: Option<At>,
}

impl Wish {
    pub(super) fn writes(&self) -> bool {
        match &self.aim {
            Aim::Strict(_, op) | Aim::Unit(_, op) | Aim::Spread(_, op) => op.writes(),
            Aim::Commit(begun) => begun.op.writes(),
            Aim::Watch(_) | Aim::Begin(..) | Aim::Undone(..) | Aim::Outcome(..) => false,
            Aim::Loose(_, deed) => deed.writes(),
            Aim::Pair(value) => value.is_some(),
            Aim::Fleeting(value) => value.is_some(),
        }
    }

    /// The slot whose owner answers it; none: any node does.
    pub(super) fn slot(&self) -> Option<u16> {
        match &self.aim {
            Aim::Unit(unit, op) => Some(slot_of(key_of(*unit, place_of(op)).as_bytes())),
            Aim::Spread(unit, op)
            | Aim::Begin(unit, op)
            | Aim::Undone(unit, op)
            | Aim::Commit(Begun { unit, op, .. }) => {
                Some(slot_of(spread::key_of(*unit, op).as_bytes()))
            }
            Aim::Watch(unit) => Some(slot_of(key_of(*unit, 0).as_bytes())),
            Aim::Outcome(begun, _) => begun.token.as_deref().map(slot_of),
            Aim::Strict(key, _) => Some(slot_of(KEYS[*key].as_bytes())),
            Aim::Loose(..) => None,
            Aim::Pair(_) => Some(slot_of(PAIR[0].as_bytes())),
            Aim::Fleeting(_) => Some(slot_of(FLEETING.as_bytes())),
        }
    }

    pub(super) fn requests(&self) -> Vec<Vec<Vec<u8>>> {
        match &self.aim {
            Aim::Unit(unit, op) => op.requests(&keys_of(*unit)),
            Aim::Spread(unit, op) => op.requests(&spread::keys_of(*unit)),
            Aim::Begin(unit, op) => begun::requests(*unit, op),
            Aim::Undone(unit, op) => undone::requests(*unit, op),
            Aim::Commit(begun) => vec![begun.commit()],
            Aim::Outcome(begun, _) => vec![begun.ask()],
            Aim::Watch(unit) => vec![
                vec![b"WATCH".to_vec(), key_of(*unit, 0).into()],
                vec![b"GET".to_vec(), key_of(*unit, 0).into()],
            ],
            Aim::Strict(key, op) => op.requests(&[KEYS[*key].as_bytes().to_vec()]),
            Aim::Loose(key, deed) => vec![deed.request(LOOSE[*key].0)],
            Aim::Pair(value) => vec![request_of_pair(value.as_deref())],
            Aim::Fleeting(value) => vec![request_of_fleeting(value.as_ref())],
        }
    }
}

fn request_of_pair(value: Option<&[u8]>) -> Vec<Vec<u8>> {
    let command: &[u8] = if value.is_some() { b"MSET" } else { b"MGET" };
    let words = PAIR.iter().flat_map(|key| [Some(key.as_bytes()), value]);
    let words = [Some(command)].into_iter().chain(words).flatten();
    words.map(<[u8]>::to_vec).collect()
}

fn request_of_fleeting(set: Option<&(Vec<u8>, u64)>) -> Vec<Vec<u8>> {
    let key = FLEETING.as_bytes();
    let Some((value, ms)) = set else {
        return vec![b"GET".to_vec(), key.to_vec()];
    };
    let ms = ms.to_string();
    let words: [&[u8]; 5] = [b"SET", key, value, b"PX", ms.as_bytes()];
    words.map(<[u8]>::to_vec).into()
}

/// Whether a reply shows both keys of the pair alike.
pub(super) fn is_whole(reply: &Reply) -> bool {
    matches!(reply, Reply::Array(values) if values.len() == 2 && values[0] == values[1])
}

/// A reply about the pair, without its values: they are long.
pub(super) fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Array(_) => format!("the pair is whole: {}", is_whole(reply)),
        _ => format!("about the pair: {reply:?}"),
    }
}

impl World {
    /// Everything is read at its head, at all other members of its chain, and by each
    /// node's plain door; keys of the lattice keyspace at every worker.
    pub(super) fn read_everything(&mut self) {
        let mut wishes = VecDeque::new();
        for at in self.places_of(PAIR[0]) {
            let (aim, at) = (Aim::Pair(None), Some(at));
            wishes.push_back(Wish { aim, at });
        }
        for (name, aim) in self.looks_at_units() {
            for at in self.places_of(&name) {
                let (aim, at) = (aim.clone(), Some(at));
                wishes.push_back(Wish { aim, at });
            }
        }
        for (key, name) in KEYS.into_iter().enumerate() {
            let here = self.places_of(name).into_iter().map(Some);
            for at in std::iter::once(None).chain(here) {
                let aim = Aim::Strict(key, Op::One(Step::Get(0)));
                wishes.push_back(Wish { aim, at });
            }
        }
        if self.plan.loose.is_some() {
            for (node, worker) in self.all_workers() {
                for (key, (_, shape)) in LOOSE.into_iter().enumerate() {
                    let door = match self.chance.chance(0.5) {
                        true => Door::Plain,
                        false => Door::Redirecting,
                    };
                    let at = At {
                        node,
                        worker: Some(worker),
                        door,
                    };
                    let aim = Aim::Loose(key, shape.look());
                    wishes.push_back(Wish { aim, at: Some(at) });
                }
            }
        }
        self.audit(wishes);
    }

    /// Where a strict key is to be read after quiet.
    fn places_of(&mut self, key: &str) -> Vec<At> {
        let mapping = &self.coordinator.mapping;
        let chain = mapping.chains.of(slot_of(key.as_bytes()));
        let ids = chain.members.iter().map(|no| mapping.members[no].id);
        let at = |node, door| At {
            node,
            worker: None,
            door,
        };
        let copies = ids.filter_map(|id| self.nodes.iter().position(|node| node.id == id));
        let copies = copies.map(|node| at(node, Door::Redirecting));
        let all = self.nodes.iter().filter(|node| node.is_up());
        copies
            .chain(all.map(|node| at(node.index, Door::Plain)))
            .collect()
    }

    pub(super) fn all_workers(&self) -> Vec<(usize, usize)> {
        let up = self.nodes.iter().filter(|node| node.is_up());
        up.flat_map(|node| (0..node.workers).map(|worker| (node.index, worker)))
            .collect()
    }

    /// What a client asks for next, all at once.
    pub(super) fn next_wishes(&mut self, client: usize) -> VecDeque<Wish> {
        let found = &mut self.clients[client];
        let count = match found.door {
            Door::Plain => 1 + found.random.index(self.plan.pipeline),
            Door::Redirecting => 1,
        };
        let mut wishes: VecDeque<Wish> = (0..count).map(|_| self.next_suitable(client)).collect();
        // What follows would be part of the transaction.
        match wishes.iter().position(|wish| wish.aim.has_many()) {
            Some(0) => wishes.truncate(1),
            Some(at) => wishes.truncate(at),
            None => {}
        }
        wishes
    }

    pub(super) fn next_wish(&mut self, client: usize) -> Wish {
        if let Some(aim) = self.next_of_units(client) {
            return Wish { aim, at: None };
        }
        if self.plan.has_spread() {
            self.values += 1;
            let text = format!("{}.{}", client, self.values);
            if let Some(aim) = self.clients[client].next_spread(&self.plan, text.as_bytes()) {
                return Wish { aim, at: None };
            }
        }
        let is_loose = self.plan.loose.is_some() && self.clients[client].random.chance(0.4);
        let is_pair = self.plan.has_pairs() && self.clients[client].pairs.chance(0.3);
        let is_fleeting = self.plan.has_deadlines() && self.clients[client].deadlines.chance(0.4);
        let aim = match is_loose {
            true => self.next_loose(client),
            false if is_pair => self.next_pair(client),
            false if is_fleeting => self.next_fleeting(client),
            false => self.next_strict(client),
        };
        Wish { aim, at: None }
    }

    fn next_pair(&mut self, client: usize) -> Aim {
        self.values += 1;
        let large = if self.plan.has_larger_pairs() {
            LARGER
        } else {
            LARGE
        };
        let random = &mut self.clients[client].pairs;
        let mut value = format!("{client}.{}", self.values).into_bytes();
        if random.chance(0.6) {
            value.resize(large, b'.');
        }
        Aim::Pair(random.chance(0.4).then_some(value))
    }

    fn next_fleeting(&mut self, client: usize) -> Aim {
        self.values += 1;
        let random = &mut self.clients[client].deadlines;
        let value = format!("{client}.{}", self.values).into_bytes();
        let ms = random.skewed(10, 2_000);
        Aim::Fleeting(random.chance(0.3).then_some((value, ms)))
    }

    fn next_strict(&mut self, client: usize) -> Aim {
        let random = &mut self.clients[client].random;
        let key = random.index(KEYS.len());
        self.values += 1;
        let text = format!("{}.{}", client, self.values).into_bytes();
        let is_counter = key % 3 == 2;
        let step = match (random.below(10), is_counter) {
            (0..=3, _) => Step::Get(0),
            (4, _) => Step::Del(vec![0]),
            (_, true) => Step::IncrBy(0, 1 + random.below(100) as i64),
            (5..=6, false) => Step::Set {
                key: 0,
                value: text,
                px: None,
            },
            (_, false) => Step::Append(0, [&text[..], b","].concat()),
        };
        Aim::Strict(key, Op::One(step))
    }

    fn next_loose(&mut self, client: usize) -> Aim {
        let random = &mut self.clients[client].random;
        let key = random.index(LOOSE.len());
        let shape = LOOSE[key].1;
        let deed = match (random.below(10), shape) {
            (0..=3, _) => shape.look(),
            (_, Shape::Counter) => Deed::Count(1 + random.below(1_000)),
            (4..=6, Shape::Set) => {
                self.values += 1;
                Deed::Add(self.values)
            }
            (_, Shape::Set) => match self.loose.any_seen(key, random) {
                Some(element) => Deed::Remove(element),
                None => Deed::Members,
            },
        };
        Aim::Loose(key, deed)
    }
}
