//! One worker's part of replication, as a state machine: it sends the changes of an epoch when that ends, merges what
//! it receives, and forgets what all workers have received. Its driver carries messages; those from one worker to
//! another must arrive in order.
//!
//! Invariants:
//! 1. What a report states as sent precedes it on every connection: the
//!    changes of an epoch are taken, and its report is dated, in one instant.
//! 2. A worker that holds a key and will write here under a stamp of its own
//!    was promised a time ([`Replicas::promise`]): until the write is made, no
//!    report says more than what was true at that time.
//! 3. An epoch has all changes. The driver is asked for those that a command
//!    over several workers has written and may not have committed at all of
//!    them; it then holds back the epoch's messages until that is committed
//!    ([`Replicas::shows_unsettled`]).
//! 4. Later writes here have stamps above everything that was merged, or written here by another worker
//!    ([`Replicas::observe`]).

mod drained;
mod inbox;
#[cfg(test)]
mod inbox_tests;
mod nodes;
#[cfg(test)]
mod promise_tests;
mod receiving;
mod relay;
#[cfg(test)]
mod report_tests;
mod whole;

use super::batch::Report;
use super::epoch::{Epoch, Fresh, Said};
pub use super::figures::Figures;
use super::heard::Heard;
use super::lead::{Excess, Lead};
use super::member;
use super::streams::{Streams, write};
use inbox::Waiting;
pub use nodes::Awaits;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use rufous_lattice::stamp::COUNTER_BITS;
use rufous_lattice::{Clock, Stamp};
use rufous_store::changeset::Changeset;
use rufous_store::keyspace::Keyspace;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use whole::Whole;

/// Keys that are sent, or examined to be forgotten, in one step.
const KEYS_PER_STEP: usize = 2048;
/// An epoch ends early when its changes need this much memory.
const MOST_CHANGES_BYTES: usize = 16 << 20;

/// The receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// A worker of this node.
    Worker(WorkerId),
    /// All other nodes; at each of them, the workers that have replicas of the keys.
    Nodes { is_report: bool },
}

/// Messages by receiver, in order.
pub type Outbox = Vec<(To, Arc<[u8]>)>;

/// See the module's description.
#[derive(Debug)]
pub struct Replicas {
    own: WorkerId,
    /// Its number in stamps and messages.
    replica: u16,
    /// There may be workers of other nodes.
    in_cluster: bool,
    clock: Clock,
    lead: Lead,
    heard: Heard,
    /// How often databases were flushed, and the value of that count at each one's last flush.
    flushes: u64,
    flushed_at: [u64; DATABASES],
    /// By promise: the time up to which, and the least received time, that reports may state meanwhile.
    promises: BTreeMap<u64, (u64, u64)>,
    /// Nothing is forgotten, and no state makes way.
    keeps_all: bool,
    /// No stamp in whole states that other nodes have sent has a higher time.
    told_again: u64,
    /// The last messages contain writes that may not be committed at all workers.
    unsettled: bool,
    epoch: Option<Epoch>,
    /// The date of the last epoch that was sent.
    ended: u64,
    /// The date of the last epoch with cuts; before there is one, of the first epoch: others that have heard of that have heard
    /// this worker since it started.
    changed: Option<u64>,
    spare: Changeset,
    fresh: Option<Fresh>,
    /// Messages that wait, by sender; none is empty.
    inbox: BTreeMap<u16, Waiting>,
    /// Changes of nodes that are away: what this worker tells others, and what they have told.
    relay: relay::Sent,
    relayed: relay::Told,
    /// Senders that have started again and not reported since: their messages have no order relative to others.
    loose: BTreeSet<u16>,
    /// The mapping has changed.
    has_acted: bool,
    /// Keys whose changes are sent as whole states instead of operations.
    whole: Whole,
    /// The highest time up to which any worker wants to forget removals.
    wanted: u64,
    said: Said,
    /// When the last epoch ended, or a report was requested here.
    asked_us: u64,
    /// Removals up to this time have been forgotten.
    forgotten: u64,
    /// The time up to which files had forgotten removals whose state is not here any more.
    forgotten_before: u64,
    figures: Figures,
}

impl Replicas {
    pub fn new(own: WorkerId, workers: usize) -> Self {
        Self::of(own, (own.0, 0), workers)
    }

    /// For a worker of a node in a cluster; `None` if stamps cannot represent its number.
    pub fn of_node(own: WorkerId, workers: usize, node: u16) -> Option<Self> {
        let replica = member::replica_of(node, own)?;
        let fits = workers <= member::MOST_WORKERS;
        let first = member::first_of(node).filter(|_| fits)?;
        Some(Self {
            in_cluster: true,
            ..Self::of(own, (replica, first), workers)
        })
    }

    fn of(own: WorkerId, (replica, first): (u16, u16), workers: usize) -> Self {
        Self {
            own,
            replica,
            in_cluster: false,
            clock: Clock::new(replica),
            lead: Lead::default(),
            heard: Heard::new(replica, first, workers),
            flushes: 0,
            flushed_at: [0; DATABASES],
            promises: BTreeMap::new(),
            keeps_all: false,
            told_again: 0,
            unsettled: false,
            epoch: None,
            ended: 0,
            changed: None,
            spare: Changeset::default(),
            fresh: None,
            inbox: BTreeMap::new(),
            relay: relay::Sent::default(),
            relayed: relay::Told::default(),
            loose: BTreeSet::new(),
            has_acted: false,
            whole: Whole::default(),
            wanted: 0,
            said: Said::default(),
            asked_us: 0,
            forgotten: 0,
            forgotten_before: 0,
            figures: Figures::default(),
        }
    }

    /// A writer for one transaction.
    #[inline]
    pub fn stamp(&mut self, now: Now) -> Stamp {
        self.clock.tick(self.lead.real(now))
    }

    /// Why replicas here may not be written to at this time.
    #[inline]
    pub fn excess(&mut self, now: Now) -> Option<Excess> {
        self.note_lead(now);
        self.lead.excess(now, self.stamp_us())
    }

    /// By how many milliseconds the wall clock has jumped ahead, if stamps do not follow it.
    #[inline]
    pub fn ahead_ms(&mut self, now: Now) -> u64 {
        now.unix_us.saturating_sub(self.lead.real(now)) / 1000
    }

    /// A write was refused as clocks lead too far.
    pub fn on_refused(&mut self) {
        self.figures.clock_refused += 1;
    }

    /// The time of the last stamp issued or observed here, in microseconds.
    #[inline]
    pub fn stamp_us(&self) -> u64 {
        self.clock.last() >> COUNTER_BITS
    }

    #[inline]
    fn note_lead(&mut self, now: Now) {
        self.lead.real(now);
        self.figures.stamp_lead_us = self.stamp_us().saturating_sub(now.unix_us);
        self.figures.clock_ahead_us = self.lead.wall_us(now);
    }

    /// The first of this many stamps with consecutive times.
    #[inline]
    pub fn stamps(&mut self, now: Now, count: usize) -> Stamp {
        self.clock.ticks(self.lead.real(now), count)
    }

    /// Ensures that later stamps are above this one.
    #[inline]
    pub fn observe(&mut self, stamp: Stamp) {
        self.clock.observe(stamp);
    }

    /// Called after a command that may have changed replicas here.
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

    /// Announces that writes will be made here with another worker's stamps, above the returned time; until
    /// [`Replicas::redeem`] no report goes beyond that time.
    pub fn promise(&mut self, now: Now, name: u64) -> u64 {
        let upto = self.stamp(now).time;
        let least = self.heard.least();
        self.promises.insert(name, (upto, least));
        upto
    }

    pub fn redeem(&mut self, name: u64) {
        self.promises.remove(&name);
    }

    /// A database was flushed here and at every other worker.
    pub fn flushed(&mut self, db: usize, shard: &mut Shard) {
        self.flushes += 1;
        self.flushed_at[db] = self.flushes;
        shard.changeset().forget_db(db as u8);
    }

    /// The time of the last stamp issued or observed here.
    pub fn time(&self) -> u64 {
        self.clock.last()
    }

    /// The time up to which this worker has received the changes of all others.
    pub fn least(&self) -> u64 {
        self.heard.least()
    }

    pub fn horizon(&self) -> u64 {
        self.heard.horizon()
    }

    pub fn figures(&self) -> Figures {
        let clock = self.time();
        let lag = match self.heard.horizon() {
            // No other worker has reported yet.
            0 => 0,
            horizon => clock.saturating_sub(horizon),
        };
        let held_back = self.inbox.values().map(Waiting::len).sum::<usize>();
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

    /// The latest time at which [`Replicas::poll`] is to be called.
    pub fn wake_us(&self, period_us: u64) -> Option<u64> {
        let is_behind = self.forgotten < self.wanted && self.forgotten < self.settled();
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

    /// Whether a report is wanted by other workers or by this one.
    fn owes_report(&self) -> bool {
        if self.wanted == 0 || self.heard.is_alone() {
            return false;
        }
        let Said {
            upto,
            least,
            horizon,
            ..
        } = self.said;
        self.wanted > upto.min(least).min(horizon)
            || !self.has_forgotten_wanted() && self.wanted > self.heard.settled()
    }

    /// Advances replication by a bounded step. `unsettled` are keys whose latest writes may not be committed at all
    /// workers. Returns true if there is more to do at once.
    pub fn poll(
        &mut self,
        now: Now,
        period_us: u64,
        (shard, placement): (&mut Shard, &Placement),
        unsettled: &dyn Fn(u8, &[u8]) -> bool,
        out: &mut Outbox,
    ) -> bool {
        self.note_lead(now);
        if std::mem::take(&mut self.has_acted) {
            let done = self.release_dropped(now, (&mut *shard, placement));
            debug_assert!(done.is_ok(), "what is no batch was not let in");
        }
        let more = self.forget(now, shard);
        self.unsettled = false;
        if self.heard.is_alone() {
            let changes = shard.changeset();
            if changes.updates() > 0 || !changes.is_empty() {
                changes.clear();
            }
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

    /// Whether the messages of the last [`Replicas::poll`] contain writes of commands over several workers that may
    /// not be committed at all of them: these messages and all later ones have to wait for that.
    pub fn shows_unsettled(&self) -> bool {
        self.unsettled
    }

    fn is_due(&self, now: Now, period_us: u64, shard: &mut Shard) -> bool {
        let due = self.due_us(period_us).is_some_and(|at| at <= now.mono_us);
        due || shard.changeset().bytes() > MOST_CHANGES_BYTES
    }

    /// Takes the changes of the epoch, and dates its report.
    fn begin(&mut self, now: Now, shard: &mut Shard) {
        let spare = std::mem::take(&mut self.spare);
        let changes = std::mem::replace(shard.changeset(), spare);
        let date = self.stamp(now).time;
        let mut said = Said {
            upto: date,
            least: self.heard.least(),
            horizon: self.heard.horizon(),
            needed: self.heard.least_needed(),
        };
        for &(upto, least) in self.promises.values() {
            said.upto = said.upto.min(upto);
            said.least = said.least.min(least);
            // What was read for a command reflects no more than that, and its writes are still to come.
            said.horizon = said.horizon.min(least);
        }
        if !self.keeps_all {
            shard.horizons_mut().raise(said.horizon);
            // The horizon does not fall when other workers join.
            self.heard.pass(said.horizon);
        }
        if self.heard.has_nodes() {
            shard.horizons_mut().report(date);
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
            after: self.vector(date),
        });
    }

    /// What the changes of an epoch with this date may depend on: what was sent by others, and the worker's own last epoch
    /// with such changes before.
    fn vector(&mut self, date: u64) -> Vec<(u16, u64)> {
        let own = (self.replica, *self.changed.get_or_insert(date));
        std::iter::once(own).chain(self.heard.vector()).collect()
    }

    /// Sends some of the epoch's changes, and the report with the last of them.
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
        // Other nodes will receive the contents of files by a comparison anyway.
        let others = !self.keeps_all && placement.workers() < self.heard.len();
        let who = (self.own, self.replica, others);
        let mut streams = Streams::new(who, placement, self.clock.last());
        let end = epoch.changes.len();
        // Changes that have to be applied together are sent as of one instant.
        let whole = placement.any_lattice(Keyspace::is_cut);
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
            if changed.delta.is_some() && self.whole.takes(now, changed, shard) {
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
        if streams.send(out, &mut self.figures) {
            self.changed = Some(epoch.date);
        }
        if epoch.next < end {
            self.epoch = Some(epoch);
            return;
        }
        self.report(placement, &epoch, out);
        self.ended = epoch.date;
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
}
