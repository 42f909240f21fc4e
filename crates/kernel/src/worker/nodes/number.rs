//! The number that identifies a node's replicas: adopted when a mapping contains it, and logged
//! when all workers have received the state of other nodes.

use super::{Early, FLYING_BYTES, KEYS};
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::replicate::gossip::{Gossip, Limits};
use crate::replicate::replicas::Replicas;
use crate::shard::{Item, NO_NODE};
use crate::worker::Worker;
use crate::worker::replicating::each_grave;
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_store::shard::convert;
use std::cmp::Ordering;

impl<P: Program> Worker<P> {
    /// Adopts a number. The data here was written under another number, or it is this node's own:
    /// other nodes have forgotten any data of earlier numbers.
    pub(super) fn be_node(&mut self, now: Now, number: u16) {
        let workers = self.placement.workers();
        let Some(mut replicas) = Replicas::of_node(self.id, workers, number) else {
            return;
        };
        let Some(nodes) = &mut self.lattice.nodes else {
            return;
        };
        let limits = Limits {
            flying_bytes: FLYING_BYTES / workers,
            ..Limits::default()
        };
        let mut gossip = Gossip::new(number, self.id, limits);
        gossip.set_table(nodes.table);
        nodes.up.iter().for_each(|&node| gossip.up(node));
        nodes.stop();
        (nodes.number, nodes.gossip) = (Some(number), Some(gossip));
        nodes.held.clear();
        nodes.out.clear();
        let mut before = self.shard.marks().node();
        if before == Some(NO_NODE) && planted::is(Planted::UnservedKept) {
            before = Some(number);
        }
        if before.is_some_and(|of| of != number) {
            self.drop_lattice_keys();
            replicas.know_nothing_of(&self.shard);
        }
        if before != Some(number) {
            self.shard.set_node(NO_NODE);
        }
        let replicas_here = &mut self.lattice.replicas;
        if replicas.replica() != replicas_here.replica() {
            let before = std::mem::replace(replicas_here, replicas);
            replicas_here.go_on_from(&before);
        }
        replicas_here.start();
        self.note_writes(now);
    }

    fn drop_lattice_keys(&mut self) {
        // Nothing is due at the beginning of time.
        let never = Now::default();
        for db in 0..DATABASES {
            let mut names = Vec::<Box<[u8]>>::new();
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let mut take = |item: Item<'_>| {
                    if self.placement.lattice(item.key).is_some() {
                        names.push(item.key.into());
                    }
                };
                cursor = self.shard.scan(db, at, KEYS, never, &mut take);
            }
            each_grave(&self.shard, db, &mut |key| {
                names.push(key.into());
                false
            });
            for name in names {
                let key = self.shard.key(&name);
                convert::drop_replicated(&mut self.shard, db, key, never);
            }
        }
        self.shard.changeset().clear();
    }

    /// A worker of this node, which may be this one, has received the state of all other nodes.
    pub(in crate::worker) fn on_has_heard(&mut self, number: u16) {
        let workers = self.placement.workers();
        let Some(nodes) = &mut self.lattice.nodes else {
            return;
        };
        match nodes.number.map_or(Ordering::Less, |own| own.cmp(&number)) {
            Ordering::Less => nodes.early.push(Early::HasHeard(number)),
            Ordering::Greater => {}
            Ordering::Equal => {
                nodes.heard += 1;
                if nodes.heard == workers {
                    // Requests may wait for it; their writes follow it.
                    (nodes.serves, nodes.more) = (true, true);
                    self.shard.set_node(number);
                }
            }
        }
    }

    pub(in crate::worker) fn on_node_of_files(&mut self, number: u16) {
        // If a log says that its node has served, all workers had received the state of other
        // nodes; if it says that its node was in no cluster, it may have written as that node.
        let least = self.shard.marks().node().unwrap_or(number).min(number);
        self.shard.set_node(least);
    }

    /// A node that is in no cluster writes as the first node of one.
    pub(in crate::worker) fn be_no_node(&mut self) {
        let is_other = self.shard.marks().node().is_some_and(|number| number > 0);
        if self.lattice.nodes.is_none() && is_other {
            self.shard.set_node(0);
        }
    }
}
