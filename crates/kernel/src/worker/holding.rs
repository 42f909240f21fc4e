//! Routes between the worker and commands over several workers (`spanning`): at the coordinator,
//! and at the owners of the keys that they hold.

use super::chains::Needs;
use super::spanning::{self, Release, Site, Spanning, gather, names_only, put_back};
use super::waiting::{NoData, Reach};
use super::{Message, Submitted, Work, Worker};
use crate::batch::{Batch, Header, Status};
use crate::durable::{TxnId, entry};
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::{Finish, Multi, NodeAction, Part};
use crate::program::Program;
use rufous_base::limits::DATABASES;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Now, Output, Until, WorkerId};

/// At the coordinator.
impl<P: Program> Worker<P> {
    /// Passes an event to the machine, and carries out the calls that it makes at once.
    pub(super) fn span<R>(
        &mut self,
        now: Now,
        event: impl FnOnce(&mut Spanning, &mut Site<'_>) -> R,
    ) -> R {
        let mut site = Site {
            now,
            slots: slot_view!(self, now),
            table: self.lattice.table().version(),
            time: self.lattice.time(),
            commits: self.commit.commits(),
            locks: &mut self.locks,
            store: store!(self),
            out: &mut self.out,
        };
        let result = event(&mut self.spanning, &mut site);
        for call in self.out.take_first() {
            self.execute(now, call);
        }
        result
    }

    pub(super) fn start(&mut self, mut multi: Multi) {
        multi.mark = self.table_mark();
        let (locks, out) = (&mut self.locks, &mut self.out);
        self.spanning.on_command(multi, self.id, locks, out);
    }

    /// Keys, as databases and argument indexes, with their owners.
    pub(super) fn owned(&self, keys: &[(u8, u32)], args: &Args<'_>) -> Vec<(WorkerId, KeyName)> {
        let owned = |&(db, i): &(u8, u32)| {
            let key = args.get(i as usize);
            (self.placement.owner(key), (db, key.into()))
        };
        keys.iter().map(owned).collect()
    }

    /// Whether a request may read keys that it does not name and that may be held or have other
    /// owners.
    #[inline]
    pub(super) fn must_look_for_others(&self, command: u16, args: &Args<'_>) -> bool {
        P::is_open(command, args) && (self.placement.workers() > 1 || !self.locks.is_idle())
    }

    pub(super) fn submit_open(
        &mut self,
        now: Now,
        header: &Header,
        keys: &[(u8, u32)],
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        if !self.may_run(now, header, out) {
            return Submitted::Done;
        }
        let owned = self.owned(keys, &args);
        let batch = self.batch_of(header, args);
        let multi = Multi::on_open(batch, owned, 0, self.placement.workers());
        self.start(multi);
        Submitted::Barrier
    }

    /// A worker holds its keys of a command.
    pub(super) fn on_acquired(
        &mut self,
        now: Now,
        multi: u64,
        by: (WorkerId, Ticket),
        hold: spanning::Hold,
    ) {
        self.lattice.on_time(hold.promised);
        self.span(now, |spanning, site| {
            spanning.on_acquired::<P>(multi, by, hold, site);
        });
    }

    /// Executes the request of a command whose keys are held, a waiter's or a new one. The owners'
    /// data is unchanged if there is no reply yet.
    pub(super) fn run_gathered(&mut self, now: Now, mut multi: Multi) {
        self.spanning.begin_run(&multi, now, &self.shard);
        let client = multi.client;
        self.contexts.borrow(client, &multi.gathered, &self.shard);
        std::mem::swap(&mut self.shard, self.spanning.scratch());
        let wait = self.run_one(now, &mut multi.batch, false);
        std::mem::swap(&mut self.shard, self.spanning.scratch());
        let (batch, gathered) = (&mut multi.batch, &multi.gathered);
        let origin = match (multi.waiter, wait) {
            (Some(id), wait) => {
                let store = &mut store!(self);
                self.waits.on_ran_over(id, batch, wait, gathered, store)
            }
            (None, None) => Some(self.id),
            (None, Some(wait)) => {
                let keys = gathered.iter().map(|g| (g.owner, g.key.clone()));
                let found = NoData {
                    origin: self.id,
                    batch: std::mem::take(batch),
                    wait,
                    reach: Reach::Over(keys.collect()),
                };
                self.begin_wait(now, found);
                None
            }
        };
        let gathered = &multi.gathered;
        let seen = self.contexts.give_back(client, gathered, &self.shard);
        self.span(now, |spanning, site| {
            spanning.on_ran::<P>(multi, origin, seen, site);
        });
    }

    /// Prepares a transaction whose keys are held for the embedder.
    pub(super) fn prepare(&mut self, now: Now, multi: Multi) {
        let keying = self.lattice.keying(&self.placement);
        let gathered = &multi.gathered;
        let contexts = self.contexts.gathered(multi.client, gathered, &self.shard);
        self.span(now, |spanning, site| {
            spanning.on_ready(multi, keying, contexts, site);
        });
    }

    /// A request of this worker's own connection has waited for keys, some of which have moved:
    /// executes it over the workers that have them.
    fn sent_on(
        &mut self,
        now: Now,
        (ticket, origin): (Ticket, WorkerId),
        batch: Box<Batch>,
    ) -> Option<Box<Batch>> {
        let is_stale = batch.requests[0].table != self.table_mark();
        let Some(Scope::Keys(keys)) = self.locks.scope(ticket) else {
            return Some(batch);
        };
        let store = store!(self);
        if !is_stale || origin != self.id || keys.iter().all(|key| store.is_here(origin, &key.1)) {
            return Some(batch);
        }
        let keys = keys.clone();
        self.let_go(now, ticket);
        self.start(spanning::again(batch, keys, None, &self.placement));
        None
    }
}

/// At the owners of keys.
impl<P: Program> Worker<P> {
    /// Executes work whose keys were granted.
    pub(super) fn run_granted(&mut self, now: Now, (ticket, work): (Ticket, Work)) {
        match work {
            Work::Run { batch, origin } => {
                let Some(batch) = self.sent_on(now, (ticket, origin), batch) else {
                    return;
                };
                let served = self.still_served(now, (ticket, origin), batch);
                let Some(batch) = served else {
                    return;
                };
                let slots = match self.locks.scope(ticket) {
                    Some(Scope::Keys(keys)) => self.slots_of(keys.iter().map(|key| &*key.1)),
                    _ => Vec::new(),
                };
                let batch = self.run_parked(now, ticket, batch, origin);
                self.let_go(now, ticket);
                let until = match batch.requests[0].reply.status {
                    Status::Ready => batch.until,
                    // Nothing was executed.
                    Status::Later | Status::NotHere => return self.answer(now, origin, batch),
                };
                self.send_after(now, &slots, origin, (until, Message::Replies(batch)));
            }
            Work::Hold {
                multi,
                coordinator,
                client,
                touch,
                part,
            } => {
                let hold = self.hold(ticket, (client, touch), part.as_deref(), now);
                let names = || hold.gathered.iter().map(|gathered| &*gathered.key.1);
                let slots = self.slots_of(names());
                // While all keys are held, nothing else runs: that must not last until other nodes
                // answer. It shows no data of theirs.
                let until = match self.locks.scope(ticket) {
                    Some(Scope::All) if self.splits() => Until::Logged,
                    _ => self.until(names()),
                };
                let acquired = Message::Acquired {
                    multi,
                    ticket,
                    hold,
                };
                self.send_after(now, &slots, coordinator, (until, acquired));
            }
        }
    }

    /// The current entries of the held keys.
    fn hold(
        &mut self,
        ticket: Ticket,
        (client, touch): (u64, bool),
        part: Option<&Part>,
        now: Now,
    ) -> spanning::Hold {
        let mut hold = spanning::Hold {
            dirty: part.is_some_and(|part| {
                part.watcher.is_some() && self.has_lost(now, &part.watched)
                    || store!(self).is_part_dirty(now, part)
            }),
            ..spanning::Hold::default()
        };
        if self.placement.has_lattice() {
            hold.promised = self.lattice.promise(now, ticket.number());
        }
        if hold.dirty {
            return hold;
        }
        if let Some(table) = part.and_then(|part| part.table.as_ref()) {
            hold.findings = self.lattice.on_hold(now, table, &mut store!(self));
        }
        self.shard.set_touch(touch);
        let keys = match (part, self.locks.scope(ticket)) {
            (Some(part), _) => &part.keys[..],
            (None, Some(Scope::Keys(keys))) => keys,
            (None, _) => &[],
        };
        let names = || keys.iter().map(|(_, key)| &**key);
        hold.unserved = self.gap_of(now, names(), Needs::Head);
        hold.unread = (hold.unserved).and_then(|_| self.gap_of(now, names(), Needs::Member));
        if part.is_some() && hold.unserved.is_some() {
            // The transaction is not executed: no entry is copied for it.
            hold.gathered = names_only(keys, self.id);
            return hold;
        }
        hold.gathered = gather(keys, now, &mut store!(self));
        if let Some(watcher) = part.and_then(|part| part.records) {
            for (db, name) in keys {
                let name = self.shard.key(name);
                self.shard.watch(usize::from(*db), name, watcher, now);
            }
        }
        self.contexts.add(client, &mut hold.gathered, &self.shard);
        hold
    }

    pub(super) fn on_fetch(
        &mut self,
        now: Now,
        from: WorkerId,
        (multi, touch): (u64, bool),
        keys: &[KeyName],
    ) {
        self.shard.set_touch(touch);
        let gathered = gather(keys, now, &mut store!(self));
        self.send(from, Message::Fetched { multi, gathered });
    }

    /// The commits that the report of this release has to wait for.
    fn until_of(&self, release: &Release) -> Until {
        match release.actions.is_empty() && release.table.is_none() {
            true => self.until(release.writes.iter().map(|(key, _)| &*key.1)),
            false => Until::Passed,
        }
    }

    /// Whether this node has ceased to lead a slot of the writes since their keys were held.
    fn has_ceased_to_lead(&self, release: &Release) -> bool {
        let Some(chains) = &self.chains else {
            return false;
        };
        let mut keys = release.writes.iter().map(|(key, _)| &*key.1);
        keys.any(|key| self.placement.lattice(key).is_none() && !chains.leads(slot_of(key)))
    }

    /// Applies this worker's part of a command.
    pub(super) fn on_release(&mut self, now: Now, coordinator: WorkerId, mut release: Release) {
        if let Finish::Tell { multi } = release.finish
            && self.has_ceased_to_lead(&release)
        {
            // No chain would have the writes.
            release.writes.clear();
            self.send_now(now, coordinator, Message::Doubtful { multi });
        }
        let until = self.until_of(&release);
        let slots = self.slots_of(release.writes.iter().map(|(key, _)| &*key.1));
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
        self.send_after(now, &slots, coordinator, committed);
    }

    /// All parts of a command are committed: effects that depend on it may be logged.
    pub(super) fn on_unlock(&mut self, now: Now, ticket: Ticket, txn: TxnId) {
        entry::put_done(self.shard.journal(), txn);
        self.lattice.on_committed(ticket, &mut self.out);
        self.carry_out(now);
        self.end_hold(now, ticket);
    }
}
