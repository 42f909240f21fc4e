//! Routes between the worker and the machine of lattice keyspaces (`lattice`), and changes of the
//! table of keyspaces as commands that hold everything.

use super::lattice::{Draining, Lack, NodeFigures, Turn, Unserved, Why};
use super::{Message, Submitted, Worker};
use crate::batch::Header;
use crate::durable::effect::Effect;
use crate::keyspace::Keyspaces;
use crate::lock::Ticket;
use crate::multi::{Multi, NodeAction};
use crate::program::Program;
use crate::replicate::gossip::Sent;
use crate::replicate::lead::Excess;
use crate::replicate::replicas::{Figures, To};
use crate::replicate::vector::Vector;
use rufous_base::{Args, Now, Output, WorkerId};
use rufous_lattice::Stamp;
use rufous_mapping::NodeNo;
use std::collections::BTreeSet;
use std::sync::Arc;

/// For the embedder.
impl<P: Program> Worker<P> {
    /// The keyspaces of the node.
    pub fn keyspaces(&self) -> &Arc<Keyspaces> {
        self.lattice.table()
    }

    /// Whether keys are being converted to the table: this worker may have yet to receive replicas.
    pub fn is_converting(&self) -> bool {
        self.lattice.is_converting()
    }

    pub fn replication_figures(&self) -> Figures {
        let mut figures = self.lattice.count(&self.shard);
        self.contexts.count(&mut figures);
        figures
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
        if let Some(why) = self.refuses_writes() {
            P::refuse_write(why, header.resp3, out);
            return Submitted::Done;
        }
        let mut batch = self.batch_of(header, Args::new(&[], &[], &mut []));
        batch.set_reply(reply);
        let workers = self.placement.workers();
        self.start(Multi::on_keyspaces(batch, workers, Arc::new(table)));
        Submitted::Barrier
    }

    /// All commands until [`Worker::end_transaction`] write with one time, and none of them is
    /// refused by its part: [`Worker::clocks_lead`] was asked before the first.
    pub fn begin_transaction(&mut self, now: Now) {
        self.lattice.begin_transaction(now);
        self.lattice.admit_transaction();
    }

    /// Why lattice keys may not be written now, if clocks lead too far.
    pub fn clocks_lead(&mut self, now: Now) -> Option<Excess> {
        let has_lattice = self.placement.has_lattice();
        has_lattice.then(|| self.lattice.excess(now)).flatten()
    }

    /// A transaction is refused for that.
    pub fn on_refused_by_clocks(&mut self) {
        self.lattice.on_refused();
    }

    pub fn end_transaction(&mut self) {
        self.lattice.end_transaction();
    }

    /// Promises another worker a time for writes of a transaction to any keys here: their stamps
    /// must be above it.
    pub fn promise_to(&mut self, now: Now, name: u64) -> u64 {
        self.lattice.promise(now, name)
    }

    /// The transaction makes no more writes.
    pub fn redeem_of(&mut self, name: u64) {
        self.lattice.redeem(name);
    }

    /// A stamp for all writes of a transaction, above a promised time.
    pub fn stamp_above(&mut self, now: Now, time: u64) -> Stamp {
        self.lattice.on_time(time);
        self.lattice.stamp(now)
    }

    /// The table of keyspaces is the configured one: from now on the worker may exchange lattice
    /// keyspaces with other nodes.
    pub fn share_lattices(&mut self) {
        self.lattice.share();
    }

    /// A session with a node has ended.
    pub fn on_peer_down(&mut self, node: NodeNo) {
        self.lattice.on_peer_down(node);
    }

    /// Handles a message on lattice keyspaces from a worker of another node; or returns why there
    /// must be no session with it.
    pub fn on_gossip(
        &mut self,
        now: Now,
        from: (NodeNo, u16),
        bytes: &[u8],
    ) -> Result<(), &'static str> {
        let peer = self.lattice.read_peer(from, bytes)?;
        let Some(peer) = peer.filter(|_| self.is_serving()) else {
            return Ok(());
        };
        let done = self
            .lattice
            .on_peer(now, peer, &mut store!(self), &mut self.out);
        self.carry_out(now);
        done
    }

    /// Messages for workers of other nodes.
    pub fn take_gossip(&mut self) -> Vec<Sent> {
        self.lattice.take_gossip()
    }

    /// Whether other nodes have, or may have, the same lattice keys.
    pub fn shares_lattices(&self) -> bool {
        self.lattice.has_others()
    }

    /// Why a command on whole databases cannot be executed.
    pub fn refuses_action(&self, action: NodeAction) -> Option<String> {
        let is_alone = self.chains.as_ref().is_none_or(|chains| chains.is_alone());
        if matches!(action, NodeAction::SwapDb(..)) && !is_alone {
            return Some(
                "changes keys of all slots at once, and slots have copies at other nodes".into(),
            );
        }
        self.lattice.refuses_action(action)
    }

    pub fn node_figures(&self) -> Option<NodeFigures> {
        self.lattice.node_figures()
    }

    /// Whether this worker serves lattice keys in a cluster.
    pub fn serves_lattice(&self) -> bool {
        self.lattice.node_figures().is_some() && !self.lattice.awaits_nodes()
    }

    /// The other members that announce that they serve lattice keys. A new node needs the state of one.
    pub fn hear_of_serving(&mut self, nodes: &BTreeSet<NodeNo>) {
        self.lattice.on_serving(nodes);
    }

    /// What a session may have seen at this worker. `None` while that is not known: ask again when something was received.
    pub fn seen(&mut self) -> Option<Vector> {
        self.lattice.seen(&mut self.shard)
    }

    /// What this worker lacks of what a session has seen.
    pub fn lacks(&self, seen: &Vector) -> Lack {
        self.lattice.lacks(seen, &self.placement)
    }

    /// A number that is another one when [`Worker::lacks`], or whether [`Worker::seen`] is known, may be another.
    pub fn news(&self) -> u64 {
        self.lattice.news()
    }

    /// Why this worker serves no lattice key, if there are lattice keyspaces and it serves none.
    pub fn lattice_unserved(&self) -> Option<Unserved> {
        self.lattice.unserved()
    }
}

/// Commands and turns.
impl<P: Program> Worker<P> {
    /// Distinguishes this table from earlier ones.
    #[inline]
    pub fn table_mark(&self) -> u16 {
        self.lattice.table().version() as u16
    }

    /// Whether the keys of a request that were strict by the table with this mark are so now, as that table is still in force.
    /// It spares requests of strict keys all that lattice keys need.
    #[inline]
    pub fn knows_strict(&self, strict_in: Option<u16>) -> bool {
        strict_in == Some(self.table_mark())
    }

    /// Call it when a step begins, with the clocks as they are read: from the first step on, as the first reading is trusted.
    #[inline]
    pub fn look_at_clock(&mut self, now: Now) {
        self.lattice.look_at_clock(now, &mut self.shard);
    }

    /// Called before a command where there are lattice keyspaces; false if it is refused.
    #[inline(never)]
    pub(super) fn begin_lattice(
        &mut self,
        now: Now,
        header: &Header,
        args: &Args<'_>,
        out: &mut Output,
    ) -> bool {
        if P::is_write(header.command) {
            self.lattice.begin_writes(now, &mut self.shard);
            if let Some(excess) = self.lattice.bar()
                && P::writes_lattice(header.command, args, &self.placement)
            {
                self.lattice.refuse_begun(&mut self.shard);
                P::refuse_clocks(excess, header.resp3, out);
                return false;
            }
        } else {
            self.lattice.tell_time(&mut self.shard);
        }
        self.contexts.begin(header.client, &mut self.shard);
        true
    }

    /// Called after such a command; false if its reply is a refusal.
    #[inline(never)]
    pub(super) fn end_lattice(
        &mut self,
        now: Now,
        header: &Header,
        (out, start): (&mut Output, (usize, usize)),
    ) -> bool {
        let refused = self.lattice.end_writes(now, &mut self.shard);
        let refused = match self.contexts.end(&mut self.shard) {
            Some(why) => Some(Why::Order(why)),
            None => refused,
        };
        let Some(why) = refused else {
            return true;
        };
        out.truncate(start);
        match why {
            Why::Order(why) => P::refuse(header.command, &why, header.resp3, out),
            Why::Clocks(excess) => P::refuse_clocks(excess, header.resp3, out),
        }
        false
    }

    /// Empties a database on this worker, as every other worker does too.
    pub(super) fn flush(&mut self, now: Now, db: usize) {
        match &self.chains {
            None => self.shard.flush(db),
            // No other node has any of its keys, and none is to receive them.
            Some(chains) if chains.is_alone() && !self.shard.walks_slots() => self.shard.flush(db),
            Some(_) => self.shard.flush_own(db, now),
        }
        self.lattice.on_flush(now, db, &mut store!(self));
    }

    /// Continues replication, at the end of a turn.
    pub(super) fn replicate(&mut self, now: Now) {
        if !self.placement.has_lattice() || !self.is_connected() {
            return;
        }
        let turn = Turn {
            now,
            position: self.position(),
            is_in_trouble: self.commit.is_in_trouble(),
            is_held: &|db, key| self.locks.blocks(db, key),
        };
        self.lattice
            .on_turn(&turn, &mut store!(self), &mut self.out);
        self.carry_out(now);
    }

    /// Sends changes of replicas.
    pub(super) fn send_changes(&mut self, to: To, bytes: Arc<[u8]>) {
        match to {
            To::Worker(to) => self.send_logged(to, Message::Replicate(bytes)),
            To::Nodes { is_report } => {
                let position = self.position();
                self.lattice.on_changes(position, bytes, is_report);
            }
        }
    }

    /// All changes of the turn were sent.
    pub(super) fn on_replicated(&mut self) {
        let logged = self.logged();
        self.lattice
            .on_replicated(logged, &mut store!(self), &mut self.out);
    }

    /// Whether other workers or nodes can be reached.
    fn is_connected(&self) -> bool {
        self.is_serving() && self.lattice.is_named() || self.boot.is_exchanging()
    }

    /// The latest time at which replication continues.
    pub(super) fn replication_wake_us(&self) -> Option<u64> {
        if !self.placement.has_lattice() || !self.is_connected() {
            return None;
        }
        self.lattice.wake_us(&self.placement)
    }

    /// Replicas have changed, or messages of a drain have arrived.
    #[inline]
    pub(super) fn settle_lattice(&mut self, now: Now) {
        if self.lattice.is_settling() {
            self.lattice
                .on_settle(now, &mut store!(self), &mut self.out);
            self.carry_out(now);
        }
    }
}

/// Changes of the table.
impl<P: Program> Worker<P> {
    /// A table that a partition had; a worker that writes a new snapshot saves the effective one.
    pub(super) fn on_table(&mut self, table: &Arc<Keyspaces>) {
        if table.version() > self.keyspaces().version() {
            self.adopt_table(table);
        }
    }

    /// All workers have loaded their data.
    pub(super) fn on_exchange(&mut self, table: &Arc<Keyspaces>) {
        self.adopt_table(table);
        self.lattice.on_exchange(&mut store!(self));
    }

    /// Adopts a table; returns the one before.
    fn adopt_table(&mut self, table: &Arc<Keyspaces>) -> Arc<Keyspaces> {
        self.placement.set_keyspaces(table);
        let mut lattices = table.iter().filter(|keyspace| keyspace.is_lattice());
        let is_causal = lattices.any(|keyspace| keyspace.level.keeps_siblings());
        self.contexts.on_table(is_causal);
        let before = self.lattice.on_table(table, &mut store!(self));
        self.spanning.on_table(self.lattice.keying(&self.placement));
        before
    }

    /// Adopts a table and logs it. `converts`: some worker has keys that do not fit it.
    pub(super) fn change_table(&mut self, now: Now, table: &Arc<Keyspaces>, converts: bool) {
        if self.commit.logs() {
            let mut bytes = Vec::new();
            table.encode(&mut bytes);
            let effect = Effect::Keyspaces { bytes: &bytes };
            effect.encode(self.shard.journal());
        }
        let before = self.adopt_table(table);
        let mut store = store!(self);
        if converts {
            self.lattice.on_change(now, &before, &mut store);
        }
        self.lattice.take_early(now, &mut store);
    }

    pub(super) fn on_draining(&mut self, now: Now, from: WorkerId, note: Draining) {
        match note {
            Draining::Settled { multi, findings } => self.span(now, |spanning, site| {
                spanning.on_settled::<P>(multi, findings, site);
            }),
            note => self.lattice.on_draining(from, note),
        }
    }

    /// Ends the hold of a command; for a change of the table only when the new replicas are here.
    pub(super) fn end_hold(&mut self, now: Now, ticket: Ticket) {
        let ended = self.lattice.on_hold_ends(now, ticket, &mut store!(self));
        if let Some(ticket) = ended {
            self.let_go(now, ticket);
        }
    }
}
