//! Transactions, their parts, and which of them depend on one another.

use std::fmt::Debug;

/// The identity of a transaction: its node, that node's start, and a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId {
    pub node: u16,
    pub start: u64,
    pub number: u64,
}

/// The place of a transaction in the order: times of dependent transactions are compared, and equal ones by identity. It
/// is also the version of each key that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    pub time: u64,
    pub txn: TxnId,
}

/// An operation on one key, as its type declares it.
pub trait Operation: Clone + Debug {
    /// Both orders give the same state and the same wanted replies.
    fn is_independent(&self, other: &Self) -> bool;

    /// It may change the key.
    fn writes(&self) -> bool;
}

/// How two transactions may run together at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// They need no order.
    Independent,
    /// Either order is right, if all slots take the same one.
    Orderable,
    /// One has observed what the other may change.
    Conflicting,
}

/// What a transaction does to one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part<O> {
    pub slot: u16,
    pub key: Box<[u8]>,
    pub ops: Vec<O>,
    /// The version that was observed before, and that the key has to have; the inner `None`: never written.
    pub expects: Option<Option<Stamp>>,
}

impl<O: Operation> Part<O> {
    fn writes(&self) -> bool {
        self.ops.iter().any(Operation::writes)
    }

    fn relation(&self, other: &Self) -> Relation {
        let mut pairs = self
            .ops
            .iter()
            .flat_map(|a| other.ops.iter().map(move |b| (a, b)));
        if pairs.all(|(a, b)| a.is_independent(b)) {
            return Relation::Independent;
        }
        let has_observed = |a: &Self, b: &Self| a.expects.is_some() && b.writes();
        if has_observed(self, other) || has_observed(other, self) {
            return Relation::Conflicting;
        }
        Relation::Orderable
    }
}

/// A transaction, whole: each slot that has it can send it on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transaction<O> {
    pub id: TxnId,
    /// By slot and key.
    parts: Vec<Part<O>>,
    slots: Vec<u16>,
}

impl<O: Operation> Transaction<O> {
    /// `None` if it has no part.
    pub fn new(id: TxnId, mut parts: Vec<Part<O>>) -> Option<Self> {
        parts.sort_by(|a, b| (a.slot, &a.key).cmp(&(b.slot, &b.key)));
        let mut slots: Vec<u16> = parts.iter().map(|part| part.slot).collect();
        slots.dedup();
        (!slots.is_empty()).then_some(Self { id, parts, slots })
    }

    /// The slots that it visits, in order.
    pub fn slots(&self) -> &[u16] {
        &self.slots
    }

    pub fn first(&self) -> u16 {
        self.slots.first().copied().unwrap_or_default()
    }

    pub fn last(&self) -> u16 {
        self.slots.last().copied().unwrap_or_default()
    }

    pub fn after(&self, slot: u16) -> Option<u16> {
        self.slots.iter().copied().find(|other| *other > slot)
    }

    pub fn before(&self, slot: u16) -> Option<u16> {
        self.slots.iter().copied().rfind(|other| *other < slot)
    }

    /// Its parts at a slot.
    pub fn at(&self, slot: u16) -> impl Iterator<Item = &Part<O>> {
        self.parts.iter().filter(move |part| part.slot == slot)
    }

    /// The strongest relation of parts on common keys of a slot.
    pub fn relation(&self, other: &Self, slot: u16) -> Relation {
        let pairs = self.at(slot).flat_map(|a| {
            let same = other.at(slot).filter(move |b| b.key == a.key);
            same.map(move |b| a.relation(b))
        });
        pairs.max().unwrap_or(Relation::Independent)
    }
}
