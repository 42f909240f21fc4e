//! Keys held by commands that span workers, and the queues of commands that wait for them.
//!
//! Invariants:
//! 1. A key's queue is served in order of arrival; its head holds the key.
//! 2. A waiter enters all its queues in one step, so that two waiters have the same order in every
//!    queue of this worker that they share: waiting within a worker cannot deadlock.
//! 3. While a command waits for the whole worker, later ones wait behind it.
//!
//! Between workers, deadlock is excluded by the coordinator, which visits
//! workers in ascending order (see [`crate::multi`]).

use crate::planted::{self, Planted};
use std::collections::{BTreeMap, VecDeque};

pub use crate::shard::KeyName;

/// The keys to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every key of every database of this worker.
    All,
    /// These keys, ascending and without repeats (ensured by [`Scope::keys`]).
    Keys(Vec<KeyName>),
}

impl Scope {
    pub fn keys(mut keys: Vec<KeyName>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        Scope::Keys(keys)
    }

    /// The names of the keys; none for [`Scope::All`].
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let keys = match self {
            Scope::All => &[][..],
            Scope::Keys(keys) => keys,
        };
        keys.iter().map(|key| &*key.1)
    }
}

/// A hold that was granted or waits; needed to release it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Ticket {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
struct Waiter<W> {
    scope: Scope,
    /// Queues in which this waiter is not the head.
    behind: usize,
    /// Taken out when the hold is granted.
    work: Option<W>,
}

/// The holds of one worker. `W` is the work to do once a hold is granted.
#[derive(Debug)]
pub struct LockTable<W> {
    queues: BTreeMap<KeyName, VecDeque<Ticket>>,
    waiters: BTreeMap<Ticket, Waiter<W>>,
    /// Requests for the whole worker, and all requests that arrived after them.
    gate: VecDeque<Ticket>,
    /// The head of the gate holds the whole worker.
    all_held: bool,
    /// Waiters that have entered key queues and have not been released.
    entered: usize,
    granted: VecDeque<Ticket>,
    next: u64,
}

impl<W> Default for LockTable<W> {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            waiters: BTreeMap::new(),
            gate: VecDeque::new(),
            all_held: false,
            entered: 0,
            granted: VecDeque::new(),
            next: 0,
        }
    }
}

impl<W> LockTable<W> {
    /// Whether there are no holds and no waiters. A command on one key checks only this.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Whether a command on this key has to wait.
    pub fn blocks(&self, db: u8, key: &[u8]) -> bool {
        !self.gate.is_empty()
            || (!self.queues.is_empty() && self.queues.contains_key(&(db, key.into())))
    }

    /// Whether a command on this key has to wait; beside `own`, a granted hold, whether another
    /// holder has the key.
    pub fn is_held_beside(&self, own: Option<Ticket>, key: &KeyName) -> bool {
        match own {
            Some(ticket) => self.holds_beside(ticket, key),
            None => !self.is_idle() && self.blocks(key.0, &key.1),
        }
    }

    /// Whether a holder other than `ticket`, which was granted, has this key or the whole worker.
    /// Waiters do not count.
    fn holds_beside(&self, ticket: Ticket, key: &KeyName) -> bool {
        (self.all_held && self.gate.front() != Some(&ticket))
            || self
                .queues
                .get(key)
                .is_some_and(|queue| queue.front() != Some(&ticket))
    }

    /// The number of holds and waiters.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.is_idle()
    }

    /// Requests a hold. [`LockTable::next_granted`] returns it once it is granted.
    pub fn acquire(&mut self, scope: Scope, work: W) {
        let ticket = Ticket(self.next);
        self.next += 1;
        let whole = scope == Scope::All;
        self.waiters.insert(
            ticket,
            Waiter {
                scope,
                behind: 0,
                work: Some(work),
            },
        );
        if whole || !self.gate.is_empty() {
            self.gate.push_back(ticket);
            self.advance_gate();
        } else {
            self.enter(ticket);
        }
    }

    /// The next hold that was granted, with its work. The hold lasts until it is released.
    pub fn next_granted(&mut self) -> Option<(Ticket, W)> {
        let ticket = self.granted.pop_front()?;
        let waiter = self.waiters.get_mut(&ticket)?;
        waiter.work.take().map(|work| (ticket, work))
    }

    /// What a granted hold covers.
    pub fn scope(&self, ticket: Ticket) -> Option<&Scope> {
        self.waiters.get(&ticket).map(|w| &w.scope)
    }

    /// Ends a granted hold.
    pub fn release(&mut self, ticket: Ticket) {
        let Some(waiter) = self.waiters.remove(&ticket) else {
            debug_assert!(false, "released twice: {ticket:?}");
            return;
        };
        debug_assert!(waiter.work.is_none(), "released before it was granted");
        match waiter.scope {
            Scope::All => {
                debug_assert_eq!(self.gate.front(), Some(&ticket));
                self.gate.pop_front();
                self.all_held = false;
            }
            Scope::Keys(keys) => {
                self.entered -= 1;
                for key in keys {
                    self.leave_queue(key, ticket);
                }
            }
        }
        self.advance_gate();
    }

    fn enter(&mut self, ticket: Ticket) {
        self.entered += 1;
        let Some(waiter) = self.waiters.get_mut(&ticket) else {
            return;
        };
        let Scope::Keys(keys) = &waiter.scope else {
            return;
        };
        if planted::is(Planted::NoIsolation) {
            return self.granted.push_back(ticket);
        }
        for key in keys {
            let queue = self.queues.entry(key.clone()).or_default();
            waiter.behind += usize::from(!queue.is_empty());
            queue.push_back(ticket);
        }
        if waiter.behind == 0 {
            self.granted.push_back(ticket);
        }
    }

    fn leave_queue(&mut self, key: KeyName, ticket: Ticket) {
        let Some(queue) = self.queues.get_mut(&key) else {
            return;
        };
        debug_assert_eq!(queue.front(), Some(&ticket));
        queue.pop_front();
        let Some(next) = queue.front() else {
            self.queues.remove(&key);
            return;
        };
        if let Some(waiter) = self.waiters.get_mut(next) {
            waiter.behind -= 1;
            if waiter.behind == 0 {
                self.granted.push_back(*next);
            }
        }
    }

    fn advance_gate(&mut self) {
        while let Some(&ticket) = self.gate.front() {
            if self
                .waiters
                .get(&ticket)
                .is_some_and(|w| w.scope == Scope::All)
            {
                if self.entered == 0 && !self.all_held {
                    self.all_held = true;
                    self.granted.push_back(ticket);
                }
                return;
            }
            self.gate.pop_front();
            self.enter(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Scope {
        Scope::keys(names.iter().map(|n| (0, n.as_bytes().into())).collect())
    }

    fn granted(table: &mut LockTable<char>) -> Vec<(Ticket, char)> {
        std::iter::from_fn(|| table.next_granted()).collect()
    }

    fn names(grants: &[(Ticket, char)]) -> String {
        grants.iter().map(|g| g.1).collect()
    }

    #[test]
    fn a_key_is_served_in_order_of_arrival() {
        let mut table = LockTable::default();
        table.acquire(keys(&["x", "y", "x"]), 'a');
        table.acquire(keys(&["y"]), 'b');
        table.acquire(keys(&["y", "z"]), 'c');
        table.acquire(keys(&["w"]), 'd');
        let first = granted(&mut table);
        assert_eq!(names(&first), "ad");
        assert!(table.blocks(0, b"x") && table.blocks(0, b"z") && !table.blocks(1, b"x"));
        table.release(first[0].0);
        let second = granted(&mut table);
        assert_eq!(names(&second), "b");
        assert!(!table.blocks(0, b"x"));
        table.release(second[0].0);
        let third = granted(&mut table);
        assert_eq!(names(&third), "c");
        table.release(third[0].0);
        table.release(first[1].0);
        assert!(table.is_idle() && table.queues.is_empty());
    }

    #[test]
    fn who_wants_everything_waits_for_holders_and_holds_back_newcomers() {
        let mut table = LockTable::default();
        table.acquire(keys(&["x"]), 'a');
        table.acquire(Scope::All, 'b');
        table.acquire(keys(&["y"]), 'c');
        table.acquire(Scope::All, 'd');
        table.acquire(keys(&["y"]), 'e');
        let a = granted(&mut table);
        assert_eq!(names(&a), "a");
        assert!(table.blocks(0, b"untouched"));
        table.release(a[0].0);
        let b = granted(&mut table);
        assert_eq!(names(&b), "b");
        table.release(b[0].0);
        let c = granted(&mut table);
        assert_eq!(names(&c), "c");
        table.release(c[0].0);
        let d = granted(&mut table);
        assert_eq!(names(&d), "d");
        table.release(d[0].0);
        let e = granted(&mut table);
        assert_eq!(names(&e), "e");
        table.release(e[0].0);
        assert!(table.is_idle());
    }
}
