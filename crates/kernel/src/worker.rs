//! One worker's part of the store: its shard, the requests it exchanges with
//! the other workers, and the commands that it coordinates.
//!
//! The worker does not know connections: whoever embeds it hands requests in
//! with a [`Header`], and is told of replies that come later through
//! [`Completions`].

use crate::batch::{Batch, Header, ReplyRange};
use crate::lock::{LockTable, Scope, Ticket};
use crate::multi::{Gathered, KeyWrite, Multi, NodeAction};
use crate::placement::Placement;
use crate::program::{Context, Program};
use crate::shard::{Entry, Key, Shard, Warm};
use crate::stats::CommandStats;
use rufous_base::limits::DATABASES;
use rufous_base::rng::Rng;
use rufous_base::{Args, Now, Output, WorkerId};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// What workers of a node send one another.
#[derive(Debug)]
pub enum Message {
    Requests(Box<Batch>),
    Replies(Box<Batch>),
    /// Hold these keys for a command of the sender's.
    /// `touch`: it counts as an access to them.
    Acquire {
        multi: u64,
        scope: Scope,
        touch: bool,
    },
    /// They are held; this is what they contain.
    Acquired {
        multi: u64,
        ticket: Ticket,
        gathered: Vec<Gathered>,
    },
    /// Apply these and let go.
    Release {
        ticket: Ticket,
        writes: Vec<KeyWrite>,
        action: Option<NodeAction>,
    },
}

/// Where replies go that were not ready when the request was submitted.
pub trait Completions {
    /// `from` between the marks of `range` is the reply to `header`'s request.
    fn complete(&mut self, header: &Header, from: &Output, range: ReplyRange);
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// Its reply was appended.
    Done,
    /// Its reply will come through [`Completions`].
    Pending,
    /// Likewise, and later requests of the same connection must wait for it,
    /// because they could overtake it.
    Barrier,
}

#[derive(Debug)]
enum Work {
    /// A request that found its key held: run it, then answer `origin`.
    Run { batch: Box<Batch>, origin: WorkerId },
    /// A hold for a command that `coordinator` is collecting keys for.
    Hold {
        multi: u64,
        coordinator: WorkerId,
        touch: bool,
    },
}

/// The kernel of one worker thread.
#[derive(Debug)]
pub struct Worker<P> {
    id: WorkerId,
    placement: Placement,
    pub shard: Shard,
    /// Where commands that span workers run; empty between them.
    scratch: Shard,
    rng: Rng,
    locks: LockTable<Work>,
    multis: BTreeMap<u64, Multi>,
    next_multi: u64,
    /// Requests collected for each other worker.
    outbox: Vec<Box<Batch>>,
    pool: Vec<Box<Batch>>,
    outgoing: Vec<(WorkerId, Message)>,
    stats: Vec<CommandStats>,
    /// Commands run since the clock was last looked at.
    unaccounted: Vec<u16>,
    warm: Vec<Warm>,
    program: PhantomData<P>,
}

/// Batches kept for reuse.
const POOLED_BATCHES: usize = 16;

impl<P: Program> Worker<P> {
    /// All workers of a node must get the same `hash_seed`: hashes travel with requests.
    pub fn new(id: WorkerId, placement: Placement, commands: usize, hash_seed: u64) -> Self {
        Self {
            id,
            placement,
            shard: Shard::new(hash_seed),
            scratch: Shard::new(hash_seed),
            rng: Rng::new(hash_seed ^ u64::from(id.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            locks: LockTable::default(),
            multis: BTreeMap::new(),
            next_multi: 0,
            outbox: (0..placement.workers()).map(|_| Box::default()).collect(),
            pool: Vec::new(),
            outgoing: Vec::new(),
            stats: vec![CommandStats::default(); commands],
            unaccounted: Vec::new(),
            warm: Vec::new(),
            program: PhantomData,
        }
    }

    pub fn id(&self) -> WorkerId {
        self.id
    }

    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// For what the embedder draws by lot.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Does a bounded part of what memory needs to be tidied. True where more
    /// is left.
    pub fn maintain_step(&mut self, budget: usize) -> bool {
        self.shard.maintain_step(budget) | self.scratch.maintain_step(budget)
    }

    /// A key of this worker's, each with the same probability.
    pub fn random_key(&mut self, db: usize, now: Now) -> Option<Vec<u8>> {
        self.shard.random_key(db, now, &mut self.rng)
    }

    /// Runs a request on one key, or sends it to the key's owner.
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
            return Submitted::Pending;
        }
        let key = usize::from(header.key);
        if !self.locks.is_idle() && self.locks.blocks(header.db, args.get(key)) {
            let scope = Scope::keys(vec![(header.db, args.get(key).into())]);
            self.park(scope, header, args, self.id);
            return Submitted::Pending;
        }
        self.run(now, header, args, out);
        Submitted::Done
    }

    /// Runs a request on several keys, whichever workers own them. `keys` are
    /// databases and argument indexes.
    pub fn submit_many(
        &mut self,
        now: Now,
        header: &Header,
        keys: &[(u8, u32)],
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        if let [(db, arg)] = *keys
            && db == header.db
            && arg == u32::from(header.key)
        {
            // One key makes no command over workers of it, and no barrier.
            let owner = self.placement.owner(args.get(arg as usize));
            return self.submit_one(now, header, owner, args, out);
        }
        let local = self.placement.workers() == 1
            || keys
                .iter()
                .all(|&(_, i)| self.placement.owner(args.get(i as usize)) == self.id);
        if local {
            let free = self.locks.is_idle()
                || !keys
                    .iter()
                    .any(|&(db, i)| self.locks.blocks(db, args.get(i as usize)));
            if free {
                self.run(now, header, args, out);
                return Submitted::Done;
            }
            let names = keys
                .iter()
                .map(|&(db, i)| (db, args.get(i as usize).into()))
                .collect();
            self.park(Scope::keys(names), header, args, self.id);
            return Submitted::Barrier;
        }
        let owned = keys
            .iter()
            .map(|&(db, i)| {
                let key = args.get(i as usize);
                (self.placement.owner(key), (db, key.into()))
            })
            .collect();
        let batch = self.batch_of(header, args);
        self.start(Multi::on_keys(batch, owned));
        Submitted::Barrier
    }

    /// Runs a request that concerns whole databases on every worker.
    pub fn submit_node(
        &mut self,
        now: Now,
        header: &Header,
        action: NodeAction,
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        if self.placement.workers() == 1 && self.locks.is_idle() {
            self.run(now, header, args, out);
            return Submitted::Done;
        }
        let batch = self.batch_of(header, args);
        self.start(Multi::on_node(batch, self.placement.workers(), action));
        Submitted::Barrier
    }

    /// Runs what is free to run after submissions; call it before effects are
    /// collected.
    pub fn settle(&mut self, now: Now, completions: &mut impl Completions) {
        if self.locks.is_idle() {
            return;
        }
        while let Some((ticket, work)) = self.locks.next_granted() {
            match work {
                Work::Run { batch, origin } => {
                    let batch = self.run_batch(now, batch);
                    self.locks.release(ticket);
                    self.answer(origin, batch, completions);
                }
                Work::Hold {
                    multi,
                    coordinator,
                    touch,
                } => {
                    let gathered = self.gather(ticket, touch, now);
                    if coordinator == self.id {
                        self.on_acquired(now, multi, self.id, ticket, gathered, completions);
                    } else {
                        self.send(
                            coordinator,
                            Message::Acquired {
                                multi,
                                ticket,
                                gathered,
                            },
                        );
                    }
                }
            }
        }
    }

    /// Takes a message of another worker.
    pub fn on_message(
        &mut self,
        now: Now,
        from: WorkerId,
        message: Message,
        completions: &mut impl Completions,
    ) {
        match message {
            Message::Requests(batch) => {
                let batch = self.on_requests(now, from, batch);
                self.send(from, Message::Replies(batch));
            }
            Message::Replies(batch) => self.on_replies(batch, completions),
            Message::Acquire {
                multi,
                scope,
                touch,
            } => {
                self.locks.acquire(
                    scope,
                    Work::Hold {
                        multi,
                        coordinator: from,
                        touch,
                    },
                );
            }
            Message::Acquired {
                multi,
                ticket,
                gathered,
            } => {
                self.on_acquired(now, multi, from, ticket, gathered, completions);
            }
            Message::Release {
                ticket,
                writes,
                action,
            } => self.on_release(now, ticket, writes, action),
        }
        self.settle(now, completions);
    }

    /// Messages for other workers, requests collected since the last call included.
    pub fn take_messages(&mut self, mut send: impl FnMut(WorkerId, Message)) {
        for worker in 0..self.outbox.len() {
            if !self.outbox[worker].is_empty() {
                self.flush_outbox(WorkerId(worker as u16));
            }
        }
        for (to, message) in self.outgoing.drain(..) {
            send(to, message);
        }
    }

    /// Spreads the time since the clock was last looked at over the commands
    /// run meanwhile. Returns nanoseconds per command.
    pub fn account(&mut self, elapsed_us: u64) -> u64 {
        let calls = self.unaccounted.len() as u64;
        if calls == 0 {
            return 0;
        }
        let each_ns = elapsed_us * 1000 / calls;
        for command in self.unaccounted.drain(..) {
            self.stats[usize::from(command)].record(1, each_ns);
        }
        each_ns
    }

    /// Whether commands ran whose time is not accounted for.
    pub fn has_unaccounted(&self) -> bool {
        !self.unaccounted.is_empty()
    }

    pub fn stats(&self) -> &[CommandStats] {
        &self.stats
    }

    pub fn stats_mut(&mut self) -> &mut [CommandStats] {
        &mut self.stats
    }

    /// Requests and commands that wait for keys or replies here.
    pub fn waiting(&self) -> usize {
        self.locks.len() + self.multis.len()
    }

    fn run(&mut self, now: Now, header: &Header, args: Args<'_>, out: &mut Output) {
        self.shard.set_touch(!header.no_touch);
        let mut context = Context {
            shard: &mut self.shard,
            db: usize::from(header.db),
            now,
            resp3: header.resp3,
            out,
            rng: &mut self.rng,
            hash: header.hash,
        };
        let succeeded = P::run(header.command, &mut context, args);
        self.note(header.command, succeeded);
    }

    /// Counts a command that ran, here or at the embedder.
    pub fn note(&mut self, command: u16, succeeded: bool) {
        self.unaccounted.push(command);
        if !succeeded {
            self.stats[usize::from(command)].failed += 1;
        }
    }

    fn forward(&mut self, owner: WorkerId, header: &Header, args: Args<'_>) {
        self.outbox[owner.index()].push(*header, args);
        if self.outbox[owner.index()].is_full() {
            self.flush_outbox(owner);
        }
    }

    fn flush_outbox(&mut self, to: WorkerId) {
        let fresh = self.pool.pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.outbox[to.index()], fresh);
        self.outgoing.push((to, Message::Requests(batch)));
    }

    /// Requests already collected for `to` go first: a later hold must not
    /// overtake them.
    fn send(&mut self, to: WorkerId, message: Message) {
        if !self.outbox[to.index()].is_empty() {
            self.flush_outbox(to);
        }
        self.outgoing.push((to, message));
    }

    fn batch_of(&mut self, header: &Header, args: Args<'_>) -> Box<Batch> {
        let mut batch = self.pool.pop().unwrap_or_default();
        batch.push(*header, args);
        batch
    }

    fn recycle(&mut self, mut batch: Box<Batch>) {
        if self.pool.len() < POOLED_BATCHES {
            batch.reset();
            self.pool.push(batch);
        }
    }

    fn park(&mut self, scope: Scope, header: &Header, args: Args<'_>, origin: WorkerId) {
        let batch = self.batch_of(header, args);
        self.locks.acquire(scope, Work::Run { batch, origin });
    }

    /// Fetches what the batch will need into the cache, then runs it.
    fn on_requests(&mut self, now: Now, from: WorkerId, mut batch: Box<Batch>) -> Box<Batch> {
        self.warm.clear();
        for request in &batch.requests {
            self.warm.push(
                self.shard
                    .warm_index(usize::from(request.header.db), request.header.hash),
            );
        }
        for (request, &warm) in batch.requests.iter().zip(&self.warm) {
            self.shard.warm_record(usize::from(request.header.db), warm);
        }
        for index in 0..batch.requests.len() {
            let (header, args, out) = batch.parts(index);
            let start = out.mark();
            let key = usize::from(header.key);
            let held = !self.locks.is_idle() && self.locks.blocks(header.db, args.get(key));
            if held {
                let scope = Scope::keys(vec![(header.db, args.get(key).into())]);
                self.park(scope, &header, args, from);
            } else {
                self.run(now, &header, args, out);
            }
            let end = batch.replies.mark();
            batch.requests[index].reply = ReplyRange {
                start,
                end,
                later: held,
            };
        }
        batch
    }

    fn on_replies(&mut self, batch: Box<Batch>, completions: &mut impl Completions) {
        for request in &batch.requests {
            if !request.reply.later {
                completions.complete(&request.header, &batch.replies, request.reply);
            }
        }
        self.recycle(batch);
    }

    fn run_batch(&mut self, now: Now, mut batch: Box<Batch>) -> Box<Batch> {
        for index in 0..batch.requests.len() {
            let (header, args, out) = batch.parts(index);
            let start = out.mark();
            self.run(now, &header, args, out);
            let end = batch.replies.mark();
            batch.requests[index].reply = ReplyRange {
                start,
                end,
                later: false,
            };
        }
        batch
    }

    fn answer(&mut self, origin: WorkerId, batch: Box<Batch>, completions: &mut impl Completions) {
        if origin == self.id {
            self.on_replies(batch, completions);
        } else {
            self.send(origin, Message::Replies(batch));
        }
    }

    fn start(&mut self, multi: Multi) {
        let id = self.next_multi;
        self.next_multi += 1;
        self.multis.insert(id, multi);
        let finished = self.visit_next(id);
        debug_assert!(
            !finished,
            "a command that spans workers visits at least one"
        );
    }

    /// Asks the next worker for its hold. True where all have been visited.
    fn visit_next(&mut self, id: u64) -> bool {
        let Some(multi) = self.multis.get_mut(&id) else {
            return true;
        };
        let touch = multi.batch.requests.iter().all(|r| !r.header.no_touch);
        let Some((worker, scope)) = multi.next_visit() else {
            return true;
        };
        if worker == self.id {
            self.locks.acquire(
                scope,
                Work::Hold {
                    multi: id,
                    coordinator: self.id,
                    touch,
                },
            );
        } else {
            self.send(
                worker,
                Message::Acquire {
                    multi: id,
                    scope,
                    touch,
                },
            );
        }
        false
    }

    fn gather(&mut self, ticket: Ticket, touch: bool, now: Now) -> Vec<Gathered> {
        self.shard.set_touch(touch);
        let Some(Scope::Keys(keys)) = self.locks.scope(ticket) else {
            return Vec::new();
        };
        keys.iter()
            .map(|key| {
                let name = self.shard.key(&key.1);
                let db = usize::from(key.0);
                // Only the access counts here; the entry is copied whole.
                let _ = self.shard.get(db, name, now);
                let entry = self.shard.clone_entry(db, name, now);
                Gathered {
                    owner: self.id,
                    key: key.clone(),
                    entry,
                }
            })
            .collect()
    }

    fn on_acquired(
        &mut self,
        now: Now,
        id: u64,
        from: WorkerId,
        ticket: Ticket,
        gathered: Vec<Gathered>,
        completions: &mut impl Completions,
    ) {
        let Some(multi) = self.multis.get_mut(&id) else {
            debug_assert!(false, "a hold for a command that is not under way");
            return;
        };
        multi.held.push((from, ticket));
        multi.gathered.extend(gathered);
        if self.visit_next(id)
            && let Some(multi) = self.multis.remove(&id)
        {
            self.finish(now, multi, completions);
        }
    }

    /// Everything is held: run the command once and send its writes home.
    fn finish(&mut self, now: Now, multi: Multi, completions: &mut impl Completions) {
        let Multi {
            batch,
            held,
            gathered,
            action,
            ..
        } = multi;
        self.scratch.set_policy(self.shard.policy());
        for Gathered { key, entry, .. } in &gathered {
            if let Some(entry) = entry {
                let name = self.scratch.key(&key.1);
                self.scratch
                    .insert_entry(usize::from(key.0), name, entry.clone(), now);
            }
        }
        std::mem::swap(&mut self.shard, &mut self.scratch);
        let batch = self.run_batch(now, batch);
        std::mem::swap(&mut self.shard, &mut self.scratch);

        let is_write = batch.requests.iter().any(|r| P::is_write(r.header.command));
        let mut writes: BTreeMap<WorkerId, Vec<KeyWrite>> = BTreeMap::new();
        for Gathered {
            owner,
            key,
            entry: before,
        } in gathered
        {
            let name = self.scratch.key(&key.1);
            let after = self.scratch.take(usize::from(key.0), name, now);
            if is_write && !same_entry(&before, &after) {
                writes.entry(owner).or_default().push((key, after));
            }
        }
        debug_assert!(
            (0..DATABASES).all(|db| self.scratch.is_empty(db)),
            "a command wrote to a key it did not name"
        );
        // References only: the owners still have the values themselves.
        drop(self.scratch.take_garbage());
        for (owner, ticket) in held {
            let writes = writes.remove(&owner).unwrap_or_default();
            if owner == self.id {
                self.on_release(now, ticket, writes, action);
            } else {
                self.send(
                    owner,
                    Message::Release {
                        ticket,
                        writes,
                        action,
                    },
                );
            }
        }
        debug_assert!(writes.is_empty(), "writes only where keys were held");
        self.on_replies(batch, completions);
    }

    fn on_release(
        &mut self,
        now: Now,
        ticket: Ticket,
        writes: Vec<KeyWrite>,
        action: Option<NodeAction>,
    ) {
        for ((db, bytes), entry) in writes {
            let key: Key<'_> = self.shard.key(&bytes);
            match entry {
                Some(entry) => self.shard.insert_entry(usize::from(db), key, entry, now),
                None => {
                    self.shard.remove(usize::from(db), key, now);
                }
            }
        }
        match action {
            Some(NodeAction::FlushAll) => {
                (0..DATABASES).for_each(|db| self.shard.flush(db));
            }
            Some(NodeAction::FlushDb(db)) => self.shard.flush(usize::from(db)),
            Some(NodeAction::SwapDb(a, b)) => self.shard.swap(usize::from(a), usize::from(b)),
            None => {}
        }
        self.locks.release(ticket);
    }
}

/// Whether a command left an entry as it was; access statistics do not count.
fn same_entry(before: &Option<Entry>, after: &Option<Entry>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some(a), Some(b)) => a.expire_at == b.expire_at && a.value == b.value,
        _ => false,
    }
}
