//! A node of the world: a replica, lists, and a clock of its own.

use rufous_base::rng::Rng;
use rufous_chain::{Replica, Store};
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

pub(super) const LEASE_US: u64 = 1_000_000;

/// Keys of a slot.
pub(super) const KEYS: u8 = 5;

pub(super) type Lists = BTreeMap<u8, Vec<u32>>;

/// An effect: key, and what is appended to its list.
pub(super) fn effect(key: u8, value: u32) -> Vec<u8> {
    let mut bytes = vec![key];
    bytes.extend(value.to_le_bytes());
    bytes
}

#[derive(Debug, Default)]
pub(super) struct ListStore {
    slots: BTreeMap<u16, Lists>,
    /// Keys below this are copied, by slot.
    copied: BTreeMap<u16, u8>,
}

impl ListStore {
    pub(super) fn lists(&self, slot: u16) -> Lists {
        self.slots.get(&slot).cloned().unwrap_or_default()
    }

    pub(super) fn list(&self, slot: u16, key: u8) -> Vec<u32> {
        let lists = self.slots.get(&slot);
        lists
            .and_then(|lists| lists.get(&key))
            .cloned()
            .unwrap_or_default()
    }
}

impl Store for ListStore {
    fn apply(&mut self, slot: u16, effect: &[u8]) {
        let value = u32::from_le_bytes(effect[1..5].try_into().expect("four bytes"));
        let lists = self.slots.entry(slot).or_default();
        lists.entry(effect[0]).or_default().push(value);
    }

    fn clear(&mut self, slot: u16) {
        self.slots.remove(&slot);
    }

    fn begin_copy(&mut self, slot: u16) {
        self.copied.insert(slot, 0);
    }

    fn copy(&mut self, slot: u16) -> Option<Vec<u8>> {
        let key = self.copied.entry(slot).or_default();
        if *key == KEYS {
            return None;
        }
        let mut chunk = vec![*key];
        let list = self.slots.get(&slot).and_then(|lists| lists.get(key));
        chunk.extend(
            list.into_iter()
                .flatten()
                .flat_map(|value| value.to_le_bytes()),
        );
        *key += 1;
        Some(chunk)
    }

    fn is_copied(&mut self, slot: u16, effect: &[u8]) -> bool {
        effect[0] < self.copied.get(&slot).copied().unwrap_or(0)
    }

    fn load(&mut self, slot: u16, chunk: &[u8]) {
        let values = chunk[1..].chunks(4);
        let values = values.map(|v| u32::from_le_bytes(v.try_into().expect("four bytes")));
        let list: Vec<u32> = values.collect();
        if !list.is_empty() {
            self.slots.entry(slot).or_default().insert(chunk[0], list);
        }
    }
}

pub(super) struct Node {
    pub(super) no: NodeNo,
    pub(super) replica: Replica,
    pub(super) store: ListStore,
    pub(super) incarnation: u64,
    pub(super) is_up: bool,
    /// It can reach the coordinator.
    pub(super) coordinated: bool,
    /// It wants to be a member.
    pub(super) announced: bool,
    paused_until: u64,
    /// Its clock: an offset, and how fast it runs, in thousandths.
    offset: u64,
    rate: u64,
}

impl Node {
    /// `drift`: by how many thousandths its clock may be wrong.
    pub(super) fn new(no: NodeNo, drift: u64, rng: &mut Rng) -> Self {
        // Often as wrong as may be: there the bound has to hold.
        let rate = match rng.below(4) {
            0 => 1000 - drift,
            1 => 1000 + drift,
            _ => 1000 - drift + rng.below(2 * drift + 1),
        };
        Self {
            no,
            replica: Replica::new(no, LEASE_US, None),
            store: ListStore::default(),
            incarnation: 1,
            is_up: true,
            coordinated: true,
            announced: false,
            paused_until: 0,
            offset: rng.below(1_000_000_000),
            rate,
        }
    }

    pub(super) fn clock(&self, now: u64) -> u64 {
        self.offset + now * self.rate / 1000
    }

    pub(super) fn runs(&self, now: u64) -> bool {
        self.is_up && now >= self.paused_until
    }

    pub(super) fn pause(&mut self, until: u64) {
        self.paused_until = until;
    }

    pub(super) fn stop(&mut self) {
        self.is_up = false;
    }

    /// What was on disk is all that it had.
    pub(super) fn start(&mut self, now: u64) {
        self.is_up = true;
        self.incarnation += 1;
        let mut replica = Replica::new(self.no, LEASE_US, Some(self.clock(now)));
        for slot in super::SLOTS {
            if let Some(seq) = self.replica.complete_seq(slot) {
                replica.restore(slot, seq);
            } else {
                self.store.clear(slot);
            }
        }
        self.replica = replica;
    }
}
