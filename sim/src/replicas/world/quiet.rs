//! The end of a round: when no message is in transit, all replicas show the same,
//! and no replica keeps tombstones.

use super::{MOST_EVENTS, World};
use crate::engine::scenario::drain;
use crate::replicas::client::{name_of, value_of};
use crate::replicas::history::Quiet;
use crate::replicas::plan::Mode;

impl World {
    pub(super) fn settle(&mut self) -> Result<(), String> {
        self.wires.calm(true);
        drain(self, MOST_EVENTS, |_| false)?;
        self.engine.note("all", format_args!("quiet"));
        let shown = self.shown()?;
        self.history.quiets.push(Quiet {
            events: self.history.len(),
            shown,
        });
        for node in &self.nodes {
            node.shard.check();
            let (left, to_do) = (node.shard.graves_len(), node.shard.has_to_forget());
            if left > 0 || to_do {
                let at = node.number;
                return Err(format!(
                    "node {at} remembers what is gone: {left} keys, more to forget: {to_do}"
                ));
            }
        }
        match self.plan.mode {
            Mode::Shared => self.shared.judge(&mut self.nodes, self.engine.now_us),
            _ => Ok(()),
        }
    }

    /// What all replicas show of each register.
    fn shown(&mut self) -> Result<Vec<Option<u64>>, String> {
        let mut all = Vec::new();
        for key in 0..self.plan.keys {
            let name = name_of(key);
            let owners: Vec<_> = self.nodes[0].placement.owners(&name).collect();
            let mut first = None;
            for owner in owners {
                let at = owner.index();
                let text = self.nodes[at].text(self.engine.now_us, &name);
                let state = self.nodes[at].show(self.engine.now_us, &name);
                let (text, state) = (text.map(|text| value_of(&text)), state);
                let (other, expected) = &*first.get_or_insert((at, (text, state.clone())));
                if *expected != (text, state) {
                    return Err(format!(
                        "after quiet node {other} has {:?} at key {key}, node {at} {text:?}",
                        expected.0
                    ));
                }
            }
            all.push(first.and_then(|(_, (text, _))| text.flatten()));
        }
        Ok(all)
    }
}
