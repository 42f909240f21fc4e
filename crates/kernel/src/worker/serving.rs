//! Routes between the worker and the machines of slots and of requests that wait: the host of chains
//! (`chains`), requests that wait for slots (`parking`), and clients that wait for data (`waiting`).

use super::chains::{ChainFigures, ChainHost, ChainSettings, Gap, Kept, Needs, Said};
use super::linear::{Heads, Starts};
use super::parking::{Granted, Request};
use super::spanning::Spanning;
use super::waiting::{Clients, NoData, Serve, Told};
use super::{Message, WaitEnd, Worker};
use crate::batch::{Batch, Header, Status};
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::Multi;
use crate::program::Program;
use rufous_base::slot::slot_of;
use rufous_base::{Args, ConnId, Now, Output, Until, WorkerId};
use rufous_chain::{Envelope, Peer, Refused};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// For the embedder.
impl<P: Program> Worker<P> {
    /// The node is one of several: no slot of strict keys is served before a mapping assigns it.
    /// Call it before data is loaded.
    pub fn join_chains(&mut self, settings: ChainSettings) {
        self.shard.invite_all();
        self.lattice.on_join(settings.past);
        self.commit.on_join();
        let host = ChainHost::new(settings, self.id, self.placement.workers());
        self.chains = Some(Box::new(host));
    }

    /// A mapping has come into force, in which this node has the number `own`. A mapping without
    /// this node takes its slots away.
    pub fn on_mapping(&mut self, now: Now, mapping: &Arc<Mapping>, own: Option<NodeNo>) {
        if let Some(chains) = &mut self.chains {
            chains.on_mapping(mapping, own);
        }
        let all = mapping.chains.ranges();
        let of_node = all.filter(|(_, chain)| own.is_some() && chain.head() == own);
        self.shard
            .set_slots_of_node(of_node.flat_map(|(slots, _)| slots));
        self.take_up(now);
    }

    /// A message of a worker of another node. Call [`Worker::settle_peers`] after the last one that has come with it.
    pub fn on_peer(&mut self, now: Now, from: Peer, envelope: Envelope) {
        let slot = envelope.message.chain().map(|(slot, _)| slot);
        if let Some(chains) = &mut self.chains {
            chains.on_peer(now, from, envelope, &mut store!(self));
        }
        if let Some(slot) = slot {
            let is_head = self
                .chains
                .as_ref()
                .is_some_and(|chains| chains.is_head(slot));
            self.linear.on_copied(slot, is_head, &self.shard);
        }
    }

    /// Does what messages of other nodes have made possible. Call [`Worker::settle`] after it.
    pub fn settle_peers(&mut self, now: Now) {
        self.settle_chains(now);
        Heads { worker: self }.read_letters(now);
    }

    /// Members with earlier programs, which have no part in transactions over slots. To be called periodically.
    pub fn on_without(&mut self, nodes: BTreeSet<NodeNo>) {
        self.linear.on_without(nodes);
    }

    /// The members that cannot write now, as they announce, and why. To be called periodically.
    pub fn on_ailing(&mut self, ailing: BTreeMap<NodeNo, String>) {
        if let Some(chains) = &mut self.chains {
            chains.on_ailing(ailing);
        }
    }

    /// A session with a node begins.
    pub fn on_peer_up(&mut self, now: Now, node: NodeNo) {
        self.lattice.on_peer_up(node);
        self.linear.on_change();
        if let Some(chains) = &mut self.chains {
            chains.on_peer_up(now, node, &mut store!(self));
        }
        self.log_to_chains();
    }

    /// Performs work that is due by the clock, and a part of long operations. `has_room`: nodes to
    /// which parts of copies may be sent now.
    pub fn step_chains(&mut self, now: Now, has_room: impl Fn(NodeNo) -> bool) {
        if self.chains.is_none() {
            return;
        }
        self.take_up(now);
        if self.waits.must_look(now) {
            self.end_waits_elsewhere(now);
        }
        self.lattice.take_part(now, &mut store!(self));
        if let Some(chains) = &mut self.chains {
            chains.on_tick(now, has_room, &mut store!(self));
        }
        self.span(now, Spanning::on_time);
        self.settle_chains(now);
        Heads { worker: self }.look_after(now);
    }

    /// The node stops, and has waited long enough for other nodes: the outcome of what waits for their
    /// acknowledgements is unknown, and what waits for slots is refused. Returns how many replies and
    /// messages waited for acknowledgements.
    pub fn give_up_others(&mut self, now: Now) -> usize {
        let Some(chains) = &mut self.chains else {
            return 0;
        };
        let given_up = chains.give_up();
        self.answer_released(now);
        self.span(now, Spanning::on_stop);
        if let Some(view) = slot_view!(self, now) {
            self.parking.on_stop::<P>(&view, &mut self.out);
        }
        self.carry_out(now);
        given_up + Heads { worker: self }.give_up()
    }

    /// Messages for workers of other nodes.
    pub fn take_peer_messages(&mut self) -> Vec<Said> {
        let chains = self.chains.as_mut();
        chains.map_or_else(Vec::new, |chains| chains.take_messages())
    }

    /// Whether replies wait for other nodes.
    pub fn awaits_chains(&self) -> bool {
        self.commit.gates() > 0
    }

    /// For a slot that this node serves now: the epoch since which its chain is unchanged.
    pub fn answers_since(&self, slot: u16, now: Now) -> Option<u64> {
        self.chains.as_ref()?.answers_since(now, slot)
    }

    /// Slots whose learners have all data, with the epochs of their chains.
    pub fn learned(&self) -> Vec<(u16, NodeNo, u64)> {
        let chains = self.chains.as_ref();
        chains.map_or_else(Vec::new, |chains| chains.learned())
    }

    /// What this worker's log has of slots of whose chains no node acts, and the epoch of the mapping that
    /// says so.
    pub fn held(&self) -> (u64, Vec<(u16, Option<rufous_mapping::planner::Copy>)>) {
        let chains = self.chains.as_ref();
        chains.map_or_else(Default::default, |chains| chains.held())
    }

    /// Whether there are slots of whose chains no node acts.
    pub fn waits_to_act(&self) -> bool {
        let chains = self.chains.as_ref();
        chains.is_some_and(|chains| chains.waits_to_act())
    }

    /// Slots whose data here is not as it should be.
    pub fn broken_slots(&self) -> Vec<u16> {
        let chains = self.chains.as_ref();
        chains.map_or_else(Vec::new, |chains| chains.broken())
    }

    /// The number of slots of which this node is the head and which it does not serve now.
    pub fn unserved_slots(&self, now: Now) -> usize {
        let chains = self.chains.as_ref();
        chains.map_or(0, |chains| {
            let takes = |slot: &u16| chains.takes_since(now, *slot).is_some();
            chains.unserved(now) + self.linear.recovering().filter(takes).count()
        })
    }

    pub fn chain_figures(&self) -> Option<ChainFigures> {
        Some(ChainFigures {
            waiting: self.commit.gates() as u64,
            parked: (self.parking.len() + self.spanning.delays().len()) as u64,
            overdue: self.parking.refused() + self.spanning.delays().refused(),
            ..self.chains.as_ref()?.figures()
        })
    }
}

/// Chains.
impl<P: Program> Worker<P> {
    /// Puts the newest mapping in force, once the data on disk is known.
    fn take_up(&mut self, now: Now) {
        if self.is_serving()
            && let Some(chains) = &mut self.chains
            && chains.take_up(now, &mut store!(self), &mut self.out)
        {
            self.carry_out(now);
            self.end_waits_elsewhere(now);
            self.settle_chains(now);
        }
    }

    /// Ends waits for slots that this node does not serve.
    fn end_waits_elsewhere(&mut self, now: Now) {
        if let Some(view) = slot_view!(self, now) {
            self.waits.on_slots::<P>(&view, &mut store!(self));
        }
    }

    /// Reports the progress of chains to all that wait for it.
    fn settle_chains(&mut self, now: Now) {
        let chains = self.chains.as_mut();
        if chains.is_some_and(|chains| chains.on_progress(&mut self.out)) {
            self.carry_out(now);
            self.log_moved_on(now);
            self.let_parked_run(now);
            self.tell_clients(now);
            self.answer_released(now);
            Starts(Heads { worker: self }).start(now);
            Heads { worker: self }.read_letters(now);
        }
    }

    /// A transaction has ended: requests may run that have waited for its keys.
    pub(super) fn run_parked_for(&mut self, now: Now) {
        if self.parking.len() > 0 {
            self.let_parked_run(now);
        }
    }

    fn let_parked_run(&mut self, now: Now) {
        if let Some(view) = slot_view!(self, now)
            && self.parking.on_progress::<P>(&view, &mut self.out)
        {
            self.linear.on_freed();
        }
        self.carry_out(now);
    }

    /// Reports the progress of chains to the log, and that of the log to chains.
    pub(super) fn log_to_chains(&mut self) {
        if let Some(chains) = &mut self.chains {
            self.commit.on_settled(chains.settled());
            let open = self.commit.open_frame(&mut self.shard);
            chains.on_log(open, self.commit.logged());
        }
    }

    /// The latest time at which [`Worker::step_chains`] must be called.
    pub(super) fn chains_wake_us(&self) -> Option<u64> {
        let wake_us = self.chains.as_ref()?.wake_us()?;
        let passed = self.commit.has_passed().then_some(0);
        let delayed = self.spanning.delays().wake_us();
        let others = self.parking.until_us().into_iter().chain(delayed);
        let linear = self.linear.wake_us();
        others.chain(passed).chain(linear).chain([wake_us]).min()
    }
}

/// Requests for slots.
impl<P: Program> Worker<P> {
    /// Whether this node does not serve one of these keys.
    pub(super) fn is_any_unserved<'k>(
        &self,
        now: Now,
        keys: impl IntoIterator<Item = &'k [u8]>,
        needs: Needs,
    ) -> bool {
        self.gap_of(now, keys, needs).is_some()
    }

    /// The first slot of these keys that this node does not serve.
    pub(super) fn gap_of<'k>(
        &self,
        now: Now,
        keys: impl IntoIterator<Item = &'k [u8]>,
        needs: Needs,
    ) -> Option<Gap> {
        slot_view!(self, now)?.first_unserved(keys, needs)
    }

    /// Checks a request before it is executed, and keeps or refuses it if this node does not serve
    /// the slot of its first key. `None`: it may be executed.
    #[inline]
    pub(super) fn holds_back(
        &mut self,
        now: Now,
        header: &Header,
        args: &mut Args<'_>,
        (origin, named): (WorkerId, impl FnOnce(&Args<'_>) -> Vec<KeyName>),
        out: &mut Output,
    ) -> Option<Status> {
        let view = slot_view!(self, now).filter(|_| header.key > 0)?;
        let key = args.get(usize::from(header.key));
        let refused = self.parking.unserved::<P>(header, key, &view)?;
        let slot = slot_of(key);
        if let Refused::Elsewhere(_) = refused {
            let kept = if origin == self.id {
                Kept::Reply
            } else {
                Kept::Request
            };
            return Some(view.refuse_elsewhere::<P>(slot, header, kept, out));
        }
        let keys = named(args);
        let mut batch = self.batch_of(header, args.reborrow());
        batch.until = self.until(keys.iter().map(|key| &*key.1));
        let request = Request {
            origin,
            keys,
            batch,
        };
        let view = slot_view!(self, now)?;
        Some(self.parking.on_request::<P>(slot, request, &view, out))
    }

    /// Called when a request has its keys: returns it if it may be executed.
    pub(super) fn still_served(
        &mut self,
        now: Now,
        (ticket, origin): (Ticket, WorkerId),
        batch: Box<Batch>,
    ) -> Option<Box<Batch>> {
        let Some(view) = slot_view!(self, now) else {
            return Some(batch);
        };
        let Some(Scope::Keys(keys)) = self.locks.scope(ticket) else {
            return Some(batch);
        };
        let granted = Granted {
            ticket,
            keys,
            origin,
            batch,
        };
        let served = self.parking.on_granted::<P>(granted, &view, &mut self.out);
        self.carry_out(now);
        served
    }

    /// Whether keys are of several slots, some of which have copies at other nodes.
    pub fn is_spread<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> bool {
        let chains = self.chains.as_ref();
        chains.is_some_and(|chains| chains.is_spread(keys, &self.placement))
    }

    /// Whether a command may not be executed on these keys together.
    pub(super) fn is_too_spread<'k>(
        &self,
        command: u16,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> bool {
        self.chains.is_some()
            && P::is_write(command)
            && !P::is_of_each(command)
            && self.is_spread(keys)
    }
}

/// Clients that wait for data.
impl<P: Program> Worker<P> {
    /// Clients of this worker that wait.
    pub fn waiting_clients(&self) -> &Clients {
        self.waits.clients()
    }

    /// Ends the waits whose deadline has passed.
    pub fn end_due_waits(&mut self, now: Now) {
        while let Some(conn) = self.waiting_clients().next_due(now.mono_us) {
            self.end_wait(conn, WaitEnd::TimedOut);
        }
    }

    /// Ends the wait of a connection of this worker. False if it does not wait or was served
    /// meanwhile. The reply is an ordinary outcome.
    pub fn end_wait(&mut self, conn: ConnId, how: WaitEnd) -> bool {
        let is_answered = !matches!(how, WaitEnd::Gone);
        let store = &mut store!(self);
        let Some(header) = self.waits.on_end(conn, how, store, &mut self.out) else {
            return false;
        };
        if is_answered {
            self.note(header.command, true);
        }
        true
    }

    #[cold]
    pub(super) fn begin_wait(&mut self, now: Now, found: NoData) {
        self.waits
            .on_no_data(now, found, &mut store!(self), &mut self.out);
    }

    /// While `hold` is set, no waiter is served. Call [`Worker::settle`] after it ends.
    pub fn hold_waiters(&mut self, hold: bool) {
        self.waits.hold(hold);
    }

    /// Call it after the commands of [`Worker::run_now`].
    #[inline]
    pub fn serve_waiters(&mut self, now: Now) {
        if self.shard.observers().has_touched() {
            self.serve(now, None);
        }
    }

    /// Ends a hold; clients that wait for data at its keys are served before commands that wait to
    /// hold them.
    pub(super) fn let_go(&mut self, now: Now, ticket: Ticket) {
        self.waits.on_release(&mut store!(self));
        if self.shard.observers().has_touched() {
            self.serve(now, Some(ticket));
        }
        self.lattice.redeem(ticket.number());
        self.locks.release(ticket);
        self.linear.on_freed();
    }

    /// Executes the requests of waiters for touched keys. `own` is a hold about to end.
    #[cold]
    fn serve(&mut self, now: Now, own: Option<Ticket>) {
        loop {
            let locks = &self.locks;
            let linear = &self.linear;
            let is_held = |key: &KeyName| locks.is_held_beside(own, key) || linear.takes(&key.1);
            let next = self.waits.next::<P>(now, is_held, &mut store!(self));
            match next {
                None => return,
                Some(Serve::Here(id, mut batch)) => {
                    let wait = self.run_one(now, &mut batch, true);
                    self.waits.on_ran::<P>(id, batch, wait, &mut store!(self));
                }
                Some(Serve::Over(id, mut batch, keys)) => {
                    let (header, _, out) = batch.parts(0);
                    if self.may_run(now, &header, out) {
                        let mut multi = Multi::on_keys(batch, keys);
                        multi.waiter = Some(id);
                        self.start(multi);
                    } else {
                        batch.requests[0].reply.end = batch.replies.mark();
                        self.waits.on_refused(id, batch, &mut store!(self));
                    }
                }
            }
        }
    }

    /// Reports waits that began or were served to the workers of their clients.
    pub(super) fn tell_clients(&mut self, now: Now) {
        while let Some((to, told)) = self.waits.next_told() {
            match told {
                Told::Served(batch) => self.answer(now, to, batch),
                Told::Waits(note) if to == self.id => self.waits.on_began(*note, &mut self.out),
                Told::Waits(note) => {
                    let waits = (Until::Passed, Message::Waits(note));
                    self.send_committed(now, to, waits);
                }
            }
        }
    }

    /// Replies to waiters that the current message served and that had waited before it: their
    /// replies leave before those to the requests in the message.
    #[inline]
    pub(super) fn answer_served(&mut self, now: Now) {
        if self.waits.has_told() {
            for (to, batch) in self.waits.take_served() {
                self.answer(now, to, batch);
            }
        }
    }
}
