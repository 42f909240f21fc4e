//! Commands on keys of several workers: gather, run, scatter.
//!
//! The worker of the client's connection coordinates. It visits the workers
//! concerned in ascending order; each holds the command's keys (everybody else
//! who wants them waits) and answers with what they contain. Then the command
//! runs once, on a scratch shard with just these entries, and what it changed
//! goes back to the owners, who let go of the keys. So every command that can
//! run on one shard is atomic over many, without code of its own.
//!
//! Invariants:
//! 1. Workers are visited in ascending order and each once: whoever waits,
//!    waits for somebody further on, so that there is no cycle.
//! 2. Between the first hold and the last nothing is changed; every entry read
//!    is still the owner's when the command runs.
//! 3. A worker lets go only with the command's writes applied.
//!
//! Linear transactions take this module's place [Warp §2.2].

use crate::batch::Batch;
use crate::lock::{KeyName, Scope, Ticket};
use crate::shard::Entry;
use rufous_base::WorkerId;

/// What a command does to whole databases rather than to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAction {
    FlushAll,
    FlushDb(u8),
    SwapDb(u8, u8),
}

/// A command under way, at its coordinator.
#[derive(Debug)]
pub struct Multi {
    /// The request itself, alone in its batch.
    pub batch: Box<Batch>,
    /// Workers still to be visited, the next one last.
    to_visit: Vec<(WorkerId, Scope)>,
    /// Who holds keys for it.
    pub held: Vec<(WorkerId, Ticket)>,
    pub gathered: Vec<Gathered>,
    pub action: Option<NodeAction>,
}

/// A key of the command with its entry before the command ran.
#[derive(Debug)]
pub struct Gathered {
    pub owner: WorkerId,
    pub key: KeyName,
    pub entry: Option<Entry>,
}

/// A key and what it contains from now on.
pub type KeyWrite = (KeyName, Option<Entry>);

impl Multi {
    /// `keys` with their owners, in any order, repeats allowed.
    pub fn on_keys(batch: Box<Batch>, keys: Vec<(WorkerId, KeyName)>) -> Self {
        let mut by_worker = std::collections::BTreeMap::<WorkerId, Vec<KeyName>>::new();
        for (owner, key) in keys {
            by_worker.entry(owner).or_default().push(key);
        }
        let to_visit = by_worker
            .into_iter()
            .rev()
            .map(|(w, keys)| (w, Scope::keys(keys)))
            .collect();
        Self {
            batch,
            to_visit,
            held: Vec::new(),
            gathered: Vec::new(),
            action: None,
        }
    }

    /// A command that concerns all data of all workers.
    pub fn on_node(batch: Box<Batch>, workers: usize, action: NodeAction) -> Self {
        let to_visit = (0..workers)
            .rev()
            .map(|w| (WorkerId(w as u16), Scope::All))
            .collect();
        Self {
            batch,
            to_visit,
            held: Vec::new(),
            gathered: Vec::new(),
            action: Some(action),
        }
    }

    /// The next worker to visit, and what it is to hold.
    pub fn next_visit(&mut self) -> Option<(WorkerId, Scope)> {
        let visit = self.to_visit.pop();
        debug_assert!(
            visit
                .as_ref()
                .is_none_or(|v| self.held.iter().all(|h| h.0 < v.0)),
            "workers are visited in ascending order"
        );
        visit
    }
}
