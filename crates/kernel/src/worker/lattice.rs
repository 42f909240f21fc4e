//! The machine of lattice keyspaces at one worker: which keys are in them, stamps for commands that
//! write to them, and replication between the workers and with other nodes.
//!
//! The table of keyspaces changes while everything of every worker is held, so that no command, and
//! no part of one, sees two tables (`convert`, `drain`). Every worker's log and snapshot contain
//! it; a start uses the one with the highest version. Before a node serves after a start, every
//! replica has received all that any other has kept.
//!
//! Messages to other workers wait for the log like every message that contains data; so do changes
//! for other nodes (`nodes`). Writes of commands over several workers wait until they are committed
//! everywhere (`unsettled`).

mod convert;
mod drain;
mod keying;
mod nodes;
mod sharing;
mod stamps;
#[cfg(test)]
mod tests;
mod unsettled;

pub use convert::{Draining, Findings};
pub use nodes::{Awaited, NodeFigures, Past, Unserved};
pub use sharing::Lack;
pub(in crate::worker) use stamps::Why;

use super::Message;
use super::out::{Call, Out};
use super::store::Store;
use crate::durable::effect::Effect;
use crate::keyspace::Keyspaces;
use crate::lock::Ticket;
use crate::placement::Placement;
use crate::planted::{self, Planted};
use crate::replicate::lead::Excess;
use crate::replicate::replicas::{Figures, Outbox, Replicas};
use crate::shard::{Item, Keying, Shard};
use convert::Change;
use drain::{Drains, Then};
use keying::Keys;
use nodes::Nodes;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use rufous_lattice::Stamp;
use std::sync::Arc;
use unsettled::Unsettled;

/// Keys per step of a walk.
const KEYS: usize = 1024;

/// See the module's description.
#[derive(Debug)]
pub(super) struct Lattices {
    table: Arc<Keyspaces>,
    replicas: Replicas,
    drains: Drains,
    /// Keys of this worker that were converted since the start.
    converted: u64,
    /// The next stamp of the running transaction.
    open: Option<Stamp>,
    /// Why the running command may not write.
    excess: Option<Excess>,
    /// The running transaction is executed whole, whatever clocks show meanwhile.
    is_admitted: bool,
    outbox: Outbox,
    unsettled: Unsettled,
    /// More work can be done at once.
    more: bool,
    /// The start waits until replicas are equal.
    is_exchanging: bool,
    /// The number of counters restored after the start.
    counts_held: u64,
    /// Present where the node is in a cluster.
    nodes: Option<Box<Nodes>>,
}

/// What replication must know of the worker at the end of a turn.
pub(super) struct Turn<'a> {
    pub(super) now: Now,
    /// The position that commits everything so far.
    pub(super) position: u64,
    /// The log cannot be written: messages with data do not wait for it.
    pub(super) is_in_trouble: bool,
    /// Whether a key is held.
    pub(super) is_held: &'a dyn Fn(u8, &[u8]) -> bool,
}

/// The table, and its changes.
impl Lattices {
    pub(super) fn new(own: WorkerId, workers: usize) -> Self {
        Self {
            table: Arc::default(),
            replicas: Replicas::new(own, workers),
            drains: Drains::default(),
            converted: 0,
            open: None,
            excess: None,
            is_admitted: false,
            outbox: Vec::new(),
            unsettled: Unsettled::default(),
            more: false,
            is_exchanging: false,
            counts_held: 0,
            nodes: None,
        }
    }

    #[inline]
    pub(super) fn table(&self) -> &Arc<Keyspaces> {
        &self.table
    }

    pub(super) fn count(&self, shard: &Shard) -> Figures {
        Figures {
            counts_held: self.counts_held,
            epochs_waited: self.unsettled.epochs(),
            concurrent_writes: shard.counters().concurrent_writes,
            types_lost: shard.counters().types_lost,
            converted_keys: self.converted,
            exchanging: u64::from(self.drains.is_under_way()),
            ..self.replicas.figures()
        }
    }

    /// Adopts a table, which the placement already has. Returns the one before.
    pub(super) fn on_table(
        &mut self,
        table: &Arc<Keyspaces>,
        store: &mut Store<'_>,
    ) -> Arc<Keyspaces> {
        let before = std::mem::replace(&mut self.table, Arc::clone(table));
        if let Some(nodes) = &mut self.nodes {
            nodes.set_table(table.sum());
        }
        let keying = self.keying(store.placement);
        store.shard.set_counted(keying.as_ref());
        store.shard.lattice_mut().set_keying(keying);
        before
    }

    pub(super) fn keying(&self, placement: &Placement) -> Option<Arc<dyn Keying>> {
        self.keying_of(placement, placement.workers(), self.nodes.is_some())
    }

    /// For copies of keys: their changes are not replicated.
    pub(super) fn keying_of_copies(&self, placement: &Placement) -> Option<Arc<dyn Keying>> {
        self.keying_of(placement, 1, false)
    }

    fn keying_of(
        &self,
        placement: &Placement,
        workers: usize,
        has_nodes: bool,
    ) -> Option<Arc<dyn Keying>> {
        let keys = || Keys {
            workers,
            has_nodes,
            placement: placement.clone(),
        };
        let has_lattice = placement.has_lattice();
        has_lattice.then(|| Arc::new(keys()) as Arc<dyn Keying>)
    }

    /// A snapshot begins with the table, the horizon of what was forgotten, and the marks.
    pub(super) fn head_effects(&self, shard: &Shard) -> Vec<u8> {
        let mut out = Vec::new();
        if self.table.version() > 0 {
            put_table(&self.table, &mut out);
        }
        shard.horizons().encode(&mut out);
        shard.marks().encode(&mut out);
        out
    }

    /// Everything here is held: what a change to this table would do.
    pub(super) fn on_hold(&self, now: Now, table: &Keyspaces, store: &mut Store<'_>) -> Findings {
        self.change(&self.table, table, false).look(store, now)
    }

    fn change<'a>(&self, from: &'a Keyspaces, to: &'a Keyspaces, are_equal: bool) -> Change<'a> {
        Change {
            from,
            to,
            are_equal,
            at_nodes: self.has_others(),
        }
    }

    /// A message of another worker, or of this one, while everything is held for a change of the
    /// table.
    pub(super) fn on_draining(&mut self, from: WorkerId, note: Draining) {
        match note {
            Draining::Begin { multi, table } => {
                self.replicas.start();
                let version = table.version();
                let then = Then::Tell(from, multi, table);
                self.drains.begin((version, false), then);
            }
            Draining::Sent { version, taken } => self.drains.on_sent((version, taken)),
            Draining::Settled { .. } => debug_assert!(false, "this is for a command"),
        }
    }

    /// This worker has adopted a table in place of `before`: converts its keys.
    pub(super) fn on_change(&mut self, now: Now, before: &Keyspaces, store: &mut Store<'_>) {
        let table = Arc::clone(&self.table);
        let change = self.change(before, &table, true);
        self.converted += change.make(&mut self.replicas, store, now);
        self.on_writes(now, store.shard);
        if store.workers() > 1 && table.has_lattice() {
            self.replicas.start();
            let then = Then::LetGo(None);
            self.drains.begin((table.version(), true), then);
        }
    }

    /// A table was adopted, or refused: takes messages that were kept until then.
    pub(super) fn take_early(&mut self, now: Now, store: &mut Store<'_>) {
        for bytes in self.drains.take_early() {
            self.on_replicate(now, bytes, store);
        }
    }

    /// A hold may end as far as its command is concerned. Returns it, unless it ends with a drain.
    pub(super) fn on_hold_ends(
        &mut self,
        now: Now,
        ticket: Ticket,
        store: &mut Store<'_>,
    ) -> Option<Ticket> {
        let ticket = self.drains.on_hold_ends(ticket)?;
        // The table may have been refused.
        self.take_early(now, store);
        Some(ticket)
    }

    /// See [`Drains::is_converting`].
    pub(super) fn is_converting(&self) -> bool {
        self.drains.is_converting()
    }

    /// Whether [`Lattices::on_settle`] is to be called.
    #[inline]
    pub(super) fn is_settling(&self) -> bool {
        self.is_exchanging || self.drains.is_under_way()
    }

    /// Ends the exchange of the start, and a drain, once all messages for them have arrived.
    pub(super) fn on_settle(&mut self, now: Now, store: &mut Store<'_>, out: &mut Out) {
        if self.has_exchanged(store) {
            self.is_exchanging = false;
            out.call(Call::ReplicasEqual);
        }
        if !self.has_drained(store.workers()) {
            return;
        }
        match self.drains.end() {
            Some(Then::Tell(coordinator, multi, table)) => {
                let findings = self.change(&self.table, &table, true).look(store, now);
                let settled = Draining::Settled { multi, findings };
                out.call(Call::Send(coordinator, Message::Draining(settled)));
            }
            Some(Then::LetGo(Some(ticket))) => out.call(Call::LetGo(ticket)),
            Some(Then::LetGo(None)) | None => {}
        }
    }

    fn has_drained(&self, workers: usize) -> bool {
        self.drains.has_heard(workers) && self.replicas.has_merged_all()
    }
}

/// Replication between workers.
impl Lattices {
    /// Continues replication, at the end of a turn.
    pub(super) fn on_turn(&mut self, turn: &Turn<'_>, store: &mut Store<'_>, out: &mut Out) {
        if self.unsettled.waits() && turn.is_in_trouble {
            let outbox = self.unsettled.give_up();
            send(outbox, out);
        }
        if self.unsettled.waits() {
            self.more = false;
            return;
        }
        if let Some(nodes) = &mut self.nodes {
            let told = nodes.take_held(turn.now);
            self.tell_all(turn.now, told, store, out);
        }
        if let Some(nodes) = &mut self.nodes {
            nodes.on_turn(turn.now, turn.position, &mut self.replicas, store);
        }
        // While a drain is in progress, held keys do not change.
        let any = !self.unsettled.is_idle() && !self.drains.is_open();
        let unsettled = |db: u8, key: &[u8]| any && (turn.is_held)(db, key);
        self.more = self.replicas.poll(
            turn.now,
            store.placement.gossip_us(),
            (&mut *store.shard, store.placement),
            &unsettled,
            &mut self.outbox,
        );
        if self.replicas.shows_unsettled() {
            self.unsettled.keep(&mut self.outbox);
        }
        store.shard.tell_horizon();
        if self.outbox.is_empty() && !self.awaits_replicated() {
            return;
        }
        for (to, bytes) in self.outbox.drain(..) {
            out.call(Call::Replicate(to, bytes));
        }
        out.call(Call::Replicated);
    }

    /// Whether [`Lattices::on_replicated`] may have something to do although nothing is sent.
    fn awaits_replicated(&self) -> bool {
        self.nodes.is_some() || self.is_exchanging || self.drains.is_open()
    }

    /// The changes of this turn have been passed on, and the log has everything up to `logged`.
    pub(super) fn on_replicated(&mut self, logged: u64, store: &mut Store<'_>, out: &mut Out) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_logged(logged, store, out);
        }
        // The message just sent was the last one that the exchange waited for.
        self.more |= self.has_exchanged(store);
        if self.replicas.has_sent_all(store.shard.changeset()) {
            self.drains.on_sent_all(store, out);
        }
    }

    /// The latest time at which replication continues.
    pub(super) fn wake_us(&self, placement: &Placement) -> Option<u64> {
        // A message ends the wait.
        if self.unsettled.waits() {
            return None;
        }
        if self.more || self.has_drained(placement.workers()) {
            return Some(0);
        }
        let nodes = self.nodes.as_ref().and_then(|nodes| nodes.wake_us());
        let own = self.replicas.wake_us(placement.gossip_us());
        own.into_iter().chain(nodes).min()
    }

    /// A message of another worker of this node.
    pub(super) fn on_replicate(&mut self, now: Now, bytes: Arc<[u8]>, store: &mut Store<'_>) {
        let bytes = match &mut self.nodes {
            Some(nodes) => nodes.on_here(bytes, &self.replicas),
            None => Some(bytes),
        };
        let Some(bytes) = bytes.and_then(|bytes| self.drains.keep_early(bytes)) else {
            return;
        };
        let parts = (&mut *store.shard, store.placement);
        let done = self.replicas.receive(now, parts, bytes);
        store.shard.tell_horizon();
        debug_assert!(done.is_ok(), "workers of a node send what they mean");
    }

    /// A database was flushed here, as every other worker does too.
    pub(super) fn on_flush(&mut self, now: Now, db: usize, store: &mut Store<'_>) {
        self.replicas.flushed(db, store.shard);
        let parts = (&mut *store.shard, store.placement);
        let done = self.replicas.release(now, parts);
        store.shard.tell_horizon();
        debug_assert!(done.is_ok(), "workers of a node send what they mean");
    }

    /// A command has written here that may not be committed everywhere before its hold ends.
    pub(super) fn on_uncommitted(&mut self, ticket: Ticket) {
        self.unsettled.begin(ticket);
    }

    /// The writes of this hold's command are committed at all workers.
    pub(super) fn on_committed(&mut self, ticket: Ticket, out: &mut Out) {
        send(self.unsettled.end(ticket), out);
    }

    /// All workers have loaded their data and adopted the table.
    pub(super) fn on_exchange(&mut self, store: &mut Store<'_>) {
        self.is_exchanging = true;
        if self.table.has_lattice() {
            self.touch_replicas(store);
            self.replicas.keep_all(true);
            self.replicas.start();
        }
    }

    /// Counters that were held back have been restored.
    pub(super) fn on_counts_restored(&mut self, count: u64, latest: Stamp) {
        self.counts_held += count;
        self.replicas.observe(latest);
        self.replicas.keep_all(false);
    }

    /// Whether the start may continue: all that the others have kept was received, and all that is
    /// here was sent.
    fn has_exchanged(&self, store: &mut Store<'_>) -> bool {
        if !self.is_exchanging {
            return false;
        }
        let replicas = &self.replicas;
        !self.table.has_lattice()
            || replicas.has_heard_all() && replicas.has_sent_all(store.shard.changeset())
    }

    /// Moves the clock above every stamp that is here, and has all replicas that others share sent
    /// to them.
    fn touch_replicas(&mut self, store: &mut Store<'_>) {
        for db in 0..DATABASES {
            for name in names_of_replicas(store, db) {
                self.touch_replica(db, &name, store);
            }
        }
        self.tell_time(store.shard);
    }

    fn touch_replica(&mut self, db: usize, name: &[u8], store: &mut Store<'_>) {
        let key = store.shard.key(name);
        let never = Now::default();
        let shown = store.shard.show_replica(db, key, never, &mut |_, _| {});
        let Some(replica) = shown else { return };
        self.replicas.observe(replica.newest);
        let keyspace = store.placement.lattice(name);
        let is_spread = keyspace.is_some_and(|keyspace| keyspace.spread(store.workers()) > 1);
        let untold = planted::is(Planted::StartNotTold) && planted::now_and_then();
        if !untold && is_spread {
            store.shard.changeset().touch(db as u8, key);
        }
    }
}

fn send(outbox: Outbox, out: &mut Out) {
    for (to, bytes) in outbox {
        out.call(Call::Replicate(to, bytes));
    }
}

fn put_table(table: &Keyspaces, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    table.encode(&mut bytes);
    Effect::Keyspaces { bytes: &bytes }.encode(out);
}

/// The names of a database's keys in lattice keyspaces, with those of hidden keys.
fn names_of_replicas(store: &mut Store<'_>, db: usize) -> Vec<Box<[u8]>> {
    let mut names = Vec::<Box<[u8]>>::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let mut take = |item: Item<'_>| {
            if store.placement.lattice(item.key).is_some() {
                names.push(item.key.into());
            }
        };
        // Nothing is due at time zero.
        cursor = store.shard.scan(db, at, KEYS, Now::default(), &mut take);
    }
    each_grave(store.shard, db, &mut |key| names.push(key.into()));
    names
}

/// Calls `f` with hidden keys.
fn each_grave(shard: &Shard, db: usize, f: &mut dyn FnMut(&[u8])) {
    let mut from = Some(Box::<[u8]>::default());
    while let Some(at) = from {
        let (keys, next) = shard.graves(db, &at, KEYS);
        keys.iter().for_each(|key| f(key));
        from = next;
    }
}
