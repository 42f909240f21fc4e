//! What other slots have of the transactions of slots that may have lost the ends of their logs: a worker asks for all of its
//! slots at once, and each other worker for all slots that it heads. Almost always little is missing, where asking slot by slot
//! would take as many messages as there are pairs of slots.
//!
//! There are two questions. The first one finds transactions; only those count that an asking slot lacks or has not ended. The
//! second one brings what slots have of these.
//!
//! All answers are made after the last loss of any slot that is known, by mappings that are not older than the question.
//! By then no slot takes what another one has sent before its last loss: what had passed a slot that has lost it is known to a slot that
//! answers, or nowhere. A slot that asks says nothing else, so that nothing it lacks ends meanwhile. After another loss all
//! begins again. When another slot's head changes without a loss, the new one has what the one before had recorded. So what was told
//! for a slot holds for as long as it is closed, whatever becomes of its chain: had another head opened it meanwhile, its
//! book would say so to the one that heads it again.
//!
//! Slots without a head are waited for, however long that takes: what they have comes back with them, and would be kept in part
//! if others had gone on without it.

use crate::fact::{At, Fact};
use crate::message::Found;
use crate::planted::{self, Off};
use crate::txn::{Transaction, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Questions are asked again after the first pause, and then after twice as long each time without an answer, up to the second.
const AGAIN_US: u64 = 200_000;
const AGAIN_LAST_US: u64 = 3_200_000;

/// The least time between two surveys.
const REST_US: u64 = 1_000_000;

/// What others have told, for one slot.
pub type Facts<O> = Vec<Arc<Fact<O>>>;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Survey<O> {
    round: u64,
    /// Of the mapping in force at its begin.
    epoch: u64,
    /// The last epoch in which a chain has continued with loss.
    lost: u64,
    /// The slots that ask.
    slots: BTreeSet<u16>,
    phase: Phase<O>,
    /// By slot: what others have told.
    told: BTreeMap<u16, Facts<O>>,
    /// When it began; `None`: another one may begin at once.
    begun_us: Option<u64>,
    again_us: u64,
    pause_us: u64,
    /// There was an answer since the last question.
    has_heard: bool,
}

#[derive(Clone, Debug)]
enum Phase<O> {
    Rests,
    Finds {
        /// Slots for which none has answered.
        awaited: BTreeSet<u16>,
        /// The slots that have it.
        found: BTreeMap<TxnId, BTreeSet<u16>>,
    },
    Collects {
        awaited: BTreeMap<TxnId, BTreeSet<u16>>,
        facts: BTreeMap<TxnId, Fact<O>>,
    },
}

/// What is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which transactions of the asking slots these slots have.
    Find(Vec<u16>),
    /// What these slots have of a transaction.
    Tell(Vec<(TxnId, Vec<u16>)>),
}

impl<O> Default for Survey<O> {
    fn default() -> Self {
        Self {
            round: 0,
            epoch: 0,
            lost: 0,
            slots: BTreeSet::new(),
            phase: Phase::Rests,
            told: BTreeMap::new(),
            begun_us: None,
            again_us: 0,
            pause_us: AGAIN_US,
            has_heard: false,
        }
    }
}

impl<O> Survey<O> {
    /// Another mapping is in force; `lost`: the last epoch in which a chain has continued with loss; `is_headed`: whether this
    /// worker heads a slot.
    pub fn on_mapping(&mut self, lost: u64, is_headed: impl Fn(u16) -> bool) {
        if self.lost != lost && !planted::is(Off::Together) {
            (self.phase, self.begun_us) = (Phase::Rests, None);
            self.slots.clear();
            self.told.clear();
        }
        self.lost = lost;
        self.told.retain(|slot, _| is_headed(*slot));
        self.slots.retain(|slot| is_headed(*slot));
        if self.slots.is_empty() {
            self.phase = Phase::Rests;
        }
        // Other heads may answer now.
        self.ask_again();
    }

    /// Questions may be lost: they are due again.
    pub fn ask_again(&mut self) {
        self.again_us = 0;
    }

    /// To be called from time to time while there are slots that may have lost something. `lacks`: some of them wait for a
    /// survey. True if one is to begin.
    pub fn may_begin(&self, now_us: u64, lacks: bool) -> bool {
        let begun_us = self.begun_us;
        let is_due = begun_us.is_none_or(|begun_us| now_us.saturating_sub(begun_us) >= REST_US);
        lacks && self.is_over() && is_due
    }

    /// Begins for these slots, by the mapping of this epoch; `others`: all slots.
    pub fn begin(&mut self, now_us: u64, epoch: u64, slots: BTreeSet<u16>, others: BTreeSet<u16>) {
        self.round = now_us.max(self.round + 1);
        (self.epoch, self.slots) = (epoch, slots);
        self.phase = Phase::Finds {
            awaited: others,
            found: BTreeMap::new(),
        };
        self.begun_us = Some(now_us);
        (self.again_us, self.pause_us) = (0, AGAIN_US);
        self.go_on();
    }

    /// What is to be asked now, if it is time.
    pub fn due(&mut self, now_us: u64) -> Option<Question> {
        if self.is_over() || now_us < self.again_us {
            return None;
        }
        if std::mem::take(&mut self.has_heard) {
            self.pause_us = AGAIN_US;
        }
        self.again_us = now_us + self.pause_us;
        self.pause_us = (self.pause_us * 2).min(AGAIN_LAST_US);
        match &self.phase {
            Phase::Rests => None,
            Phase::Finds { awaited, .. } => Some(Question::Find(awaited.iter().copied().collect())),
            Phase::Collects { awaited, .. } => {
                let awaited = awaited.iter();
                let asks = awaited.map(|(txn, at)| (*txn, at.iter().copied().collect()));
                Some(Question::Tell(asks.collect()))
            }
        }
    }

    /// The first answer, for the slots that it covers. `is_open`: whether a slot here lacks the transaction, or has not ended
    /// it. True if that question has all answers.
    pub fn on_found(
        &mut self,
        round: u64,
        covers: &[u16],
        told: Vec<Found>,
        is_open: impl Fn(u16, TxnId) -> bool,
    ) -> bool {
        let Phase::Finds { awaited, found } = &mut self.phase else {
            return false;
        };
        if round != self.round {
            return false;
        }
        self.has_heard = true;
        for slot in covers {
            awaited.remove(slot);
        }
        for one in told {
            let mut asks = one.of.iter();
            if asks.any(|of| self.slots.contains(of) && is_open(*of, one.txn)) {
                found.entry(one.txn).or_default().extend(one.at);
            }
        }
        self.go_on()
    }

    /// The second answer, about one transaction.
    pub fn on_told(
        &mut self,
        round: u64,
        id: TxnId,
        (txn, at): (Option<Arc<Transaction<O>>>, Vec<At>),
    ) {
        let Phase::Collects { awaited, facts } = &mut self.phase else {
            return;
        };
        if round != self.round {
            return;
        }
        self.has_heard = true;
        let Some(slots) = awaited.get_mut(&id) else {
            return;
        };
        let new: Vec<At> = at.into_iter().filter(|at| slots.remove(&at.slot)).collect();
        if slots.is_empty() {
            awaited.remove(&id);
        }
        if let Some(txn) = txn {
            let at = Vec::new();
            let fact = facts.entry(id).or_insert_with(|| Fact { txn, at });
            fact.at.extend(new);
        }
        self.go_on();
    }

    /// Goes on without slots whose heads have no part in transactions: earlier programs.
    pub fn pass_over(&mut self, has_none: impl Fn(u16) -> bool) {
        match &mut self.phase {
            Phase::Rests => {}
            Phase::Finds { awaited, .. } => awaited.retain(|slot| !has_none(*slot)),
            Phase::Collects { awaited, .. } => awaited.retain(|_, slots| {
                slots.retain(|slot| !has_none(*slot));
                !slots.is_empty()
            }),
        }
        self.go_on();
    }

    /// Ends a question that has all answers. True if it has.
    fn go_on(&mut self) -> bool {
        match &mut self.phase {
            Phase::Finds { awaited, found } if awaited.is_empty() => {
                self.phase = Phase::Collects {
                    awaited: std::mem::take(found),
                    facts: BTreeMap::new(),
                };
                (self.again_us, self.pause_us) = (0, AGAIN_US);
                self.go_on();
                true
            }
            Phase::Collects { awaited, facts } if awaited.is_empty() => {
                let facts = std::mem::take(facts);
                self.end(facts);
                true
            }
            _ => false,
        }
    }

    fn end(&mut self, facts: BTreeMap<TxnId, Fact<O>>) {
        let slots = std::mem::take(&mut self.slots).into_iter();
        let mut told: BTreeMap<u16, Facts<O>> = slots.map(|slot| (slot, Vec::new())).collect();
        for mut fact in facts.into_values() {
            fact.at.sort_by_key(|at| at.slot);
            let fact = Arc::new(fact);
            for slot in fact.txn.slots() {
                if let Some(all) = told.get_mut(slot) {
                    all.push(Arc::clone(&fact));
                }
            }
        }
        self.told.extend(told);
        self.phase = Phase::Rests;
    }

    /// Whether none is under way.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Rests)
    }

    /// Whether others have told all that they have for this slot.
    pub fn knows(&self, slot: u16) -> bool {
        self.told.contains_key(&slot)
    }

    /// What others have told for a slot whose head begins with it.
    pub fn take(&mut self, slot: u16) -> Option<Facts<O>> {
        self.told.remove(&slot)
    }

    /// The number of the questions, the epoch of their mapping and that of the last loss.
    pub fn question(&self) -> (u64, u64, u64) {
        (self.round, self.epoch, self.lost)
    }

    /// The slots that ask.
    pub fn slots(&self) -> impl Iterator<Item = u16> {
        self.slots.iter().copied()
    }

    /// Slots that have not answered.
    pub fn awaited(&self) -> BTreeSet<u16> {
        match &self.phase {
            Phase::Rests => BTreeSet::new(),
            Phase::Finds { awaited, .. } => awaited.clone(),
            Phase::Collects { awaited, .. } => awaited.values().flatten().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
