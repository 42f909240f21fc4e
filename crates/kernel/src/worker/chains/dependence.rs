//! Which replies depend on writes that other nodes may not have yet.

use super::ChainHost;
use super::late::Waits;
use super::view::{Needs, UNMAPPED};
use super::withheld::{Fate, Item};
use crate::placement::Placement;
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_base::slot::slot_of;
use rufous_chain::{Replica, planted as chain};
use rufous_mapping::{Mapping, NodeNo, Phase};
use std::collections::BTreeMap;

/// Whether replies wait for all writes of the worker, by mistake.
fn is_of_worker() -> bool {
    chain::is(chain::Planted::GatesOfWorker)
}

impl ChainHost {
    /// Whether keys are of several slots, some of which have copies at other nodes.
    pub(in crate::worker) fn is_spread<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        placement: &Placement,
    ) -> bool {
        let keys = keys.into_iter();
        let mut slots = keys
            .filter(|key| placement.lattice(key).is_none())
            .map(slot_of);
        let Some(first) = slots.next() else {
            return false;
        };
        let (mut differ, mut shared) = (false, self.is_shared(first));
        for slot in slots {
            differ |= slot != first;
            shared |= self.is_shared(slot);
        }
        differ && shared
    }

    /// Whether a slot has copies at other nodes, or will have.
    pub(in crate::worker) fn is_shared(&self, slot: u16) -> bool {
        let mapping = self.mapping();
        mapping.is_some_and(|mapping| mapping.chains.of(slot).named().count() > 1)
    }

    /// The slots of the strict keys among these. None are named while no slot has copies at other
    /// nodes: then nothing depends on other nodes.
    pub(in crate::worker) fn slots_of<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        placement: &Placement,
    ) -> Vec<u16> {
        if self.is_alone || planted::is(Planted::AllTakenForLattice) {
            return Vec::new();
        }
        let mut slots: Vec<u16> = Vec::new();
        for key in keys {
            if placement.lattice(key).is_none() {
                let slot = slot_of(key);
                if !slots.contains(&slot) {
                    slots.push(slot);
                }
            }
        }
        slots
    }

    /// Whether what was read from these slots, or written to them, may be unknown to other nodes
    /// that have copies. `journaled`: the length of the journal.
    pub(in crate::worker) fn awaits(&self, slots: &[u16], journaled: usize) -> bool {
        let Some(replica) = self.replica.as_ref().filter(|_| !self.is_alone) else {
            return false;
        };
        // What was written since then is sorted by slots when the frame ends: until then it may
        // concern any slot.
        let is_open = journaled > self.taken;
        let awaits =
            |slot: &u16| replica.awaits_copies(*slot) || is_open && replica.is_shared(*slot);
        !planted::is(Planted::GatesOpen) && slots.iter().any(awaits)
    }

    /// The number of this start of the node.
    pub(in crate::worker) fn incarnation(&self) -> u64 {
        self.settings.incarnation
    }

    /// For a slot of which this node takes writes now: the epoch since which its chain is unchanged.
    pub(in crate::worker) fn takes_since(&self, now: Now, slot: u16) -> Option<u64> {
        self.serves(now, slot, Needs::Write).ok()?;
        self.replica.as_ref()?.since(slot)
    }

    /// Keeps what depends on these slots until all copies have their writes.
    pub(in crate::worker) fn withhold(&mut self, slots: &[u16], item: Item) {
        self.withheld.on_item(slots, item);
    }

    /// Why the log takes nothing, or that it does again.
    pub(in crate::worker) fn on_trouble(&mut self, trouble: Option<String>) {
        self.trouble = trouble;
    }

    /// The nodes that cannot write, by what they announce, and why.
    pub(in crate::worker) fn on_ailing(&mut self, ailing: BTreeMap<NodeNo, String>) {
        self.ailing = ailing;
    }

    /// What was written so far is in the chains. A chain without other nodes has it at once.
    pub(super) fn note_appended(&mut self) {
        if !self.withheld.is_empty() {
            let replica = self.replica.as_ref();
            let last = |slot| replica.map_or(0, |replica| replica.last_write(slot));
            for slot in self.withheld.on_append(last) {
                self.release_of(slot);
            }
        }
    }

    /// The size of the writes of a slot that wait for copies.
    pub(super) fn waiting_bytes(&self, slot: u16) -> usize {
        let replica = self.replica.as_ref();
        replica.map_or(0, |replica| replica.unacknowledged_bytes(slot))
    }

    /// The chain of a slot may have progressed: so many bytes of its writes waited before.
    pub(super) fn release(&mut self, slot: u16, waited: usize) {
        let bytes = waited.saturating_sub(self.waiting_bytes(slot));
        if let Some(acknowledged) = self.acknowledged(slot) {
            self.late.on_acknowledged(slot, acknowledged, bytes);
        }
        self.release_of(slot);
    }

    fn release_of(&mut self, slot: u16) {
        if is_of_worker() {
            self.release_all();
        } else if !self.withheld.is_empty() {
            let acknowledged = self.acknowledged(slot);
            self.withheld.on_acknowledged(slot, acknowledged);
        }
    }

    /// Any chain may have progressed, or changed.
    pub(super) fn release_all(&mut self) {
        if self.withheld.is_empty() {
            return;
        }
        let mut withheld = std::mem::take(&mut self.withheld);
        withheld.on_chains(|slot| self.acknowledged(slot));
        self.withheld = withheld;
    }

    /// The last acknowledged write of a slot, if this node is in its chain.
    fn acknowledged(&self, slot: u16) -> Option<u64> {
        let replica = self.replica.as_ref()?;
        let acknowledged = replica.acknowledged(slot)?;
        let waits = replica.settled() < replica.position();
        if waits && is_of_worker() {
            Some(0)
        } else {
            Some(acknowledged)
        }
    }

    /// Looks which slots have writes that wait.
    pub(super) fn look_at_late(&mut self, now: Now) {
        if let Some(replica) = &self.replica {
            let waits = replica.unacknowledged();
            let waits = waits.map(|(slot, acknowledged, bytes)| Waits {
                slot,
                nodes: replica.named(slot),
                acknowledged,
                bytes,
            });
            self.late.on_look(now.mono_us, waits);
        }
    }

    /// Whether no request runs on a slot although this node serves it.
    #[inline]
    pub(super) fn takes_nothing(&self, replica: &Replica, slot: u16, needs: Needs) -> bool {
        // Where the log fails, the data here may be lost, and the other members go on without it: they
        // replace this node.
        self.trouble.is_some() && replica.has_other_member(slot)
            || self.late.has(slot)
            || needs == Needs::Write && self.late.has_chain(|| replica.named(slot))
            || self.late.is_full(self.withheld.bytes()) && replica.awaits_copies(slot)
    }

    /// Why a slot that this node serves takes no requests: a node that does not acknowledge its
    /// writes.
    pub(super) fn why_taken_not(&self, slot: u16) -> Option<String> {
        let replica = self.replica.as_ref()?;
        if !self.takes_nothing(replica, slot, Needs::Write) {
            return None;
        }
        if let Some(why) = &self.trouble {
            return Some(format!(
                "CLUSTERDOWN The node takes nothing for the slot ({why}), and others replace it: see CLUSTER \
                 STATUS; send it again"
            ));
        }
        let mapping = replica.mapping()?;
        let chain = mapping.chains.of(slot);
        // A chain that has lost a node waits, too, until that is confirmed.
        let others = chain.named().chain(chain.former());
        let others: Vec<NodeNo> = others.filter(|no| *no != replica.me()).collect();
        let ailing = others
            .iter()
            .find_map(|no| Some((no, self.ailing.get(no)?)));
        let name = |no: &NodeNo| name_of(mapping, *no);
        let (named, why) = match ailing {
            Some((no, why)) => (name(no), why.as_str()),
            None if others.is_empty() => ("a node that was replaced".into(), "it was lost"),
            None => {
                let named: Vec<String> = others.iter().map(name).collect();
                (named.join(" or "), "it does not answer")
            }
        };
        Some(format!(
            "CLUSTERDOWN {named} has a copy of the slot and does not acknowledge earlier writes ({why}); \
             CLUSTER STATUS shows whether it is replaced; send it again"
        ))
    }

    /// What a slot that no node serves waits for, if that is known.
    pub(super) fn why_waits(&self, slot: u16) -> Option<String> {
        let mapping = self.replica.as_ref().and_then(Replica::mapping);
        let Some(mapping) = mapping else {
            return Some(UNMAPPED.to_owned());
        };
        let chain = mapping.chains.of(slot);
        let named: Vec<String> = chain
            .members
            .iter()
            .map(|no| name_of(mapping, *no))
            .collect();
        match chain.phase {
            Phase::Acts => None,
            Phase::Confirms { .. } => Some(format!(
                "CLUSTERDOWN A node with a copy of the slot was lost, and {} has yet to confirm that it has one; \
                 send it again",
                named.join(" or ")
            )),
            Phase::Halted { .. } => Some(format!(
                "CLUSTERDOWN All copies of the slot have stopped: it is served when {} have started and reported what \
                 they have; CLUSTER STATUS shows which do not run; send it again",
                named.join(" and ")
            )),
        }
    }

    #[inline]
    pub(in crate::worker) fn has_released(&self) -> bool {
        self.withheld.has_ended()
    }

    /// The node stops: nothing waits for copies any more. Returns how much did.
    pub(in crate::worker) fn give_up(&mut self) -> usize {
        self.withheld.give_up()
    }

    /// What waits for copies no longer.
    pub(in crate::worker) fn take_released(&mut self) -> Vec<(Item, Fate)> {
        self.withheld.take_ended()
    }
}

fn name_of(mapping: &Mapping, no: NodeNo) -> String {
    mapping.members.get(&no).map_or_else(
        || format!("node {}", no.0),
        |member| format!("node {} at {}", no.0, member.cluster),
    )
}
