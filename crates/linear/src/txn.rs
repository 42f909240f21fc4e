//! Transactions, their parts, and which of them depend on one another.

use crate::told;
pub use rufous_datatype::key::Relation;
use std::fmt::Debug;
use std::sync::Arc;

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
    /// All that hold a key: [`Pairs`], or a summary that needs no comparison with each.
    type Holders: Holders<Self>;

    /// How it may run together with another one, whatever the state of the key is.
    fn relation(&self, other: &Self) -> Relation;

    /// It may change the key.
    fn writes(&self) -> bool;

    /// Both orders give the same state and the same wanted replies.
    fn is_independent(&self, other: &Self) -> bool {
        self.relation(other) == Relation::Independent
    }
}

/// The parts of transactions that hold a key. With the standing of the key they may know more to be independent: that
/// has to stay true while parts that are held are applied or given up.
pub trait Holders<O>: Clone + Debug + Default {
    /// What of a key's state matters.
    type Standing;

    fn hold(&mut self, part: &Part<O>);

    /// Takes back what [`Holders::hold`] was given.
    fn release(&mut self, part: &Part<O>);

    /// The strongest relation of another part to any that is held.
    fn relation(&self, part: &Part<O>, standing: Option<&Self::Standing>) -> Relation;

    /// The strongest relation of another part to those that are held and were applied: the standing is the one after them.
    fn relation_after(&self, part: &Part<O>, standing: Option<&Self::Standing>) -> Relation {
        let _ = standing;
        self.relation(part, None)
    }

    /// The relation of two parts that are held.
    fn pair(&self, pair: [&Part<O>; 2], standing: Option<&Self::Standing>) -> Relation;
}

/// What an operation's holders know of a key's state.
pub type Standing<O> = <<O as Operation>::Holders as Holders<O>>::Standing;

/// Holders one by one, for operations without a summary.
#[derive(Clone, Debug)]
pub struct Pairs<O>(Vec<Part<O>>);

impl<O> Default for Pairs<O> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<O: Operation + PartialEq> Holders<O> for Pairs<O> {
    type Standing = ();

    fn hold(&mut self, part: &Part<O>) {
        self.0.push(part.clone());
    }

    fn release(&mut self, part: &Part<O>) {
        if let Some(at) = self.0.iter().position(|held| held == part) {
            self.0.swap_remove(at);
        }
    }

    fn relation(&self, part: &Part<O>, _: Option<&()>) -> Relation {
        let all = self.0.iter().map(|held| held.relation(part));
        all.max().unwrap_or(Relation::Independent)
    }

    fn pair(&self, [a, b]: [&Part<O>; 2], _: Option<&()>) -> Relation {
        a.relation(b)
    }
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
    pub(crate) fn writes(&self) -> bool {
        self.ops.iter().any(Operation::writes)
    }

    /// How they may run together, whatever the state of the key is.
    pub(crate) fn relation(&self, other: &Self) -> Relation {
        // Any write makes another version.
        let has_observed = |a: &Self, b: &Self| a.expects.is_some() && b.writes();
        if has_observed(self, other) || has_observed(other, self) {
            return Relation::Conflicting;
        }
        let pairs = self
            .ops
            .iter()
            .flat_map(|a| other.ops.iter().map(move |b| a.relation(b)));
        pairs.max().unwrap_or(Relation::Independent)
    }
}

/// A transaction, whole: each slot that has it can send it on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transaction<O> {
    pub id: TxnId,
    /// By slot and key, one of each key.
    parts: Vec<Part<O>>,
    /// In the order in which it visits them.
    slots: Vec<u16>,
    /// Which order that is: transactions with the same number visit common slots in the same order.
    order: u64,
    /// What its slots run: opaque here.
    body: Arc<[u8]>,
    /// What the slots that have admitted it up to here add for the later ones, in the frames of [`crate::told`].
    gathered: Arc<[u8]>,
}

impl<O> Transaction<O> {
    /// Of parts in the order of slots and keys, one of each key.
    pub(crate) fn of_sorted(
        id: TxnId,
        parts: Vec<Part<O>>,
        body: Arc<[u8]>,
        gathered: Arc<[u8]>,
    ) -> Option<Self> {
        if !parts.is_sorted_by(|a, b| (a.slot, &a.key) < (b.slot, &b.key)) {
            return None;
        }
        let mut slots: Vec<u16> = parts.iter().map(|part| part.slot).collect();
        slots.dedup();
        (!slots.is_empty()).then_some(Self {
            id,
            parts,
            slots,
            order: 0,
            body,
            gathered,
        })
    }

    /// It visits its slots by these ranks, and those of one rank by their numbers. `order` names the ranks. Without this it
    /// visits them by their numbers alone, which is the order 0.
    pub fn ordered<R: Ord>(mut self, order: u64, rank: impl Fn(u16) -> R) -> Self {
        self.slots.sort_by_cached_key(|slot| (rank(*slot), *slot));
        self.order = order;
        self
    }

    /// Of an order that was read; `None` if these are not its slots.
    pub(crate) fn with_slots(mut self, order: u64, slots: Vec<u16>) -> Option<Self> {
        let mut sorted = slots.clone();
        sorted.sort_unstable();
        let are_same = sorted == self.slots;
        (self.slots, self.order) = (slots, order);
        are_same.then_some(self)
    }

    pub fn order(&self) -> u64 {
        self.order
    }

    /// What its slots run.
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }

    /// What the slots up to here have added ([`crate::told::pieces`]).
    pub fn gathered(&self) -> &Arc<[u8]> {
        &self.gathered
    }

    /// The slots that it visits, in order.
    pub fn slots(&self) -> &[u16] {
        &self.slots
    }

    /// In the order of slots and keys.
    pub fn parts(&self) -> &[Part<O>] {
        &self.parts
    }
}

impl<O: Operation> Transaction<O> {
    /// Parts of one key become one. `None` if it has no part, or if parts of one key expect different versions.
    pub fn new(id: TxnId, mut parts: Vec<Part<O>>, body: Arc<[u8]>) -> Option<Self> {
        parts.sort_by(|a, b| (a.slot, &a.key).cmp(&(b.slot, &b.key)));
        let mut joined: Vec<Part<O>> = Vec::with_capacity(parts.len());
        for part in parts {
            match joined.last_mut() {
                Some(last) if (last.slot, &last.key) == (part.slot, &part.key) => {
                    if last.expects.is_some()
                        && part.expects.is_some()
                        && last.expects != part.expects
                    {
                        return None;
                    }
                    last.expects = last.expects.or(part.expects);
                    last.ops.extend(part.ops);
                }
                _ => joined.push(part),
            }
        }
        Self::of_sorted(id, joined, body, told::nothing())
    }

    /// With what a slot adds that admits it. What the slot has added before stays: later slots may know it.
    pub(crate) fn with_gathered(&self, slot: u16, piece: &[u8]) -> Self {
        let has_added = told::pieces(&self.gathered).any(|(of, _)| of == slot);
        let gathered = if has_added {
            Arc::clone(&self.gathered)
        } else {
            told::joined(slot, piece, &self.gathered)
        };
        Self {
            gathered,
            ..self.clone()
        }
    }

    /// With other operations, where more is known of parts: `None` leaves those of a part as they are.
    pub fn known_as(&self, more: impl Fn(&Part<O>) -> Option<O>) -> Self {
        let mut txn = self.clone();
        for part in &mut txn.parts {
            if let Some(op) = more(part) {
                part.ops = vec![op];
            }
        }
        txn
    }

    /// The same as another transaction, which no slot has seen.
    pub fn renamed(&self, id: TxnId) -> Self {
        Self {
            id,
            gathered: told::nothing(),
            ..self.clone()
        }
    }

    pub fn first(&self) -> u16 {
        self.slots.first().copied().unwrap_or_default()
    }

    pub fn last(&self) -> u16 {
        self.slots.last().copied().unwrap_or_default()
    }

    pub fn after(&self, slot: u16) -> Option<u16> {
        after(&self.slots, slot)
    }

    pub fn before(&self, slot: u16) -> Option<u16> {
        before(&self.slots, slot)
    }

    /// Whether it visits one of two slots behind the other.
    pub fn is_after(&self, slot: u16, other: u16) -> bool {
        place(&self.slots, slot) > place(&self.slots, other)
    }

    /// Its parts at a slot.
    pub fn at(&self, slot: u16) -> impl Iterator<Item = &Part<O>> {
        let from = self.parts.partition_point(|part| part.slot < slot);
        let parts = self.parts.get(from..).unwrap_or_default().iter();
        parts.take_while(move |part| part.slot == slot)
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

fn place(slots: &[u16], slot: u16) -> Option<usize> {
    slots.iter().position(|one| *one == slot)
}

/// The slot that is visited behind this one.
pub(crate) fn after(slots: &[u16], slot: u16) -> Option<u16> {
    slots.get(place(slots, slot)? + 1).copied()
}

/// The slot that is visited before this one.
pub(crate) fn before(slots: &[u16], slot: u16) -> Option<u16> {
    slots.get(place(slots, slot)?.checked_sub(1)?).copied()
}
