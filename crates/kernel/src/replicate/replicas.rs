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
//! 3. A change that is not sent with its epoch, as its key is held, is withheld:
//!    reports go no further than they did before it. Where others are to take
//!    over together what is sent, the epoch waits until no such key is held.
//! 4. Whatever was merged is below the stamps of later writes here.

mod drained;

use super::batch::{Batch, Body, Item, Items, Report};
use super::changeset::Changeset;
use super::epoch::{Epoch, Fresh, Said};
pub use super::figures::Figures;
use super::heard::Heard;
use super::streams::{Streams, write};
use super::withheld::{Withheld, is_held_up, is_ordered};
use crate::durable::effect::NotAnEffect;
use crate::placement::Placement;
use crate::planted::{self, Planted};
use crate::shard::Shard;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use rufous_lattice::{Clock, Stamp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Keys that are sent, or looked at to be forgotten, in one step.
const KEYS_PER_STEP: usize = 2048;
/// An epoch ends early when its changes take so much.
const MOST_CHANGES_BYTES: usize = 16 << 20;

/// Epochs that wait for held keys are looked at so often.
const RETRY_US: u64 = 1_000;

/// Messages by receiver, in order.
pub type Outbox = Vec<(WorkerId, Arc<[u8]>)>;

/// See the module's description.
#[derive(Debug)]
pub struct Replicas {
    own: WorkerId,
    clock: Clock,
    heard: Heard,
    /// How often databases were flushed, and each of them at which count.
    flushes: u64,
    flushed_at: [u64; DATABASES],
    /// Up to where, and the least heard, may be said meanwhile.
    promises: BTreeMap<u64, (u64, u64)>,
    withheld: Withheld,
    /// Nothing is forgotten, and nothing makes way.
    keeps_all: bool,
    /// An epoch that waits for held keys is looked at again then.
    waits_us: u64,
    epoch: Option<Epoch>,
    spare: Changeset,
    fresh: Option<Fresh>,
    /// Messages that wait, by sender.
    inbox: Vec<VecDeque<Arc<[u8]>>>,
    /// Somebody wants to forget what was removed up to this.
    wanted: u64,
    said: Said,
    /// The last epoch ended, or a report was asked for here.
    asked_us: u64,
    /// What was removed up to this has been forgotten.
    forgotten: u64,
    figures: Figures,
}

impl Replicas {
    pub fn new(own: WorkerId, workers: usize) -> Self {
        Self {
            own,
            clock: Clock::new(own.0),
            heard: Heard::new(own.index(), workers),
            flushes: 0,
            flushed_at: [0; DATABASES],
            promises: BTreeMap::new(),
            withheld: Withheld::default(),
            keeps_all: false,
            waits_us: 0,
            epoch: None,
            spare: Changeset::default(),
            fresh: None,
            inbox: (0..workers).map(|_| VecDeque::new()).collect(),
            wanted: 0,
            said: Said::default(),
            asked_us: 0,
            forgotten: 0,
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
        self.withheld.forget_db(db as u8);
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
        let held_back = self.inbox.iter().map(VecDeque::len).sum::<usize>();
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
            false => self.due_us(period_us).map(|at| at.max(self.waits_us)),
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
        if self.inbox.len() == 1 {
            return false;
        }
        let Said {
            upto,
            least,
            horizon,
        } = self.said;
        self.wanted > upto.min(least).min(horizon).min(self.heard.settled())
    }

    /// Takes replication further by a bounded step. `held` are keys that must
    /// not be shown as they are now. True where there is more to do at once.
    pub fn poll(
        &mut self,
        now: Now,
        period_us: u64,
        (shard, placement): (&mut Shard, &Placement),
        held: &dyn Fn(u8, &[u8]) -> bool,
        out: &mut Outbox,
    ) -> bool {
        let more = self.forget(now, shard);
        if placement.workers() == 1 {
            shard.changeset().clear();
            self.fresh = None;
            return more;
        }
        if self.epoch.is_none() && self.is_due(now, period_us, shard) {
            match is_held_up(shard, placement, held) {
                true => self.waits_us = now.mono_us + RETRY_US,
                false => self.begin(now, shard),
            }
        }
        if self.epoch.is_some() {
            self.send(now, (shard, placement), held, out);
        }
        more || self.epoch.is_some()
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
        if !self.keeps_all {
            shard.set_horizon(said.horizon);
        }
        for &(upto, least) in self.promises.values() {
            said.upto = said.upto.min(upto);
            said.least = said.least.min(least);
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
            after: self.heard.vector().to_vec(),
        });
    }

    /// Sends some of the epoch's changes; with the last of them the report.
    fn send(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        held: &dyn Fn(u8, &[u8]) -> bool,
        out: &mut Outbox,
    ) {
        let Some(mut epoch) = self.epoch.take() else {
            return;
        };
        let mut streams = Streams::new(self.own, placement, self.clock.last());
        let end = epoch.changes.len();
        // What is to be taken over together is sent as of one instant.
        let whole = placement.any_lattice(is_ordered);
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
            let Some(changed) = changed else { break };
            if planted::is(Planted::ChangeNotSent) && planted::now_and_then() {
                continue;
            }
            let Some(keyspace) = placement.lattice(changed.key.bytes) else {
                continue;
            };
            if held(changed.db, changed.key.bytes) {
                self.withheld
                    .leave_out(changed.db, changed.key.bytes, self.said.upto);
                shard.changeset().touch(changed.db, changed.key);
                self.wrote(now, shard.changeset());
                continue;
            }
            self.withheld.send(changed.db, changed.key.bytes);
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
        epoch.said.upto = epoch.said.upto.min(self.withheld.limit());
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
        };
        let bytes = report.encode(self.own.0, epoch.flushes);
        for worker in 0..placement.workers() {
            let to = WorkerId(worker as u16);
            if to != self.own {
                self.figures.sent_messages += 1;
                self.figures.sent_bytes += bytes.len() as u64;
                out.push((to, Arc::clone(&bytes)));
            }
        }
    }

    fn forget(&mut self, now: Now, shard: &mut Shard) -> bool {
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

    /// Takes a message of another worker.
    pub fn receive(
        &mut self,
        now: Now,
        shard: &mut Shard,
        bytes: Arc<[u8]>,
    ) -> Result<(), NotAnEffect> {
        let batch = Batch::decode(&bytes)?;
        let from = usize::from(batch.from);
        let Some(queue) = self.inbox.get_mut(from) else {
            return Err(NotAnEffect);
        };
        let waits = matches!(batch.body, Body::Ordered { .. });
        let waits = waits && !planted::is(Planted::EpochInParts);
        if waits || batch.flushes > self.flushes || !queue.is_empty() {
            queue.push_back(bytes);
            return self.release(now, shard);
        }
        self.apply(now, shard, &batch)?;
        // Others may have waited for what was heard.
        if matches!(batch.body, Body::Report(_)) && self.inbox.iter().any(|q| !q.is_empty()) {
            return self.release(now, shard);
        }
        Ok(())
    }

    /// Takes what has waited for what is here by now.
    pub fn release(&mut self, now: Now, shard: &mut Shard) -> Result<(), NotAnEffect> {
        let mut from = 0;
        while from < self.inbox.len() {
            let ready = self.ready(from)?;
            for _ in 0..ready {
                if let Some(bytes) = self.inbox[from].pop_front() {
                    self.apply(now, shard, &Batch::decode(&bytes)?)?;
                }
            }
            // What was heard may let others go on.
            from = if ready > 0 { 0 } else { from + 1 };
        }
        Ok(())
    }

    /// How many of a sender's messages can be taken now: those that need not
    /// be taken together with what has not come, up to a report.
    fn ready(&self, from: usize) -> Result<usize, NotAnEffect> {
        let mut together = false;
        for (at, bytes) in self.inbox[from].iter().enumerate() {
            let batch = Batch::decode(bytes)?;
            if batch.flushes > self.flushes {
                return Ok(0);
            }
            match batch.body {
                Body::Ordered { after, .. } if self.heard.covers(from, &after) => together = true,
                Body::Ordered { .. } => return Ok(0),
                Body::Items(_) if !together => return Ok(at + 1),
                Body::Items(_) => {}
                Body::Report(_) => return Ok(at + 1),
            }
        }
        Ok(0)
    }

    fn apply(&mut self, now: Now, shard: &mut Shard, batch: &Batch<'_>) -> Result<(), NotAnEffect> {
        self.observe(Stamp {
            time: batch.newest,
            ..Stamp::ZERO
        });
        match &batch.body {
            Body::Items(items) | Body::Ordered { items, .. } => {
                self.merge(now, shard, batch.flushes, *items)
            }
            Body::Report(report) => {
                self.on_report(now, usize::from(batch.from), report);
                Ok(())
            }
        }
    }

    fn merge(
        &mut self,
        now: Now,
        shard: &mut Shard,
        flushes: u64,
        items: Items<'_>,
    ) -> Result<(), NotAnEffect> {
        let mut items = items.peekable();
        let mut some = Vec::with_capacity(Shard::WARMED);
        while items.peek().is_some() {
            some.clear();
            for item in items.by_ref().take(Shard::WARMED) {
                let item = item?;
                some.push((usize::from(item.db), shard.key(item.key), item));
            }
            shard.warm(some.iter().map(|&(db, key, _)| (db, key.hash)));
            for &(db, key, Item { tag, chunk, .. }) in &some {
                // What was sent before a flush went with it.
                if flushes < self.flushed_at[db] {
                    continue;
                }
                self.figures.merged_items += 1;
                shard.merge(db, key, tag, chunk, now)?;
            }
        }
        Ok(())
    }

    fn on_report(&mut self, now: Now, from: usize, report: &Report) {
        self.heard
            .hear(from, report.upto, report.least, report.horizon);
        self.heard.hear_sent(from, report.sent);
        self.wanted = self.wanted.max(report.wanted);
        if report.since_us > 0 {
            let stale = now.unix_us.saturating_sub(report.since_us);
            self.figures.stale_max_us = self.figures.stale_max_us.max(stale);
            self.figures.stale_sum_us += stale;
            self.figures.stale_epochs += 1;
        }
    }
}
