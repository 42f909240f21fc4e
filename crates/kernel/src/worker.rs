//! One worker's part of the store: its shard, the requests that it exchanges with other workers,
//! and the commands that it coordinates.
//!
//! The worker does not know connections. The embedder submits requests with a [`Header`]. An
//! immediate reply is appended to the caller's output; every later one is an [`Outcome`] in the
//! worker's only queue, which the embedder empties with [`Worker::next_outcome`] after each call.
//!
//! A worker is a router over machines. A machine is a struct in a file or folder
//! of its own, with private fields, and tests beside it that drive it by hand
//! (`boot` is the first of them):
//!
//! - Its handlers are `on_<event>(&mut self, now, input, &mut Store, &mut Out)`, without the
//!   parameters that a handler does not need. It reads and changes only its own fields and the
//!   store that it borrows (the macro `store!` borrows it from the worker).
//! - All its outputs go into `Out`: outcomes for the embedder, requests to the disk, events, and
//!   `Call`s of other machines. Handlers never call those of another machine, so there are no
//!   cycles between files.
//! - The worker passes events to it, and after each of them runs [`Worker::carry_out`], which
//!   executes calls in the order in which they were made. A handler that must continue only after a
//!   call was executed requests that with a call of its own (`Call::Load`).
//! - Commands that a machine has executed before anything else are not calls: the machine returns
//!   them from `next`, and the worker reports each result to it (`waiting`).
//! - Outside of this file the worker has no `impl` for the work of a machine. Files under `worker/`
//!   that still have one are to become machines.

#[macro_use]
mod store;

mod boot;
#[macro_use]
mod chains;
mod commit;
mod contexts;
mod durability;
mod exchange;
mod holding;
mod keyspaces;
mod lattice;
mod limit;
mod linear;
mod mail;
mod message;
mod notes;
mod out;
mod parking;
mod running;
mod saves;
mod serving;
mod spanning;
mod stale;
mod switch;
mod transactions;
mod waiting;

pub use chains::{ChainFigures, ChainSettings, Gap, SEVERAL, Said};
pub use commit::Settings as DurableSettings;
pub use lattice::{Awaited, Draining, Findings, Lack, NodeFigures, Past, Unserved};
use linear::Heads;
pub use linear::{Letter, LinearFigures, Place, Posted, Transacted};
use message::Work;
pub use message::{Message, Submitted};
pub use notes::DurableFigures;
use out::Call;
pub use out::Outcome;
pub use rufous_lattice::Stamp;
use running::names_of;
pub use saves::{CutOf, SaveRefused};
pub use spanning::{Delay, ExecPlan, HeldExec, Hold, Release};
pub use switch::LogState;
pub use waiting::{Arrival, Clients, WaitEnd, WaitNote, WaiterId};

use crate::batch::Header;
use crate::durable::Note;
use crate::evict::{Evictor, Ledger};
use crate::lock::{LockTable, Scope};
use crate::multi::{Multi, NodeAction};
use crate::placement::Placement;
use crate::program::Program;
use crate::shard::{Listing, Memory, Shard, Warm};
use crate::stats::CommandStats;
use rufous_base::rng::Rng;
use rufous_base::{Args, Now, Output, WorkerId};
use std::marker::PhantomData;
use std::sync::Arc;
use waiting::Client;

/// The kernel of one worker thread.
#[derive(Debug)]
pub struct Worker<P> {
    id: WorkerId,
    placement: Placement,
    pub shard: Shard,
    spanning: spanning::Spanning,
    rng: Rng,
    locks: LockTable<Work>,
    waits: waiting::Waits,
    commit: commit::Commit,
    quiet: commit::Quiet,
    out: out::Out,
    boot: boot::Boot,
    saves: saves::Saves,
    stats: Vec<CommandStats>,
    /// Commands executed since the clock was last read.
    unaccounted: Vec<u16>,
    warm: Vec<Warm>,
    evictor: Evictor,
    lattice: lattice::Lattices,
    contexts: contexts::ClientContexts,
    /// Present where the node is one of several.
    chains: Option<Box<chains::ChainHost>>,
    parking: parking::Parking,
    linear: linear::Linear,
    program: PhantomData<P>,
}

impl<P: Program> Worker<P> {
    /// All workers of a node must get the same `hash_seed`: hashes travel with requests.
    pub fn new(id: WorkerId, placement: Placement, commands: usize, hash_seed: u64) -> Self {
        Self {
            id,
            shard: Shard::new(hash_seed),
            spanning: spanning::Spanning::new(hash_seed),
            rng: Rng::new(hash_seed ^ u64::from(id.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            locks: LockTable::default(),
            waits: waiting::Waits::default(),
            commit: commit::Commit::new(id, hash_seed),
            quiet: commit::Quiet::default(),
            out: out::Out::new(placement.workers()),
            boot: boot::Boot::new(hash_seed),
            saves: saves::Saves::default(),
            stats: vec![CommandStats::default(); commands],
            unaccounted: Vec::new(),
            warm: Vec::new(),
            evictor: Evictor::new(
                Arc::new(Ledger::new(placement.workers())),
                id.index(),
                hash_seed,
            ),
            lattice: lattice::Lattices::new(id, placement.workers()),
            contexts: contexts::ClientContexts::default(),
            chains: None,
            parking: parking::Parking::default(),
            linear: linear::Linear::default(),
            placement: placement.seen_by(id),
            program: PhantomData,
        }
    }

    pub fn id(&self) -> WorkerId {
        self.id
    }

    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The random number generator for the embedder.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Does a bounded part of the memory maintenance. True where more is left.
    pub fn maintain_step(&mut self, budget: usize) -> bool {
        self.shard.maintain_step(budget) | self.spanning.maintain_step(budget)
    }

    /// A listed key of this worker, each with the same probability.
    pub fn random_key(&mut self, db: usize, listing: Listing, now: Now) -> Option<Vec<u8>> {
        self.shard.random_key((db, listing), now, &mut self.rng)
    }

    /// Executes a request on one key, or sends it to the key's owner.
    #[inline]
    pub fn submit_one(
        &mut self,
        now: Now,
        header: &Header,
        owner: WorkerId,
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        if owner != self.id {
            self.forward(owner, header, args);
            return Self::pending(header);
        }
        let key = usize::from(header.key);
        if !self.locks.is_idle() && self.locks.blocks(header.db, args.get(key)) {
            let scope = Scope::keys(vec![(header.db, args.get(key).into())]);
            self.park(scope, header, args, self.id);
            return Self::pending(header);
        }
        let keys = [(header.db, u32::from(header.key))];
        self.submit_free(now, header, &keys, args, out)
    }

    /// Executes a request on several keys of any workers. `keys` are databases and argument
    /// indexes.
    pub fn submit_many(
        &mut self,
        now: Now,
        header: &Header,
        keys: &[(u8, u32)],
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        let named = keys.iter().map(|&(_, i)| args.get(i as usize));
        if keys.len() > 1 && self.is_too_spread(header.command, named) {
            P::refuse_slot(chains::too_spread::<P>(header.command), header.resp3, out);
            return Submitted::Done;
        }
        if self.must_look_for_others(header.command, &args) {
            return self.submit_open(now, header, keys, args, out);
        }
        if let [(db, arg)] = *keys
            && db == header.db
            && arg == u32::from(header.key)
        {
            // One key needs no command over several workers, and no barrier.
            let owner = self.placement.owner(args.get(arg as usize));
            return self.submit_one(now, header, owner, args, out);
        }
        let local = self.placement.workers() == 1
            || keys
                .iter()
                .all(|&(_, i)| self.placement.owner(args.get(i as usize)) == self.id);
        if local {
            let held = |&(db, i): &(u8, u32)| self.locks.blocks(db, args.get(i as usize));
            let names = keys.iter().map(|&(_, i)| args.get(i as usize));
            let free = (self.locks.is_idle() || !keys.iter().any(held))
                && !self.is_any_unserved(now, names, chains::Needs::of::<P>(header));
            if !free {
                let scope = Scope::keys(names_of(keys, &args));
                self.park(scope, header, args, self.id);
                return Submitted::Barrier;
            }
            return self.submit_free(now, header, keys, args, out);
        }
        if !self.may_run(now, header, out) {
            return Submitted::Done;
        }
        let owned = self.owned(keys, &args);
        let mut batch = self.batch_of(header, args);
        batch.until = self.until(owned.iter().map(|(_, key)| &*key.1));
        self.start(Multi::on_keys(batch, owned));
        Submitted::Barrier
    }

    /// Executes a request that concerns whole databases on every worker.
    pub fn submit_node(
        &mut self,
        now: Now,
        header: &Header,
        action: NodeAction,
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        if !self.may_run(now, header, out) {
            return Submitted::Done;
        }
        if let Some(why) = self.refuses_action(action) {
            P::refuse(header.command, &why, header.resp3, out);
            return Submitted::Done;
        }
        if self.placement.workers() == 1 && self.locks.is_idle() {
            self.run_now(now, header, args, out);
            self.serve_waiters(now);
            return Submitted::Done;
        }
        let batch = self.batch_of(header, args);
        let workers = self.placement.workers();
        self.start(Multi::on_node(batch, workers, action));
        Submitted::Barrier
    }

    /// Runs what is free to run after submissions; call it before effects are
    /// collected. True where the embedder has to say first whether a client is
    /// still there to wait: take the outcomes, then call it again. Until then no
    /// other command runs, so that a client that is gone is given nothing.
    pub fn settle(&mut self, now: Now) -> bool {
        if self.out.has_undecided() {
            return true;
        }
        Heads { worker: self }.read_letters(now);
        self.serve_waiters(now);
        self.tell_clients(now);
        self.settle_lattice(now);
        if self.locks.is_idle() {
            return false;
        }
        while !self.out.has_undecided() {
            let Some((ticket, work)) = self.locks.next_granted() else {
                return false;
            };
            self.run_granted(now, (ticket, work));
            self.tell_clients(now);
        }
        true
    }

    /// Takes a message of another worker. To be followed by [`Worker::settle`] once
    /// the outcomes are taken.
    pub fn on_message(&mut self, now: Now, from: WorkerId, message: Message) {
        self.take(now, from, message);
        let _again = self.settle(now);
    }

    fn take(&mut self, now: Now, from: WorkerId, message: Message) {
        match message {
            Message::Requests(batch) => {
                let batch = self.on_requests(now, from, batch);
                self.answer_served(now);
                self.answer(now, from, batch);
            }
            Message::Replies(batch) => self.on_replies(batch),
            Message::MakeRoom => self.on_make_room(now),
            Message::Acquire {
                multi,
                scope,
                client,
                touch,
                part,
            } => {
                self.locks.acquire(
                    scope,
                    Work::Hold {
                        multi,
                        coordinator: from,
                        client,
                        touch,
                        part,
                    },
                );
            }
            Message::Acquired {
                multi,
                ticket,
                hold,
            } => {
                self.on_acquired(now, multi, (from, ticket), hold);
            }
            Message::Fetch { multi, touch, keys } => {
                self.on_fetch(now, from, (multi, touch), &keys);
            }
            Message::Fetched { multi, gathered } => {
                self.span(now, |spanning, site| {
                    spanning.on_fetched::<P>(multi, gathered, site);
                });
            }
            Message::Release(release) => self.on_release(now, from, release),
            Message::Committed { multi } => {
                self.span(now, |spanning, site| spanning.on_committed(multi, site));
            }
            Message::Doubtful { multi } => {
                self.span(now, |spanning, site| spanning.on_doubtful(multi, site));
            }
            Message::Lost(batch) => self.out.lost(&batch),
            Message::Unlock { ticket, txn } => self.on_unlock(now, ticket, txn),
            Message::Await(arrival) => self.waits.on_arrival(from, *arrival, &mut store!(self)),
            Message::Waits(note) => self.waits.on_began(*note, &mut self.out),
            Message::Forget { conn, seq } => {
                self.waits
                    .on_forget(Client::new(from, conn), seq, &mut store!(self));
            }
            Message::Replicate(bytes) => self.lattice.on_replicate(now, bytes, &mut store!(self)),
            Message::Told(no, bytes) => self.lattice.on_told(now, no, bytes, &mut store!(self)),
            Message::Draining(note) => self.on_draining(now, from, note),
            Message::Letter(from, letter) => self.linear.on_letter(from, *letter),
            Message::Post(letter) => Heads { worker: self }.post(*letter),
            Message::Note(note) => {
                self.on_note(now, from, *note);
                self.carry_out(now);
            }
        }
        self.end_long_frame();
    }

    /// Executes calls between machines, in order.
    fn carry_out(&mut self, now: Now) {
        while let Some(call) = self.out.next_call() {
            self.execute(now, call);
        }
    }

    fn execute(&mut self, now: Now, call: Call) {
        match call {
            Call::Tell(to, note) if to == self.id => self.on_note(now, to, note),
            Call::Tell(to, note) => self.send(to, Message::Note(Box::new(note))),
            Call::Load(next) => {
                self.boot
                    .on_next(now, next, &mut store!(self), &mut self.out);
            }
            Call::Keep(keeper) => self.saves.on_keeper(*keeper),
            Call::Send(to, message) if to == self.id => self.take(now, to, message),
            Call::Send(to, message) => self.send(to, message),
            Call::StartLog(start) => {
                self.commit.on_start(start, &mut store!(self));
                self.note_ready();
            }
            Call::Snapshot { generation } => self.begin_snapshot(generation),
            Call::Cut { generation, cut } => {
                let action = NodeAction::Cut { generation, cut };
                let workers = self.placement.workers();
                self.start(Multi::on_node(Box::default(), workers, action));
            }
            Call::Begin(multi) => self.start(*multi),
            Call::Run(multi) => self.run_gathered(now, *multi),
            Call::Ready(multi) => self.prepare(now, *multi),
            Call::Drain(note) => self.lattice.on_draining(self.id, note),
            Call::Release(to, release) if to == self.id => self.on_release(now, to, release),
            Call::Release(to, release) => self.send(to, Message::Release(release)),
            Call::Unlock(to, ticket, txn) if to == self.id => self.on_unlock(now, ticket, txn),
            Call::Unlock(to, ticket, txn) => self.send(to, Message::Unlock { ticket, txn }),
            Call::ManifestWritten(written) if self.is_serving() => {
                if let Some(ended) = written.transpose() {
                    let note = || Note::SaveEnded(ended.clone());
                    self.out.tell_all(&store!(self), note);
                }
            }
            Call::ManifestWritten(written) => {
                self.boot
                    .on_first_manifest(written, &store!(self), &mut self.out);
            }
            Call::SendLogged(to, message) => self.send_logged(to, message),
            Call::Replicate(to, bytes) => self.send_changes(to, bytes),
            Call::Replicated => self.on_replicated(),
            Call::ReplicasEqual => {
                self.boot
                    .on_replicas_equal(now, &mut store!(self), &mut self.out);
            }
            Call::LetGo(ticket) => self.let_go(now, ticket),
            Call::Acquire(scope, work) => self.locks.acquire(scope, work),
            Call::Answer(origin, batch) => self.answer(now, origin, batch),
            Call::MappingTaken(mapping, own) => {
                self.lattice
                    .on_mapping(now, (&mapping, own), &mut store!(self));
                Heads { worker: self }.on_mapping(&mapping, own);
            }
            Call::ChainsLost => self.commit.on_chains_lost(&mut self.out),
            Call::Exchange => {
                let table = self.lattice.table();
                let note = || Note::Exchange(Arc::clone(table));
                self.out.tell_all(&store!(self), note);
            }
            Call::CountsRestored { count, latest } => {
                self.lattice.on_counts_restored(count, latest);
            }
        }
    }

    /// Whether requests may be executed.
    #[inline]
    pub fn is_serving(&self) -> bool {
        self.boot.is_serving()
    }

    /// The memory of the shard and of data held back during the start; of data that several workers
    /// share, the part that this worker has sent them.
    pub fn memory(&self) -> Memory {
        let mut memory = self.shard.memory();
        memory.held_bytes += self.boot.held_bytes(self.id);
        memory
    }

    /// Outcomes of requests that were submitted earlier, in order.
    #[inline]
    pub fn next_outcome(&mut self) -> Option<Outcome> {
        self.out.next_outcome()
    }

    /// Messages for other workers, including requests collected since the last call.
    pub fn take_messages(&mut self, mut send: impl FnMut(WorkerId, Message)) {
        debug_assert!(
            self.out.outcomes.is_empty(),
            "outcomes are taken before messages"
        );
        for (to, message) in self.out.mail.take() {
            send(to, message);
        }
    }

    /// Requests and commands that wait for keys or replies here.
    pub fn waiting(&self) -> usize {
        self.locks.len() + self.spanning.len() + self.linear.waiting()
    }
}
