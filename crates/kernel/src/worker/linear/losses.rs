//! The worker's part in surveys ([`rufous_linear::survey`]): slots that may have lost the ends of their logs stay closed until
//! others have told what they may lack.

use super::entries::{name_of, read_entry};
use super::letter::{Letter, Place};
use super::running::Heads;
use super::typing::KeyOp;
use super::{Linear, head};
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::shard::Shard;
use rufous_base::Now;
use rufous_base::slot::worker_of_slot;
use rufous_linear::survey::Question;
use rufous_linear::{At, Book, Entry, Found, Message, Stage, Transaction, TxnId};
use rufous_mapping::{Chain, Mapping, NodeNo, Phase};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Transactions that a worker is asked for at a time, and the bytes of its answers to that: it has others to serve.
const MOST: usize = 1024;
const MOST_BYTES: usize = 4 << 20;

/// See the module's description.
pub(super) struct Losses<'w, P: Program>(pub(super) Heads<'w, P>);

impl<P: Program> Losses<'_, P> {
    /// Begins a survey if one is needed, and asks again. To be called from time to time.
    pub(super) fn look_after(&mut self, now: Now) {
        let linear = &mut self.0.worker.linear;
        if linear.lossy.is_empty() {
            return;
        }
        let chains = self.0.worker.chains.as_ref();
        let Some(mapping) = chains.and_then(|chains| chains.mapping()) else {
            return;
        };
        let lossy = linear.lossy.iter().copied();
        let waits = lossy.filter(|slot| linear.awaits_survey(*slot));
        let waits: BTreeSet<u16> = waits.collect();
        if linear.survey.may_begin(now.mono_us, !waits.is_empty()) {
            let ranges = mapping.chains.ranges();
            let ranges = ranges.filter(|(_, chain)| !chain.members.is_empty());
            let others = ranges.flat_map(|(slots, _)| slots).collect();
            let survey = &mut linear.survey;
            survey.begin(now.mono_us, mapping.epoch, waits, others);
        }
        let head = |slot| mapping.chains.of(slot).head();
        let has_none = |slot| {
            if planted::is(Planted::AwayNotAwaited) {
                return mapping.chains.of(slot).phase != Phase::Acts;
            }
            head(slot).is_some_and(|no| linear.without.contains(&no))
        };
        linear.survey.pass_over(has_none);
        self.go_on(now);
    }

    /// Asks what is to be asked, and lets heads begin that know all.
    fn go_on(&mut self, now: Now) {
        let linear = &mut self.0.worker.linear;
        let known = linear.lossy.intersection(&linear.open).copied();
        let known: Vec<u16> = known.filter(|slot| linear.survey.knows(*slot)).collect();
        linear.pending.extend(known);
        let chains = self.0.worker.chains.as_ref();
        let mapping = chains.and_then(|chains| chains.mapping());
        let (Some(mapping), Some(first)) = (mapping, linear.survey.slots().next()) else {
            return;
        };
        let Some(question) = linear.survey.due(now.mono_us) else {
            return;
        };
        let slots: Vec<u16> = linear.survey.slots().collect();
        let (round, epoch, lost) = linear.survey.question();
        let from = place(mapping, first);
        let messages: Vec<(Place, _)> = match question {
            Question::Find(of) => {
                let firsts = by_worker(mapping, of.into_iter().map(|slot| (slot, ())));
                let ask = |of: Vec<(u16, ())>| {
                    let message = Message::Survey {
                        round,
                        epoch,
                        lost,
                        slots: slots.clone(),
                    };
                    Some((place(mapping, of.first()?.0), message))
                };
                firsts.into_iter().filter_map(ask).collect()
            }
            Question::Tell(all) => {
                let all = all.into_iter();
                let pairs = all.flat_map(|(txn, at)| at.into_iter().map(move |at| (at, txn)));
                let ask = |of: Vec<(u16, TxnId)>| {
                    let message = Message::Recall {
                        round,
                        epoch,
                        lost,
                        found: together(&of),
                    };
                    Some((place(mapping, of.first()?.0), message))
                };
                let asks = by_worker(mapping, pairs).into_iter();
                asks.filter_map(ask).collect()
            }
        };
        for (to, message) in messages {
            self.0.post(Letter { from, to, message });
        }
    }

    /// A question or an answer has arrived.
    pub(super) fn on_message(
        &mut self,
        now: Now,
        (to, from): (Place, Place),
        message: Message<KeyOp>,
    ) {
        match message {
            Message::Survey {
                round,
                epoch,
                lost,
                slots,
            } => {
                if let Some(here) = self.here(epoch, lost) {
                    let message = self.surveyed(round, here, &slots);
                    self.0.post(Letter { from, to, message });
                }
            }
            Message::Recall {
                round,
                epoch,
                lost,
                found,
            } => {
                let here = self.here(epoch, lost);
                let answers = here.map(|here| self.recalled(round, &here, &found));
                for (slots, message) in answers.into_iter().flatten() {
                    self.0.post_after(now, &slots, Letter { from, to, message });
                }
            }
            Message::Surveyed {
                round,
                covers,
                found,
            } => self.on_surveyed(now, round, (&covers, found)),
            Message::Recalled { round, id, txn, at } => {
                let survey = &mut self.0.worker.linear.survey;
                survey.on_told(round, id, (txn, at));
                if survey.is_over() {
                    self.go_on(now);
                }
            }
            _ => {}
        }
    }

    /// What slots here have of transactions of slots that may have lost something.
    fn surveyed(&self, round: u64, here: BTreeSet<u16>, asked: &[u16]) -> Message<KeyOp> {
        let worker = &self.0.worker;
        let found = having(&worker.linear, &worker.shard, (&here, asked));
        let covers = here.into_iter().collect();
        Message::Surveyed {
            round,
            covers,
            found,
        }
    }

    /// The slots that this worker answers for, if its mapping is not older than that of a question, and has the same last loss.
    fn here(&self, epoch: u64, lost: u64) -> Option<BTreeSet<u16>> {
        let worker = &self.0.worker;
        let (mapping, (own, _)) = (self.0.mapping()?, worker.linear.own?);
        let is_comparable = mapping.epoch >= epoch && lost_in(mapping) == lost;
        is_comparable.then(|| {
            let is_mine =
                |slot: &u16| worker_of_slot(*slot, worker.placement.workers()) == worker.id;
            let ranges = mapping.chains.ranges();
            let ranges = ranges.filter(|(_, chain)| acts_at(chain, own));
            ranges
                .flat_map(|(slots, _)| slots)
                .filter(is_mine)
                .collect()
        })
    }

    /// How far transactions have come at slots here, each with these slots. What does not fit is asked for again.
    fn recalled(
        &self,
        round: u64,
        here: &BTreeSet<u16>,
        asked: &[Found],
    ) -> Vec<(Vec<u16>, Message<KeyOp>)> {
        let worker = &self.0.worker;
        let (mut answers, mut bytes) = (Vec::new(), 0);
        for one in asked.iter().take(MOST) {
            let slots = one.at.iter().copied().filter(|at| here.contains(at));
            let slots: Vec<u16> = slots.collect();
            if slots.is_empty() || bytes > MOST_BYTES {
                continue;
            }
            let (mut txn, mut at) = (None, Vec::new());
            for slot in &slots {
                let (known, stage) = stage(&worker.linear, &worker.shard, (*slot, one.txn)).unzip();
                bytes += stage.as_ref().map_or(0, Stage::bytes);
                txn = txn.or(known);
                at.push(At { slot: *slot, stage });
            }
            bytes += txn.as_ref().map_or(0, |txn| txn.body().len());
            let id = one.txn;
            answers.push((slots, Message::Recalled { round, id, txn, at }));
        }
        answers
    }

    /// A worker has answered the first question.
    fn on_surveyed(&mut self, now: Now, round: u64, (covers, found): (&[u16], Vec<Found>)) {
        let worker = &mut self.0.worker;
        let shard = &worker.shard;
        let is_open = |slot: u16, txn: TxnId| {
            let name = name_of(txn);
            let entry = shard.book(slot, &name);
            let entry = entry.and_then(|bytes| read_entry(&name, &bytes));
            entry.is_none_or(|(_, entry)| matches!(entry, Entry::Prepared { .. }))
        };
        if worker.linear.survey.on_found(round, covers, found, is_open) {
            self.go_on(now);
        }
    }
}

/// The last epoch in which a chain has continued with loss.
pub(super) fn lost_in(mapping: &Mapping) -> u64 {
    let lost = mapping.chains.ranges().map(|(_, chain)| chain.lost);
    lost.max().unwrap_or_default()
}

fn acts_at(chain: &Chain, node: NodeNo) -> bool {
    chain.phase == Phase::Acts && chain.head() == Some(node)
}

fn place(mapping: &Mapping, slot: u16) -> Place {
    let since = mapping.chains.of(slot).since;
    Place::Slot { slot, since }
}

/// Slots of chains that act, with what belongs to them, by the workers that head them.
fn by_worker<T>(mapping: &Mapping, slots: impl Iterator<Item = (u16, T)>) -> Vec<Vec<(u16, T)>> {
    let mut all = BTreeMap::<(NodeNo, u16), Vec<(u16, T)>>::new();
    for (slot, one) in slots {
        let chain = mapping.chains.of(slot);
        let head = chain.head().filter(|_| chain.phase == Phase::Acts);
        if let Some((no, member)) = head.and_then(|no| Some((no, mapping.members.get(&no)?))) {
            all.entry((no, member.worker_of(slot)))
                .or_default()
                .push((slot, one));
        }
    }
    all.into_values().collect()
}

/// By transaction, the first of them.
fn together(pairs: &[(u16, TxnId)]) -> Vec<Found> {
    let mut all = BTreeMap::<TxnId, Vec<u16>>::new();
    for (at, txn) in pairs {
        all.entry(*txn).or_default().push(*at);
    }
    let all = all.into_iter().take(MOST);
    all.map(|(txn, at)| Found {
        txn,
        of: Vec::new(),
        at,
    })
    .collect()
}

/// The transactions of these slots that slots of this worker have.
fn having(linear: &Linear, shard: &Shard, (here, asked): (&BTreeSet<u16>, &[u16])) -> Vec<Found> {
    let asked: BTreeSet<u16> = asked.iter().copied().collect();
    let mut all = BTreeMap::<TxnId, Found>::new();
    let mut find = |at: u16, txn: TxnId, slots: &[u16]| {
        let those = slots.iter().copied();
        let of: Vec<u16> = those.filter(|of| asked.contains(of)).collect();
        if !of.is_empty() {
            let new = || Found {
                txn,
                of,
                at: Vec::new(),
            };
            all.entry(txn).or_insert_with(new).at.push(at);
        }
    };
    let seats = linear.seats.iter().filter(|(slot, _)| here.contains(slot));
    for (slot, seat) in seats {
        for txn in seat.head.known() {
            find(*slot, txn.id, txn.slots());
        }
    }
    for (slot, id, bytes) in shard.books() {
        if linear.seats.contains_key(&slot) || !here.contains(&slot) {
            continue;
        }
        if let Some((id, entry)) = read_entry(&id, bytes) {
            find(slot, id, entry.txn().slots());
        }
    }
    all.into_values().collect()
}

type Told = (Arc<Transaction<KeyOp>>, Stage);

/// What a slot has of a transaction. One whose head has not begun has what its book has.
fn stage(linear: &Linear, shard: &Shard, (slot, id): (u16, TxnId)) -> Option<Told> {
    if let Some(seat) = linear.seats.get(&slot) {
        return seat.head.stage(id);
    }
    let name = name_of(id);
    let entry = read_entry(&name, &shard.book(slot, &name)?)?;
    head(Book::restore(slot, [entry])).stage(id)
}
