//! Whether all that was seen is right, and all nodes are alike after quiet.

use super::node::Power;
use super::plan::KEYS;
use super::world::World;
use crate::clock::Clock;
use crate::history::{Kind, Outcome};
use crate::model;
use crate::oracle::linear;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;
use rufous_kernel::worker::ChainFigures;
use rufous_mapping::NodeId;
use rufous_resp::Reply;

impl World {
    pub(super) fn judge(&mut self) -> Result<(), String> {
        self.judge_orders()?;
        self.judge_rest()
    }

    /// One order of all commands explains what clients saw of each key.
    fn judge_orders(&mut self) -> Result<(), String> {
        let clock = Clock::default();
        let world = model::World {
            clock: &clock,
            evicts: false,
        };
        for (unit, name) in KEYS.iter().enumerate() {
            let verdict = linear::check(&self.history, unit, &world, self.now_us);
            self.history.unsure += u64::from(verdict.unsure);
            if let Some(failure) = verdict.failure {
                return Err(format!("{name}: {failure}"));
            }
        }
        Ok(())
    }

    /// Nothing is left over, and everything is where it ought to be.
    fn judge_rest(&mut self) -> Result<(), String> {
        let mut sum = ChainFigures::default();
        for node in self.nodes.iter().filter(|node| node.power == Power::Up) {
            let mut keys = 0;
            for (worker, seat) in node.seats.iter().enumerate() {
                let kernel = &seat.front.kernel;
                let figures = kernel.chain_figures().unwrap_or_default();
                let waits = figures.waiting + figures.held + figures.parked;
                if waits > 0 || kernel.waiting() > 0 {
                    let (is, what) = (node.index, seat.describe());
                    return Err(format!("n{is}w{worker} waits: {figures:?}; {what}"));
                }
                sum.add(&figures);
                keys += kernel.shard.len(0);
            }
            let expected = self.keys_of(node.id);
            if keys != expected {
                let is = node.index;
                let what = format!("n{is} has {keys} keys, and ought to have {expected}");
                return Err(what + &self.show_keys(is));
            }
        }
        let copies = self.coordinator.mapping.chains.ranges();
        let copies: usize = copies.map(|(slots, c)| slots.len() * c.members.len()).sum();
        let slots = match self.plan.slots.len() {
            0 => SLOTS,
            some => some,
        };
        let places = (sum.served, sum.whole, sum.member);
        if places != (slots as u64, copies as u64, copies as u64) {
            return Err(format!("not all slots are served, or some by two: {sum:?}"));
        }
        match sum.refused_effects + sum.refused_mappings + sum.spread {
            0 => Ok(()),
            _ => Err(format!("something could not be done: {sum:?}")),
        }
    }

    /// Which keys each worker of a node has.
    fn show_keys(&mut self, node: usize) -> String {
        let now = self.nodes[node].now(self.now_us);
        let mut text = String::new();
        for (worker, seat) in self.nodes[node].seats.iter_mut().enumerate() {
            let shard = &mut seat.front.kernel.shard;
            let mut has = |name: &&&str| {
                let key = shard.key(name.as_bytes());
                shard.contains(0, key, now)
            };
            let keys: Vec<_> = KEYS.iter().filter(&mut has).collect();
            text.push_str(&format!("\n  w{worker}: {keys:?}"));
        }
        for name in KEYS {
            let slot = slot_of(name.as_bytes());
            let chain = self.coordinator.mapping.chains.of(slot);
            text.push_str(&format!("\n  {name}: slot {slot}, {chain:?}"));
        }
        text
    }

    /// How many keys are there of which a node has copies.
    fn keys_of(&self, id: NodeId) -> usize {
        let mapping = &self.coordinator.mapping;
        let no = mapping.number_of(id);
        let is_here = |unit: &usize| {
            let chain = mapping.chains.of(slot_of(KEYS[*unit].as_bytes()));
            no.is_some_and(|no| chain.members.contains(&no)) && self.is_there(*unit)
        };
        (0..KEYS.len()).filter(is_here).count()
    }

    /// What was read last of a key.
    fn is_there(&self, unit: usize) -> bool {
        debug_assert_eq!(self.history.units[unit].kind, Kind::Text);
        let last = self.history.records[unit][0].last();
        last.is_some_and(|record| record.outcome != Outcome::Seen(Reply::Null))
    }
}
