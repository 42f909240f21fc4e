//! The worker's part in commands that span workers: holding keys for other workers, and
//! coordinating its own commands. See [`crate::multi`] for the protocol.

use super::lattice::Findings;
use super::scratch::{discard, load, put_back, unload};
use super::waiting::{NoData, Reach, WaiterId};
use super::{Message, Work, Worker};
use crate::batch::Batch;
use crate::durable::{TxnId, entry};
use crate::keyspace::Keyspaces;
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::{
    Committing, Finish, Gathered, KeyWrite, Multi, NodeAction, Part, PieceOf, Seen, Visit,
};
use crate::program::Program;
use crate::shard::Shard;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, Until, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A worker's reply to a request to hold keys.
#[derive(Debug)]
pub struct Hold {
    pub gathered: Vec<Gathered>,
    /// The transaction's watcher found a key touched.
    pub dirty: bool,
    /// The effect of the command's table on the keys here.
    pub findings: Findings,
    /// The stamp of writes to keys here must be above this time.
    pub promised: u64,
    /// Some keys are of slots that this node does not serve.
    pub unserved: bool,
}

/// A worker's part in an executed command: actions first, then writes.
#[derive(Debug)]
pub struct Release {
    ticket: Ticket,
    writes: Vec<KeyWrite>,
    /// No stamp in the writes has a later time.
    upto: u64,
    actions: Vec<NodeAction>,
    table: NewTable,
    /// What the client of the command has seen after it.
    client: u64,
    seen: Seen,
    finish: Finish,
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

/// The current entries of `owner`'s keys.
pub(super) fn gather(
    shard: &mut Shard,
    owner: WorkerId,
    keys: &[KeyName],
    now: Now,
) -> Vec<Gathered> {
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

fn is_cut(action: &NodeAction) -> bool {
    matches!(action, NodeAction::Cut { .. })
}

/// The table that a command installs on all workers, and whether any worker has keys that do not
/// fit it yet.
pub(super) type NewTable = Option<(Arc<Keyspaces>, bool)>;

/// The changes, by owner.
pub(super) type Writes = BTreeMap<WorkerId, Vec<KeyWrite>>;

/// The changes of an executed command for the owners of its keys.
pub(super) struct Changes<'a> {
    pub(super) writes: Writes,
    pub(super) actions: &'a [NodeAction],
    pub(super) table: NewTable,
    pub(super) client: u64,
    pub(super) seen: BTreeMap<WorkerId, Seen>,
}

impl<P: Program> Worker<P> {
    pub(super) fn start(&mut self, mut multi: Multi) {
        multi.mark = self.table_mark();
        let id = self.next_multi;
        self.next_multi += 1;
        self.multis.insert(id, multi);
        let finished = self.visit_next(id);
        debug_assert!(
            !finished,
            "a command that spans workers visits at least one"
        );
    }

    /// Requests the hold of the next worker. True where all have been visited.
    pub(super) fn visit_next(&mut self, id: u64) -> bool {
        let Some(multi) = self.multis.get_mut(&id) else {
            return true;
        };
        let (client, touch) = (multi.client, multi.touch);
        let Some(Visit {
            worker,
            scope,
            part,
        }) = multi.next_visit()
        else {
            return true;
        };
        if worker == self.id {
            self.locks.acquire(
                scope,
                Work::Hold {
                    multi: id,
                    coordinator: self.id,
                    client,
                    touch,
                    part,
                },
            );
        } else {
            self.send(
                worker,
                Message::Acquire {
                    multi: id,
                    scope,
                    client,
                    touch,
                    part,
                },
            );
        }
        false
    }

    /// The current entries of the held keys.
    pub(super) fn hold(
        &mut self,
        ticket: Ticket,
        (client, touch): (u64, bool),
        part: Option<&Part>,
        now: Now,
    ) -> Hold {
        let dirty = part.is_some_and(|part| self.is_dirty(part, now));
        let promised = match self.placement.has_lattice() {
            true => self.lattice.promise(now, ticket.number()),
            false => 0,
        };
        if dirty {
            return Hold {
                dirty,
                findings: Findings::default(),
                promised,
                unserved: false,
                gathered: Vec::new(),
            };
        }
        let table = part.and_then(|part| part.table.as_ref());
        let findings = table.map(|table| self.lattice.on_hold(now, table, &mut store!(self)));
        self.shard.set_touch(touch);
        let keys = match (part, self.locks.scope(ticket)) {
            (Some(part), _) => &part.keys[..],
            (None, Some(Scope::Keys(keys))) => keys,
            (None, _) => &[],
        };
        let unserved = self.is_any_unserved(now, keys.iter().map(|(_, key)| &**key));
        let mut gathered = gather(&mut self.shard, self.id, keys, now);
        self.contexts.add(client, &mut gathered, &self.shard);
        Hold {
            gathered,
            dirty,
            findings: findings.unwrap_or_default(),
            promised,
            unserved,
        }
    }

    pub(super) fn on_acquired(
        &mut self,
        now: Now,
        id: u64,
        from: WorkerId,
        ticket: Ticket,
        hold: Hold,
    ) {
        let Some(multi) = self.multis.get_mut(&id) else {
            debug_assert!(false, "a hold for a command that is not under way");
            return;
        };
        multi.held.push((from, ticket));
        multi.gathered.extend(hold.gathered);
        multi.dirty |= hold.dirty;
        multi.unserved |= hold.unserved;
        multi.findings.add(hold.findings);
        self.lattice.on_time(hold.promised);
        if self.visit_next(id)
            && let Some(multi) = self.multis.remove(&id)
            && let Some(multi) = self.all_served(now, multi)
            && let Some(multi) = self.not_stale(now, multi)
        {
            match multi.exec {
                Some(exec) => self.ready_exec(now, exec, multi),
                None => self.finish(now, multi),
            }
        }
    }

    /// Everything is held: executes the command once and sends its writes to the owners.
    pub(super) fn finish(&mut self, now: Now, multi: Multi) {
        let Some(multi) = self.with_others(now, multi) else {
            return;
        };
        let reshapes = multi.table.is_some();
        let Some(multi) = self.judge_table(multi) else {
            return;
        };
        let converts = multi.findings.converts();
        let Multi {
            mut batch,
            held,
            gathered,
            actions,
            table,
            waiter,
            client,
            ..
        } = multi;
        self.scratch.set_policy(self.shard.policy());
        self.scratch.set_tuning(*self.shard.tuning());
        load(&mut self.scratch, &gathered, now);
        let is_write = batch.requests.iter().any(|r| P::is_write(r.header.command));
        self.contexts.borrow(client, &gathered, &self.shard);
        let answer = match reshapes {
            // Its reply already exists.
            true => Some(self.id),
            false => self.run_gathered(now, &mut batch, &gathered, waiter),
        };
        let seen = self.contexts.give_back(client, &gathered, &self.shard);
        let writes = match is_write && answer.is_some() {
            true => unload(&mut self.scratch, gathered, false, now),
            false => discard(&mut self.scratch, &gathered, now),
        };
        let replies = match answer {
            Some(origin) => (origin, batch),
            None => (self.id, Box::default()),
        };
        let changes = Changes {
            writes,
            actions: &actions,
            table: table.map(|table| (table, converts)),
            client,
            seen,
        };
        self.scatter(now, held, changes, replies);
    }

    /// Executes the request of a command whose keys are held, a waiter's or a new one. The owners'
    /// data is unchanged if there is no reply yet. Returns the worker to reply to.
    fn run_gathered(
        &mut self,
        now: Now,
        batch: &mut Box<Batch>,
        gathered: &[Gathered],
        waiter: Option<WaiterId>,
    ) -> Option<WorkerId> {
        if batch.is_empty() {
            // A cut of the logs has no request.
            return Some(self.id);
        }
        std::mem::swap(&mut self.shard, &mut self.scratch);
        let wait = self.run_one(now, batch, false);
        std::mem::swap(&mut self.shard, &mut self.scratch);
        if let Some(id) = waiter {
            let store = &mut store!(self);
            return self.waits.on_ran_over(id, batch, wait, gathered, store);
        }
        let Some(wait) = wait else {
            return Some(self.id);
        };
        let keys = gathered.iter().map(|g| (g.owner, g.key.clone()));
        self.begin_wait(
            now,
            NoData {
                origin: self.id,
                batch: std::mem::take(batch),
                wait,
                reach: Reach::Over(keys.collect()),
            },
        );
        None
    }

    /// Sends writes to the owners, releases everything and outputs the replies: where there is a
    /// log, once the writes are committed there.
    pub(super) fn scatter(
        &mut self,
        now: Now,
        held: Vec<(WorkerId, Ticket)>,
        Changes {
            mut writes,
            actions,
            table,
            client,
            mut seen,
        }: Changes<'_>,
        (origin, replies): (WorkerId, Box<Batch>),
    ) {
        let whole = table.is_some() || !actions.iter().all(is_cut);
        let writers = self.writers(&held, &writes, whole);
        let multi = self.next_multi;
        self.next_multi += 1;
        let piece = (writers.len() > 1).then(|| PieceOf {
            txn: self.commit.next_txn(),
            participants: writers.iter().map(|w| w.0).collect(),
        });
        let mut committing = Committing {
            replies,
            origin,
            missing: writers.len(),
            txn: piece.as_ref().map(|p| p.txn),
            held: Vec::new(),
        };
        let mut releases = Vec::new();
        for (owner, ticket) in held {
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
                writes: writes.remove(&owner).unwrap_or_default(),
                upto: self.lattice.time(),
                actions: actions.to_vec(),
                table: table.clone(),
                client,
                seen: seen.remove(&owner).unwrap_or_default(),
                finish,
            };
            releases.push((owner, release));
        }
        debug_assert!(writes.is_empty(), "writes only where keys were held");
        let done = match committing.missing {
            0 => Some(committing.replies),
            _ => {
                self.committing.insert(multi, committing);
                None
            }
        };
        for (owner, release) in releases {
            if owner == self.id {
                self.on_release(now, self.id, release);
            } else {
                self.send(owner, Message::Release(release));
            }
        }
        if let Some(replies) = done {
            self.answer(now, origin, replies);
        }
    }

    /// The workers that have something to log, in order.
    fn writers(&self, held: &[(WorkerId, Ticket)], writes: &Writes, whole: bool) -> Vec<WorkerId> {
        if !self.commit.commits() {
            return Vec::new();
        }
        if !whole {
            return writes.keys().copied().collect();
        }
        let mut all: Vec<WorkerId> = held.iter().map(|h| h.0).collect();
        all.sort_unstable();
        all
    }

    /// The commits that the report of this release has to wait for.
    fn until_of(&self, release: &Release) -> Until {
        match release.actions.is_empty() && release.table.is_none() {
            true => self.until(release.writes.iter().map(|(key, _)| &*key.1)),
            false => Until::Passed,
        }
    }

    pub(super) fn on_release(&mut self, now: Now, coordinator: WorkerId, release: Release) {
        let until = self.until_of(&release);
        let Release {
            ticket,
            writes,
            upto,
            actions,
            table,
            client,
            seen,
            finish,
        } = release;
        self.contexts.note(client, &seen, &self.shard);
        let start = self.shard.journal().len();
        for action in actions {
            match action {
                NodeAction::FlushAll => (0..DATABASES).for_each(|db| self.flush(now, db)),
                NodeAction::FlushDb(db) => self.flush(now, usize::from(db)),
                NodeAction::SwapDb(a, b) => self.shard.swap(usize::from(a), usize::from(b)),
                NodeAction::Cut { generation, cut } => self.cut(generation, cut),
            }
        }
        if let Some((table, converts)) = table {
            self.change_table(now, &table, converts);
        }
        put_back(&mut self.shard, writes, now);
        self.lattice.on_time(upto);
        self.lattice.on_writes(now, &mut self.shard);
        let multi = match finish {
            Finish::LetGo => {
                self.end_hold(now, ticket);
                None
            }
            Finish::Tell { multi } => {
                self.end_hold(now, ticket);
                Some(multi)
            }
            Finish::Hold { multi, piece } => {
                self.lattice.on_uncommitted(ticket);
                let journal = self.shard.journal();
                let effects = journal.split_off(start);
                entry::put_piece(journal, piece.txn, &piece.participants, &effects);
                Some(multi)
            }
        };
        // Evicted keys are not part of the command.
        self.make_room(now);
        let Some(multi) = multi else { return };
        let committed = (until, Message::Committed { multi });
        self.send_committed(now, coordinator, committed);
    }

    /// A worker has committed its part.
    pub(super) fn on_committed(&mut self, now: Now, multi: u64) {
        let Some(committing) = self.committing.get_mut(&multi) else {
            debug_assert!(false, "committed, but not under way");
            return;
        };
        committing.missing -= 1;
        let is_over = committing.missing == 0;
        let Some(committing) = is_over.then(|| self.committing.remove(&multi)).flatten() else {
            return;
        };
        self.answer(now, committing.origin, committing.replies);
        let Some(txn) = committing.txn else { return };
        for (owner, ticket) in committing.held {
            if owner == self.id {
                self.on_unlock(now, ticket, txn);
            } else {
                self.send(owner, Message::Unlock { ticket, txn });
            }
        }
    }

    /// All parts of a command are committed: effects that depend on it may be logged.
    pub(super) fn on_unlock(&mut self, now: Now, ticket: Ticket, txn: TxnId) {
        entry::put_done(self.shard.journal(), txn);
        self.lattice.on_committed(ticket, &mut self.out);
        self.carry_out(now);
        self.end_hold(now, ticket);
    }
}
