//! The worker's part in linear transactions: letters are posted and read, and heads act on the worker's keys.

use super::again::At;
use super::entries::{name_of, unmark_loss};
use super::keys::Keys;
use super::letter::{Letter, Place, Posted, txn_of, worker_of};
use super::losses::Losses;
use super::starting::Starts;
use super::typing::KeyOp;
use super::{Seat, is_from};
use crate::body::without_changes;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::worker::{Message as Between, Outcome as Result, Worker};
use rufous_base::slot::worker_of_slot;
use rufous_base::{Now, Until, WorkerId};
use rufous_chain::Peer;
use rufous_linear::stored::Write;
use rufous_linear::{Head, Message, Outcome, Output, Record, To, TxnId};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Outputs = Vec<Output<KeyOp>>;

/// A worker, for the time of an event of its linear transactions.
pub(in crate::worker) struct Heads<'w, P: Program> {
    pub(in crate::worker) worker: &'w mut Worker<P>,
}

/// Letters.
impl<P: Program> Heads<'_, P> {
    /// Posts what an origin of this worker has put out.
    pub(super) fn post_all(&mut self, out: Outputs) {
        for output in out {
            if let Output::Send(to, message) | Output::SendSynced(to, message) = output
                && let Some(letter) = self.letter(Place::Origin, to, message)
            {
                self.post(letter);
            }
        }
    }

    pub(super) fn letter(
        &self,
        from: Place,
        to: To,
        mut message: Message<KeyOp>,
    ) -> Option<Letter> {
        let to = match to {
            To::Slot(slot) => self.place_of(slot)?,
            To::Origin { .. } => Place::Origin,
        };
        if let Message::Outcome { told, outcome, .. } = &mut message
            && *outcome == Outcome::Committed
            && let Some(less) = without_changes(told)
        {
            *told = less.into();
        }
        Some(Letter { from, to, message })
    }

    fn place_of(&self, slot: u16) -> Option<Place> {
        let since = self.mapping()?.chains.of(slot).since;
        Some(Place::Slot { slot, since })
    }

    pub(super) fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.worker.chains.as_ref()?.mapping()
    }

    /// The worker that a letter is for now, if there is one: a node may have started again, with fewer workers.
    pub(super) fn receiver(&self, letter: &Letter) -> Option<Peer> {
        let mapping = self.mapping()?;
        match letter.to {
            Place::Slot { slot, .. } => {
                let node = mapping.chains.of(slot).head()?;
                let worker = match self.worker.linear.own {
                    Some((own, _)) if own == node => {
                        worker_of_slot(slot, self.worker.placement.workers()).0
                    }
                    _ => mapping.members.get(&node)?.worker_of(slot),
                };
                Some(Peer { node, worker })
            }
            Place::Origin => {
                let txn = txn_of(&letter.message)?;
                let (node, worker) = (NodeNo(txn.node), worker_of(txn));
                let (start, workers) = match self.worker.linear.own {
                    Some((own, start)) if own == node => (start, self.worker.placement.workers()),
                    _ => {
                        let member = mapping.members.get(&node)?;
                        (member.incarnation, usize::from(member.workers))
                    }
                };
                let is_there = txn.start == start && usize::from(worker) < workers;
                is_there.then_some(Peer { node, worker })
            }
        }
    }

    /// Sends a letter that waits for nothing more.
    pub(in crate::worker) fn post(&mut self, letter: Letter) {
        let (Some(to), Some((own, _))) = (self.receiver(&letter), self.worker.linear.own) else {
            return;
        };
        if to.node != own {
            self.worker.linear.posted.push(Posted { to, letter });
        } else if to.worker == self.worker.id.0 {
            self.worker.linear.inbox.push_back((own, letter));
        } else {
            let between = Between::Letter(own, Box::new(letter));
            self.worker.send(WorkerId(to.worker), between);
        }
    }

    /// Reads letters for heads and origins here, and looks at transactions whose keys are free by now.
    #[inline]
    pub(in crate::worker) fn read_letters(&mut self, now: Now) {
        if self.worker.linear.is_freed || !self.worker.linear.inbox.is_empty() {
            self.read_all(now);
        }
    }

    fn read_all(&mut self, now: Now) {
        loop {
            if let Some((from, letter)) = self.worker.linear.inbox.pop_front() {
                self.read(now, from, letter);
            } else if std::mem::take(&mut self.worker.linear.is_freed) {
                let slots: Vec<u16> = self.worker.linear.queued.iter().copied().collect();
                for slot in slots {
                    self.at_seat(now, slot, |head, keys, out| head.on_free(keys, out));
                }
            } else {
                return;
            }
        }
    }

    fn read(&mut self, now: Now, from: NodeNo, letter: Letter) {
        if !self.is_current(now, from, &letter) {
            return;
        }
        let from = match letter.from {
            Place::Slot { slot, .. } => Some(slot),
            Place::Origin => None,
        };
        match (letter.to, letter.message) {
            (at @ Place::Slot { .. }, question @ Message::Read { .. }) => {
                self.on_read(now, at, question);
            }
            (Place::Origin, Message::Values { txn, seen, told }) => {
                if let Some(slot) = from {
                    self.on_values(now, (txn, slot), (seen, told));
                }
            }
            (
                Place::Slot { .. },
                message @ (Message::Survey { .. }
                | Message::Surveyed { .. }
                | Message::Recall { .. }
                | Message::Recalled { .. }),
            ) => self.on_of_survey(now, (letter.from, letter.to), message),
            (Place::Slot { slot, .. }, mut message) => {
                if let Some(txn) = message.brought() {
                    *txn = self.worker.linear.typed::<P>(now, txn);
                }
                self.at_seat(now, slot, |head, keys, out| {
                    head.on_message(from, message, keys, out);
                });
            }
            (Place::Origin, message) => self.on_outcome(now, from, message),
        }
    }

    /// A question of a survey, or an answer.
    fn on_of_survey(&mut self, now: Now, ends: (Place, Place), mut message: Message<KeyOp>) {
        if let Some(txn) = message.brought() {
            *txn = self.worker.linear.typed::<P>(now, txn);
        }
        let heads = Heads {
            worker: self.worker,
        };
        Losses(heads).on_message(now, ends, message);
        let worker = &mut *self.worker;
        Starts(Heads { worker }).start(now);
    }

    /// Whether sender and receiver are what the sender took them for.
    fn is_current(&self, now: Now, from: NodeNo, letter: &Letter) -> bool {
        let Some(mapping) = self.mapping() else {
            return false;
        };
        let chains = self.worker.chains.as_ref();
        let is_any = planted::is(Planted::EarlierHeadsHeard);
        let reaches = match letter.to {
            Place::Slot { slot, since } => {
                let takes = chains.and_then(|chains| chains.takes_since(now, slot));
                let is_same = takes == Some(since) || is_any && takes.is_some();
                worker_of_slot(slot, self.worker.placement.workers()) == self.worker.id && is_same
            }
            Place::Origin => txn_of(&letter.message).is_some_and(|txn| {
                self.worker.linear.is_own(txn) && is_from(txn, self.worker.id.0)
            }),
        };
        let is_from = match letter.from {
            Place::Slot { slot, since } => {
                let chain = mapping.chains.of(slot);
                is_any || (chain.head(), chain.since) == (Some(from), since)
            }
            Place::Origin => {
                let start = mapping.members.get(&from).map(|member| member.incarnation);
                let txn = txn_of(&letter.message);
                txn.is_some_and(|txn| (txn.node, Some(txn.start)) == (from.0, start))
            }
        };
        reaches && is_from
    }
}

/// Heads.
impl<P: Program> Heads<'_, P> {
    /// Lets the head of a slot act, and then those of other slots here that need not wait for its messages.
    pub(super) fn at_seat(
        &mut self,
        now: Now,
        slot: u16,
        act: impl FnOnce(&mut Head<KeyOp>, &mut Keys<'_, P>, &mut Outputs),
    ) {
        let mut has_ended = self.at_one(now, slot, act);
        while let Some((slot, ahead)) = self.worker.linear.beside.pop_front() {
            if worker_of_slot(slot, self.worker.placement.workers()) == self.worker.id {
                let act = |head: &mut Head<KeyOp>, keys: &mut Keys<'_, P>, out: &mut Outputs| {
                    head.on_ahead(ahead, keys, out);
                };
                has_ended |= self.at_one(now, slot, act);
            }
        }
        if has_ended {
            self.worker.serve_waiters(now);
            self.worker.run_parked_for(now);
        }
        self.worker.end_long_frame();
    }

    /// Lets the head of a slot act, keeps what it records, and sends its messages when that is kept. True if it has let go of
    /// keys.
    fn at_one(
        &mut self,
        now: Now,
        slot: u16,
        act: impl FnOnce(&mut Head<KeyOp>, &mut Keys<'_, P>, &mut Outputs),
    ) -> bool {
        let takes = self.worker.chains.as_ref();
        let Some(since) = takes.and_then(|chains| chains.takes_since(now, slot)) else {
            return false;
        };
        if self.worker.linear.awaits_survey(slot) {
            return false;
        }
        if self.worker.linear.open.contains(&slot) {
            let worker = &mut *self.worker;
            Starts(Heads { worker }).make(now, slot, since);
        }
        let mut seat = self.worker.linear.take_seat(slot, since);
        let mut out = Vec::new();
        if !seat.is_started {
            self.start_seat(now, &mut seat, &mut out);
        }
        let mut keys = Keys {
            worker: self.worker,
            now,
            since,
        };
        act(&mut seat.head, &mut keys, &mut out);
        self.worker.linear.figures.shared += seat.head.take_shared();
        let has_ended = self.keep(now, slot, &mut seat, &out);
        let from = Place::Slot {
            slot,
            since: seat.since,
        };
        self.worker.linear.put_seat(slot, seat);
        for output in out {
            let (to, message, is_synced) = match output {
                Output::Send(to, message) => (to, message, true),
                Output::SendSynced(to, message) => (to, message, false),
                Output::Beside(slot, ahead) => {
                    self.worker.linear.beside.push_back((slot, ahead));
                    continue;
                }
                Output::Record(_) => continue,
            };
            if let Some(letter) = self.letter(from, to, message) {
                if planted::is(Planted::LettersNotAwaited) {
                    self.post(letter);
                    continue;
                }
                if !is_synced && self.worker.awaits_sync() {
                    let position = self.worker.position();
                    self.worker.linear.unsynced.push(position, slot, letter);
                    continue;
                }
                self.post_after(now, &[slot], letter);
            }
        }
        has_ended
    }

    /// Keeps what a head has recorded. True if it has let go of keys.
    fn keep(&mut self, now: Now, slot: u16, seat: &mut Seat, out: &Outputs) -> bool {
        let records = out.iter().filter_map(|output| match output {
            Output::Record(record) => Some(record),
            _ => None,
        });
        let mut has_ended = false;
        for record in records {
            let is_ahead = matches!(record, Record::Prepared { max: None, .. });
            self.worker.linear.figures.ahead += u64::from(is_ahead);
            has_ended |= !matches!(record, Record::Prepared { .. });
            if matches!(record, Record::Recovered) {
                self.worker.linear.lossy.remove(&slot);
                unmark_loss(slot, &mut self.worker.shard, now);
            }
            if let Some(id) = record.txn() {
                let write = seat.stored.on_change(id, seat.head.book().get(id));
                self.keep_entry(now, (slot, id), write);
            }
        }
        has_ended
    }

    /// Sends a letter of a slot when copies and the log have what was written so far.
    pub(super) fn post_after(&mut self, now: Now, slots: &[u16], letter: Letter) {
        let post = Between::Post(Box::new(letter));
        let own = self.worker.id;
        self.worker
            .send_after(now, slots, own, (Until::Logged, post));
    }

    /// The log has been synced further.
    #[inline]
    pub(in crate::worker) fn on_synced(&mut self, now: Now) {
        while let Some((slot, letter)) = {
            let synced = self.worker.commit.synced();
            self.worker.linear.unsynced.pop(synced)
        } {
            self.post_after(now, &[slot], letter);
        }
    }

    /// A head goes on from the book of the one before it.
    fn start_seat(&mut self, now: Now, seat: &mut Seat, out: &mut Outputs) {
        seat.is_started = true;
        let head = &mut seat.head;
        let slot = head.book().slot();
        self.worker.linear.pending.remove(&slot);
        let facts = self.worker.linear.survey.take(slot);
        let since = seat.since;
        let mut keys = Keys {
            worker: self.worker,
            now,
            since,
        };
        match facts.filter(|_| head.book().is_lost()) {
            Some(facts) => head.on_surveyed(&facts, &mut keys, out),
            None => head.on_start(&mut keys, out),
        }
        let starts = self.starts();
        for (node, _) in head.origins() {
            let start = starts.get(&node).copied().unwrap_or(u64::MAX);
            head.on_origin_start((node, start), out);
        }
        for peer in head.peers() {
            head.on_link(peer, out);
        }
    }

    /// The starts of all members.
    fn starts(&self) -> BTreeMap<u16, u64> {
        let members = self.mapping().map(|mapping| &mapping.members);
        let all = members.into_iter().flatten();
        all.map(|(no, member)| (no.0, member.incarnation)).collect()
    }

    fn keep_entry(&mut self, now: Now, (slot, id): (u16, TxnId), write: Write) {
        let (shard, name) = (&mut self.worker.shard, name_of(id));
        match write {
            Write::Set { txn, state } => shard.set_book(slot, &name, (&txn, &state), now),
            Write::Append { state } => shard.append_book(slot, &name, &state, now),
            Write::Remove => {
                shard.remove_book(slot, &name, now);
            }
        }
    }

    /// A mapping was applied to the slots here.
    pub(in crate::worker) fn on_mapping(&mut self, mapping: &Mapping, own: NodeNo) {
        let Some(chains) = &self.worker.chains else {
            return;
        };
        let start = chains.incarnation();
        let is_head = |slot| chains.is_head(slot);
        let here = (own, start);
        let lost = self
            .worker
            .linear
            .on_mapping(mapping, here, is_head, &self.worker.shard);
        for watcher in self.worker.linear.take_ended_watchers(mapping) {
            self.worker.shard.observers_mut().unwatch(watcher);
        }
        let lost = lost
            .into_iter()
            .map(|one| Result::Transacted(Box::new(one)));
        self.worker.out.outcomes.extend(lost);
        self.take_all_read();
    }

    /// Sends messages again of transactions that make no progress, if it is time. To be called periodically.
    pub(in crate::worker) fn look_after(&mut self, now: Now) {
        self.begin_again(now);
        self.look_after_reads(now);
        if self.worker.linear.is_idle() || !self.worker.linear.sending.is_due(now) {
            return;
        }
        let starts = self.starts();
        self.on_synced(now);
        Losses(Heads {
            worker: self.worker,
        })
        .look_after(now);
        let awaits_sync = self.worker.awaits_sync();
        let mut stuck = self.worker.linear.due(now, awaits_sync);
        if planted::is(Planted::LettersNotRepeated) {
            stuck.clear();
        }
        self.worker.linear.figures.again += stuck.len() as u64;
        self.worker.linear.on_freed();
        for at in stuck {
            match at {
                At::Slot(slot) => self.at_seat(now, slot, |head, _, out| {
                    for peer in head.peers() {
                        head.on_link(peer, out);
                    }
                    for origin in head.origins() {
                        let start = starts.get(&origin.0).copied().unwrap_or(u64::MAX);
                        head.on_origin_start((origin.0, start), out);
                        head.on_origin_link(origin, out);
                    }
                }),
                At::Client(id) => self.send_client_again(id),
            }
        }
        self.read_letters(now);
    }
}
