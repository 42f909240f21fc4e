//! Messages from other workers, of this node and of others: merged at once, or when what they depend on has been
//! received.

use super::Replicas;
use super::inbox::{Lane, Message, Waiting};
use crate::batch::{Batch, Body, Item, Items, Report};
use crate::member;
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_lattice::Stamp;
use rufous_store::effect::NotAnEffect;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::{Shard, merging, told};
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
        if let Some(of) = batch.relayed().filter(|_| !is_here) {
            if !self.heard.is_here(of.origin) {
                self.relayed.receive(batch.from, of, bytes);
            }
            return Ok(());
        }
        match batch.body {
            Body::Begin(_) => self.relayed.on_begin(batch.from),
            Body::Report(_) => self.relayed.on_report(batch.from),
            _ => {}
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
        let is_behind = self.inbox.get(&batch.from).is_some_and(|waiting| {
            let lane = Lane::of(&batch.body);
            lane.is_none_or(|lane| !waiting.lane(lane).is_empty())
        });
        if waits || is_behind {
            let waiting = self.inbox.entry(batch.from).or_default();
            waiting.put(&batch, &bytes);
            return self.release(now, (shard, placement));
        }
        self.take(now, (&mut *shard, placement), (&batch, &bytes))?;
        // Other messages may have waited for this report.
        let waits = !self.inbox.is_empty() || !self.relayed.is_empty();
        if matches!(batch.body, Body::Report(_)) && waits {
            return self.release(now, (shard, placement));
        }
        Ok(())
    }

    /// Workers of other nodes of which too much waits here: their streams are to begin again.
    pub fn overflowed(&mut self) -> Vec<u16> {
        let heard = &self.heard;
        let others = self.inbox.iter_mut();
        let others = others.filter(|(from, _)| !heard.is_here(**from));
        let all = others.filter_map(|(from, waiting)| waiting.overflows().then_some(*from));
        let all: Vec<u16> = all.collect();
        self.figures.overflows += all.len() as u64;
        all
    }

    /// Workers whose messages wait for what they depend on.
    pub fn senders_held_back(&self) -> impl Iterator<Item = u16> {
        self.inbox.keys().copied()
    }

    /// Applies all waiting messages of a sender.
    fn apply_all(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        from: u16,
    ) -> Result<(), NotAnEffect> {
        let waiting = self.inbox.remove(&from).unwrap_or_default();
        for Message { bytes, .. } in waiting.into_all() {
            let batch = Batch::decode(&bytes)?;
            self.take(now, (&mut *shard, placement), (&batch, &bytes))?;
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
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            let senders: Vec<u16> = self.inbox.keys().copied().collect();
            for from in senders {
                while let Some(ready) = self.take_ready(from)? {
                    goes_on = true;
                    for Message { bytes, .. } in ready {
                        let batch = Batch::decode(&bytes)?;
                        self.take(now, (&mut *shard, placement), (&batch, &bytes))?;
                    }
                }
                if self.inbox.get(&from).is_some_and(Waiting::is_empty) {
                    self.inbox.remove(&from);
                }
            }
            goes_on |= self.apply_relayed(now, (&mut *shard, placement))?;
        }
        Ok(())
    }

    /// Applies an epoch that others have sent on, if one can be. True if one was.
    fn apply_relayed(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
    ) -> Result<bool, NotAnEffect> {
        for (origin, from, to) in self.relayed.empty_spans() {
            if self.heard.sent(origin) >= from {
                self.heard.hear_of(origin, to);
            }
        }
        let heard = &self.heard;
        let sent = |origin| heard.sent(origin);
        let covers = |origin, after: &[_]| heard.covers(origin, after);
        let Some((origin, date, messages)) = self.relayed.take(sent, covers) else {
            return Ok(false);
        };
        for bytes in messages {
            let mut batch = Batch::decode(&bytes)?;
            // It was made with what its own sender knew.
            batch.from = origin;
            if batch.newest > 0 {
                self.apply(now, (&mut *shard, placement), &batch)?;
            }
        }
        self.heard.hear_of(origin, date);
        self.relay.on_relayed(origin, date);
        self.figures.relayed_epochs += 1;
        Ok(true)
    }

    /// Applies what its sender has sent here itself.
    fn take(
        &mut self,
        now: Now,
        parts: (&mut Shard, &Placement),
        (batch, bytes): (&Batch<'_>, &Arc<[u8]>),
    ) -> Result<(), NotAnEffect> {
        let placement = parts.1;
        match &batch.body {
            Body::Items(_) | Body::Ordered { .. } => self.heard.on_part(batch.from),
            Body::ToldAgain(_) => {
                self.heard.on_part(batch.from);
                self.told_again = self.told_again.max(batch.newest);
            }
            Body::Report(_) | Body::Begin(_) => {}
        }
        self.apply(now, parts, batch)?;
        self.keep(batch, bytes, placement);
        Ok(())
    }

    /// Keeps changes of other nodes for the case that these go away.
    fn keep(&mut self, batch: &Batch<'_>, bytes: &Arc<[u8]>, placement: &Placement) {
        let from = batch.from;
        let is_mine = usize::from(from) % placement.workers() == self.own.index();
        if !is_mine || self.heard.is_here(from) {
            return;
        }
        match &batch.body {
            Body::Begin(_) => self.relay.on_begin(from),
            Body::Ordered { after, .. } if !after.is_empty() => self.relay.on_changes(from, bytes),
            Body::Report(report) => {
                let heard = &self.heard;
                self.relay
                    .on_report((from, report.sent), || heard.horizon());
            }
            _ => {}
        }
    }

    /// Messages for all other nodes with what a node had sent here that is away.
    pub fn relay(&mut self, node: u16) -> Vec<Arc<[u8]>> {
        let all = self.relay.of_node(node, self.replica, &self.heard);
        // What is kept was decoded before.
        let all = all.unwrap_or_default();
        if !all.is_empty() {
            // They are whole when a report follows.
            self.start();
        }
        all
    }

    /// Messages of a sender that are to be applied now, together. A report comes before changes of the next epoch.
    fn take_ready(&mut self, from: u16) -> Result<Option<Vec<Message>>, NotAnEffect> {
        let Some(waiting) = self.inbox.get_mut(&from) else {
            return Ok(None);
        };
        if let Some(report) = waiting.pop_report() {
            return Ok(Some(vec![report]));
        }
        for lane in Lane::ALL {
            let count = match self.inbox.get(&from) {
                Some(waiting) => self.ready(from, waiting, lane)?,
                None => 0,
            };
            if let Some(waiting) = self.inbox.get_mut(&from).filter(|_| count > 0) {
                let all = (0..count).filter_map(|_| waiting.pop(lane));
                return Ok(Some(all.collect()));
            }
        }
        Ok(None)
    }

    /// The number of a sender's messages in a lane that can be applied now: messages that must be applied together only
    /// if all of them up to a report have been received.
    fn ready(&self, from: u16, waiting: &Waiting, lane: Lane) -> Result<usize, NotAnEffect> {
        let all = waiting.lane(lane);
        let Some(first) = all.front() else {
            return Ok(0);
        };
        let batch = Batch::decode(&first.bytes)?;
        if self.heard.is_here(from) && batch.flushes > self.flushes {
            return Ok(0);
        }
        if !matches!(batch.body, Body::Ordered { .. }) {
            return Ok(1);
        }
        let Some(end) = waiting.end_of(first.number) else {
            return Ok(0);
        };
        let epoch = all.iter().take_while(|message| message.number < end);
        for message in epoch.clone() {
            let batch = Batch::decode(&message.bytes)?;
            let is_flushed = !self.heard.is_here(from) || batch.flushes <= self.flushes;
            let is_covered = match &batch.body {
                Body::Ordered { after, .. } => self.heard.covers(from, after),
                _ => true,
            };
            if !is_flushed || !is_covered {
                return Ok(0);
            }
        }
        Ok(epoch.count())
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
