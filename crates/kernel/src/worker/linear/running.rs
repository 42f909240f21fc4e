//! The worker's part in linear transactions: letters are posted and read, and heads act on the worker's keys.

use super::keys::Keys;
use super::letter::{Letter, Place, Posted, WORKER_BITS, txn_of, worker_of};
use super::{Client, LARGE, Seat, Transacted, is_from, name_of};
use crate::batch::Header;
use crate::body::without_changes;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::worker::{Message as Between, Outcome as Result, Worker};
use rufous_base::slot::{slot_of, worker_of_slot};
use rufous_base::{Now, Until, WorkerId};
use rufous_chain::Peer;
use rufous_linear::access::Access;
use rufous_linear::origin::Ended;
use rufous_linear::{
    Head, Message, OTHER_ORDER, Outcome, Output, Part, Record, To, Transaction, TxnId,
};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Outputs = Vec<Output<Access>>;

/// A worker, for the time of an event of its linear transactions.
pub(in crate::worker) struct Heads<'w, P: Program> {
    pub(in crate::worker) worker: &'w mut Worker<P>,
}

/// For the embedder.
impl<P: Program> Heads<'_, P> {
    /// Begins a transaction of a client on these keys, each with whether it is written; `body`: [`crate::body`]. Its end is a
    /// [`Result::Transacted`], unless there is no client; call
    /// [`Worker::settle`] after it. False where the node has no part in a cluster.
    pub(in crate::worker) fn begin<'k>(
        &mut self,
        header: Option<&Header>,
        keys: impl IntoIterator<Item = (&'k [u8], bool)>,
        body: Vec<u8>,
    ) -> bool {
        let mut parts = BTreeMap::<&[u8], Access>::new();
        for (key, writes) in keys {
            let access = if writes { Access::Write } else { Access::Read };
            parts.insert(key, access);
        }
        let parts = parts.into_iter().map(|(key, access)| Part {
            slot: slot_of(key),
            key: key.into(),
            ops: vec![access],
            expects: None,
        });
        let is_member = self.mapping().is_some_and(|mapping| {
            let own = self
                .worker
                .linear
                .own
                .and_then(|(own, _)| mapping.members.get(&own));
            own.is_some()
        });
        let Some(id) = is_member.then(|| self.next_id()).flatten() else {
            return false;
        };
        let Some(txn) = Transaction::new(id, parts.collect(), body.into()) else {
            return false;
        };
        self.worker.linear.figures.begun += u64::from(header.is_some());
        self.submit(header.copied(), txn);
        true
    }

    /// Sends a transaction to its first slot. It visits slots by the workers that head them now.
    fn submit(&mut self, header: Option<Header>, txn: Transaction<Access>) {
        let txn = match self.mapping() {
            Some(mapping) => txn.ordered(mapping.epoch, |slot| {
                let head = mapping.chains.of(slot).head();
                let member = head.and_then(|head| mapping.members.get(&head));
                (head, member.map(|member| member.worker_of(slot)))
            }),
            None => txn,
        };
        let client = Client {
            header,
            first: txn.first(),
            is_large: txn.body().len() > LARGE,
        };
        self.worker.linear.clients.insert(txn.id, client);
        let mut out = Vec::new();
        if let Some(origin) = &mut self.worker.linear.origin {
            origin.on_submit(Arc::new(txn), &mut out);
        }
        self.post_all(out);
    }

    /// The identity of the next transaction of this worker.
    fn next_id(&mut self) -> Option<TxnId> {
        let mut id = self.worker.linear.origin.as_mut()?.next_id();
        id.number = id.number << WORKER_BITS | u64::from(self.worker.id.0);
        Some(id)
    }

    /// A letter of a worker of another node.
    pub(in crate::worker) fn on_letter(&mut self, now: Now, from: NodeNo, letter: Letter) {
        self.worker.linear.inbox.push_back((from, letter));
        self.read_letters(now);
    }
}

/// Letters.
impl<P: Program> Heads<'_, P> {
    /// Posts what an origin of this worker has put out.
    fn post_all(&mut self, out: Outputs) {
        for output in out {
            if let Output::Send(to, message) | Output::SendSynced(to, message) = output
                && let Some(letter) = self.letter(Place::Origin, to, message)
            {
                self.post(letter);
            }
        }
    }

    fn letter(&self, from: Place, to: To, mut message: Message<Access>) -> Option<Letter> {
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

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.worker.chains.as_ref()?.mapping()
    }

    /// The worker that a letter is for now.
    fn receiver(&self, letter: &Letter) -> Option<Peer> {
        let mapping = self.mapping()?;
        match letter.to {
            Place::Slot { slot, .. } => {
                let node = mapping.chains.of(slot).head()?;
                let worker = mapping.members.get(&node)?.worker_of(slot);
                Some(Peer { node, worker })
            }
            Place::Origin => {
                let txn = txn_of(&letter.message)?;
                let (node, worker) = (NodeNo(txn.node), worker_of(txn));
                Some(Peer { node, worker })
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
                let slots: Vec<u16> = self.worker.linear.seats.keys().copied().collect();
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
            (Place::Slot { slot, .. }, message) => self.at_seat(now, slot, |head, keys, out| {
                head.on_message(from, message, keys, out);
            }),
            (Place::Origin, message) => self.on_outcome(now, from, message),
        }
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

    fn on_outcome(&mut self, now: Now, from: Option<u16>, message: Message<Access>) {
        let (Some(origin), Some(slot)) = (&mut self.worker.linear.origin, from) else {
            return;
        };
        let Message::Outcome { txn, outcome, told } = message else {
            return;
        };
        let mut out = Vec::new();
        let ended = origin.on_outcome((txn, outcome, told), slot, &mut out);
        self.post_all(out);
        let client = self.worker.linear.clients.remove(&txn);
        if let (Some(Ended { txn, outcome, told }), Some(client)) = (ended, client) {
            if told[..] == *OTHER_ORDER {
                self.worker.linear.begin_later(now, client.header, &txn);
                return;
            }
            let Some(header) = client.header else {
                return;
            };
            match outcome {
                Outcome::Committed => self.worker.linear.figures.committed += 1,
                Outcome::Aborted => self.worker.linear.figures.aborted += 1,
            }
            let transacted = Transacted {
                header,
                is_committed: Some(outcome == Outcome::Committed),
                told,
            };
            let result = Result::Transacted(Box::new(transacted));
            self.worker.out.outcomes.push_back(result);
        }
    }
}

/// Heads.
impl<P: Program> Heads<'_, P> {
    /// Lets the head of a slot act, and then those of other slots here that need not wait for its messages.
    fn at_seat(
        &mut self,
        now: Now,
        slot: u16,
        act: impl FnOnce(&mut Head<Access>, &mut Keys<'_, P>, &mut Outputs),
    ) {
        let mut has_ended = self.at_one(now, slot, act);
        while let Some((slot, ahead)) = self.worker.linear.beside.pop_front() {
            if worker_of_slot(slot, self.worker.placement.workers()) == self.worker.id {
                let act = |head: &mut Head<Access>, keys: &mut Keys<'_, P>, out: &mut Outputs| {
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
        act: impl FnOnce(&mut Head<Access>, &mut Keys<'_, P>, &mut Outputs),
    ) -> bool {
        let takes = self.worker.chains.as_ref();
        let Some(since) = takes.and_then(|chains| chains.takes_since(now, slot)) else {
            return false;
        };
        let mut seat = self
            .worker
            .linear
            .take_seat(slot, since, &self.worker.shard);
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
        let records = out.iter().filter_map(|output| match output {
            Output::Record(record) => Some(record),
            _ => None,
        });
        let mut has_ended = false;
        for record in records {
            let is_ahead = matches!(record, Record::Prepared { max: None, .. });
            self.worker.linear.figures.ahead += u64::from(is_ahead);
            has_ended |= !matches!(record, Record::Prepared { .. });
            if let Some(id) = record.txn() {
                self.keep_entry(now, slot, (id, seat.head.book().get(id)));
            }
        }
        let from = Place::Slot {
            slot,
            since: seat.since,
        };
        if !seat.head.is_idle() {
            self.worker.linear.seats.insert(slot, seat);
        }
        for output in out {
            let (to, message) = match output {
                Output::Send(to, message) | Output::SendSynced(to, message) => (to, message),
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
                let post = Between::Post(Box::new(letter));
                self.worker
                    .send_after(now, &[slot], self.worker.id, (Until::Logged, post));
            }
        }
        has_ended
    }

    /// A head goes on from the book of the one before it.
    fn start_seat(&mut self, now: Now, seat: &mut Seat, out: &mut Outputs) {
        seat.is_started = true;
        let head = &mut seat.head;
        // No slot is told that it may have lost something: none is to be asked.
        let others = BTreeSet::new();
        let since = seat.since;
        let mut keys = Keys {
            worker: self.worker,
            now,
            since,
        };
        head.on_start(others, &mut keys, out);
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

    fn keep_entry(
        &mut self,
        now: Now,
        slot: u16,
        (id, entry): (TxnId, Option<&rufous_linear::Entry<Access>>),
    ) {
        let name = name_of(id);
        match entry {
            Some(entry) => {
                let mut bytes = Vec::new();
                rufous_linear::codec::Coded::encode(entry, &mut bytes);
                self.worker.shard.set_book(slot, &name, &bytes, now);
            }
            None => {
                self.worker.shard.remove_book(slot, &name, now);
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
    }

    /// Sends messages again of transactions that make no progress, if it is time. To be called periodically.
    pub(in crate::worker) fn look_after(&mut self, now: Now) {
        while let Some((header, txn)) = self.worker.linear.next_again(now) {
            if let Some(id) = self.next_id() {
                self.submit(header, txn.renamed(id));
            }
        }
        if self.worker.linear.is_idle() || !self.worker.linear.is_due(now) {
            return;
        }
        let starts = self.starts();
        let mut stuck = self.worker.linear.due(now);
        if planted::is(Planted::LettersNotRepeated) {
            stuck.clear();
        }
        let waiting: Vec<u16> = self.worker.linear.seats.keys().copied().collect();
        for slot in waiting {
            let is_stuck = stuck.contains(&Some(slot));
            self.worker.linear.figures.again += u64::from(is_stuck);
            self.at_seat(now, slot, |head, _, out| {
                if !is_stuck {
                    return;
                }
                for peer in head.peers() {
                    head.on_link(peer, out);
                }
                for origin in head.origins() {
                    let start = starts.get(&origin.0).copied().unwrap_or(u64::MAX);
                    head.on_origin_start((origin.0, start), out);
                    head.on_origin_link(origin, out);
                }
            });
        }
        if stuck.contains(&None) {
            self.send_clients_again();
        }
        self.read_letters(now);
    }

    fn send_clients_again(&mut self) {
        let linear = &mut self.worker.linear;
        linear.figures.again += 1;
        let firsts = linear.clients.values().map(|client| client.first);
        let firsts: BTreeSet<u16> = firsts.collect();
        let mut out = Vec::new();
        if let Some(origin) = &mut linear.origin {
            firsts
                .iter()
                .for_each(|slot| origin.on_link(*slot, &mut out));
        }
        self.post_all(out);
    }

    /// The node stops, and has waited long enough: the outcome of what waits is unknown. Returns how much that is.
    pub(in crate::worker) fn give_up(&mut self) -> usize {
        let lost = self.worker.linear.give_up();
        let count = lost.len();
        let lost = lost.into_iter();
        let lost = lost.map(|one| Result::Transacted(Box::new(one)));
        self.worker.out.outcomes.extend(lost);
        count
    }

    /// Lets heads begin whose slots this node answers for by now.
    pub(in crate::worker) fn start(&mut self, now: Now) {
        let may_start = self.worker.linear.has_open();
        let Some(chains) = self.worker.chains.as_ref().filter(|_| may_start) else {
            return;
        };
        let due = self
            .worker
            .linear
            .open()
            .filter_map(|slot| Some((slot, chains.takes_since(now, slot)?)));
        let due: BTreeMap<u16, u64> = due.collect();
        if due.is_empty() {
            return;
        }
        self.worker.linear.load(&due, &self.worker.shard);
        for slot in due.into_keys() {
            self.at_seat(now, slot, |_, _, _| {});
        }
        self.worker.run_parked_for(now);
        self.read_letters(now);
    }
}
