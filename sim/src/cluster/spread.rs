//! Keys of several slots, usually at several nodes, and transactions over them through the plain door. Single commands on
//! the same keys come through both doors, so that copies answer some of the reads. One order of all commands, each
//! whole, explains what clients see. Some seeds have them.

use super::begun::begins;
use super::clients::{Client, Door};
use super::followed;
use super::losses;
use super::plan::{KEYS, Plan};
use super::undone;
use super::wishes::{Aim, Wish};
use super::world::World;
use crate::engine::random::Random;
use crate::history::{Kind, Outcome, Unit};
use crate::model::{Op, Step};
use rufous_resp::Reply;

/// Each key shares a slot with a plain key.
const SPREAD: [(Kind, &[&str]); 2] = [
    (Kind::Text, &["{a}x", "{b}x", "{d}x"]),
    (Kind::Counter, &["{a}n", "{c}n"]),
];

/// The unit of texts.
pub(super) const TEXTS: usize = 0;
/// The unit of counters.
pub(super) const COUNTERS: usize = 1;

pub(super) fn keys_of(unit: usize) -> Vec<Vec<u8>> {
    let keys = SPREAD[unit].1.iter();
    keys.map(|key| key.as_bytes().to_vec()).collect()
}

/// One of the keys that an operation is about.
pub(super) fn key_of(unit: usize, op: &Op) -> &'static str {
    let keys = SPREAD[unit].1;
    let about = |step: &Step| (0..keys.len()).find(|key| step.concerns(*key));
    let first = op.steps().iter().find_map(about);
    keys[first.unwrap_or(0)]
}

/// The place of a unit in the history.
pub(super) fn place_of(unit: usize) -> usize {
    KEYS.len() + unit
}

/// The units, where a plan has them.
pub(super) fn all() -> impl Iterator<Item = (Kind, &'static [&'static str])> {
    SPREAD.into_iter()
}

impl Plan {
    /// Whether clients use them: not in seeds that are kept from before.
    pub fn has_spread(&self) -> bool {
        let is_meant = matches!(self.seed % 16, 8 | 11 | 15) || self.seed % 32 == 6;
        is_meant && self.plain > 0 && self.seed > 32
    }

    /// Whether nodes with them have the newest messages, or those of the version before: not in seeds that are kept from
    /// before.
    pub(super) fn is_new(&self) -> bool {
        self.has_spread() && self.seed / 128 % 2 == 1
    }
}

impl Wish {
    /// Whether it is a transaction over several slots.
    pub(super) fn is_spread(&self) -> bool {
        let Aim::Spread(_, op) = &self.aim else {
            return matches!(
                self.aim,
                Aim::Commit(_) | Aim::Outcome(..) | Aim::Undone(..)
            );
        };
        let is_alone = |step: &Step| {
            use Step::{Copy, SetAll, SetAllNx};
            !matches!(step, SetAll(_) | SetAllNx(_) | Copy(..))
        };
        !matches!(op, Op::One(step) if is_alone(step))
    }
}

/// What a client does next with a key alone, or at some place of a transaction.
fn step(random: &mut Random, (unit, key): (usize, usize), text: &[u8]) -> Step {
    let is_counter = SPREAD[unit].0 == Kind::Counter;
    match random.below(10) {
        0..4 => Step::Get(key),
        4 if !is_counter => Step::Del(vec![key]),
        _ if is_counter => Step::IncrBy(key, 1 + random.below(9) as i64),
        5..8 => Step::Set {
            key,
            value: text.to_vec(),
            px: None,
        },
        _ => Step::Append(key, [text, b","].concat()),
    }
}

fn transaction(random: &mut Random, unit: usize, text: &[u8]) -> Op {
    let keys = SPREAD[unit].1.len();
    let of = |steps| Op::Transaction { steps, guard: None };
    if SPREAD[unit].0 == Kind::Counter {
        let by = 1 + random.below(100) as i64;
        let (from, to) = if random.chance(0.5) { (0, 1) } else { (1, 0) };
        return match random.below(3) {
            0 => of(vec![Step::GetAll]),
            1 => of(vec![Step::IncrBy(from, -by), Step::IncrBy(to, by)]),
            _ => of(vec![
                Step::IncrBy(to, by),
                Step::GetAll,
                Step::IncrBy(from, -by),
            ]),
        };
    }
    let first = random.index(keys);
    let second = (first + 1 + random.index(keys - 1)) % keys;
    match random.below(10) {
        0..2 => of(vec![Step::GetAll]),
        2 => of(vec![Step::Get(first), Step::Get(second)]),
        3 if first == 0 => Op::One(Step::Del((0..keys).collect())),
        3 => of(vec![Step::Del((0..keys).collect())]),
        4 => Op::One(Step::SetAll(text.to_vec())),
        5..7 => Op::One(Step::SetAllNx(text.to_vec())),
        7 => of(vec![Step::SetAll(text.to_vec()), Step::Get(first)]),
        8 if random.chance(0.5) => Op::One(Step::Copy(first, second, random.chance(0.7))),
        8 => {
            let one = step(random, (unit, first), text);
            let moved = if random.chance(0.5) {
                Step::Rename(first, second)
            } else {
                Step::Copy(second, first, true)
            };
            of(vec![
                one,
                moved,
                Step::Append(second, [text, b","].concat()),
            ])
        }
        _ => {
            let mut keys = vec![first, second];
            if random.chance(0.3) {
                keys.push(first);
            }
            let steps = keys.into_iter();
            of(steps.map(|key| step(random, (unit, key), text)).collect())
        }
    }
}

impl Client {
    /// What it does with such keys next, if anything.
    pub(super) fn next_spread(&mut self, plan: &Plan, text: &[u8]) -> Option<Aim> {
        if plan.has_followed() {
            return Some(followed::next(self, text));
        }
        if plan.has_losses() {
            return Some(losses::next(&mut self.spread, text));
        }
        let (door, random) = (self.door, &mut self.spread);
        if !random.chance(0.5) {
            return None;
        }
        let unit = random.index(SPREAD.len());
        if plan.has_undone() && door == Door::Plain && random.chance(0.2) {
            let keys = SPREAD[TEXTS].1.len();
            return Some(Aim::Undone(TEXTS, undone::transaction(random, keys, text)));
        }
        let op = match door == Door::Plain && random.chance(0.7) {
            true => transaction(random, unit, text),
            false => {
                let key = random.index(SPREAD[unit].1.len());
                Op::One(step(random, (unit, key), text))
            }
        };
        if plan.has_begun() && begins(self, &op) {
            return Some(Aim::Begin(unit, op));
        }
        Some(Aim::Spread(unit, op))
    }
}

impl World {
    /// Notes how a transaction has ended.
    pub(super) fn note_spread(&mut self, unit: usize, op: &Op, outcome: &Outcome) {
        self.look_at_whole(unit, op, outcome);
        match (op, outcome) {
            (Op::One(Step::SetAllNx(_)), Outcome::Seen(Reply::Integer(0))) => {
                self.reach("a transaction over slots has failed its condition");
            }
            (Op::One(Step::SetAllNx(_)), Outcome::Seen(Reply::Integer(1))) => {
                self.reach("a transaction over slots has met its condition");
            }
            (Op::One(Step::Copy(..)), Outcome::Seen(Reply::Integer(1))) => {
                self.reach("a value was copied to another slot");
            }
            (Op::Transaction { .. }, Outcome::Seen(Reply::Array(_))) => {
                self.reach("a transaction over slots was executed");
            }
            (Op::Transaction { .. }, Outcome::Open) => {
                self.reach("a transaction over slots has an unknown outcome");
            }
            _ => {}
        }
    }

    /// A client has waited in vain for a reply. A node that was there all the time has to have answered a transaction.
    pub(super) fn look_at_patience(&mut self, client: usize) {
        let found = &self.clients[client];
        let (Some(asked_us), Some(connection)) = (found.asked_us, &found.connection) else {
            return;
        };
        let is_meant = found.asks_one() && found.wishes.front().is_some_and(Wish::is_spread);
        let node = &self.nodes[connection.at.node];
        let is_well = node.is_up() && node.life == connection.life && node.troubled_us < asked_us;
        if is_meant && is_well && !self.plan.has_stops() {
            let what = format!(
                "client {client} has no reply to a transaction: {}",
                found.describe()
            );
            self.fail(what);
        }
    }

    /// All transactions are over, and forgotten.
    pub(super) fn judge_books(&mut self) -> Result<(), String> {
        let (mut is_ahead, mut is_again) = (false, false);
        let (mut is_read, mut is_taken, mut is_repeated) = (false, false, false);
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            for (worker, seat) in node.seats.iter().enumerate() {
                let kernel = &seat.front.kernel;
                let figures = kernel.linear_figures();
                is_ahead |= figures.ahead > 0;
                is_again |= figures.reordered > 0;
                is_read |= figures.read > 0;
                is_taken |= figures.read_taken > 0;
                is_repeated |= figures.read_rounds > 2 * (figures.read + figures.read_taken);
                let entries: Vec<_> = kernel
                    .shard
                    .books()
                    .map(|(slot, id, _)| (slot, id))
                    .collect();
                if figures.waiting + figures.prepared > 0 || !entries.is_empty() {
                    let is = node.index;
                    return Err(format!(
                        "n{is}w{worker} has transactions left: {figures:?}, entries {entries:?}"
                    ));
                }
            }
        }
        let seen = [
            (
                is_ahead,
                "a transaction over slots was prepared ahead of its message",
            ),
            (
                is_again,
                "a transaction over slots was begun again in another order",
            ),
            (is_read, "a transaction that only reads took no keys"),
            (
                is_taken,
                "a transaction that only reads had to take its keys",
            ),
            (
                is_repeated,
                "what a transaction reads has changed from one time to the next",
            ),
        ];
        for (_, probe) in seen.iter().filter(|(is_so, _)| *is_so) {
            self.reach(probe);
        }
        Ok(())
    }
}

/// The units of a plan.
pub(super) fn units() -> impl Iterator<Item = Unit> {
    all().map(|(kind, keys)| Unit {
        kind,
        db: 0,
        keys: keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
    })
}
