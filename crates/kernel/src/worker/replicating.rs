//! The worker's part in lattice keyspaces: which keys are in them, stamps for commands that write
//! to them, and replication between the workers.
//!
//! The table of keyspaces changes while everything of every worker is held, so that no command, and
//! no part of one, sees two tables. Every worker's log and snapshot contain it; a start uses the
//! one with the highest version. Before a node serves after a start, every replica has received all
//! that any other has kept.
//!
//! Messages to other workers wait for the log like every message that contains data.

use super::converting::Drains;
use super::nodes::Nodes;
use super::unsettled::Unsettled;
use super::{Message, Submitted, Worker};
use crate::batch::Header;
use crate::durable::effect::Effect;
use crate::keyspace::Keyspaces;
use crate::lock::Ticket;
use crate::multi::Multi;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::replicate::replicas::{Figures, Outbox, Replicas, To};
use crate::shard::{Contexts, Shard};
use rufous_base::limits::DATABASES;
use rufous_base::{Args, Now, Output, WorkerId};
use rufous_datatype::replicated::{Refused, Writer};
use rufous_lattice::Stamp;
use std::sync::Arc;

/// Keys per step of a walk.
const KEYS: usize = 1024;

/// A worker's state of lattice keyspaces.
#[derive(Debug)]
pub(super) struct Lattice {
    pub(super) table: Arc<Keyspaces>,
    pub(super) replicas: Replicas,
    pub(super) drains: Drains,
    /// The next stamp of the running transaction.
    open: Option<Stamp>,
    outbox: Outbox,
    pub(super) unsettled: Unsettled,
    more: bool,
    /// Whether strings of any keyspace have causal order.
    pub(super) keeps_siblings: bool,
    /// The number of counters restored after the start.
    pub(super) counts_held: u64,
    pub(super) contexts: Contexts,
    /// The contexts of gathered keys while a command is executed with them.
    pub(super) own_contexts: Option<Contexts>,
    /// Present where the node is in a cluster.
    pub(super) nodes: Option<Box<Nodes>>,
}

impl Lattice {
    pub(super) fn new(own: WorkerId, workers: usize) -> Self {
        Self {
            table: Arc::default(),
            replicas: Replicas::new(own, workers),
            drains: Drains::default(),
            open: None,
            outbox: Vec::new(),
            unsettled: Unsettled::default(),
            more: false,
            keeps_siblings: false,
            counts_held: 0,
            contexts: Contexts::default(),
            own_contexts: None,
            nodes: None,
        }
    }
}

impl<P: Program> Worker<P> {
    /// The keyspaces of the node.
    pub fn keyspaces(&self) -> &Arc<Keyspaces> {
        &self.lattice.table
    }

    pub fn replication_figures(&self) -> Figures {
        Figures {
            contexts: self.lattice.contexts.len() as u64,
            contexts_bytes: self.lattice.contexts.bytes() as u64,
            counts_held: self.lattice.counts_held,
            epochs_waited: self.lattice.unsettled.epochs,
            concurrent_writes: self.shard.counters().concurrent_writes,
            converted_keys: self.lattice.drains.converted,
            exchanging: u64::from(self.lattice.drains.is_under_way()),
            ..self.lattice.replicas.figures()
        }
    }

    /// Installs `table`, a change of [`Worker::keyspaces`], on every worker, and then replies with
    /// `reply`; or with an error if the table has changed meanwhile or if existing keys cannot be
    /// replicated according to it.
    pub fn submit_keyspaces(
        &mut self,
        header: &Header,
        table: Keyspaces,
        reply: Output,
        out: &mut Output,
    ) -> Submitted {
        if self.refuses_writes().is_some() {
            let why = self.refuses_writes().unwrap_or_default();
            P::refuse_write(why, header.resp3, out);
            return Submitted::Done;
        }
        let mut batch = self.batch_of(header, Args::new(&[], &[], &mut []));
        batch.set_reply(reply);
        let workers = self.placement.workers();
        self.start(Multi::on_keyspaces(batch, workers, Arc::new(table)));
        Submitted::Barrier
    }

    /// Adopts a table and logs it.
    pub(super) fn take_table(&mut self, table: &Arc<Keyspaces>) {
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        let effect = Effect::Keyspaces { bytes: &bytes };
        if self.commit.logs() {
            effect.encode(self.shard.journal());
        }
        self.adopt_table(table);
    }

    fn adopt_table(&mut self, table: &Arc<Keyspaces>) {
        self.lattice.table = Arc::clone(table);
        if let Some(nodes) = &mut self.lattice.nodes {
            nodes.set_table(table.sum());
        }
        let mut lattices = table.iter().filter(|keyspace| keyspace.is_lattice());
        self.lattice.keeps_siblings = lattices.any(|keyspace| keyspace.level.keeps_siblings());
        if !self.lattice.keeps_siblings {
            self.lattice.contexts = Contexts::default();
        }
        self.placement.set_keyspaces(table);
        let keying = self.keying();
        self.scratch.lattice_mut().set_keying(keying.clone());
        self.shard.set_counted(keying.as_ref());
        self.shard.lattice_mut().set_keying(keying);
    }

    /// A snapshot begins with the table, the horizon of what was forgotten, and the marks.
    pub(super) fn head_effects(&self) -> Vec<u8> {
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        if self.lattice.table.version() > 0 {
            self.lattice.table.encode(&mut bytes);
            Effect::Keyspaces { bytes: &bytes }.encode(&mut out);
        }
        self.shard.horizons().encode(&mut out);
        self.shard.marks().encode(&mut out);
        out
    }
}

/// Stamps of commands.
impl<P: Program> Worker<P> {
    /// All commands until [`Worker::end_transaction`] write with one time.
    pub fn begin_transaction(&mut self, now: Now) {
        if self.placement.has_lattice() {
            self.lattice.open = Some(self.lattice.replicas.stamp(now));
        }
    }

    /// Returns the stamp of its next write, for a later continuation.
    pub fn end_transaction(&mut self) -> Option<Stamp> {
        self.lattice.open.take()
    }

    /// Continues a transaction, or begins it.
    pub(super) fn resume_transaction(&mut self, now: Now, stamp: &mut Option<Stamp>) {
        match stamp.take() {
            Some(stamp) => self.lattice.open = Some(stamp),
            None => self.begin_transaction(now),
        }
    }

    #[inline(never)]
    pub(super) fn begin_writes(&mut self, now: Now) {
        self.shard.tell_horizon();
        let open = self.lattice.open;
        let stamp = open.unwrap_or_else(|| self.lattice.replicas.stamp(now));
        self.shard.begin_lattice(Writer { stamp });
    }

    /// Called after a command that began a transaction; false if its reply is a refusal.
    #[inline(never)]
    pub(super) fn end_writes(
        &mut self,
        now: Now,
        header: &Header,
        (out, start): (&mut Output, (usize, usize)),
    ) -> bool {
        let Some(ended) = self.shard.end_lattice() else {
            return true;
        };
        self.lattice.replicas.observe(ended.next);
        if let Some(open) = &mut self.lattice.open {
            *open = ended.next;
        }
        self.note_writes(now);
        let Some(refused) = ended.refused else {
            return true;
        };
        out.truncate(start);
        let Refused { why, instead } = refused;
        let keyspace = self.lattice.table.lattice(&ended.at);
        let name = keyspace.map_or("", |keyspace| &keyspace.name);
        let why = not_coordination_free(why, name, instead);
        P::refuse(header.command, &why, header.resp3, out);
        false
    }

    /// Called when replicas here may have changed.
    pub(super) fn note_writes(&mut self, now: Now) {
        self.lattice.replicas.wrote(now, self.shard.changeset());
    }

    /// Promises another worker a time: the stamps of its writes to keys that it holds here must be
    /// above it.
    pub(super) fn promise(&mut self, now: Now, ticket: Ticket) -> u64 {
        match self.placement.has_lattice() {
            true => self.lattice.replicas.promise(now, ticket.number()),
            false => 0,
        }
    }

    /// As [`Worker::promise`], for writes of a transaction to any keys here.
    pub fn promise_to(&mut self, now: Now, name: u64) -> u64 {
        self.lattice.replicas.promise(now, name)
    }

    /// The transaction makes no more writes.
    pub fn redeem_of(&mut self, name: u64) {
        self.lattice.replicas.redeem(name);
    }

    /// A stamp for all writes of a transaction, above a promised time.
    pub fn stamp_above(&mut self, now: Now, time: u64) -> Stamp {
        self.was_promised(time);
        self.lattice.replicas.stamp(now)
    }

    pub(super) fn redeem(&mut self, ticket: Ticket) {
        self.lattice.replicas.redeem(ticket.number());
    }

    pub(super) fn was_promised(&mut self, time: u64) {
        let stamp = Stamp {
            time,
            ..Stamp::ZERO
        };
        self.lattice.replicas.observe(stamp);
    }
}

/// Replication.
impl<P: Program> Worker<P> {
    /// Continues replication, at the end of a turn.
    pub(super) fn replicate(&mut self, now: Now) {
        if !self.placement.has_lattice() || !self.is_connected() {
            return;
        }
        if self.keeps_changes() {
            self.lattice.more = false;
            return;
        }
        self.poll_nodes(now);
        let (locks, lattice) = (&self.locks, &mut self.lattice);
        // While a drain is in progress, held keys do not change.
        let any = !lattice.unsettled.is_idle() && !lattice.drains.is_open();
        let unsettled = |db: u8, key: &[u8]| any && locks.blocks(db, key);
        lattice.more = lattice.replicas.poll(
            now,
            self.placement.gossip_us(),
            (&mut self.shard, &self.placement),
            &unsettled,
            &mut lattice.outbox,
        );
        if lattice.replicas.shows_unsettled() {
            lattice.unsettled.keep(&mut lattice.outbox);
        }
        self.shard.tell_horizon();
        let outbox = std::mem::take(&mut self.lattice.outbox);
        self.lattice.outbox = self.send_changes(outbox);
        self.release_to_nodes();
        // The message just sent was the last one that the exchange waited for.
        self.lattice.more |= self.has_exchanged();
        self.note_drained();
    }

    /// Returns the outbox, empty.
    pub(super) fn send_changes(&mut self, mut outbox: Outbox) -> Outbox {
        for (to, bytes) in outbox.drain(..) {
            match to {
                To::Worker(to) => self.send_logged(to, Message::Replicate(bytes)),
                To::Nodes { is_report } => self.tell_nodes(bytes, is_report),
            }
        }
        outbox
    }

    /// Whether other workers or nodes can be reached.
    fn is_connected(&self) -> bool {
        let is_named = |nodes: &Nodes| nodes.is_named();
        let is_named = self.lattice.nodes.as_deref().is_none_or(is_named);
        self.is_serving() && is_named || self.boot.is_exchanging()
    }

    /// The latest time at which replication continues.
    pub(super) fn replication_wake_us(&self) -> Option<u64> {
        if !self.placement.has_lattice() || !self.is_connected() {
            return None;
        }
        // A message ends the wait.
        if self.lattice.unsettled.waits() {
            return None;
        }
        if self.lattice.more || self.has_drained() {
            return Some(0);
        }
        let nodes = self.lattice.nodes.as_ref();
        let nodes = nodes.and_then(|nodes| nodes.wake_us());
        let own = self.lattice.replicas.wake_us(self.placement.gossip_us());
        own.into_iter().chain(nodes).min()
    }

    pub(super) fn on_replicate(&mut self, now: Now, bytes: Arc<[u8]>) {
        let Some(bytes) = self.of_this_number(bytes) else {
            return;
        };
        let lattice = &mut self.lattice;
        let Some(bytes) = lattice.drains.keep_early(bytes) else {
            return;
        };
        let done = lattice
            .replicas
            .receive(now, (&mut self.shard, &self.placement), bytes);
        self.shard.tell_horizon();
        debug_assert!(done.is_ok(), "workers of a node send what they mean");
    }

    /// Empties a database on this worker, as every other worker does too.
    pub(super) fn flush(&mut self, now: Now, db: usize) {
        match &self.chains {
            None => self.shard.flush(db),
            // No other node has any of its keys, and none is to receive them.
            Some(chains) if chains.is_alone && !self.shard.walks_slots() => self.shard.flush(db),
            Some(_) => self.shard.flush_own(db, now),
        }
        let lattice = &mut self.lattice;
        lattice.replicas.flushed(db, &mut self.shard);
        let done = lattice
            .replicas
            .release(now, (&mut self.shard, &self.placement));
        self.shard.tell_horizon();
        debug_assert!(done.is_ok(), "workers of a node send what they mean");
    }
}

/// The start.
impl<P: Program> Worker<P> {
    /// A table that a partition had; a worker that writes a new snapshot saves the effective one.
    pub(super) fn on_table(&mut self, table: &Arc<Keyspaces>) {
        if table.version() > self.lattice.table.version() {
            self.adopt_table(table);
        }
    }

    /// All workers have loaded their data.
    pub(super) fn on_exchange(&mut self, table: &Arc<Keyspaces>) {
        self.adopt_table(table);
        if self.placement.has_lattice() {
            self.touch_replicas();
            self.lattice.replicas.keep_all(true);
            self.lattice.replicas.start();
        }
    }

    /// Whether the start may continue: all that the others have kept was received, and all that is
    /// here was sent.
    fn has_exchanged(&mut self) -> bool {
        if !self.boot.awaits_replicas() {
            return false;
        }
        let replicas = &self.lattice.replicas;
        let mut has_all =
            || replicas.has_heard_all() && replicas.has_sent_all(self.shard.changeset());
        !self.placement.has_lattice() || has_all()
    }

    pub(super) fn tell_exchanged(&mut self, now: Now) {
        if self.has_exchanged() {
            self.boot
                .on_replicas_equal(now, &mut store!(self), &mut self.out);
            self.carry_out(now);
        }
    }

    /// Moves the clock above every stamp that is here, and has all replicas that others share sent
    /// to them.
    fn touch_replicas(&mut self) {
        // Nothing is due at time zero.
        let never = Now::default();
        for db in 0..DATABASES {
            let mut names = Vec::<Box<[u8]>>::new();
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let mut take = |item: crate::shard::Item<'_>| {
                    if self.placement.lattice(item.key).is_some() {
                        names.push(item.key.into());
                    }
                };
                cursor = self.shard.scan(db, at, KEYS, never, &mut take);
            }
            each_grave(&self.shard, db, &mut |key| {
                names.push(key.into());
                false
            });
            for name in names {
                self.touch_replica(db, &name, never);
            }
        }
    }

    fn touch_replica(&mut self, db: usize, name: &[u8], now: Now) {
        let key = self.shard.key(name);
        let shown = self.shard.show_replica(db, key, now, &mut |_, _| {});
        let Some(replica) = shown else { return };
        self.lattice.replicas.observe(replica.newest);
        let spread = self
            .placement
            .lattice(name)
            .map(|k| k.spread(self.placement.workers()));
        let untold = planted::is(Planted::StartNotTold) && planted::now_and_then();
        if !untold && spread.is_some_and(|spread| spread > 1) {
            self.shard.changeset().touch(db as u8, key);
        }
    }
}

/// The refusal of a command that would need all replicas together.
pub(super) fn not_coordination_free(why: &str, keyspace: &str, instead: &str) -> String {
    format!(
        "cannot be coordination-free: {why}. \
         Keyspace '{keyspace}' is of regime lattice; {instead}"
    )
}

/// Calls `f` with hidden keys until it returns true for one.
pub(super) fn each_grave(shard: &Shard, db: usize, f: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    let mut from = Some(Box::<[u8]>::default());
    while let Some(at) = from {
        let (keys, next) = shard.graves(db, &at, KEYS);
        if keys.iter().any(|key| f(key)) {
            return true;
        }
        from = next;
    }
    false
}
