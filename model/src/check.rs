//! What has to hold in every state, and what has to come when faults end.

use crate::node::{Mark, SLOT};
use crate::world::{Action, World};
use rufous_mapping::NodeNo;

/// Rounds of healing: enough for some epochs and a copy.
const ROUNDS: usize = 40;

impl World {
    /// What holds in every state.
    pub fn check(&self) -> Result<(), String> {
        let mut serving = None;
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(run) = &node.run else {
                continue;
            };
            let serves = run.replica.serves(SLOT, self.now_us).is_ok();
            if serves && let Some(other) = serving.replace(at) {
                return Err(format!("nodes {other} and {at} both serve the slot"));
            }
            if serves || run.replica.may_read(SLOT, self.now_us) {
                let content = &run.data.content;
                if let Some(lost) = self.owed.iter().find(|write| !content.contains(write)) {
                    return Err(format!(
                        "node {at} answers without the acknowledged write {lost}"
                    ));
                }
            }
        }
        self.check_copies()
    }

    /// Copies with the same name are the same: otherwise a checksum would have to tell them apart.
    fn check_copies(&self) -> Result<(), String> {
        let whole = self.nodes.iter().flat_map(|node| &node.log);
        let whole = whole.filter_map(|image| match image.mark {
            Mark::Whole(copy) => Some((copy, &image.content)),
            _ => None,
        });
        let whole: Vec<_> = whole.collect();
        for (at, (copy, content)) in whole.iter().enumerate() {
            let same = whole[..at]
                .iter()
                .find(|(other, has)| other == copy && has != content);
            if same.is_some() {
                return Err(format!("two copies differ, and both are {copy:?}"));
            }
        }
        Ok(())
    }

    /// Without further faults the slot is served again, unless all copies of it were spoilt.
    pub fn heal(&self) -> Result<(), String> {
        let mut world = self.clone();
        for _ in 0..ROUNDS {
            for at in 0..world.nodes.len() {
                match world.nodes[at].run {
                    None => world.act(Action::Start(at))?,
                    Some(_) => world.act(Action::Meet(at))?,
                }
            }
            world.act(Action::Plan)?;
            for at in 0..world.nodes.len() {
                world.act(Action::TakeUp(at))?;
                world.act(Action::Sync(at))?;
            }
            world.deliver_all()?;
            world.pass();
            world.check()?;
            if world.planned().is_none() && world.is_served() && world.has_acknowledged_all() {
                return Ok(());
            }
        }
        let chain = world.chain();
        let spoilt = |no: &NodeNo| world.nodes[usize::from(no.0)].spoilt;
        if chain.is_halted() && chain.members.iter().all(spoilt) {
            return Ok(());
        }
        if world.is_served() {
            return Err(format!("a write is never acknowledged: {chain:?}"));
        }
        Err(format!("the slot is never served again: {chain:?}"))
    }

    fn deliver_all(&mut self) -> Result<(), String> {
        for _ in 0..1000 {
            let full = self.links.iter().find(|(_, link)| !link.is_empty());
            let Some((from, to)) = full.map(|(link, _)| *link) else {
                return Ok(());
            };
            self.act(Action::Deliver(from, to))?;
            for at in 0..self.nodes.len() {
                self.act(Action::Sync(at))?;
            }
        }
        Err("messages without end".to_owned())
    }

    fn is_served(&self) -> bool {
        self.nodes.iter().any(|node| {
            let run = node.run.as_ref();
            run.is_some_and(|run| run.replica.serves(SLOT, self.now_us).is_ok())
        })
    }

    fn has_acknowledged_all(&self) -> bool {
        let mut runs = self.nodes.iter().filter_map(|node| node.run.as_ref());
        runs.all(|run| run.pending.is_empty())
    }

    /// A cluster in which nothing has happened yet.
    pub fn settled(mut self) -> Result<Self, String> {
        for at in 0..self.nodes.len() {
            self.act(Action::Start(at))?;
        }
        for _ in 0..ROUNDS {
            self.act(Action::Plan)?;
            for at in 0..self.nodes.len() {
                self.act(Action::TakeUp(at))?;
                self.act(Action::Sync(at))?;
            }
            self.deliver_all()?;
            self.pass();
        }
        let is_settled = self.is_served() && self.planned().is_none();
        let failed = || "the cluster does not come into being".to_owned();
        is_settled.then_some(self).ok_or_else(failed)
    }
}
