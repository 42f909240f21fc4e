//! The memory charges that the workers of a node publish to one another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One entry per worker, written by that worker alone, without locks or read-modify-write. A reader sees each entry
/// at some moment, and not all of them at the same one.
#[derive(Debug)]
pub struct Ledger {
    entries: Box<[Published]>,
}

/// Aligned so that each entry has cache lines of its own: a worker that publishes does not invalidate those that
/// others write.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Published {
    charge: AtomicUsize,
    can_evict: AtomicBool,
}

/// The sum of all workers but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    pub(super) charge: usize,
    /// At least one of them can evict.
    pub(super) can_evict: bool,
    /// At least one of them is above its share and can evict.
    pub(super) above_share_can: bool,
}

impl Ledger {
    pub fn new(workers: usize) -> Self {
        Self {
            entries: (0..workers.max(1)).map(|_| Published::default()).collect(),
        }
    }

    pub fn workers(&self) -> usize {
        self.entries.len()
    }

    /// The charge of all workers together.
    pub fn total(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.charge.load(Ordering::Relaxed))
            .sum()
    }

    pub(super) fn publish(&self, worker: usize, charge: usize, can_evict: bool) {
        let entry = &self.entries[worker];
        // An unchanged line stays in the caches of its readers.
        if entry.charge.load(Ordering::Relaxed) != charge {
            entry.charge.store(charge, Ordering::Relaxed);
        }
        if entry.can_evict.load(Ordering::Relaxed) != can_evict {
            entry.can_evict.store(can_evict, Ordering::Relaxed);
        }
    }

    pub(super) fn others(&self, worker: usize, share: usize) -> Others {
        let mut all = Others::default();
        for (number, entry) in self.entries.iter().enumerate() {
            if number == worker {
                continue;
            }
            let charge = entry.charge.load(Ordering::Relaxed);
            let can = entry.can_evict.load(Ordering::Relaxed);
            all.charge += charge;
            all.can_evict |= can;
            all.above_share_can |= can && charge > share;
        }
        all
    }
}
