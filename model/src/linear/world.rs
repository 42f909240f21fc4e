//! All slots and origins, and what may happen next.

use super::ops::{self, Do, Op, plain};
use super::slot::Slot;
use rufous_base::rng::Rng;
use rufous_datatype::key::Reply;
use rufous_linear::planted::Off;
use rufous_linear::{Access, Message, Origin, Outcome, Part, Transaction, TxnId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How much of what may happen.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub slots: u16,
    pub keys: u16,
    pub origins: u16,
    pub txns: usize,
    /// Heads that end, links that break, origins that end, stops of all, and losses of one slot.
    pub heads: usize,
    pub links: usize,
    pub ends: usize,
    pub stops: usize,
    pub losses: usize,
    /// Logs are synced before a write counts as kept.
    pub always: bool,
    /// Operations are commands on typed keys.
    pub typed: bool,
    /// Keys are only read or written.
    pub access: bool,
    /// What may be missing is sent again although nothing was lost, and single messages are lost.
    pub resends: usize,
    pub misses: usize,
    /// Nothing tells the others that a head or an origin is another one, until something is sent again: what they had
    /// sent to the one before is lost, and a part of what that one had sent may still arrive.
    pub unnoticed: bool,
    /// Others than transactions take a key for a while.
    pub busy: usize,
    /// Requests that read one key arrive, which wait for it where a transaction has it.
    pub requests: usize,
    /// Heads keep apart what depends on one another ([`rufous_linear::Head::apart`]): requests are not part of the protocol
    /// that orders it.
    pub apart: bool,
    /// Slots refuse some transactions.
    pub refusals: bool,
    /// One worker may have several slots.
    pub beside: bool,
    /// Transactions visit slots in two orders.
    pub orders: bool,
    /// Each transaction has all keys.
    pub wide: bool,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Slot(u16),
    Origin(u16),
}

/// Something that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Submit,
    Deliver(End, End),
    Copy(u16),
    Sync(u16),
    /// The head ends, and so many unkept records with it.
    Head(u16, usize),
    Break(End, End),
    Origin(u16),
    /// All stop; the seed says how much each loses.
    Stop(u64),
    /// All copies of one slot lose the end of their logs.
    Loss(u16, usize),
    /// One end sends again what the other one may lack.
    Resend(End, End),
    /// The message at this place of a link is lost, alone.
    Miss(End, End, usize),
    /// Others hold this key, and do not any more.
    Take(u16, u16),
    Free(u16),
    /// A request for a key arrives.
    Request(u16, u16),
    /// Everything that may be missing is sent again, by all.
    Round,
}

/// What a client knows of its transaction.
#[derive(Clone, Debug)]
pub struct Client {
    pub txn: Arc<Transaction<Op>>,
    /// The numbers of the steps in which it was submitted, and in which its outcome was told.
    pub began: usize,
    pub ended: Option<(usize, Outcome)>,
    /// Replies that it was shown before, by key.
    pub shown: BTreeMap<Box<[u8]>, Vec<Option<Reply>>>,
    /// What its slots have told it.
    pub told: Arc<[u8]>,
}

/// A request that has read a key.
#[derive(Clone, Debug)]
pub struct Seen {
    pub slot: u16,
    pub key: Box<[u8]>,
    /// What was done to the key before it.
    pub after: usize,
    /// The numbers of the steps in which it arrived, and was answered.
    pub began: usize,
    pub ended: usize,
}

/// So many times all is sent again at the end: each step of a transaction may need one.
const MOST_ROUNDS: usize = 60;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct World {
    pub bounds: Arc<Bounds>,
    pub left: Bounds,
    pub slots: Vec<Slot>,
    pub origins: Vec<(u64, Origin<Op>)>,
    /// The worker of each slot.
    pub workers: Vec<u64>,
    pub links: BTreeMap<(End, End), VecDeque<Message<Op>>>,
    /// Transactions still to be submitted, by their origins: what they do is drawn before.
    pub plans: VecDeque<(u16, Vec<Plan>)>,
    pub clients: BTreeMap<TxnId, Client>,
    pub seen: Vec<Seen>,
    pub steps: usize,
    /// Something that was acknowledged may have been lost.
    pub has_lost: bool,
    /// A slot has started as one that may have lost something.
    pub has_restarted_lossy: bool,
    /// How often slots have lost something.
    pub lost: u64,
    /// How often all was sent again at the end.
    pub rounds: usize,
    pub off: Option<Off>,
}

/// A part before its version is read.
#[derive(Clone, Debug)]
pub struct Plan {
    pub key: u16,
    pub ops: Vec<Op>,
    pub observes: bool,
    pub typed: bool,
}

impl World {
    pub fn new(bounds: &Arc<Bounds>, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let plans = (0..bounds.txns).map(|_| plan(&mut rng, bounds)).collect();
        // Of its own, so that the other bounds draw what they drew.
        let mut places = Rng::new(seed ^ 0x706c_6163_6573);
        let mut place = |no: u16| {
            if bounds.beside {
                places.below(2)
            } else {
                no.into()
            }
        };
        let origins = (0..bounds.origins).map(|node| (1, Origin::new(node, 1)));
        Self {
            bounds: Arc::clone(bounds),
            left: (**bounds).clone(),
            slots: (0..bounds.slots).map(|no| Slot::new(no, bounds)).collect(),
            origins: origins.collect(),
            workers: (0..bounds.slots).map(&mut place).collect(),
            links: BTreeMap::new(),
            plans,
            clients: BTreeMap::new(),
            seen: Vec::new(),
            steps: 0,
            has_lost: false,
            has_restarted_lossy: false,
            lost: 0,
            rounds: 0,
            off: None,
        }
    }

    /// Whether only submissions are left.
    pub fn is_quiet(&self) -> bool {
        let idle = self
            .slots
            .iter()
            .all(|slot| slot.is_idle() && !slot.lacks_sync());
        idle && self.links.values().all(VecDeque::is_empty)
    }

    /// What goes on without faults.
    pub fn progress(&self) -> Vec<Action> {
        let mut all = Vec::new();
        if !self.plans.is_empty() {
            all.push(Action::Submit);
        }
        let links = self.links.iter().filter(|(_, queue)| !queue.is_empty());
        all.extend(links.map(|((from, to), _)| Action::Deliver(*from, *to)));
        for (no, slot) in (0u16..).zip(&self.slots) {
            if slot.lacks_copies() {
                all.push(Action::Copy(no));
            }
            if slot.lacks_sync() {
                all.push(Action::Sync(no));
            }
            if !slot.keys.busy.is_empty() {
                all.push(Action::Free(no));
            }
        }
        if all.is_empty() && self.lacks_round() {
            all.push(Action::Round);
        }
        all
    }

    /// Whether messages were lost that only periodic resending brings again.
    fn lacks_round(&self) -> bool {
        let waits = |(_, origin): &(u64, Origin<Op>)| origin.waiting().next().is_some();
        let is_done = self
            .slots
            .iter()
            .all(|slot| slot.head.is_idle() && !slot.closed);
        self.rounds < MOST_ROUNDS && (!is_done || self.origins.iter().any(waits))
    }

    /// An action, with the message that it delivers, for a person.
    pub fn line(&self, action: Action) -> String {
        let message = match action {
            Action::Deliver(from, to) => self.links.get(&(from, to)).and_then(VecDeque::front),
            Action::Miss(from, to, at) => self.links.get(&(from, to)).and_then(|all| all.get(at)),
            _ => None,
        };
        match message {
            Some(message) => format!("{action:?} {message:?}\n"),
            None => format!("{action:?}\n"),
        }
    }

    /// Faults that the bounds allow yet.
    pub fn faults(&self, rng: &mut Rng) -> Vec<Action> {
        let mut all = Vec::new();
        let slot = rng.below(u64::from(self.bounds.slots)) as u16;
        let lost = |rng: &mut Rng, synced| {
            let unkept = self.slots[usize::from(slot)].unkept(synced);
            rng.below(unkept as u64 + 1) as usize
        };
        if self.left.heads > 0 {
            all.push(Action::Head(slot, lost(rng, false)));
        }
        if self.left.losses > 0 {
            all.push(Action::Loss(slot, lost(rng, true)));
        }
        if self.left.links > 0 {
            let used: Vec<(End, End)> = self.links.keys().copied().collect();
            if !used.is_empty() {
                let (a, b) = used[rng.below(used.len() as u64) as usize];
                all.push(Action::Break(a, b));
            }
        }
        if self.left.ends > 0 {
            let origin = rng.below(u64::from(self.bounds.origins)) as u16;
            all.push(Action::Origin(origin));
        }
        if self.left.stops > 0 {
            all.push(Action::Stop(rng.next_u64()));
        }
        all
    }

    /// What nothing notices, by the bounds.
    pub fn small_faults(&self, rng: &mut Rng) -> Vec<Action> {
        let mut all = Vec::new();
        let slot = rng.below(u64::from(self.bounds.slots)) as u16;
        let queues = self.links.iter().filter(|(_, queue)| !queue.is_empty());
        let used: Vec<_> = queues.map(|(ends, queue)| (ends, queue.len())).collect();
        if self.left.misses > 0 && !used.is_empty() {
            let ((from, to), len) = used[rng.below(used.len() as u64) as usize];
            let at = rng.below(len as u64) as usize;
            all.push(Action::Miss(*from, *to, at));
        }
        if self.left.resends > 0 {
            let ends: Vec<End> = self.ends().collect();
            let of = |rng: &mut Rng| ends[rng.below(ends.len() as u64) as usize];
            let (a, b) = (of(rng), of(rng));
            if a != b {
                all.push(Action::Resend(a, b));
            }
        }
        if self.left.busy > 0 {
            let key = rng.below(u64::from(self.bounds.keys)) as u16;
            all.push(Action::Take(slot, key));
        }
        if self.left.requests > 0 {
            let key = rng.below(u64::from(self.bounds.keys)) as u16;
            all.push(Action::Request(key % self.bounds.slots, key));
        }
        all
    }
}

fn plan(rng: &mut Rng, bounds: &Bounds) -> (u16, Vec<Plan>) {
    let mut keys: Vec<u16> = (0..bounds.keys).collect();
    let count = if bounds.wide {
        u64::from(bounds.keys)
    } else {
        1 + rng.below(3.min(u64::from(bounds.keys)))
    };
    let parts = (0..count).map(|_| {
        let key = keys.swap_remove(rng.below(keys.len() as u64) as usize);
        let typed = bounds.typed;
        let (ops, observes) = if typed {
            ops::random(key, rng)
        } else if bounds.access {
            access_plan(rng)
        } else {
            plain_plan(rng)
        };
        Plan {
            key,
            ops,
            observes,
            typed,
        }
    });
    let parts = parts.collect();
    (rng.below(u64::from(bounds.origins)) as u16, parts)
}

fn plain_plan(rng: &mut Rng) -> (Vec<Op>, bool) {
    let (ops, observes): (&[Do], bool) = match rng.below(8) {
        0 | 1 => (&[Do::Append], false),
        2 | 3 => (&[Do::Add], false),
        4 => (&[Do::Read], false),
        5 => (&[Do::Read], true),
        6 => (&[Do::Read, Do::Append], true),
        _ => (&[Do::Append, Do::Add], false),
    };
    (ops.iter().map(|what| plain(*what)).collect(), observes)
}

fn access_plan(rng: &mut Rng) -> (Vec<Op>, bool) {
    let observes = rng.below(5) == 0;
    let access = if rng.below(3) == 0 {
        Access::Read
    } else {
        Access::Write
    };
    (vec![Op::Access(access)], observes)
}

impl Plan {
    /// The slot of its key: several keys share one.
    pub fn slot(&self, slots: u16) -> u16 {
        self.key % slots
    }

    pub fn name(&self) -> Box<[u8]> {
        ops::name(self.key, self.typed)
    }

    pub fn part(self, slot: u16, version: Option<rufous_linear::Stamp>) -> Part<Op> {
        Part {
            slot,
            key: self.name(),
            expects: self.observes.then_some(version),
            ops: self.ops,
        }
    }
}
