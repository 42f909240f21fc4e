//! Single commands on keys of several slots, each followed at once by a transaction on one other of the keys, while others
//! write them together. A single command is no part of the protocol that orders transactions, so what it shows must not be
//! ordered behind what its client does next. Some seeds have them.

use super::clients::Client;
use super::plan::Plan;
use super::spread::{self, TEXTS};
use super::wishes::Aim;
use crate::engine::random::Random;
use crate::model::{Op, Step};

impl Plan {
    /// Whether clients use them: not in seeds that show other faults.
    pub fn has_followed(&self) -> bool {
        self.has_spread() && self.seed % 64 == 27 && self.seed > 128
    }

    /// Clients with such commands send one at a time, at nodes that pass on what is another's, and soon after one another.
    pub(super) fn with_followed(mut self) -> Self {
        if self.has_followed() {
            (self.plain, self.pipeline) = (self.clients, 1);
            self.think_us = self.think_us.min(20_000);
        }
        self
    }
}

/// The longest pause between a single command and what follows.
pub(super) const PAUSE_US: u64 = 200;

fn of(steps: Vec<Step>) -> Aim {
    Aim::Spread(TEXTS, Op::Transaction { steps, guard: None })
}

/// What a client does next.
pub(super) fn next(client: &mut Client, text: &[u8]) -> Aim {
    let random = &mut client.spread;
    let keys = spread::keys_of(TEXTS).len();
    let key = random.index(keys);
    let other = |random: &mut Random, key| (key + 1 + random.index(keys - 1)) % keys;
    if let Some(seen) = client.single.take() {
        let key = other(random, seen);
        return of(vec![write(random, key, text)]);
    }
    if random.chance(0.6) {
        client.single = Some(key);
        return Aim::Spread(TEXTS, Op::One(Step::Get(key)));
    }
    let both = [key, other(random, key)];
    of(both.map(|key| write(random, key, text)).into())
}

fn write(random: &mut Random, key: usize, text: &[u8]) -> Step {
    match random.below(3) {
        0 => Step::Append(key, [text, b","].concat()),
        _ => Step::Set {
            key,
            value: text.to_vec(),
            px: None,
        },
    }
}
