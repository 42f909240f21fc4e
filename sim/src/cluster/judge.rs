//! Whether all that was seen is right, and all nodes are alike after quiet.

use super::fleeting::FLEETING;
use super::loose::LOOSE;
use super::node::Power;
use super::spread;
use super::wishes::PAIR;
use super::world::World;
use crate::engine::clock::Clock;
use crate::history::Outcome;
use crate::model;
use crate::oracle::linear;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;
use rufous_kernel::worker::ChainFigures;
use rufous_resp::Reply;

impl World {
    pub(super) fn judge(&mut self) -> Result<(), String> {
        self.look_at_passed_on();
        self.judge_orders()?;
        self.judge_losses()?;
        self.judge_rest()?;
        self.judge_books()?;
        self.judge_keys()?;
        self.judge_loose()
    }

    /// One order of all commands explains what clients saw of each key.
    fn judge_orders(&mut self) -> Result<(), String> {
        let clock = Clock::default();
        let world = model::World {
            clock: &clock,
            evicts: false,
        };
        for unit in 0..self.history.units.len() {
            // Each slot may lack what was acknowledged before a loss of power: no order of the commands explains that.
            if self.plan.has_losses() && unit >= spread::place_of(0) {
                continue;
            }
            let verdict = linear::check(&self.history, unit, &world, self.engine.now_us);
            self.history.unsure += u64::from(verdict.unsure);
            if let Some(failure) = verdict.failure {
                let name = self.history.units[unit].name();
                return Err(format!("{name}: {failure}"));
            }
        }
        Ok(())
    }

    /// Nothing is left over, and each slot is served by one node.
    fn judge_rest(&mut self) -> Result<(), String> {
        let mut sum = ChainFigures::default();
        for node in self.nodes.iter().filter(|node| node.power == Power::Up) {
            for (worker, seat) in node.seats.iter().enumerate() {
                let kernel = &seat.front.kernel;
                let figures = kernel.chain_figures().unwrap_or_default();
                let waits = figures.waiting + figures.held + figures.parked;
                if waits > 0 || kernel.waiting() > 0 {
                    let (is, what) = (node.index, seat.describe());
                    return Err(format!("n{is}w{worker} waits: {figures:?}; {what}"));
                }
                sum.add(&figures);
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

    /// Each key is at the members of its slot's chain, which are those that the ring
    /// wants, and on no other node; there are no other keys.
    fn judge_keys(&mut self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            if self.nodes[node].power != Power::Up {
                continue;
            }
            let no = self.coordinator.number_of(self.nodes[node].id);
            let (here, all) = self.keys_at(node);
            for (unit, key, name) in self.keys_of_units() {
                let mapping = &self.coordinator.mapping;
                let slot = slot_of(name.as_bytes());
                let (chain, owners) = (mapping.chains.of(slot), mapping.ring.owners(slot));
                let is_owner = no.is_some_and(|no| owners.contains(&no));
                let is_member = no.is_some_and(|no| chain.members.contains(&no));
                let expected = is_owner && self.is_there(unit, key);
                if is_owner != is_member || here.contains(&name) != expected {
                    return Err(format!(
                        "n{node}, {no:?}, has {here:?}; {name} is in slot {slot}: {chain:?}, of {owners:?}"
                    ));
                }
            }
            if all != here.len() {
                return Err(format!(
                    "n{node} has {all} keys, and of those known {here:?}"
                ));
            }
        }
        Ok(())
    }

    /// The names of all keys that are judged by the history, with their units and places there.
    fn keys_of_units(&self) -> Vec<(usize, usize, String)> {
        let units = self.history.units.iter().enumerate();
        let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let keys = units.flat_map(|(number, unit)| {
            let keys = unit.keys.iter().enumerate();
            keys.map(move |(place, key)| (number, place, name(key)))
        });
        keys.collect()
    }

    /// Those of the keys of units that a node has, and how many keys of no lattice
    /// keyspace it has in all, but for the pair, the key with deadlines, and outcomes of transactions.
    fn keys_at(&mut self, node: usize) -> (Vec<String>, usize) {
        let now = self.nodes[node].now(self.engine.now_us);
        let names = self.keys_of_units();
        let tokens = self.tokens.clone();
        let (mut here, mut all) = (Vec::new(), 0);
        for seat in &mut self.nodes[node].seats {
            let shard = &mut seat.front.kernel.shard;
            let mut has = |name: &str| {
                let key = shard.key(name.as_bytes());
                shard.contains(0, key, now)
            };
            let found = names.iter().map(|(_, _, name)| name);
            here.extend(found.filter(|name| has(name)).cloned());
            let loose = LOOSE.iter().filter(|(name, _)| has(name)).count();
            let pair = PAIR.iter().filter(|name| has(name)).count();
            let fleeting = usize::from(has(FLEETING));
            let tokens = tokens.iter().filter(|name| has(name)).count();
            all += shard.len(0) - loose - pair - fleeting - tokens;
        }
        (here, all)
    }

    /// Whether there was something when a key of a unit was last read.
    fn is_there(&self, unit: usize, key: usize) -> bool {
        let mut reads = self.history.records[unit][0].iter().filter(|record| {
            let steps = record.op.steps();
            !record.op.writes() && steps.len() == 1 && steps[0].looks_at(key)
        });
        let nothing = [Reply::Null, Reply::Array(Vec::new())].map(Outcome::Seen);
        reads
            .next_back()
            .is_some_and(|record| !nothing.contains(&record.outcome))
    }
}
