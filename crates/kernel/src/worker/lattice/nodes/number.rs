//! The number that identifies a node's replicas: adopted when a mapping contains it, and logged
//! when all workers have received the state of other nodes.

use super::{FLYING_BYTES, Nodes};
use crate::replicate::gossip::{Gossip, Limits};
use crate::replicate::replicas::Replicas;
use crate::shard::NO_NODE;
use crate::shard::convert;
use crate::worker::lattice::names_of_replicas;
use crate::worker::store::Store;
use rufous_base::Now;
use rufous_base::limits::DATABASES;

impl Nodes {
    /// Adopts a number. The data here was written under another number, or it is this node's own:
    /// other nodes have forgotten any data of earlier numbers.
    pub(super) fn be_node(
        &mut self,
        now: Now,
        number: u16,
        replicas: &mut Replicas,
        store: &mut Store<'_>,
    ) {
        let workers = store.workers();
        let Some(mut fresh) = Replicas::of_node(store.id, workers, number) else {
            return;
        };
        let limits = Limits {
            flying_bytes: FLYING_BYTES / workers,
            ..Limits::default()
        };
        let mut gossip = Gossip::new(number, store.id, limits);
        gossip.set_table(self.table);
        self.up.iter().for_each(|&node| gossip.up(node));
        self.stop();
        (self.number, self.gossip) = (Some(number), Some(gossip));
        self.held.clear();
        self.out.clear();
        let before = store.shard.marks().node();
        if before.is_some_and(|of| of != number) {
            drop_lattice_keys(store);
            fresh.know_nothing_of(store.shard);
        }
        if before != Some(number) {
            store.shard.set_node(NO_NODE);
            self.away.is_new();
        }
        if fresh.replica() != replicas.replica() {
            let before = std::mem::replace(replicas, fresh);
            replicas.go_on_from(&before);
        }
        replicas.start();
        replicas.wrote(now, store.shard.changeset());
    }
}

fn drop_lattice_keys(store: &mut Store<'_>) {
    // Nothing is due at the beginning of time.
    let never = Now::default();
    for db in 0..DATABASES {
        for name in names_of_replicas(store, db) {
            let key = store.shard.key(&name);
            convert::drop_replicated(store.shard, db, key, never);
        }
    }
    store.shard.changeset().clear();
}
