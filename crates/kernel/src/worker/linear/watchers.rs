//! Keys here that clients of other nodes watch: they ask for that in transactions.

use super::Linear;
use crate::shard::WatchId;
use rufous_linear::TxnId;
use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeMap;

/// The bits of a watcher's number at its node.
const NUMBER_BITS: u32 = 48;

/// Watches of a client, from its first `WATCH` to their end.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Its node, and that node's start.
    origin: (u16, u64),
    /// The slots, each with the epoch since which its chain is unchanged.
    slots: BTreeMap<u16, u64>,
}

impl Linear {
    /// The name here of a watcher that has this number at the node that a transaction came from. Watchers that clients of
    /// this node have without a transaction are named by small numbers.
    pub(super) fn watcher_of(txn: TxnId, number: u64) -> WatchId {
        let of_node = u64::from(txn.node) + 1;
        WatchId(of_node << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1))
    }

    /// A client watches a key of a slot. Returns the epoch since which its chain is unchanged.
    pub(super) fn on_watch(&mut self, id: WatchId, txn: TxnId, slot: u16, since: u64) -> u64 {
        let watcher = self.watchers.entry(id).or_insert_with(|| Watcher {
            origin: (txn.node, txn.start),
            slots: BTreeMap::new(),
        });
        *watcher.slots.entry(slot).or_insert(since)
    }

    pub(super) fn on_unwatch(&mut self, id: WatchId) {
        self.watchers.remove(&id);
    }

    /// Takes the watchers that this node can tell nothing any more: their node has started again, or a slot's chain has
    /// changed.
    pub(super) fn take_ended_watchers(&mut self, mapping: &Mapping) -> Vec<WatchId> {
        let goes_on = |watcher: &Watcher| {
            let (node, start) = watcher.origin;
            let member = mapping.members.get(&NodeNo(node));
            let mut slots = watcher.slots.iter();
            member.is_some_and(|member| member.incarnation == start)
                && slots.all(|(slot, since)| mapping.chains.of(*slot).since == *since)
        };
        let ended = self.watchers.extract_if(.., |_, watcher| !goes_on(watcher));
        ended.map(|(id, _)| id).collect()
    }
}
