//! A node of the world: workers with replicas and lists, and a clock of its own.

use super::SLOTS;
use super::plan::{MOST_WORKERS, NodePlan};
use rufous_base::rng::Rng;
use rufous_base::slot::worker_of_slot;
use rufous_chain::{Replica, Store};
use rufous_mapping::NodeNo;
use rufous_mapping::planner::Copy;
use std::collections::BTreeMap;

pub(super) const LEASE_US: u64 = 1_000_000;

/// Keys of a slot that clients look at.
pub(super) const KEYS: u8 = 5;

/// Keys with these, which are also deleted: all members have to have them alike.
pub(super) const ALL_KEYS: u8 = 8;

pub(super) type Lists = BTreeMap<u8, Vec<u32>>;

/// An effect: key, and what is appended to its list.
pub(super) fn effect(key: u8, value: u32) -> Vec<u8> {
    let mut bytes = vec![key];
    bytes.extend(value.to_le_bytes());
    bytes
}

/// Of a key that goes.
pub(super) fn deletion(key: u8) -> Vec<u8> {
    vec![key]
}

#[derive(Debug, Default)]
pub(super) struct ListStore {
    slots: BTreeMap<u16, Lists>,
    /// Of slots that are copied: keys below this have been, and what to say of
    /// them since.
    copied: BTreeMap<u16, (u8, Vec<u8>)>,
}

impl ListStore {
    pub(super) fn copies(&self, slot: u16) -> bool {
        self.copied.contains_key(&slot)
    }

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
        let lists = self.slots.entry(slot).or_default();
        let Some(value) = effect[1..].first_chunk() else {
            lists.remove(&effect[0]);
            return;
        };
        let list = lists.entry(effect[0]).or_default();
        list.push(u32::from_le_bytes(*value));
    }

    /// A key at a time.
    fn clear(&mut self, slot: u16) -> bool {
        let lists = self.slots.entry(slot).or_default();
        lists.pop_first();
        lists.is_empty()
    }

    fn begin_copy(&mut self, slot: u16) {
        self.copied.insert(slot, Default::default());
    }

    fn end_copy(&mut self, slot: u16) {
        self.copied.remove(&slot);
    }

    fn note(&mut self, slot: u16, effect: &[u8]) {
        if let Some((before, since)) = self.copied.get_mut(&slot)
            && effect[0] < *before
        {
            since.push(effect.len() as u8);
            since.extend_from_slice(effect);
        }
    }

    /// A part: effects with their lengths.
    fn copy(&mut self, slot: u16) -> Option<Vec<u8>> {
        let (key, since) = self.copied.get_mut(&slot).expect("it was begun");
        let mut chunk = std::mem::take(since);
        if *key == ALL_KEYS {
            let more = !chunk.is_empty();
            if !more {
                self.copied.remove(&slot);
            }
            return more.then_some(chunk);
        }
        let list = self.slots.get(&slot).and_then(|lists| lists.get(key));
        for value in list.into_iter().flatten() {
            chunk.push(5);
            chunk.extend(effect(*key, *value));
        }
        *key += 1;
        Some(chunk)
    }

    fn load(&mut self, slot: u16, mut chunk: &[u8]) {
        while let Some((length, rest)) = chunk.split_first() {
            let (effect, rest) = rest.split_at(usize::from(*length));
            self.apply(slot, effect);
            chunk = rest;
        }
    }
}

/// What one thread of a node has.
pub(super) struct Worker {
    pub(super) replica: Replica,
    pub(super) store: ListStore,
    /// It does not get on, while those beside it do.
    pub(super) paused_until: u64,
    /// It receives no epoch, while the other workers of its node do.
    pub(super) deaf_until: u64,
}

impl Worker {
    pub(super) fn runs(&self, now: u64) -> bool {
        now >= self.paused_until
    }
}

/// What a folder says of a slot: as the log of a worker does.
enum Mark {
    Whole(Copy),
    Part,
    Nothing,
}

/// What a folder has of slots.
#[derive(Default)]
struct Folder {
    incarnation: u64,
    slots: BTreeMap<u16, (Lists, Mark)>,
}

pub(super) struct Node {
    pub(super) no: NodeNo,
    pub(super) workers: Vec<Worker>,
    pub(super) incarnation: u64,
    pub(super) is_up: bool,
    /// The last start before this one with the same folder.
    pub(super) after: u64,
    /// Its folder was never emptied, or put back as it was.
    pub(super) keeps_all: bool,
    /// While it is down: the last start with the folder that it has now instead.
    spoilt: Option<u64>,
    /// An earlier state of its folder.
    backup: Option<Folder>,
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
    pub(super) fn new(no: NodeNo, plan: &NodePlan) -> Self {
        let mut node = Self {
            no,
            workers: Vec::new(),
            incarnation: 1,
            is_up: true,
            after: 0,
            keeps_all: true,
            spoilt: None,
            backup: None,
            coordinated: true,
            announced: false,
            paused_until: 0,
            offset: plan.offset_us,
            rate: plan.rate,
        };
        node.workers = node.new_workers(plan.workers, None);
        node
    }

    fn new_workers(&self, count: u64, started: Option<u64>) -> Vec<Worker> {
        let count = count as u16;
        let replica = |n| Replica::new(self.no, n, count, self.incarnation, LEASE_US, started);
        let worker = |n| Worker {
            replica: replica(n),
            store: ListStore::default(),
            paused_until: 0,
            deaf_until: 0,
        };
        (0..count).map(worker).collect()
    }

    pub(super) fn count(&self) -> u16 {
        self.workers.len() as u16
    }

    pub(super) fn worker(&self, slot: u16) -> &Worker {
        &self.workers[worker_of_slot(slot, self.workers.len()).index()]
    }

    pub(super) fn worker_mut(&mut self, slot: u16) -> &mut Worker {
        let at = worker_of_slot(slot, self.workers.len()).index();
        &mut self.workers[at]
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

    fn folder(&self) -> Folder {
        let incarnation = self.incarnation;
        let slots = SLOTS.map(|slot| {
            let worker = self.worker(slot);
            let mark = match worker.replica.copy_of(slot) {
                Some(copy) => Mark::Whole(copy),
                None if worker.replica.has_part(slot) => Mark::Part,
                None => Mark::Nothing,
            };
            (slot, (worker.store.lists(slot), mark))
        });
        Folder {
            incarnation,
            slots: slots.into_iter().collect(),
        }
    }

    /// Its folder is copied.
    pub(super) fn back_up(&mut self) {
        self.backup = Some(self.folder());
    }

    /// While it is down, its folder is emptied,
    pub(super) fn empty(&mut self) {
        self.spoil(Folder::default());
    }

    /// or has only parts of its copies,
    pub(super) fn keep_parts(&mut self) {
        let mut folder = self.folder();
        for (lists, mark) in folder.slots.values_mut() {
            *mark = Mark::Part;
            lists.pop_first();
        }
        self.spoil(folder);
    }

    /// or has the earlier state again. False if there is none.
    pub(super) fn put_back(&mut self) -> bool {
        let backup = self.backup.take();
        let is_there = backup.is_some();
        backup.into_iter().for_each(|folder| self.spoil(folder));
        is_there
    }

    fn spoil(&mut self, folder: Folder) {
        self.keeps_all = false;
        self.spoilt = Some(folder.incarnation);
        self.set_folder(folder, self.workers.len() as u64, None);
    }

    /// What was on disk is all that it had. It may have other workers now.
    pub(super) fn start(&mut self, now: u64, rng: &mut Rng) {
        self.is_up = true;
        let folder = self.folder();
        self.after = self.spoilt.take().unwrap_or(self.incarnation);
        self.incarnation += 1;
        let count = match rng.below(3) {
            0 => 1 + rng.below(MOST_WORKERS),
            _ => self.workers.len() as u64,
        };
        self.set_folder(folder, count, Some(self.clock(now)));
    }

    fn set_folder(&mut self, folder: Folder, count: u64, started: Option<u64>) {
        self.workers = self.new_workers(count, started);
        for (slot, (lists, mark)) in folder.slots {
            let keeps_all = self.keeps_all;
            let worker = self.worker_mut(slot);
            worker.replica.set_keeps_all(keeps_all);
            match mark {
                Mark::Whole(copy) => worker.replica.restore(slot, copy),
                Mark::Part => worker.replica.found_incomplete(slot),
                Mark::Nothing => (),
            }
            worker.store.slots.insert(slot, lists);
        }
    }
}
