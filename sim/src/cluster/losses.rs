//! All nodes lose power at the same instant while logs are synced once a second. Writes that were acknowledged shortly before
//! may be missing afterwards, but never a part of a transaction over several slots. Clients write the keys of several slots by
//! such transactions alone, and so that each of them keeps something true: the counters have the sum 0, and the texts are
//! equal. Some seeds have that, and no other faults.

use super::plan::{Plan, Troubles};
use super::spread::{self, COUNTERS, TEXTS};
use super::wishes::Aim;
use super::world::{TROUBLES_US, What, World};
use crate::engine::random::Random;
use crate::history::{Outcome, Record};
use crate::model::{Op, Step};
use crate::node::plan::Mode;
use rufous_resp::Reply;

/// Not before clients have written something.
const FIRST_US: u64 = TROUBLES_US + 2_000_000;

/// How long before a loss writes may have been acknowledged that are missing after it: logs are synced once a second, a sync
/// takes some milliseconds, and clocks of nodes run slower.
const UNSYNCED_US: u64 = 2_000_000;

/// So long a node stays away in some seeds, from the last loss on: others must not go on without what it has, however long that takes.
const AWAY_US: u64 = 75_000_000;

impl Plan {
    /// The node that stays away after a loss.
    fn away(&self) -> Option<usize> {
        let mut random = Random::new(self.seed, "away");
        let has_one = self.seed / 64 % 4 == 3;
        has_one.then(|| random.index(self.workers.len()))
    }

    /// Whether the seed has them: with copies, of which the best continues after a loss.
    pub fn has_losses(&self) -> bool {
        self.has_spread() && self.seed % 64 == 59 && self.seed > 128 && self.copies > 1
    }

    /// Many transactions are under way at each time, and nothing else goes wrong.
    pub(super) fn with_losses(mut self) -> Self {
        if self.has_losses() {
            (self.plain, self.first) = (self.clients, self.workers.len());
            (self.mode, self.loose) = (Mode::Everysec, None);
            self.think_us = self.think_us.min(20_000);
            self.troubles = Troubles::default();
        }
        self
    }

    /// When all nodes lose power: once, or again at any time after that.
    pub(super) fn losses_us(&self) -> Vec<u64> {
        if !self.has_losses() {
            return Vec::new();
        }
        let mut random = Random::new(self.seed, "losses");
        let end_us = TROUBLES_US + self.trouble_us;
        let first = random.between(FIRST_US, end_us - 1);
        let second = random.chance(0.6);
        let second = second.then(|| first + random.skewed(100_000, 12_000_000));
        let second = second.filter(|at_us| *at_us < end_us);
        [first].into_iter().chain(second).collect()
    }
}

/// What a client does next.
pub(super) fn next(random: &mut Random, text: &[u8]) -> Aim {
    let of = |unit, steps| Aim::Spread(unit, Op::Transaction { steps, guard: None });
    match random.below(10) {
        0..2 => of(COUNTERS, vec![Step::GetAll]),
        2 => of(TEXTS, vec![Step::GetAll]),
        3..6 => Aim::Spread(TEXTS, Op::One(Step::SetAll(text.to_vec()))),
        _ => {
            let by = 1 + random.below(100) as i64;
            let from = random.index(2);
            let mut steps = vec![Step::IncrBy(from, -by), Step::IncrBy(1 - from, by)];
            if random.chance(0.5) {
                steps.reverse();
            }
            of(COUNTERS, steps)
        }
    }
}

/// Whether the values of a unit are those that whole transactions leave.
fn are_whole(unit: usize, values: &[Reply]) -> bool {
    let number = |value: &Reply| match value {
        Reply::Null => Some(0),
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse::<i64>().ok(),
        _ => None,
    };
    match unit {
        TEXTS => values.iter().all(|value| *value == values[0]),
        _ => values.iter().map(number).sum::<Option<i64>>() == Some(0),
    }
}

fn shown(values: &[Reply]) -> String {
    let text = |value: &Reply| match value {
        Reply::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    };
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The values that a look at all keys of a unit has shown.
fn audited<'r>(op: &Op, outcome: &'r Outcome) -> Option<&'r [Reply]> {
    let (Op::Transaction { steps, .. }, Outcome::Seen(Reply::Array(told))) = (op, outcome) else {
        return None;
    };
    match (&steps[..], &told[..]) {
        ([Step::GetAll], [Reply::Array(values)]) => Some(values),
        _ => None,
    }
}

impl World {
    /// All nodes lose power.
    pub(super) fn on_loss(&mut self) {
        let up = self.nodes.iter().filter(|node| node.is_up());
        let up: Vec<usize> = up.map(|node| node.index).collect();
        if up.iter().any(|node| !self.nodes[*node].disk.is_synced()) {
            self.reach("all nodes lost power with unsynced logs");
        }
        for node in up {
            self.end(node, true);
            if self.chance.chance(0.3) {
                self.nodes[node].workers = 1 + self.chance.index(3);
            }
            let mut down_us = self.chance.skewed(10_000, 3_000_000);
            if self.plan.away() == Some(node) {
                down_us += AWAY_US;
                self.reach("a node stayed away for long after all had lost power");
            }
            self.push(self.engine.now_us + down_us, None, What::Start(node));
        }
    }

    /// A client has looked at keys of several slots, perhaps at all of a unit.
    pub(super) fn look_at_whole(&mut self, unit: usize, op: &Op, outcome: &Outcome) {
        let values = audited(op, outcome).filter(|_| self.plan.has_losses());
        if let Some(values) = values.filter(|values| !are_whole(unit, values)) {
            self.fail(format!(
                "a part of a transaction was seen: {}",
                shown(values)
            ));
        }
    }

    /// What all copies have in the end are whole transactions, and not too many of them are missing.
    pub(super) fn judge_losses(&self) -> Result<(), String> {
        if !self.plan.has_losses() {
            return Ok(());
        }
        for unit in [TEXTS, COUNTERS] {
            let values = self.last_of(unit)?;
            if !are_whole(unit, &values) {
                return Err(format!(
                    "a part of a transaction is left: {}",
                    shown(&values)
                ));
            }
        }
        let texts = &self.history.records[spread::place_of(TEXTS)][0];
        texts.iter().try_for_each(|look| self.judge_age(look))
    }

    /// The values of a unit's keys: they were read one by one at each copy.
    fn last_of(&self, unit: usize) -> Result<Vec<Reply>, String> {
        let records = &self.history.records[spread::place_of(unit)][0];
        let value_of = |key| {
            let is_meant = |record: &&Record| record.op == Op::One(Step::Get(key));
            let mut read = records
                .iter()
                .filter(is_meant)
                .map(|record| &record.outcome);
            let first = read.next();
            match first {
                Some(Outcome::Seen(value)) if read.all(|other| Some(other) == first) => {
                    Ok(value.clone())
                }
                _ => Err(format!("key {key} of unit {unit} is not alike everywhere")),
            }
        };
        (0..spread::keys_of(unit).len()).map(value_of).collect()
    }

    /// Where a look at the texts shows one: no later one that had to be there.
    fn judge_age(&self, look: &Record) -> Result<(), String> {
        let Some([seen, ..]) = audited(&look.op, &look.outcome) else {
            return Ok(());
        };
        let records = &self.history.records[spread::place_of(TEXTS)][0];
        let value = |record: &Record| match &record.op {
            Op::One(Step::SetAll(value)) => Some(Reply::Bulk(value.clone())),
            _ => None,
        };
        let set = records
            .iter()
            .find(|record| value(record).as_ref() == Some(seen));
        let seen_us = set.map_or(0, |record| record.answered_us);
        let losses = self.plan.losses_us();
        let may_lack = |us: u64| {
            let mut losses = losses.iter().filter(|at_us| **at_us < look.answered_us);
            losses.any(|at_us| (at_us.saturating_sub(UNSYNCED_US)..=*at_us).contains(&us))
        };
        let is_later = |record: &&Record| {
            let is_between = record.asked_us > seen_us && record.answered_us < look.asked_us;
            is_between && value(record).is_some() && !may_lack(record.answered_us)
        };
        match records.iter().find(is_later) {
            Some(later) => Err(format!("{look:?} does not show {later:?}, or a later one")),
            None => Ok(()),
        }
    }
}
