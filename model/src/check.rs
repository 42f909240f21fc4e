//! What has to hold in every state, and what has to come when faults end.

use crate::bounds::Sync;
use crate::node::SLOT;
use crate::world::{Action, World};

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
        Ok(())
    }

    /// Without further faults the slot is served again.
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
        let head = chain.head().map(|no| &world.nodes[usize::from(no.0)]);
        let head = head.and_then(|node| node.run.as_ref());
        if world.bounds.sync == Sync::Later
            && head.is_some_and(|run| run.replica.complete_seq(SLOT).is_none())
        {
            // All have stopped, and the member chosen to continue has lost the end of a copy.
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
