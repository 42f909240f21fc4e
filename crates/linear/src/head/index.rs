//! The open transactions of a slot by key, so that one is compared with those at its own keys alone: with all of a key
//! at once, and one by one only where that has shown that some of them depend on it.
//!
//! It is made of the book, the queue and the final stamps, and holds nothing else. What waits for another transaction is
//! looked at again when that one moves.

mod conflicts;

use super::Others;
use crate::book::{Book, Entry};
use crate::message::{Predecessor, Record};
use crate::planted::{self, Off};
use crate::txn::{Holders, Operation, Part, Relation, Stamp, Standing, Transaction, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// A transaction that is prepared, or applied and not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It cannot end below this.
    Prepared(Stamp),
    /// In this place of the order.
    Applied(Stamp),
}

#[derive(Clone, Debug)]
struct AtKey<O: Operation> {
    prepared: O::Holders,
    /// Of the prepared ones, by what they cannot end below.
    order: BTreeSet<Stamp>,
    applied: O::Holders,
    done: BTreeSet<Stamp>,
    waiting: O::Holders,
    arrived: BTreeMap<u64, TxnId>,
}

impl<O: Operation> Default for AtKey<O> {
    fn default() -> Self {
        Self {
            prepared: O::Holders::default(),
            order: BTreeSet::new(),
            applied: O::Holders::default(),
            done: BTreeSet::new(),
            waiting: O::Holders::default(),
            arrived: BTreeMap::new(),
        }
    }
}

impl<O: Operation> AtKey<O> {
    fn is_empty(&self) -> bool {
        self.order.is_empty() && self.done.is_empty() && self.arrived.is_empty()
    }
}

/// What waits for a transaction to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blocked {
    /// By its number in the queue.
    Waiting(u64),
    /// To be applied.
    Final(TxnId),
}

/// A transaction that is not admitted yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting<O> {
    pub(super) txn: Arc<Transaction<O>>,
    pub(super) max: u64,
}

/// See the module's description.
#[derive(Clone)]
pub(super) struct Index<O: Operation> {
    slot: u16,
    keys: BTreeMap<Box<[u8]>, AtKey<O>>,
    open: BTreeMap<TxnId, (Arc<Transaction<O>>, Place)>,
    /// In the order of arrival.
    queue: BTreeMap<u64, Waiting<O>>,
    numbers: BTreeMap<TxnId, u64>,
    arrivals: u64,
    /// How many of those that are open or wait visit slots in which order.
    orders: BTreeMap<u64, usize>,
    blocked: BTreeMap<TxnId, BTreeSet<Blocked>>,
    to_admit: BTreeSet<u64>,
    /// Numbers in the queue of those whose keys something else than transactions wants.
    not_free: BTreeSet<u64>,
    to_apply: BTreeSet<TxnId>,
    /// From this relation on, a transaction waits for another one to be over.
    pub(super) waits_from: Relation,
    /// How many were admitted to write a key that others had.
    shared: u64,
    /// How often transactions were compared, for tests.
    compared: u64,
}

/// What is made of other state is not shown but for the queue, so that equal states look the same.
impl<O: Operation> Debug for Index<O> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.queue.values()).finish()
    }
}

impl<O: Operation> Index<O> {
    pub(super) fn new(book: &Book<O>) -> Self {
        let mut index = Self {
            slot: book.slot(),
            keys: BTreeMap::new(),
            open: BTreeMap::new(),
            queue: BTreeMap::new(),
            numbers: BTreeMap::new(),
            arrivals: 0,
            orders: BTreeMap::new(),
            blocked: BTreeMap::new(),
            to_admit: BTreeSet::new(),
            not_free: BTreeSet::new(),
            to_apply: BTreeSet::new(),
            waits_from: Relation::Conflicting,
            shared: 0,
            compared: 0,
        };
        for (id, entry) in book.iter() {
            match entry {
                Entry::Prepared { txn, proposal, .. } => {
                    let (time, txn_id) = (*proposal, *id);
                    index.hold(txn, Place::Prepared(Stamp { time, txn: txn_id }));
                }
                Entry::Applied { txn, stamp, .. } => index.hold(txn, Place::Applied(*stamp)),
                Entry::Aborted { .. } | Entry::Forgotten { .. } => {}
            }
        }
        index
    }

    /// Takes a record, as the book does.
    pub(super) fn on_record(&mut self, record: &Record<O>) {
        match record {
            Record::Prepared { txn, proposal, .. } => {
                self.drop_open(txn.id);
                let (time, id) = (*proposal, txn.id);
                self.hold(txn, Place::Prepared(Stamp { time, txn: id }));
            }
            Record::Applied { txn, stamp, .. } => {
                self.drop_open(txn.id);
                self.hold(txn, Place::Applied(*stamp));
            }
            Record::Aborted { txn, .. } => self.drop_open(txn.id),
            Record::Forgotten { txn } | Record::Dropped { txn } => self.drop_open(*txn),
            Record::Lost | Record::Recovered => {}
        }
    }

    /// An applied transaction is settled: it is no predecessor any more.
    pub(super) fn on_settled(&mut self, id: TxnId) {
        if matches!(self.open.get(&id), Some((_, Place::Applied(_)))) {
            self.drop_open(id);
        }
    }

    /// A prepared transaction cannot end below this any more; `is_final`: it ends there.
    pub(super) fn set_least(&mut self, id: TxnId, least: Stamp, is_final: bool) {
        let Some((txn, Place::Prepared(before))) = self.open.get(&id) else {
            return;
        };
        let (txn, before) = (Arc::clone(txn), *before);
        for part in txn.at(self.slot) {
            let at = self.keys.entry(part.key.clone()).or_default();
            at.order.remove(&before);
            at.order.insert(least);
        }
        self.open.insert(id, (txn, Place::Prepared(least)));
        if is_final {
            self.to_apply.insert(id);
        }
        self.wake(id);
    }

    fn hold(&mut self, txn: &Arc<Transaction<O>>, place: Place) {
        for part in txn.at(self.slot) {
            let at = self.keys.entry(part.key.clone()).or_default();
            match place {
                Place::Prepared(least) => {
                    at.prepared.hold(part);
                    at.order.insert(least);
                }
                Place::Applied(stamp) => {
                    at.applied.hold(part);
                    at.done.insert(stamp);
                }
            }
        }
        let before = self.open.insert(txn.id, (Arc::clone(txn), place));
        if before.is_none() {
            *self.orders.entry(txn.order()).or_default() += 1;
        }
    }

    fn forget_order(&mut self, order: u64) {
        if let Some(count) = self.orders.get_mut(&order) {
            *count -= 1;
            if *count == 0 {
                self.orders.remove(&order);
            }
        }
    }

    fn drop_open(&mut self, id: TxnId) {
        let Some((txn, place)) = self.open.remove(&id) else {
            return;
        };
        self.forget_order(txn.order());
        for part in txn.at(self.slot) {
            self.change(part, |at| match place {
                Place::Prepared(least) => {
                    at.prepared.release(part);
                    at.order.remove(&least);
                }
                Place::Applied(stamp) => {
                    at.applied.release(part);
                    at.done.remove(&stamp);
                }
            });
        }
        self.wake(id);
    }

    fn change(&mut self, part: &Part<O>, change: impl FnOnce(&mut AtKey<O>)) {
        if let Some(at) = self.keys.get_mut(&part.key) {
            change(at);
            if at.is_empty() {
                self.keys.remove(&part.key);
            }
        }
    }

    /// Looks again at what waits for a transaction.
    fn wake(&mut self, id: TxnId) {
        for blocked in self.blocked.remove(&id).into_iter().flatten() {
            match blocked {
                Blocked::Waiting(number) => self.to_admit.insert(number),
                Blocked::Final(id) => self.to_apply.insert(id),
            };
        }
    }
}

/// The queue.
impl<O: Operation> Index<O> {
    /// A transaction waits to be admitted, unless it does already.
    pub(super) fn wait(&mut self, txn: Arc<Transaction<O>>, max: u64) {
        if self.numbers.contains_key(&txn.id) {
            return;
        }
        self.arrivals += 1;
        let number = self.arrivals;
        for part in txn.at(self.slot) {
            let at = self.keys.entry(part.key.clone()).or_default();
            at.waiting.hold(part);
            at.arrived.insert(number, txn.id);
        }
        self.numbers.insert(txn.id, number);
        *self.orders.entry(txn.order()).or_default() += 1;
        self.queue.insert(number, Waiting { txn, max });
        self.to_admit.insert(number);
    }

    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = &Waiting<O>> {
        self.queue.values()
    }

    /// Whether a prepared transaction has a part on the key.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        let at = self.keys.get(key);
        at.is_some_and(|at| !at.order.is_empty())
    }

    /// How many were admitted since to write a key that others had.
    pub(super) fn take_shared(&mut self) -> u64 {
        std::mem::take(&mut self.shared)
    }

    /// Keys may be free that were not. Whether something waits for that.
    pub(super) fn on_free(&mut self) -> bool {
        self.to_admit.append(&mut self.not_free);
        !self.to_admit.is_empty()
    }

    /// Takes the first waiting transaction that conflicts with none that is prepared or waits before it, and whose keys
    /// nothing else wants; or one that would wait for one of another order: that is the second value.
    pub(super) fn next_to_admit(
        &mut self,
        standing: impl Fn(&[u8]) -> Option<Standing<O>>,
        others: impl Fn(&[u8]) -> Others,
    ) -> Option<(Waiting<O>, bool)> {
        while let Some(number) = self.to_admit.pop_first() {
            let Some(txn) = self
                .queue
                .get(&number)
                .map(|waiting| Arc::clone(&waiting.txn))
            else {
                continue;
            };
            let others = self.others(&txn, &others);
            if self.clashes(number, &txn) || self.clashes_behind(others, &txn) {
                return Some((self.take(number)?, true));
            }
            match self.conflict(number, &txn, &standing) {
                Some(with) => {
                    let blocked = self.blocked.entry(with).or_default();
                    blocked.insert(Blocked::Waiting(number));
                }
                None if others > Others::None && !planted::is(Off::Free) => {
                    self.not_free.insert(number);
                }
                None => {
                    let mut written = txn.at(self.slot).filter(|part| part.writes());
                    self.shared += u64::from(written.any(|part| self.holds(&part.key)));
                    return Some((self.take(number)?, false));
                }
            }
        }
        None
    }

    /// Whether a transaction that does not wait conflicts with none that is prepared or waits, and nothing else wants its
    /// keys.
    pub(super) fn may_admit(
        &mut self,
        txn: &Transaction<O>,
        standing: impl Fn(&[u8]) -> Option<Standing<O>>,
        others: impl Fn(&[u8]) -> Others,
    ) -> bool {
        let knows = self.numbers.contains_key(&txn.id);
        !knows
            && self.others(txn, &others) == Others::None
            && !self.clashes(u64::MAX, txn)
            && self.conflict(u64::MAX, txn, &standing).is_none()
    }

    /// The most that wants a key of a transaction beside others.
    fn others(&self, txn: &Transaction<O>, others: &impl Fn(&[u8]) -> Others) -> Others {
        let all = txn.at(self.slot).map(|part| others(&part.key));
        all.max().unwrap_or(Others::None)
    }

    fn take(&mut self, number: u64) -> Option<Waiting<O>> {
        let waiting = self.queue.remove(&number)?;
        self.numbers.remove(&waiting.txn.id);
        self.forget_order(waiting.txn.order());
        for part in waiting.txn.at(self.slot) {
            self.change(part, |at| {
                at.waiting.release(part);
                at.arrived.remove(&number);
            });
        }
        self.wake(waiting.txn.id);
        Some(waiting)
    }
}

/// The order of what is prepared.
impl<O: Operation> Index<O> {
    /// Takes a prepared transaction with a final stamp before which no dependent one may still end. `finals`: the stamp of
    /// a transaction.
    pub(super) fn next_to_apply(
        &mut self,
        finals: impl Fn(TxnId) -> Option<Stamp>,
        standing: impl Fn(&[u8]) -> Option<Standing<O>>,
    ) -> Option<TxnId> {
        let open: BTreeSet<Stamp> = std::mem::take(&mut self.to_apply)
            .into_iter()
            .filter_map(finals)
            .collect();
        let mut open = open.into_iter();
        let mut next = None;
        for stamp in open.by_ref() {
            match self.earlier(stamp, &standing) {
                Some(other) => {
                    let blocked = self.blocked.entry(other).or_default();
                    blocked.insert(Blocked::Final(stamp.txn));
                }
                None => {
                    next = Some(stamp.txn);
                    break;
                }
            }
        }
        self.to_apply.extend(open.map(|stamp| stamp.txn));
        next
    }

    /// A prepared transaction that may end before this stamp, of a dependent one.
    fn earlier(
        &mut self,
        stamp: Stamp,
        standing: &impl Fn(&[u8]) -> Option<Standing<O>>,
    ) -> Option<TxnId> {
        let id = stamp.txn;
        let (txn, _) = self.open.get(&id)?;
        let txn = Arc::clone(txn);
        if planted::is(Off::Stamps) {
            return None;
        }
        for part in txn.at(self.slot) {
            let Some(at) = self.keys.get_mut(&part.key) else {
                continue;
            };
            let is_tie = |other: &Stamp| other.time == stamp.time && planted::is(Off::Ties);
            let mut others = at.order.range(..stamp);
            if others.all(|other| other.txn == id || is_tie(other)) {
                continue;
            }
            let standing = standing(&part.key);
            at.prepared.release(part);
            let relation = at.prepared.relation(part, standing.as_ref());
            at.prepared.hold(part);
            self.compared += 1;
            if relation == Relation::Independent {
                continue;
            }
            for other in at.order.range(..stamp) {
                let known = self.open.get(&other.txn);
                let Some((before, _)) = known.filter(|_| other.txn != id && !is_tie(other)) else {
                    continue;
                };
                self.compared += 1;
                let same = before.at(self.slot).filter(|held| held.key == part.key);
                let mut pairs = same.map(|held| at.prepared.pair([held, part], standing.as_ref()));
                if pairs.any(|relation| relation != Relation::Independent) {
                    return Some(other.txn);
                }
            }
        }
        None
    }

    /// Applied transactions that are not settled, and that one may depend on. The state is the one after them. Left out are
    /// those that another one of them comes after, as `after` says: that one is not settled before they are.
    pub(super) fn predecessors<'b>(
        &mut self,
        txn: &Transaction<O>,
        standing: impl Fn(&[u8]) -> Option<Standing<O>>,
        after: impl Fn(TxnId) -> &'b [Predecessor],
    ) -> BTreeMap<TxnId, u16> {
        let (mut all, mut implied) = (BTreeMap::new(), BTreeSet::new());
        for part in txn.at(self.slot) {
            let Some(at) = self.keys.get(&part.key) else {
                continue;
            };
            self.compared += 1;
            let standing = standing(&part.key);
            if at.applied.relation_after(part, standing.as_ref()) == Relation::Independent {
                continue;
            }
            // Those that come after others are before them here.
            for Stamp { txn: id, .. } in at.done.iter().rev() {
                let Some((other, _)) = self.open.get(id) else {
                    continue;
                };
                let is_implied = implied.contains(id);
                if !is_implied {
                    self.compared += 1;
                    let is_reader = other.at(self.slot).all(|part| !part.writes());
                    let depends = txn.relation(other, self.slot) != Relation::Independent;
                    if !depends || is_reader && planted::is(Off::Readers) {
                        continue;
                    }
                    all.insert(*id, other.first());
                }
                implied.extend(after(*id).iter().map(|before| before.txn));
            }
        }
        all
    }

    /// How often transactions were compared so far.
    #[cfg(test)]
    pub(super) fn compared(&self) -> u64 {
        self.compared
    }
}
