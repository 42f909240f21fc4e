//! The part of a worker whose keys are held: it sends their entries, and applies the changes.

use super::commits::NewTable;
use crate::lock::{KeyName, Ticket};
use crate::multi::{Finish, Gathered, KeyWrite, NodeAction, Seen};
use crate::worker::chains::Gap;
use crate::worker::lattice::Findings;
use crate::worker::store::Store;
use rufous_base::{Now, WorkerId};

/// A worker's reply to a request to hold keys.
#[derive(Debug, Default)]
pub struct Hold {
    pub gathered: Vec<Gathered>,
    /// The transaction's watcher found a key touched.
    pub dirty: bool,
    /// The effect of the command's table on the keys here.
    pub findings: Findings,
    /// The stamp of writes to keys here must be above this time.
    pub promised: u64,
    /// A slot of its keys that this node does not serve, if there is one.
    pub unserved: Option<Gap>,
    /// One of which it may not execute reads either, as a copy.
    pub unread: Option<Gap>,
}

/// A worker's part in an executed command: actions first, then writes.
#[derive(Debug)]
pub struct Release {
    pub(in crate::worker) ticket: Ticket,
    pub(in crate::worker) writes: Vec<KeyWrite>,
    /// No stamp in the writes has a later time.
    pub(in crate::worker) upto: u64,
    pub(in crate::worker) actions: Vec<NodeAction>,
    pub(in crate::worker) table: NewTable,
    /// What the client of the command has seen after it.
    pub(in crate::worker) client: u64,
    pub(in crate::worker) seen: Seen,
    pub(in crate::worker) finish: Finish,
}

impl Release {
    /// For a command that was not executed.
    pub(super) fn of_nothing(ticket: Ticket) -> Self {
        Self {
            ticket,
            writes: Vec::new(),
            upto: 0,
            actions: Vec::new(),
            table: None,
            client: 0,
            seen: Vec::new(),
            finish: Finish::LetGo,
        }
    }
}

impl Hold {
    /// Before the coordinator hears of it, this node has left a slot of its keys: what was gathered
    /// may not be so. It is asked again.
    pub(in crate::worker) fn on_lost(&mut self) {
        let first = self.gathered.first();
        let gap = first.map(|gathered| Gap::not_yet(&gathered.key.1));
        self.unserved = self.unserved.or(gap);
        self.unread = self.unread.or(gap);
    }
}

/// Keys that the coordinator is to ask for again.
pub(in crate::worker) fn names_only(keys: &[KeyName], owner: WorkerId) -> Vec<Gathered> {
    let names = keys.iter().map(|key| Gathered {
        owner,
        key: key.clone(),
        entry: None,
        context: None,
    });
    names.collect()
}

/// The current entries of this worker's keys.
pub(in crate::worker) fn gather(
    keys: &[KeyName],
    now: Now,
    store: &mut Store<'_>,
) -> Vec<Gathered> {
    let (owner, shard) = (store.id, &mut *store.shard);
    let gathered = keys.iter().map(|key| {
        let name = shard.key(&key.1);
        let db = usize::from(key.0);
        // Only the access counts here; the entry is copied as a whole.
        let _ = shard.get(db, name, now);
        let entry = shard.gather_entry(db, name, now);
        Gathered {
            owner,
            key: key.clone(),
            entry,
            context: None,
        }
    });
    gathered.collect()
}
