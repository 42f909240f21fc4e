//! One worker's part in replication, as a state machine: it sends an epoch's
//! changes when their time has come, merges what comes, and forgets what
//! everybody has heard of. Its driver carries messages; those from one worker
//! to another must arrive in order.
//!
//! Invariants:
//! 1. What a report says its sender has sent lies before it on every wire: the
//!    changes of an epoch are taken, and its report is dated, in one instant.
//! 2. A write that another worker will make here under a stamp of its own, as
//!    it holds the key, was promised a time ([`Replicas::promise`]): until it is
//!    made no report says more than what was true at that time.
//! 3. An epoch has all that has changed. What of it a command over several
//!    workers has written, and may not have committed at all of them yet, is
//!    asked for; then its driver lets nothing of it leave until that is
//!    committed ([`Replicas::shows_unsettled`]).
//! 4. Whatever was merged is below the stamps of later writes here.

mod drained;
mod nodes;
#[cfg(test)]
mod promise_tests;
mod receiving;

use super::batch::Report;
use super::epoch::{Epoch, Fresh, Said};
pub use super::figures::Figures;
use super::heard::Heard;
use super::member;
use super::streams::{Streams, write};
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use rufous_lattice::{Clock, Stamp};
use rufous_store::changeset::Changeset;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::Shard;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Keys that are sent, or looked at to be forgotten, in one step.
const KEYS_PER_STEP: usize = 2048;
/// An epoch ends early when its changes take so much.
const MOST_CHANGES_BYTES: usize = 16 << 20;

/// Who gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// A worker of this node.
    Worker(WorkerId),
    /// All other nodes, at each the workers that have the keys.
    Nodes { is_report: bool },
}

/// Messages by receiver, in order.
pub type Outbox = Vec<(To, Arc<[u8]>)>;

/// See the module's description.
#[derive(Debug)]
pub struct Replicas {
    own: WorkerId,
    /// In stamps and messages.
    replica: u16,
    clock: Clock,
    heard: Heard,
    /// How often databases were flushed, and each of them at which count.
    flushes: u64,
    flushed_at: [u64; DATABASES],
    /// Up to where, and the least heard, may be said meanwhile.
    promises: BTreeMap<u64, (u64, u64)>,
    /// Nothing is forgotten, and nothing makes way.
    keeps_all: bool,
    /// What was sent last has writes that may not be committed everywhere.
    unsettled: bool,
    epoch: Option<Epoch>,
    spare: Changeset,
    fresh: Option<Fresh>,
    /// Messages that wait, by sender; no queue is empty.
    inbox: BTreeMap<u16, VecDeque<Arc<[u8]>>>,
    /// Senders that have begun anew and not said yet how far they are: what they
    /// tell is in no order.
    loose: BTreeSet<u16>,
    /// There is another mapping.
    has_acted: bool,
    /// Changes are told whole, not what was done.
    whole: bool,
    /// Somebody wants to forget what was removed up to this.
    wanted: u64,
    said: Said,
    /// The last epoch ended, or a report was asked for here.
    asked_us: u64,
    /// What was removed up to this has been forgotten.
    forgotten: u64,
    /// What files had forgotten of which nothing is here any more.
    forgotten_before: u64,
    figures: Figures,
}

impl Replicas {
    pub fn new(own: WorkerId, workers: usize) -> Self {
        Self::of(own, (own.0, 0), workers)
    }

    /// Of a worker of this node in a cluster; none where stamps cannot name it.
    pub fn of_node(own: WorkerId, workers: usize, node: u16) -> Option<Self> {
        let replica = member::replica_of(node, own)?;
        let fits = workers <= member::MOST_WORKERS;
        let first = member::first_of(node).filter(|_| fits)?;
        Some(Self::of(own, (replica, first), workers))
    }

    fn of(own: WorkerId, (replica, first): (u16, u16), workers: usize) -> Self {
        Self {
            own,
            replica,
            clock: Clock::new(replica),
            heard: Heard::new(replica, first, workers),
            flushes: 0,
            flushed_at: [0; DATABASES],
            promises: BTreeMap::new(),
            keeps_all: false,
            unsettled: false,
            epoch: None,
            spare: Changeset::default(),
            fresh: None,
            inbox: BTreeMap::new(),
            loose: BTreeSet::new(),
            has_acted: false,
            whole: false,
            wanted: 0,
            said: Said::default(),
            asked_us: 0,
            forgotten: 0,
            forgotten_before: 0,
            figures: Figures::default(),
        }
    }

    /// For the writes of one transaction.
    #[inline]
    pub fn stamp(&mut self, now: Now) -> Stamp {
        self.clock.tick(now.unix_us)
    }

    /// The first of so many stamps, of times that follow one another.
    #[inline]
    pub fn stamps(&mut self, now: Now, count: usize) -> Stamp {
        self.clock.ticks(now.unix_us, count)
    }

    /// Stamps from now on are above this.
    #[inline]
    pub fn observe(&mut self, stamp: Stamp) {
        self.clock.observe(stamp);
    }

    /// A command has run that may have changed replicas here.
    #[inline]
    pub fn wrote(&mut self, now: Now, changes: &Changeset) {
        if changes.is_empty() {
            return;
        }
        let fresh = self.fresh.get_or_insert(Fresh {
            first: now,
            last_us: 0,
            at_once: false,
        });
        fresh.last_us = now.mono_us;
    }

    /// Writes will be made here with stamps of another worker's, above the time
    /// that is returned; until [`Replicas::redeem`] nothing is said beyond it.
    pub fn promise(&mut self, now: Now, name: u64) -> u64 {
        let upto = self.clock.tick(now.unix_us).time;
        let least = self.heard.least();
        self.promises.insert(name, (upto, least));
        upto
    }

    pub fn redeem(&mut self, name: u64) {
        self.promises.remove(&name);
    }

    /// A database was flushed here, as it is at every worker.
    pub fn flushed(&mut self, db: usize, shard: &mut Shard) {
        self.flushes += 1;
        self.flushed_at[db] = self.flushes;
        shard.changeset().forget_db(db as u8);
    }

    /// The least that this worker has heard up to, of all others.
    pub fn least(&self) -> u64 {
        self.heard.least()
    }

    pub fn horizon(&self) -> u64 {
        self.heard.horizon()
    }

    pub fn figures(&self) -> Figures {
        let clock = self.clock.last();
        let lag = match self.heard.horizon() {
            // Nobody has said anything yet.
            0 => 0,
            horizon => clock.saturating_sub(horizon),
        };
        let held_back = self.inbox.values().map(VecDeque::len).sum::<usize>();
        Figures {
            horizon_lag_us: Stamp {
                time: lag,
                ..Stamp::ZERO
            }
            .unix_us(),
            held_back: held_back as u64,
            ..self.figures
        }
    }

    /// When [`Replicas::poll`] is to be called at the latest.
    pub fn wake_us(&self, period_us: u64) -> Option<u64> {
        let is_behind = self.forgotten < self.settled().min(self.wanted);
        match self.epoch.is_some() || is_behind {
            true => Some(0),
            false => self.due_us(period_us),
        }
    }

    /// When the next epoch ends.
    fn due_us(&self, period_us: u64) -> Option<u64> {
        let changes = self.fresh.map(|fresh| fresh.end_us(period_us));
        let report = self.owes_report().then_some(self.asked_us + period_us);
        changes.into_iter().chain(report).min()
    }

    /// Whether others, or this worker, wait for what it has to say.
    fn owes_report(&self) -> bool {
        if self.heard.is_alone() {
            return false;
        }
        let Said {
            upto,
            least,
            horizon,
        } = self.said;
        self.wanted > upto.min(least).min(horizon).min(self.heard.settled())
    }

    /// Takes replication further by a bounded step. `unsettled` are keys to which
    /// writes may have been made that are not committed everywhere. True where
    /// there is more to do at once.
    pub fn poll(
        &mut self,
        now: Now,
        period_us: u64,
        (shard, placement): (&mut Shard, &Placement),
        unsettled: &dyn Fn(u8, &[u8]) -> bool,
        out: &mut Outbox,
    ) -> bool {
        if std::mem::take(&mut self.has_acted) {
            let done = self.release_dropped(now, (&mut *shard, placement));
            debug_assert!(done.is_ok(), "what is no batch was not let in");
        }
        let more = self.forget(now, shard);
        self.unsettled = false;
        if self.heard.is_alone() {
            shard.changeset().clear();
            self.fresh = None;
            return more;
        }
        if self.epoch.is_none() && self.is_due(now, period_us, shard) {
            self.begin(now, shard);
        }
        if self.epoch.is_some() {
            self.send(now, (shard, placement), unsettled, out);
        }
        more || self.epoch.is_some()
    }

    /// Whether the messages of the last [`Replicas::poll`] have writes of
    /// commands over several workers that may not be committed at all of them:
    /// they and whatever comes after them have to wait for that.
    pub fn shows_unsettled(&self) -> bool {
        self.unsettled
    }

    fn is_due(&self, now: Now, period_us: u64, shard: &mut Shard) -> bool {
        let due = self.due_us(period_us).is_some_and(|at| at <= now.mono_us);
        due || shard.changeset().bytes() > MOST_CHANGES_BYTES
    }

    /// Takes what has changed, and dates the report on it.
    fn begin(&mut self, now: Now, shard: &mut Shard) {
        let spare = std::mem::take(&mut self.spare);
        let changes = std::mem::replace(shard.changeset(), spare);
        let date = self.clock.tick(now.unix_us).time;
        let mut said = Said {
            upto: date,
            least: self.heard.least(),
            horizon: self.heard.horizon(),
        };
        for &(upto, least) in self.promises.values() {
            said.upto = said.upto.min(upto);
            said.least = said.least.min(least);
            // What was read for a command knows no more than that, and what was
            // made of it is still to come.
            said.horizon = said.horizon.min(least);
        }
        if !self.keeps_all {
            shard.set_horizon(said.horizon);
            // It stays there when others come.
            self.heard.pass(said.horizon);
        }
        self.figures.updates += changes.updates();
        self.figures.sent_keys += changes.len() as u64;
        let fresh = self.fresh.take();
        self.asked_us = now.mono_us;
        self.epoch = Some(Epoch {
            changes,
            next: 0,
            said,
            date,
            flushes: self.flushes,
            since_us: fresh.map_or(0, |fresh| fresh.first.unix_us),
            after: self.heard.vector(),
        });
    }

    /// Sends some of the epoch's changes; with the last of them the report.
    fn send(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        unsettled: &dyn Fn(u8, &[u8]) -> bool,
        out: &mut Outbox,
    ) {
        let Some(mut epoch) = self.epoch.take() else {
            return;
        };
        // What a start tells of its files other nodes are told again anyway.
        let others = !self.keeps_all && placement.workers() < self.heard.len();
        let who = (self.own, self.replica, others);
        let mut streams = Streams::new(who, placement, self.clock.last());
        let end = epoch.changes.len();
        // What is to be taken over together is sent as of one instant.
        let whole = placement.any_lattice(|of| of.cut || of.level.is_ordered());
        let step = if whole {
            end
        } else {
            end.min(epoch.next + KEYS_PER_STEP)
        };
        let mut warmed = epoch.next;
        while epoch.next < step {
            if epoch.next == warmed {
                warmed = step.min(warmed + Shard::WARMED);
                let keys = (epoch.next..warmed).filter_map(|at| epoch.changes.get(at));
                shard.warm(keys.map(|changed| (usize::from(changed.db), changed.key.hash)));
            }
            let changed = epoch.changes.get(epoch.next);
            epoch.next += 1;
            let Some(mut changed) = changed else { break };
            if self.whole {
                changed.delta = None;
            }
            if planted::is(Planted::ChangeNotSent) && planted::now_and_then() {
                continue;
            }
            let Some(keyspace) = placement.lattice(changed.key.bytes) else {
                continue;
            };
            self.unsettled = self.unsettled || unsettled(changed.db, changed.key.bytes);
            let writer = streams.of(keyspace, changed.key.bytes, (epoch.flushes, &epoch.after));
            if let Some(writer) = writer {
                write(now, shard, changed, writer);
            }
        }
        streams.send(out, &mut self.figures);
        if epoch.next < end {
            self.epoch = Some(epoch);
            return;
        }
        self.report(placement, &epoch, out);
        epoch.changes.clear();
        self.spare = epoch.changes;
    }

    fn report(&mut self, placement: &Placement, epoch: &Epoch, out: &mut Outbox) {
        self.said = epoch.said;
        let report = Report {
            sent: epoch.date,
            upto: epoch.said.upto,
            least: epoch.said.least,
            horizon: epoch.said.horizon,
            wanted: self.wanted,
            since_us: epoch.since_us,
            epoch: self.heard.epoch(),
        };
        let bytes = report.encode(self.replica, epoch.flushes);
        for worker in 0..placement.workers() {
            let to = WorkerId(worker as u16);
            if to != self.own {
                self.figures.sent_messages += 1;
                self.figures.sent_bytes += bytes.len() as u64;
                out.push((To::Worker(to), Arc::clone(&bytes)));
            }
        }
        if placement.workers() < self.heard.len() {
            out.push((To::Nodes { is_report: true }, bytes));
        }
    }

    fn forget(&mut self, now: Now, shard: &mut Shard) -> bool {
        if self.heard.is_alone() && shard.has_to_forget() {
            // Others' clocks go on with each report; this worker has none to make.
            self.clock.tick(now.unix_us);
        }
        let settled = self.settled();
        if shard.has_to_forget() {
            if self.wanted <= settled {
                self.wanted = self.clock.last();
                self.asked_us = now.mono_us;
            }
            if shard.forget_step(settled, KEYS_PER_STEP) {
                return true;
            }
        }
        self.forgotten = settled;
        false
    }
}
