//! One replica of the world: a shard, its part in replication, a log and a
//! snapshot, and a clock that is off.
//!
//! What a node says, to clients and to other nodes, waits until all that it
//! may tell of is in the log.

use super::plan::Plan;
use rufous_base::{Now, WorkerId};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_kernel::durable::effect::Effect;
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_kernel::lock::KeyName;
use rufous_kernel::placement::Placement;
use rufous_kernel::replicate::replicas::{Replicas, To};
use rufous_kernel::replicate::session::State;
use rufous_kernel::replicate::transaction::Transaction;
use rufous_kernel::shard::{ExpirySetting, Held, Keyed, Keying, NewValue, Shard, bring_back};
use rufous_lattice::Stamp;
use std::sync::Arc;

/// The first instant of a run, in microseconds: no clock that is off is before
/// the beginning of time.
const START_US: u64 = 1_700_000_000_000_000;
const MANY: usize = 1 << 20;

/// What waits for the log.
#[derive(Debug)]
pub enum Said {
    Message(usize, Arc<[u8]>),
    /// The reply to an event of the history, or to an operation on what is shared.
    Reply(Reply),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Event(usize),
    Shared(usize),
    Commit(usize),
}

/// What outlives a crash.
#[derive(Debug, Default)]
struct Disk {
    saved: Vec<u8>,
    logged: Vec<u8>,
}

#[derive(Debug)]
struct Table(Arc<Keyspaces>, usize);

impl Keying for Table {
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        let keyspace = self.0.lattice(key)?;
        Some(Keyed {
            strings: Tag::Register,
            is_shared: keyspace.spread(self.1) > 1,
        })
    }
}

#[derive(Debug)]
pub struct Node {
    pub number: usize,
    pub shard: Shard,
    pub replicas: Replicas,
    pub placement: Placement,
    table: Arc<Keyspaces>,
    clock: (i64, i64),
    disk: Disk,
    /// Bytes logged before the cut of the snapshot in progress, and the part written so far.
    saving: Option<(usize, Vec<u8>)>,
    unsynced: Vec<u8>,
    gate: Vec<Said>,
    /// What its files said at a start, for when all have exchanged what they have.
    held: Option<Box<Held>>,
    /// When it is polled next.
    pub wake_us: Option<u64>,
    pub sync_is_due: bool,
}

fn table(plan: &Plan) -> Keyspaces {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        threads: plan.spread,
        cut: plan.mode == super::plan::Mode::Cut,
        // invariant: modes name levels that there are
        level: plan.mode.level().parse().expect("a level"),
        gossip_ms: plan.gossip_ms,
        ..Keyspace::new("all", b"k")
    };
    // invariant: one keyspace overlaps with none
    Keyspaces::default().with(keyspace).expect("a table")
}

impl Node {
    pub fn new(plan: &Plan, number: usize) -> Self {
        let table = Arc::new(table(plan));
        let own = WorkerId(number as u16);
        let mut placement = Placement::new(plan.nodes).seen_by(own);
        placement.set_keyspaces(&table);
        let mut node = Self {
            number,
            shard: Shard::new(number as u64),
            replicas: Replicas::new(own, plan.nodes),
            placement,
            table,
            clock: plan.clocks[number],
            disk: Disk::default(),
            saving: None,
            unsynced: Vec::new(),
            gate: Vec::new(),
            held: None,
            wake_us: None,
            sync_is_due: false,
        };
        node.equip();
        node
    }

    fn equip(&mut self) {
        let table = Table(Arc::clone(&self.table), self.placement.workers());
        self.shard.set_keying(Some(Arc::new(table)));
        self.shard.observers_mut().set_journaling(true);
    }

    pub fn now(&self, us: u64) -> Now {
        let (off, drift) = self.clock;
        let shift = off + us as i64 / 1_000_000 * drift;
        Now {
            mono_us: us,
            unix_us: START_US.saturating_add_signed(shift) + us,
        }
    }

    /// Has a reply or a message wait for what is not in the log yet.
    pub fn say(&mut self, said: Said) {
        self.gate.push(said);
    }

    pub fn has_said(&self) -> bool {
        !self.gate.is_empty()
    }

    /// Lets `write` change keys under a stamp above `floor`, or under the next
    /// of a transaction's; answers the one after it.
    pub fn write(
        &mut self,
        us: u64,
        floor: u64,
        stamp: Option<Stamp>,
        write: impl FnOnce(&mut Shard, Now),
    ) -> Stamp {
        let now = self.now(us);
        self.observe(floor);
        let stamp = stamp.unwrap_or_else(|| self.replicas.stamp(now));
        self.shard.tell_horizon();
        self.shard.begin_lattice(Writer { stamp });
        write(&mut self.shard, now);
        // invariant: it has begun
        let ended = self.shard.end_lattice().expect("a command");
        assert_eq!(ended.refused, None, "all of this can be done alone");
        self.replicas.observe(ended.next);
        self.replicas.wrote(now, self.shard.changeset());
        self.unsynced.append(self.shard.journal());
        ended.next
    }

    fn observe(&mut self, time: u64) {
        self.replicas.observe(Stamp {
            time,
            ..Stamp::ZERO
        });
    }

    pub fn text(&mut self, us: u64, key: &[u8]) -> Option<Vec<u8>> {
        let (now, key) = (self.now(us), self.shard.key(key));
        let value = self.shard.get(0, key, now).ok().flatten();
        value.map(|value| value.bytes().to_vec())
    }

    /// An empty shard for the copies of a transaction.
    pub fn copies(&self) -> Box<Shard> {
        let mut copies = Box::new(Shard::new(self.number as u64));
        // Writes in this shard are not replicated.
        let table = Table(Arc::clone(&self.table), 1);
        copies.set_keying(Some(Arc::new(table)));
        copies
    }

    /// Writes a key of a transaction, if it has something to write, and reads it.
    pub fn on_copies(
        &mut self,
        us: u64,
        open: &mut Transaction,
        name: KeyName,
        write: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let now = self.now(us);
        let missing = open.missing(vec![name.clone()]);
        for copied in missing.clone() {
            let key = self.shard.key(&copied.1);
            let entry = self.shard.gather_entry(0, key, now);
            open.copy(copied, entry, now);
        }
        let at = open.now(now);
        let stamp = self.replicas.stamp(at);
        let copies = open.copies();
        if let Some(text) = write {
            copies.begin_lattice(Writer { stamp });
            let key = copies.key(&name.1);
            copies.set(0, key, NewValue::Copy(text), ExpirySetting::Clear, at);
            // invariant: it has begun
            let ended = copies.end_lattice().expect("a command");
            self.replicas.observe(ended.next);
        }
        let key = copies.key(&name.1);
        let value = copies.get(0, key, at).ok().flatten();
        let text = value.map(|value| value.bytes().to_vec());
        open.end_command(missing, write.is_some(), now);
        text
    }

    pub fn show(&mut self, us: u64, key: &[u8]) -> Option<State> {
        let (now, key) = (self.now(us), self.shard.key(key));
        let mut chunks = Vec::new();
        let mut keep = |_, chunk: &[u8]| chunks.push(chunk.to_vec());
        let replica = self.shard.show_replica(0, key, now, &mut keep)?;
        Some(State {
            tag: replica.tag,
            newest: replica.newest.time,
            chunks,
        })
    }

    /// What a session brings along.
    pub fn take_in(&mut self, us: u64, key: &[u8], state: &State) {
        let now = self.now(us);
        self.observe(state.newest);
        for chunk in &state.chunks {
            let key = self.shard.key(key);
            let done = self.shard.merge(0, key, state.tag, chunk, now);
            assert!(done.is_ok(), "a state of its type");
        }
    }

    pub fn receive(&mut self, us: u64, bytes: Arc<[u8]>) {
        let now = self.now(us);
        let done = self
            .replicas
            .receive(now, (&mut self.shard, &self.placement), bytes);
        assert!(done.is_ok(), "a message as it was sent");
    }

    /// Takes replication further.
    pub fn poll(&mut self, us: u64) {
        let (now, mut out) = (self.now(us), Vec::new());
        let period = self.placement.gossip_us();
        let parts = (&mut self.shard, &self.placement);
        self.replicas
            .poll(now, period, parts, &|_, _| false, &mut out);
        for (to, bytes) in out {
            if let To::Worker(to) = to {
                self.gate.push(Said::Message(to.index(), bytes));
            }
        }
    }

    /// When it has something to do, at the earliest now.
    pub fn wants(&self, us: u64) -> Option<u64> {
        let wake = self.replicas.wake_us(self.placement.gossip_us());
        wake.map(|at| at.max(us + 1))
    }

    /// What was done is in the log: what waited for that can go.
    pub fn sync(&mut self) -> Vec<Said> {
        self.disk.logged.append(&mut self.unsynced);
        std::mem::take(&mut self.gate)
    }

    /// Makes this the cut of a snapshot; all that was done is in the log.
    pub fn begin_snapshot(&mut self) {
        assert!(self.unsynced.is_empty(), "the cut lies between two syncs");
        self.shard.begin_snapshot();
        let mut saved = Vec::new();
        self.shard.horizon_effect(&mut saved);
        self.saving = Some((self.disk.logged.len(), saved));
    }

    pub fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// Writes the next part of the snapshot; returns whether it is complete.
    pub fn save_on(&mut self, bytes: usize) -> bool {
        let Some((_, saved)) = &mut self.saving else {
            return true;
        };
        let mut step = Vec::new();
        let more = self.shard.snapshot().is_running() && self.shard.snapshot_step(bytes, &mut step);
        saved.append(&mut step);
        !more
    }

    /// The snapshot counts from now on, in the place of what was logged before it.
    pub fn adopt_snapshot(&mut self) {
        if let Some((before, saved)) = self.saving.take() {
            self.disk.saved = saved;
            self.disk.logged.drain(..before);
        }
    }

    /// All but the disk is lost, and read again from there.
    pub fn restart(&mut self, life: u64) {
        let nodes = self.placement.workers();
        self.shard = Shard::new(self.number as u64 + life * 100);
        self.replicas = Replicas::new(WorkerId(self.number as u16), nodes);
        self.replicas.keep_all(true);
        self.shard.hold_counts(nodes);
        for bytes in [&self.disk.saved, &self.disk.logged] {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                // invariant: the disk keeps what it is given
                let effect = Effect::decode(&mut rest).expect("an effect");
                self.shard.apply(&effect).expect("it can be done again");
            }
        }
        (self.saving, self.wake_us, self.sync_is_due) = (None, None, false);
        self.held = self.shard.take_held();
        self.unsynced.clear();
        self.gate.clear();
        self.equip();
        self.shard.check();
        self.tell_all();
    }

    /// After a start: the clock is above all that is here, and others are sent it.
    fn tell_all(&mut self) {
        for name in self.names() {
            let key = self.shard.key(&name);
            let never = Now::default();
            let shown = self.shard.show_replica(0, key, never, &mut |_, _| {});
            if let Some(replica) = shown {
                self.replicas.observe(replica.newest);
                self.shard.changeset().touch(0, key);
            }
        }
        self.replicas.start();
    }

    /// Whether it has all that the others have, and they were sent all of it.
    pub fn has_exchanged(&mut self) -> bool {
        self.replicas.has_heard_all() && self.replicas.has_sent_all(self.shard.changeset())
    }

    pub fn take_held(&mut self) -> Option<Box<Held>> {
        self.held.take()
    }

    /// All have exchanged what they have: does what all files said is to be done
    /// then.
    pub fn bring_back(&mut self, us: u64, files: &[Box<Held>]) {
        let now = self.now(us);
        let (own, placement) = (WorkerId(self.number as u16), &self.placement);
        let is_here = |key: &[u8]| placement.owners(key).any(|owner| owner == own);
        bring_back(&mut self.shard, files, is_here, now);
        let horizons = files.iter().map(|held| held.horizon());
        self.shard.set_forgotten(horizons.max().unwrap_or(0));
        let latest = files.iter().map(|held| held.latest());
        self.observe(latest.max().unwrap_or(0));
        self.replicas.keep_all(false);
        self.shard.tell_horizon();
        self.unsynced.append(self.shard.journal());
    }

    /// Keys of which anything is known.
    pub fn names(&mut self) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        let mut keep = |item: rufous_kernel::shard::Item<'_>| names.push(item.key.to_vec());
        let rest = self.shard.scan(0, 0, MANY, Now::default(), &mut keep);
        assert_eq!(rest, None, "there are few keys");
        let (graves, _) = self.shard.graves(0, b"", MANY);
        names.extend(graves.iter().map(|key| key.to_vec()));
        names
    }
}
