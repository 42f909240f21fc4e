//! Operations on keys, and the keys of a slot.
//!
//! Plain operations change a list of what was done, so that the order can be judged by what depends on what. Typed
//! ones do what commands do, and their replies are judged.

use super::told;
use rufous_base::rng::Rng;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::key::{self, Deadline, Held, Put, Reply, Set, Typed, Value};
use rufous_datatype::{bag, list, set, text};
use rufous_linear::told::pieces;
use rufous_linear::{Later, Operation, Others, Part, Stamp, Standing, State, Transaction, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

pub use super::op::Op;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    /// Adds; the reply does not matter, and neither does the order of adds.
    Add,
    /// Appends, and replies with the length.
    Append,
    /// Reads.
    Read,
    Typed(Command, Reader),
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reader {
    None,
    AtTheEnd,
    /// It was shown before the transaction was submitted.
    Before,
}

/// A command on a key of some type. Members and values are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    Incr(i64),
    Get,
    Put(usize),
    PutUntil(usize, i64),
    Sadd(usize),
    Srem(usize),
    Sismember(usize),
    Scard,
    Rpush(usize),
    Lrange,
    Lpop,
    Del,
    Exists,
    Expire(i64),
    Persist,
    Ttl,
}

const NAMES: [&[u8]; 4] = [b"0", b"1", b"2", b"3"];

impl Command {
    fn op(self) -> key::Op<'static> {
        let member = |of: usize| NAMES[of % NAMES.len()];
        let put = |of, deadline| {
            key::Op::Set(Set {
                value: member(of),
                deadline,
                only: None,
                get: false,
            })
        };
        let of_set = |op| key::Op::Typed(Typed::Set(op));
        let of_list = |op| key::Op::Typed(Typed::List(op));
        match self {
            Command::Incr(by) => key::Op::Typed(Typed::Text(text::Op::Incr { by })),
            Command::Get => key::Op::Typed(Typed::Text(text::Op::Get)),
            Command::Put(of) => put(of, Deadline::Clear),
            Command::PutUntil(of, at) => put(of, Deadline::At(at)),
            Command::Sadd(of) => of_set(set::Op::Add { member: member(of) }),
            Command::Srem(of) => of_set(set::Op::Remove { member: member(of) }),
            Command::Sismember(of) => of_set(set::Op::Contains { member: member(of) }),
            Command::Scard => of_set(set::Op::Size),
            Command::Rpush(of) => of_list(list::Op::PushBack {
                element: member(of),
            }),
            Command::Lrange => of_list(list::Op::Range { start: 0, stop: -1 }),
            Command::Lpop => of_list(list::Op::PopFront { count: 1 }),
            Command::Del => key::Op::Delete,
            Command::Exists => key::Op::Exists,
            Command::Expire(at) => key::Op::Expire {
                at,
                only: Default::default(),
            },
            Command::Persist => key::Op::Persist,
            Command::Ttl => key::Op::Ttl,
        }
    }

    /// For a key of some type, or for any.
    fn random(key: u16, rng: &mut Rng) -> Self {
        let member = rng.below(NAMES.len() as u64) as usize;
        let at = 100 * (1 + rng.below(2) as i64);
        if rng.below(6) == 0 {
            let any = [
                Command::Del,
                Command::Exists,
                Command::Expire(at),
                Command::Persist,
                Command::Ttl,
            ];
            return any[rng.below(5) as usize];
        }
        match (key % 4, rng.below(4)) {
            (0, 0) => Command::Get,
            (0, _) => Command::Incr([1, 2, -1, 3][member]),
            (1, 0) => Command::Sismember(member),
            (1, 1) if member == 0 => Command::Scard,
            (1, 1) => Command::Sadd(member),
            (1, _) => Command::Srem(member),
            (2, 0) => Command::Get,
            (2, 1) => Command::PutUntil(member, at),
            (2, _) => Command::Put(member),
            (_, 0) => Command::Lrange,
            (_, 1) => Command::Lpop,
            (_, _) => Command::Rpush(member),
        }
    }
}

pub fn plain(what: Do) -> Op {
    static KEY: LazyLock<key::Key> = LazyLock::new(|| key::Key::new(Value::text(b""), None));
    let held = match what {
        Do::Add => Held::quiet(key::Op::Typed(Typed::Bag(bag::Op::Add(1.0)))),
        // It depends on whatever else is done.
        Do::Append => Held::new(key::Op::Put(Put {
            key: &KEY,
            only_new: true,
        })),
        Do::Read => Held::new(key::Op::Typed(Typed::Bag(bag::Op::Count))),
        Do::Typed(command, reader) => return typed(command, reader),
    };
    Op::Algebra(rufous_linear::Typed::new(what, [held]))
}

pub fn typed(command: Command, reader: Reader) -> Op {
    let held = Held {
        wanted: reader != Reader::None,
        shown: reader == Reader::Before,
        ..Held::new(command.op())
    };
    Op::Algebra(rufous_linear::Typed::new(
        Do::Typed(command, reader),
        [held],
    ))
}

/// What a transaction does to a typed key, and whether it has observed something.
pub fn random(key: u16, rng: &mut Rng) -> (Vec<Op>, bool) {
    let observes = rng.below(6) == 0;
    let ops = (0..1 + rng.below(2)).map(|_| {
        // Counts show most when they are quiet.
        let quiet = if key.is_multiple_of(4) { 3 } else { 1 };
        let reader = match rng.below(4) {
            _ if observes => Reader::Before,
            of if of < quiet => Reader::None,
            _ => Reader::AtTheEnd,
        };
        typed(Command::random(key, rng), reader)
    });
    (ops.collect(), observes)
}

/// Of typed keys, names begin with this.
const TYPED: u8 = b't';

/// The name of a key.
pub fn name(key: u16, is_typed: bool) -> Box<[u8]> {
    let number = key.to_be_bytes();
    if is_typed {
        [TYPED, number[0], number[1]].into()
    } else {
        number.into()
    }
}

/// A typed key before anything was done to it: a number near its limit, or a set of three with a deadline.
pub fn first(name: &[u8]) -> key::Key {
    let mut key = key::Key::default();
    let commands: &[Command] = match name {
        [TYPED, _, number] if number % 4 == 0 => &[Command::Incr(i64::MAX - 2)],
        [TYPED, _, number] if number % 4 == 1 => &[
            Command::Sadd(0),
            Command::Sadd(1),
            Command::Sadd(2),
            Command::Expire(500),
        ],
        _ => &[],
    };
    for command in commands {
        key::run(&mut key, &command.op(), &Tuning::default());
    }
    key
}

/// Executes the typed operations of a part.
pub fn execute(key: &mut key::Key, part: &Part<Op>) -> Vec<Option<Reply>> {
    let each = part.ops.iter().map(|op| match op {
        Op::Algebra(rufous_linear::Typed {
            command: Do::Typed(command, reader),
            ..
        }) => {
            let reply = key::run(key, &command.op(), &Tuning::default());
            (*reader != Reader::None).then_some(reply)
        }
        _ => None,
    });
    each.collect()
}

/// What a transaction has done to a key.
#[derive(Clone, Debug)]
pub struct Done {
    pub txn: TxnId,
    pub part: Part<Op>,
    pub stamp: Stamp,
    pub replies: Vec<Option<Reply>>,
}

/// What was done to a key, in order.
#[derive(Clone, Debug, Default)]
pub struct Key {
    pub done: Vec<Done>,
    pub version: Option<Stamp>,
    pub typed: key::Key,
}

/// The keys of a slot.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub all: BTreeMap<Box<[u8]>, Key>,
    /// Others than transactions hold these.
    pub busy: BTreeSet<Box<[u8]>>,
    /// Requests wait for these, which transactions have, since these steps.
    pub awaited: BTreeMap<Box<[u8]>, usize>,
    /// What was told of each transaction that was applied.
    pub told: BTreeMap<TxnId, Vec<u8>>,
    /// Some transactions are refused.
    pub refusals: bool,
    /// How many could have been.
    pub asked: u64,
    /// What should not have happened.
    pub wrong: Option<String>,
    /// What slots have added or told was not so any more.
    pub changed: Option<String>,
}

impl Keys {
    /// A typed key as it is.
    pub fn typed(&self, name: &[u8]) -> key::Key {
        let known = self.all.get(name).map(|key| key.typed.clone());
        known.unwrap_or_else(|| first(name))
    }
}

impl State<Op> for Keys {
    fn version(&self, key: &[u8]) -> Option<Stamp> {
        self.all.get(key).and_then(|key| key.version)
    }

    fn standing(&self, key: &[u8]) -> Option<Standing<Op>> {
        let is_typed = key.first() == Some(&TYPED);
        is_typed.then(|| key::Standing::of(&self.typed(key)))
    }

    fn gather(&mut self, txn: &Transaction<Op>, slot: u16) -> Result<Vec<u8>, Vec<u8>> {
        Ok(self.seen(txn, slot))
    }

    fn is_apart(&mut self, txn: &Transaction<Op>) -> bool {
        is_apart(txn)
    }

    fn apply(
        &mut self,
        txn: &Transaction<Op>,
        slot: u16,
        stamp: Stamp,
        later: Later<'_>,
    ) -> Vec<u8> {
        if let Some(wrong) = self.is_changed(txn, slot, later) {
            self.changed = Some(format!("{:?} at {slot}: {wrong}", txn.id));
        }
        let mut detail = String::new();
        for part in txn.at(slot) {
            if self.busy.contains(&part.key) {
                self.wrong = Some(format!("{:?} changes a key that others hold", txn.id));
            }
            let (place, replies) = self.apply_part(part, stamp);
            detail += &format!("{place}{replies:?}");
        }
        let piece = told::piece(slot, txn.id, &detail);
        self.told.entry(txn.id).or_default().extend(&piece);
        piece
    }

    fn others(&self, key: &[u8]) -> Others {
        if self.awaited.contains_key(key) {
            Others::Wait
        } else if self.busy.contains(key) {
            Others::Hold
        } else {
            Others::None
        }
    }

    fn refuses(&mut self, txn: &Transaction<Op>, slot: u16) -> Option<Vec<u8>> {
        if !self.refusals {
            return None;
        }
        self.asked += 1;
        let seed = txn.id.number * 1000 + u64::from(slot) * 100 + self.asked;
        (Rng::new(seed).below(8) == 0).then(|| told::refusal(slot, txn.id))
    }
}

/// Whether a slot adds something for an operation of a transaction.
fn adds(txn: TxnId, op: &Op) -> bool {
    matches!(op, Op::Access(_)) && !txn.number.is_multiple_of(3)
}

fn is_apart(txn: &Transaction<Op>) -> bool {
    let mut ops = txn.parts().iter().flat_map(|part| &part.ops);
    ops.all(|op| !adds(txn.id, op))
}

/// What a transaction adds at a slot for the later ones.
impl Keys {
    /// The versions of its keys at the slot that only one transaction may write at a time.
    fn seen(&self, txn: &Transaction<Op>, slot: u16) -> Vec<u8> {
        let adds = |part: &&Part<Op>| part.ops.iter().any(|op| adds(txn.id, op));
        let versions = txn.at(slot).filter(adds);
        let versions = versions.map(|part| format!("{:?};", self.version(&part.key)));
        versions.collect::<String>().into_bytes()
    }

    /// Why what slots have added, or what later ones tell, is not so.
    fn is_changed(
        &self,
        txn: &Transaction<Op>,
        slot: u16,
        later: Later<'_>,
    ) -> Option<&'static str> {
        let added: BTreeMap<u16, &[u8]> = pieces(txn.gathered()).collect();
        let own = added.get(&slot).copied().unwrap_or_default();
        if own != self.seen(txn, slot) {
            return Some("a key has changed between admission and application");
        }
        let is_alone = |of: u16| {
            let mut ops = txn.at(of).flat_map(|part| &part.ops);
            ops.any(|op| adds(txn.id, op))
        };
        let mut slots = txn.slots().iter();
        if slots.any(|of| !txn.is_after(*of, slot) && is_alone(*of) != added.contains_key(of)) {
            return Some("it lacks what a slot has added");
        }
        let Later::Told(later) = later else {
            return (!is_apart(txn)).then_some("it is applied alone");
        };
        let told: BTreeSet<u16> = pieces(later).map(|(of, _)| of).collect();
        let mut slots = txn.slots().iter();
        let is_told = slots.all(|of| told.contains(of) == txn.is_after(*of, slot));
        (!is_told).then_some("it lacks what a later slot has told")
    }
}

impl Keys {
    /// What was found: the place in the order of the key, and replies.
    fn apply_part(&mut self, part: &Part<Op>, stamp: Stamp) -> (usize, Vec<Option<Reply>>) {
        let typed = self.typed(&part.key);
        let key = self.all.entry(part.key.clone()).or_default();
        key.typed = typed;
        let replies = execute(&mut key.typed, part);
        key.done.push(Done {
            txn: stamp.txn,
            part: part.clone(),
            stamp,
            replies: replies.clone(),
        });
        if part.ops.iter().any(Operation::writes) {
            key.version = Some(stamp);
        }
        (key.done.len(), replies)
    }
}
