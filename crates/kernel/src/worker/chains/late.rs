//! Slots whose writes are not acknowledged for so long, or of which so many bytes wait, that no more
//! requests run on them: what waits for a copy that does not answer is bounded.

use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// How long a write may wait until no more are taken: longer than a node that fails is in its chains.
const LATE_US: u64 = 3_000_000;
/// How many bytes of writes and of replies may wait at one worker. The requests that run already may
/// add theirs.
const MOST_BYTES: usize = 64 << 20;

/// Writes of a slot that its chain has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) slot: u16,
    /// The nodes of its chain.
    pub(super) nodes: Vec<NodeNo>,
    /// The last write that is acknowledged.
    pub(super) acknowledged: u64,
    pub(super) bytes: usize,
}

/// A slot with writes that wait, at the last look.
#[derive(Debug)]
struct Slot {
    nodes: Vec<NodeNo>,
    acknowledged: u64,
    /// Since when that has been the last.
    since_us: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Late {
    slots: BTreeMap<u16, Slot>,
    /// By the nodes of chains with writes that wait: when any of these chains was last seen to
    /// acknowledge one.
    chains: BTreeMap<Vec<NodeNo>, u64>,
    /// Whether any of them was late at the last look.
    any: bool,
    now_us: u64,
    /// The bytes of writes that wait.
    bytes: usize,
}

impl Late {
    /// A write was appended that other nodes have to acknowledge.
    pub(super) fn on_write(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// These are all slots with writes that are not acknowledged. To be called periodically.
    pub(super) fn on_look(&mut self, now_us: u64, waits: impl Iterator<Item = Waits>) {
        self.now_us = self.now_us.max(now_us);
        let mut before = std::mem::take(&mut self.slots);
        let mut chains = std::mem::take(&mut self.chains);
        self.bytes = 0;
        for wait in waits {
            self.bytes += wait.bytes;
            let known = before.remove(&wait.slot);
            let known = known.filter(|known| known.nodes == wait.nodes);
            let stays = known
                .as_ref()
                .filter(|known| known.acknowledged == wait.acknowledged);
            let since_us = stays.map_or(self.now_us, |known| known.since_us);
            if known.is_some_and(|known| known.acknowledged < wait.acknowledged) {
                chains.insert(wait.nodes.clone(), self.now_us);
            }
            let (nodes, acknowledged) = (wait.nodes, wait.acknowledged);
            let slot = Slot {
                nodes,
                acknowledged,
                since_us,
            };
            self.slots.insert(wait.slot, slot);
        }
        // All their writes are acknowledged, or their chains have changed.
        for gone in before.into_values() {
            chains.insert(gone.nodes, self.now_us);
        }
        for slot in self.slots.values() {
            let at_us = chains.get(&slot.nodes).copied().unwrap_or(self.now_us);
            self.chains.insert(slot.nodes.clone(), at_us);
        }
        let mut since = self.slots.values().map(|slot| slot.since_us);
        self.any = since.any(|since_us| self.is_late(since_us));
    }

    /// The chain of a slot has acknowledged its writes up to this one, of so many bytes.
    pub(super) fn on_acknowledged(&mut self, slot: u16, acknowledged: u64, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(known) = self.slots.get_mut(&slot)
            && known.acknowledged < acknowledged
        {
            (known.acknowledged, known.since_us) = (acknowledged, self.now_us);
            if let Some(at_us) = self.chains.get_mut(&known.nodes) {
                *at_us = self.now_us;
            }
        }
    }

    fn is_late(&self, since_us: u64) -> bool {
        self.now_us >= since_us + LATE_US
    }

    /// Whether so many bytes wait, with these of replies, that slots with writes that wait take no
    /// more.
    #[inline]
    pub(super) fn is_full(&self, replies: usize) -> bool {
        self.bytes + replies > MOST_BYTES
    }

    /// Whether writes of a slot have waited for too long.
    #[inline]
    pub(super) fn has(&self, slot: u16) -> bool {
        let known = || self.slots.get(&slot);
        self.any && known().is_some_and(|slot| self.is_late(slot.since_us))
    }

    /// Whether chains of these nodes have acknowledged none of their writes for too long: another slot
    /// of theirs had better take none.
    #[inline]
    pub(super) fn has_chain(&self, nodes: impl FnOnce() -> Vec<NodeNo>) -> bool {
        let known = || self.chains.get(&nodes());
        self.any && known().is_some_and(|at_us| self.is_late(*at_us))
    }

    pub(super) fn len(&self) -> usize {
        let late = self.slots.values();
        late.filter(|slot| self.is_late(slot.since_us)).count()
    }

    /// The bytes of writes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(slot: u16, acknowledged: u64, bytes: usize) -> Waits {
        Waits {
            slot,
            nodes: vec![NodeNo(0), NodeNo(slot)],
            acknowledged,
            bytes,
        }
    }

    #[test]
    fn a_slot_is_late_when_none_of_its_writes_is_acknowledged_for_long() {
        let mut late = Late::default();
        let both = || [waits(1, 7, 10), waits(2, 3, 10)].into_iter();
        late.on_look(1_000, both());
        late.on_look(1_000 + LATE_US - 1, both());
        assert!(!late.has(1) && !late.has(2));
        // One of them goes on.
        late.on_acknowledged(2, 4, 10);
        let now_us = 1_000 + LATE_US;
        late.on_look(now_us, [waits(1, 7, 10), waits(2, 4, 10)].into_iter());
        assert!(late.has(1) && !late.has(2));
        assert_eq!(late.len(), 1);
        late.on_acknowledged(1, 8, 10);
        assert!(!late.has(1));
        late.on_look(9 * LATE_US, std::iter::empty());
        assert!(late.slots.is_empty() && late.chains.is_empty() && !late.any);
    }

    /// Where one of its copies is a node that answers nothing, the next slot would wait, too.
    #[test]
    fn slots_with_the_same_nodes_are_late_together() {
        let of = |slot, acknowledged| Waits {
            nodes: vec![NodeNo(0), NodeNo(1)],
            ..waits(slot, acknowledged, 1)
        };
        let mut late = Late::default();
        late.on_look(1_000, [of(1, 7), of(2, 3)].into_iter());
        let now_us = 1_000 + LATE_US;
        late.on_look(now_us, [of(1, 7), of(2, 4)].into_iter());
        let nodes = |other| move || vec![NodeNo(0), NodeNo(other)];
        assert!(late.has(1));
        assert!(!late.has_chain(nodes(1)), "one of its slots goes on");
        late.on_look(now_us + LATE_US, [of(1, 7), of(2, 4)].into_iter());
        assert!(late.has_chain(nodes(1)) && !late.has_chain(nodes(2)));
        assert!(!late.has(3));
        // All writes of one of them are acknowledged.
        late.on_look(now_us + LATE_US + 1, [of(1, 7)].into_iter());
        assert!(late.has(1) && !late.has_chain(nodes(1)));
    }

    #[test]
    fn bytes_are_those_of_the_last_look_and_since() {
        let mut late = Late::default();
        late.on_look(1, [waits(1, 0, MOST_BYTES)].into_iter());
        assert!(!late.is_full(0) && late.is_full(1));
        late.on_write(7);
        assert!(late.is_full(0));
        late.on_acknowledged(1, 1, 8);
        assert!(!late.is_full(0));
        assert_eq!(late.bytes(), MOST_BYTES - 1);
        late.on_look(2, [waits(1, 0, 5)].into_iter());
        assert_eq!(late.bytes(), 5);
    }
}
