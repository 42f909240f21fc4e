//! The changes of executed commands: each owner gets its part with the release of its keys, and the
//! client its reply once all parts are committed.

use super::{Call, Release, Site};
use crate::batch::Batch;
use crate::durable::TxnId;
use crate::keyspace::Keyspaces;
use crate::lock::Ticket;
use crate::multi::{Committing, Finish, KeyWrite, Multi, NodeAction, PieceOf, Seen};
use crate::planted::{self, Planted};
use crate::worker::{Message, Outcome};
use rufous_base::{Output, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The table that a command installs on all workers, and whether any worker has keys that do not
/// fit it yet.
pub(in crate::worker) type NewTable = Option<(Arc<Keyspaces>, bool)>;

/// The changes, by owner.
pub(super) type Writes = BTreeMap<WorkerId, Vec<KeyWrite>>;

/// An executed command.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) held: Vec<(WorkerId, Ticket)>,
    pub(super) writes: Writes,
    pub(super) actions: Vec<NodeAction>,
    pub(super) table: NewTable,
    pub(super) client: u64,
    /// What the client has seen of the keys after it, by owner.
    pub(super) seen: BTreeMap<WorkerId, Seen>,
    /// The worker to reply to.
    pub(super) origin: WorkerId,
    pub(super) replies: Box<Batch>,
}

impl Ran {
    /// A command whose only effects are its actions and its table.
    pub(super) fn without_writes(multi: Multi, origin: WorkerId) -> Self {
        let converts = multi.findings.converts();
        Self {
            held: multi.held,
            writes: Writes::new(),
            actions: multi.actions,
            table: multi.table.map(|table| (table, converts)),
            client: multi.client,
            seen: BTreeMap::new(),
            origin,
            replies: multi.batch,
        }
    }
}

/// Executed commands whose parts are not all committed.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// The number of this start of the node.
    run: u64,
    /// Commands of this run with parts at several workers.
    txns: u64,
    committing: BTreeMap<u64, Committing>,
}

impl Commits {
    pub(super) fn on_run(&mut self, run: u64) {
        self.run = run;
    }

    pub(super) fn len(&self) -> usize {
        self.committing.len()
    }

    fn next_txn(&mut self, own: WorkerId) -> TxnId {
        self.txns += 1;
        TxnId {
            run: self.run,
            worker: own.0,
            n: self.txns,
        }
    }

    /// A command was executed: sends writes to the owners, releases everything and outputs the
    /// replies; where there is a log, once the writes are committed there. `multi`: its number in
    /// messages from now on.
    pub(super) fn on_ran(&mut self, multi: u64, mut ran: Ran, site: &mut Site<'_>) {
        let writers = writers(&ran, site);
        let piece = (site.commits && writers.len() > 1).then(|| PieceOf {
            txn: self.next_txn(site.store.id),
            participants: writers.iter().map(|w| w.0).collect(),
        });
        let mut committing = Committing {
            replies: ran.replies,
            origin: ran.origin,
            missing: writers.len(),
            txn: piece.as_ref().map(|p| p.txn),
            held: Vec::new(),
        };
        for (owner, ticket) in ran.held {
            let finish = match &piece {
                _ if !writers.contains(&owner) => Finish::LetGo,
                None => Finish::Tell { multi },
                Some(piece) => {
                    committing.held.push((owner, ticket));
                    let piece = piece.clone();
                    Finish::Hold { multi, piece }
                }
            };
            let release = Release {
                ticket,
                writes: ran.writes.remove(&owner).unwrap_or_default(),
                upto: site.time,
                actions: ran.actions.clone(),
                table: ran.table.clone(),
                client: ran.client,
                seen: ran.seen.remove(&owner).unwrap_or_default(),
                finish,
            };
            site.call(Call::Release(owner, release));
        }
        debug_assert!(ran.writes.is_empty(), "writes only where keys were held");
        if committing.missing == 0 {
            site.call(Call::Answer(committing.origin, committing.replies));
        } else {
            self.committing.insert(multi, committing);
        }
    }

    /// A worker has committed its part.
    pub(super) fn on_committed(&mut self, number: u64, site: &mut Site<'_>) {
        let Some(committing) = self.committing.get_mut(&number) else {
            debug_assert!(false, "committed, but not under way");
            return;
        };
        committing.missing -= 1;
        let is_over = committing.missing == 0;
        let Some(committing) = is_over.then(|| self.committing.remove(&number)).flatten() else {
            return;
        };
        site.call(Call::Answer(committing.origin, committing.replies));
        let Some(txn) = committing.txn else { return };
        for (owner, ticket) in committing.held {
            site.call(Call::Unlock(owner, ticket, txn));
        }
    }

    /// The client of a command is told that its outcome is unknown; its keys stay held until the command
    /// is committed, and then its reply says that it was doubtful.
    pub(super) fn on_doubtful(&mut self, number: u64, site: &mut Site<'_>) {
        let Some(committing) = self.committing.get_mut(&number) else {
            return;
        };
        committing.replies.is_doubtful = !planted::is(Planted::DoubtAnswered);
        let requests = committing.replies.requests.iter();
        if committing.origin == site.store.id {
            let lost = requests.map(|r| Outcome::Lost(r.header));
            return site.out.outcomes.extend(lost);
        }
        let mut lost = Box::<Batch>::default();
        requests.for_each(|r| lost.push_reply(r.header, Output::default()));
        site.out.send(committing.origin, Message::Lost(lost));
    }
}

/// The workers that have something to log, in order. A table they all have to adopt before the reply,
/// with a log or without one: until then they route by the one before.
fn writers(ran: &Ran, site: &Site<'_>) -> Vec<WorkerId> {
    let is_cut = |action: &NodeAction| matches!(action, NodeAction::Cut { .. });
    if !site.commits && ran.table.is_none() {
        return Vec::new();
    }
    if ran.table.is_none() && ran.actions.iter().all(is_cut) {
        return ran.writes.keys().copied().collect();
    }
    let mut all: Vec<WorkerId> = ran.held.iter().map(|h| h.0).collect();
    all.sort_unstable();
    all
}
