//! Messages from other workers, of this node and of others: merged at once, or when what they depend on has been
//! received.

use super::Replicas;
use crate::batch::{Batch, Body, Item, Items, Report};
use crate::member;
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_lattice::Stamp;
use rufous_store::effect::NotAnEffect;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::{Shard, merging, told};
use std::collections::VecDeque;
use std::sync::Arc;

impl Replicas {
    /// Receives a message of another worker.
    pub fn receive(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        bytes: Arc<[u8]>,
    ) -> Result<(), NotAnEffect> {
        let batch = Batch::decode(&bytes)?;
        let is_here = self.heard.is_here(batch.from);
        if let Body::Begin(begin) = &batch.body {
            if is_here {
                return Err(NotAnEffect);
            }
            let node = member::node_of(batch.from);
            self.heard.meet(node, begin.workers as usize);
        }
        let is_loose = matches!(batch.body, Body::Begin(_))
            || self.loose.contains(&batch.from)
            || self.heard.is_dropped(batch.from);
        if is_loose && self.inbox.contains_key(&batch.from) {
            // The rest of what it had to be applied together with will not be received any more.
            self.apply_all(now, (&mut *shard, placement), batch.from)?;
        }
        let waits = matches!(batch.body, Body::Ordered { .. }) && !is_loose;
        let waits = waits && !planted::is(Planted::EpochInParts);
        let waits = waits || (is_here && batch.flushes > self.flushes);
        if waits || self.inbox.contains_key(&batch.from) {
            self.inbox.entry(batch.from).or_default().push_back(bytes);
            return self.release(now, (shard, placement));
        }
        self.apply(now, (&mut *shard, placement), &batch)?;
        // Other messages may have waited for this report.
        if matches!(batch.body, Body::Report(_)) && !self.inbox.is_empty() {
            return self.release(now, (shard, placement));
        }
        Ok(())
    }

    /// Applies all waiting messages of a sender.
    fn apply_all(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        from: u16,
    ) -> Result<(), NotAnEffect> {
        for bytes in self.inbox.remove(&from).unwrap_or_default() {
            self.apply(now, (&mut *shard, placement), &Batch::decode(&bytes)?)?;
        }
        Ok(())
    }

    /// Applies the messages that wait for nodes that were dropped, or come from them: what they lack will not be sent
    /// any more.
    pub(super) fn release_dropped(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
    ) -> Result<(), NotAnEffect> {
        let some = self.inbox.keys().copied();
        let dropped: Vec<u16> = some.filter(|&from| self.heard.is_dropped(from)).collect();
        for from in dropped {
            self.apply_all(now, (&mut *shard, placement), from)?;
        }
        self.release(now, (shard, placement))
    }

    /// Applies the messages whose dependencies have been received.
    pub fn release(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
    ) -> Result<(), NotAnEffect> {
        while let Some((from, ready)) = self.some_ready()? {
            for _ in 0..ready {
                let queue = self.inbox.get_mut(&from);
                if let Some(bytes) = queue.and_then(VecDeque::pop_front) {
                    self.apply(now, (&mut *shard, placement), &Batch::decode(&bytes)?)?;
                }
            }
            if self.inbox.get(&from).is_some_and(VecDeque::is_empty) {
                self.inbox.remove(&from);
            }
        }
        Ok(())
    }

    /// The first sender with applicable messages, and their number.
    fn some_ready(&self) -> Result<Option<(u16, usize)>, NotAnEffect> {
        for (&from, queue) in &self.inbox {
            match self.ready(from, queue)? {
                0 => {}
                ready => return Ok(Some((from, ready))),
            }
        }
        Ok(None)
    }

    /// The number of a sender's messages that can be applied now: messages that must be applied together only if all
    /// of them up to a report have been received.
    fn ready(&self, from: u16, queue: &VecDeque<Arc<[u8]>>) -> Result<usize, NotAnEffect> {
        let is_here = self.heard.is_here(from);
        let mut together = false;
        for (at, bytes) in queue.iter().enumerate() {
            let batch = Batch::decode(bytes)?;
            if is_here && batch.flushes > self.flushes {
                return Ok(0);
            }
            match batch.body {
                Body::Ordered { after, .. } if self.heard.covers(from, &after) => together = true,
                Body::Ordered { .. } => return Ok(0),
                Body::Report(_) => return Ok(at + 1),
                _ if !together => return Ok(at + 1),
                _ => {}
            }
        }
        Ok(0)
    }

    fn apply(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        batch: &Batch<'_>,
    ) -> Result<(), NotAnEffect> {
        self.observe(Stamp {
            time: batch.newest,
            ..Stamp::ZERO
        });
        shard.reach(self.stamp_us());
        match &batch.body {
            Body::Items(items) | Body::Ordered { items, .. } | Body::ToldAgain(items) => {
                self.merge(now, (shard, placement), batch, *items)
            }
            Body::Report(report) => {
                self.loose.remove(&batch.from);
                self.on_report(now, batch.from, report);
                Ok(())
            }
            Body::Begin(begin) => {
                self.loose.insert(batch.from);
                self.on_begin(shard, batch.from, begin);
                Ok(())
            }
        }
    }

    fn merge(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        batch: &Batch<'_>,
        items: Items<'_>,
    ) -> Result<(), NotAnEffect> {
        // A worker that received it earlier sent it to all others when the node was dropped. This worker may have
        // done so already, without this message.
        let is_late = self.heard.is_dropped(batch.from);
        shard
            .horizons_mut()
            .merge_from(self.heard.known_to(batch.from));
        let done = self.merge_all(now, (&mut *shard, placement), (batch, items), is_late);
        shard.horizons_mut().merge_own();
        if is_late {
            self.wrote(now, shard.changeset());
        }
        done
    }

    fn merge_all(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        (batch, items): (&Batch<'_>, Items<'_>),
        is_late: bool,
    ) -> Result<(), NotAnEffect> {
        let is_here = self.heard.is_here(batch.from);
        let merge = match (&batch.body, is_here) {
            (_, true) => merging::merge,
            (Body::ToldAgain(_), false) => told::merge_again,
            (_, false) => told::merge,
        };
        let flushed_at = match is_here {
            true => self.flushed_at,
            false => [0; DATABASES],
        };
        let mut items = items.peekable();
        let mut some = Vec::with_capacity(Shard::WARMED);
        while items.peek().is_some() {
            some.clear();
            for item in items.by_ref().take(Shard::WARMED) {
                let item = item?;
                // Another node sends the same messages to all workers of this one.
                if !is_here && !placement.has_replica(item.key) {
                    continue;
                }
                some.push((usize::from(item.db), shard.key(item.key), item));
            }
            shard.warm(some.iter().map(|&(db, key, _)| (db, key.hash)));
            for &(db, key, Item { tag, chunk, .. }) in &some {
                // A flush has removed what was sent before it.
                if batch.flushes < flushed_at[db] {
                    continue;
                }
                self.figures.merged_items += 1;
                if merge(&mut shard.at(db, key, now), tag, chunk)? && is_late {
                    shard.changeset().touch(db as u8, key);
                }
            }
        }
        Ok(())
    }

    fn on_report(&mut self, now: Now, from: u16, report: &Report) {
        self.heard.hear(from, report);
        self.wanted = self.wanted.max(report.wanted);
        if self.has_to_say_so() {
            self.start();
        }
        if report.since_us > 0 {
            let stale = now.unix_us.saturating_sub(report.since_us);
            self.figures.stale_max_us = self.figures.stale_max_us.max(stale);
            self.figures.stale_sum_us += stale;
            self.figures.stale_epochs += 1;
        }
    }
}
