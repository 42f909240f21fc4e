//! A worker of a node: a shard, its part in replication, its streams to other
//! nodes, and a log. What it says waits until all that it may tell of is in the
//! log.

use super::plan::Plan;
use super::side;
use rufous_base::{Now, WorkerId};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_kernel::durable::effect::Effect;
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_kernel::placement::Placement;
use rufous_kernel::replicate::gossip::{Gossip, Sent};
use rufous_kernel::replicate::replicas::{Replicas, To};
use rufous_kernel::replicate::vector::Vector;
use rufous_kernel::shard::{Held, Keyed, Keying, Shard, bring_back};
use rufous_lattice::Stamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often it looks whether its clock has reached what is held.
const LATE_US: u64 = 100_000;

const START_US: u64 = 1_700_000_000_000_000;

/// What waits for the log.
#[derive(Debug)]
pub enum Said {
    /// To a worker of the node.
    Here(usize, Arc<[u8]>),
    /// To all other nodes.
    Told {
        bytes: Arc<[u8]>,
        is_report: bool,
    },
    Sent(Sent),
    /// To all workers of the node: this one has received the state of all others.
    HasHeard,
    Reply(usize),
    /// To a client: what it has seen.
    Token(usize, Vector),
}

#[derive(Debug)]
struct Table(Arc<Keyspaces>);

impl Keying for Table {
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        self.0.lattice(key)?;
        Some(Keyed {
            strings: Tag::Register,
            is_shared: true,
        })
    }
}

/// The mapping that a worker acts by.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub epoch: u64,
    pub nodes: BTreeSet<u16>,
    pub next: u16,
}

/// See the module's description.
#[derive(Debug)]
pub struct Seat {
    pub shard: Shard,
    pub replicas: Replicas,
    pub gossip: Gossip,
    pub placement: Placement,
    worker: WorkerId,
    clock: i64,
    pub log: Vec<u8>,
    /// Bytes logged before the cut of the snapshot in progress, and the part written so far.
    saving: Option<(usize, Vec<u8>)>,
    unsynced: Vec<u8>,
    gate: Vec<Said>,
    held: Option<Box<Held>>,
    has_heard: bool,
    pub wake_us: Option<u64>,
    pub sync_is_due: bool,
    /// There is more to do at once.
    more: bool,
    pub epoch: u64,
}

fn table(plan: &Plan) -> Arc<Keyspaces> {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        threads: plan.threads,
        cut: plan.cut,
        // invariant: modes name levels that there are
        level: plan.mode.level().parse().expect("a level"),
        gossip_ms: plan.gossip_ms,
        ..Keyspace::new("all", b"k")
    };
    // invariant: one keyspace overlaps with none
    let mut all = Keyspaces::default().with(keyspace).expect("a table");
    if plan.has_side() {
        let side = Keyspace {
            regime: Regime::Lattice,
            threads: plan.side_threads(),
            gossip_ms: plan.gossip_ms,
            ..Keyspace::new("side", side::PREFIX)
        };
        // invariant: as above
        all = all.with(side).expect("a table");
    }
    Arc::new(all)
}

/// As a node has them: those of its boot are those of node 0.
fn replicas(own: WorkerId, workers: usize, number: u16) -> Replicas {
    if number > 0 {
        // invariant: plans are small
        return Replicas::of_node(own, workers, number).expect("a small number");
    }
    let mut replicas = Replicas::new(own, workers);
    replicas.await_mapping();
    replicas
}

impl Seat {
    /// A worker of a node with this number, that starts with what the log has.
    pub fn new(plan: &Plan, (at, number, worker): (usize, u16, usize), log: Vec<u8>) -> Self {
        let (own, workers) = (WorkerId(worker as u16), plan.workers[at]);
        let table = table(plan);
        let mut placement = Placement::new(workers).seen_by(own);
        placement.set_keyspaces(&table);
        let mut seat = Self {
            shard: Shard::new(u64::from(number) * 10 + worker as u64),
            replicas: replicas(own, workers, number),
            gossip: Gossip::new(number, own, plan.limits),
            placement,
            worker: own,
            clock: plan.clocks[at],
            log,
            saving: None,
            unsynced: Vec::new(),
            gate: Vec::new(),
            held: None,
            has_heard: false,
            wake_us: None,
            sync_is_due: false,
            more: false,
            epoch: 0,
        };
        seat.replay(workers);
        seat.shard
            .lattice_mut()
            .set_keying(Some(Arc::new(Table(table))));
        seat.shard.observers_mut().set_journaling(true);
        seat.tell_all();
        seat
    }

    fn replay(&mut self, workers: usize) {
        self.replicas.keep_all(true);
        self.shard.hold_counts(workers);
        let log = std::mem::take(&mut self.log);
        let mut rest = &log[..];
        while !rest.is_empty() {
            // invariant: the disk keeps what it is given
            let effect = Effect::decode(&mut rest).expect("an effect");
            self.shard.apply(&effect).expect("it can be done again");
        }
        self.log = log;
        self.held = self.shard.take_held();
        self.shard.check();
    }

    /// The clock is above all that is here, and the other workers are sent it.
    fn tell_all(&mut self) {
        let never = Now::default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut take = |item: rufous_kernel::shard::Item<'_>| names.push(item.key.to_vec());
        let rest = self.shard.scan(0, 0, 1 << 20, never, &mut take);
        assert_eq!(rest, None, "there are few keys");
        let graves = self.shard.graves(0, b"", 1 << 20).0;
        names.extend(graves.iter().map(|key| key.to_vec()));
        for name in names {
            let key = self.shard.key(&name);
            let shown = self.shard.show_replica(0, key, never, &mut |_, _| {});
            if let Some(replica) = shown {
                self.replicas.observe(replica.newest);
                self.shard.changeset().touch(0, key);
            }
        }
        self.replicas.start();
    }

    pub fn now(&self, us: u64) -> Now {
        Now {
            mono_us: us,
            unix_us: START_US.saturating_add_signed(self.clock) + us,
        }
    }

    pub fn has_replica(&self, key: &[u8]) -> bool {
        self.placement.owners(key).any(|owner| owner == self.worker)
    }

    pub fn act_by(&mut self, view: &View) {
        if view.epoch > self.epoch {
            self.epoch = view.epoch;
            self.replicas.act_by(view.epoch, &view.nodes, view.next);
            self.gossip.act_by(&view.nodes, view.next);
        }
    }

    /// Whether the workers of the node have sent each other their state.
    pub fn has_exchanged(&mut self) -> bool {
        self.replicas.has_heard_all() && self.replicas.has_sent_all(self.shard.changeset())
    }

    pub fn take_held(&mut self) -> Option<Box<Held>> {
        self.held.take()
    }

    /// Does what all files of the node said is to be done then.
    pub fn bring_back(&mut self, us: u64, files: &[Box<Held>]) {
        let now = self.now(us);
        let (own, placement) = (self.worker, &self.placement);
        let is_here = |key: &[u8]| placement.owners(key).any(|owner| owner == own);
        bring_back(&mut self.shard, files, is_here, now);
        let horizons = files.iter().map(|held| held.horizon());
        let reported = files.iter().map(|held| held.reported());
        let here = self.shard.horizons_mut();
        here.forget(horizons.max().unwrap_or(0));
        here.had_reported(reported.max().unwrap_or(0));
        let latest = files.iter().map(|held| held.latest());
        self.replicas.observe(Stamp {
            time: latest.max().unwrap_or(0),
            ..Stamp::ZERO
        });
        self.replicas.keep_all(false);
        self.shard.tell_horizon();
    }

    /// Lets `write` change keys.
    pub fn write(&mut self, us: u64, write: impl FnOnce(&mut Shard, Now)) {
        let now = self.now(us);
        let stamp = self.replicas.stamp(now);
        self.shard.tell_horizon();
        self.shard.begin_lattice(Writer { stamp });
        write(&mut self.shard, now);
        // invariant: it has begun
        let ended = self.shard.end_lattice().expect("a command");
        assert_eq!(ended.refused, None, "all of this can be done alone");
        self.replicas.observe(ended.next);
        self.replicas.wrote(now, self.shard.changeset());
    }

    pub fn text(&mut self, us: u64, key: &[u8]) -> Option<Vec<u8>> {
        let (now, key) = (self.now(us), self.shard.key(key));
        let value = self.shard.get(0, key, now).ok().flatten();
        value.map(|value| value.bytes().to_vec())
    }

    /// When the key expires, if it does (Unix milliseconds).
    pub fn deadline(&mut self, us: u64, key: &[u8]) -> Option<u64> {
        let (now, key) = (self.now(us), self.shard.key(key));
        self.shard.expire_at(0, key, now).flatten()
    }

    /// The whole state of a key, as chunks of its type.
    pub fn state(&mut self, us: u64, key: &[u8]) -> Vec<Vec<u8>> {
        let (now, key) = (self.now(us), self.shard.key(key));
        let mut chunks = Vec::new();
        let mut keep = |_, chunk: &[u8]| chunks.push(chunk.to_vec());
        self.shard.show_replica(0, key, now, &mut keep);
        chunks
    }

    /// A message of a worker of this node, or of another node's worker.
    pub fn receive(&mut self, us: u64, bytes: Arc<[u8]>) {
        let now = self.now(us);
        let done = self
            .replicas
            .receive(now, (&mut self.shard, &self.placement), bytes);
        assert!(done.is_ok(), "a message as it was sent");
        self.shard.tell_horizon();
    }

    pub fn say(&mut self, said: Said) {
        self.gate.push(said);
    }

    /// Takes replication further.
    pub fn poll(&mut self, us: u64) {
        let (now, mut out) = (self.now(us), Vec::new());
        let parts = (&mut self.shard, &self.placement);
        self.more = self.gossip.poll(now, parts, &mut self.replicas);
        let parts = (&mut self.shard, &self.placement);
        let period = self.placement.gossip_us();
        let none = |_: u8, _: &[u8]| false;
        self.more |= self.replicas.poll(now, period, parts, &none, &mut out);
        self.shard.tell_horizon();
        for (to, bytes) in out {
            self.gate.push(match to {
                To::Worker(to) => Said::Here(to.index(), bytes),
                To::Nodes { is_report } => Said::Told { bytes, is_report },
            });
        }
        let sent = self.gossip.take_sent();
        self.gate.extend(sent.into_iter().map(Said::Sent));
        if !self.has_heard && self.replicas.has_heard_nodes() {
            self.has_heard = true;
            self.gate.push(Said::HasHeard);
        }
        self.unsynced.append(self.shard.journal());
    }

    /// Messages of other nodes that its clock has reached by now.
    pub fn take_late(&mut self, us: u64) -> Vec<Arc<[u8]>> {
        let now = self.now(us);
        self.gossip.take_held(now)
    }

    /// By how much its stamps lead its wall clock.
    pub fn led_us(&self, us: u64) -> u64 {
        let wall = self.now(us).unix_us;
        self.replicas.stamp_us().saturating_sub(wall)
    }

    pub fn has_to_sync(&self) -> bool {
        !self.gate.is_empty() || !self.unsynced.is_empty()
    }

    /// When it has something to do, at the earliest now.
    pub fn wants(&self, us: u64) -> Option<u64> {
        let wake = self.replicas.wake_us(self.placement.gossip_us());
        let more = self.more.then_some(0);
        let late = self.gossip.holds().then_some(us + LATE_US);
        let gossip = self.gossip.wake_us();
        let all = wake.into_iter().chain(more).chain(late);
        let wake = all.chain(gossip).min();
        wake.map(|at| at.max(us + 1))
    }

    /// What was done is in the log: what waited for that can go. What is for other
    /// nodes goes into the streams to them.
    pub fn sync(&mut self) -> Vec<Said> {
        self.log.append(&mut self.unsynced);
        std::mem::take(&mut self.gate)
    }

    /// Makes this the cut of a snapshot.
    pub fn begin_snapshot(&mut self) {
        self.unsynced.append(self.shard.journal());
        self.log.append(&mut self.unsynced);
        self.shard.begin_snapshot();
        let mut saved = Vec::new();
        self.shard.horizons().encode(&mut saved);
        self.saving = Some((self.log.len(), saved));
    }

    pub fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// Writes the next part of the snapshot; returns whether it is complete.
    pub fn save_on(&mut self, bytes: usize) -> bool {
        let Some((_, saved)) = &mut self.saving else {
            return true;
        };
        !(self.shard.snapshot().is_running() && self.shard.snapshot_step(bytes, saved))
    }

    /// The snapshot takes the place of what was logged before it.
    pub fn adopt_snapshot(&mut self) {
        if let Some((before, saved)) = self.saving.take() {
            self.log.splice(..before, saved);
        }
    }

    /// Messages of one session are not sent in the next one.
    pub fn drop_sent(&mut self, node: u16) {
        let is_for = |said: &Said| matches!(said, Said::Sent(sent) if sent.node == node);
        self.gate.retain(|said| !is_for(said));
    }
}
