//! Rufous in process: the shards, stamps, changesets and batches of workers, without connections and
//! commands. A thread is a worker; messages go from one to the other through a ring, as in a node.
//!
//! A worker writes a turn of requests together, and looks every few turns at the clock, and whether a
//! message has come or an epoch is over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use rtrb::{Consumer, Producer, RingBuffer};
use rufous_base::{Now, WorkerId};
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_kernel::placement::Placement;
use rufous_kernel::replicate::level::Level;
use rufous_kernel::replicate::replicas::{Outbox, Replicas, To};
use rufous_kernel::shard::Shard;
use rufous_lattice::Stamp;

use super::drive::{Client, Contestant, Reach, Split, thread_cpu_ns};
use super::requests::{Key, VALUE_BYTES, Values, key};

/// As many messages fit a ring between two workers of a node.
const RING: usize = 1024;
/// It looks around once in so many turns.
pub(crate) const LOOK: u64 = 8;
/// So many messages of each other worker are taken at a look: more than can come meanwhile.
const TAKEN: u64 = 2 * LOOK;
/// One in so many looks is timed.
pub(crate) const SAMPLED: u64 = 16;
/// One that takes longer was interrupted.
const INTERRUPTED_NS: f64 = 100_000.0;
pub(crate) const GOSSIP_MS: u32 = 100;

type Message = Arc<[u8]>;

/// A worker with its data.
pub(crate) struct Worker {
    own: WorkerId,
    pub(super) shard: Shard,
    pub(super) replicas: Replicas,
    placement: Placement,
    /// Keys have other replicas.
    pub(super) is_shared: bool,
    to: Vec<Option<Outgoing>>,
    from: Vec<Consumer<Message>>,
    outbox: Outbox,
    epoch: Instant,
    unix_us: u64,
    pub(super) values: Values,
    /// At the last look.
    seen: Now,
    turns: u64,
    split: Split,
    sampled: Sampled,
}

struct Outgoing {
    ring: Producer<Message>,
    overflow: VecDeque<Message>,
}

/// Of the looks that were timed.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    looks: f64,
    ns: f64,
}

/// Workers that have `threads` replicas of each key (0: all of them do), filled alike.
pub(crate) fn workers(keys: u64, workers: usize, threads: u16) -> Result<Vec<Worker>> {
    workers_at(Level::EVENTUAL, keys, workers, threads)
}

/// The same at any level.
pub(crate) fn workers_at(
    level: Level,
    keys: u64,
    workers: usize,
    threads: u16,
) -> Result<Vec<Worker>> {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        level,
        threads,
        gossip_ms: GOSSIP_MS,
        ..Keyspace::new("figures", b"")
    };
    let table = match Keyspaces::default().with(keyspace) {
        Ok(table) => Arc::new(table),
        Err(error) => anyhow::bail!("{error}"),
    };
    let mut all: Vec<Worker> = (0..workers)
        .map(|own| Worker::new(own, (workers, threads), &table))
        .collect();
    connect(&mut all);
    for worker in &mut all {
        worker.load(keys)?;
    }
    Ok(all)
}

fn connect(all: &mut [Worker]) {
    for from in 0..all.len() {
        for to in 0..all.len() {
            let outgoing = (from != to).then(|| {
                let (ring, end) = RingBuffer::new(RING);
                all[to].from.push(end);
                let overflow = VecDeque::new();
                Outgoing { ring, overflow }
            });
            all[from].to.push(outgoing);
        }
    }
}

/// The same as one of the stores that are compared.
pub(crate) fn contestant(name: &str, reach: Reach, workers: Vec<Worker>) -> Contestant {
    let client = |worker| -> Box<dyn Client> { Box::new(worker) };
    Contestant::new(name, reach, workers.into_iter().map(client).collect())
}

impl Worker {
    fn new(own: usize, (workers, threads): (usize, u16), table: &Arc<Keyspaces>) -> Self {
        let own = WorkerId(own as u16);
        let mut placement = Placement::new(workers).seen_by(own);
        placement.set_keyspaces(table);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            own,
            shard: Shard::new(u64::from(own.0)),
            replicas: Replicas::new(own, workers),
            is_shared: workers > 1 && threads != 1,
            placement,
            to: Vec::new(),
            from: Vec::new(),
            outbox: Outbox::new(),
            epoch: Instant::now(),
            unix_us: unix.map_or(0, |unix| unix.as_micros() as u64),
            values: Values::new(u64::from(own.0)),
            seen: Now::default(),
            turns: 0,
            split: Split::default(),
            sampled: Sampled::default(),
        }
    }

    /// Every replica starts from the same state.
    fn load(&mut self, keys: u64) -> Result<()> {
        let (now, mut values) = (self.now(), Values::new(0));
        for n in 0..keys {
            let (name, value) = (key(n), values.take());
            let stamp = Stamp {
                time: n + 1,
                ..Stamp::ZERO
            };
            if self.placement.owners(&name).any(|owner| owner == self.own) {
                let key = self.shard.key(&name);
                self.shard.put_register(0, key, (stamp, true), value, now);
                while self.shard.maintain_step(64) {}
            }
        }
        self.shard.changeset().clear();
        self.seen = now;
        let workers = self.placement.workers();
        let probe = key(keys / 2);
        if self.placement.owners(&probe).any(|owner| owner == self.own) {
            let key = self.shard.key(&probe);
            let held = self.shard.get(0, key, now);
            let held = held.ok().flatten().map(|value| value.bytes().len());
            ensure!(held == Some(VALUE_BYTES), "{held:?} of {workers}");
        }
        Ok(())
    }

    #[inline]
    pub(super) fn now(&self) -> Now {
        let mono_us = self.epoch.elapsed().as_micros() as u64;
        Now {
            mono_us,
            unix_us: self.unix_us + mono_us,
        }
    }

    #[inline]
    fn write(&mut self, keys: &[Key], now: Now) {
        let first = self.replicas.stamps(now, keys.len());
        let values = self.values.take_some(keys.len());
        let value = |nth| &values(nth)[..];
        self.shard
            .put_turn(0, keys, value, (first, self.is_shared), now);
        self.replicas.wrote(now, self.shard.changeset());
    }

    /// Messages that have come, and the epoch, if it is over. What happens here happens seldom.
    #[inline]
    pub(super) fn attend(&mut self, now: Now) {
        if self.from.iter().any(|ring| !ring.is_empty()) {
            self.merge(now);
        }
        let due = self.replicas.wake_us(self.placement.gossip_us());
        if due.is_some_and(|at| at <= now.mono_us) {
            self.multicast(now);
        }
    }

    #[cold]
    fn merge(&mut self, now: Now) {
        let (began, before) = (thread_cpu_ns(), self.replicas.figures().merged_items);
        for ring in &mut self.from {
            for _ in 0..TAKEN {
                let Ok(bytes) = ring.pop() else { break };
                let done = self
                    .replicas
                    .receive(now, (&mut self.shard, &self.placement), bytes);
                assert!(done.is_ok(), "a batch of our own");
            }
        }
        drop(self.shard.take_garbage());
        let merged = self.replicas.figures().merged_items - before;
        self.split.merged_keys += merged as f64;
        self.split.merge_ns += thread_cpu_ns() - began;
    }

    #[cold]
    fn multicast(&mut self, now: Now) {
        let (began, before) = (thread_cpu_ns(), self.replicas.figures());
        let (period, state) = (
            self.placement.gossip_us(),
            (&mut self.shard, &self.placement),
        );
        self.replicas
            .poll(now, period, state, &|_, _| false, &mut self.outbox);
        for (to, message) in self.outbox.drain(..) {
            if let To::Worker(to) = to
                && let Some(out) = &mut self.to[to.index()]
            {
                out.overflow.push_back(message);
            }
        }
        for out in self.to.iter_mut().flatten() {
            while out.ring.slots() > 0
                && let Some(message) = out.overflow.pop_front()
            {
                let pushed = out.ring.push(message).is_ok();
                assert!(pushed, "this end alone fills the ring");
            }
        }
        let figures = self.replicas.figures();
        self.split.updates += (figures.updates - before.updates) as f64;
        self.split.sent_keys += (figures.sent_keys - before.sent_keys) as f64;
        self.split.sent_messages += (figures.sent_messages - before.sent_messages) as f64;
        self.split.multicast_ns += thread_cpu_ns() - began;
    }

    /// Looks around, and how long that takes.
    #[cold]
    fn sampled_look(&mut self) {
        // Only one of the readings below is what any look does.
        let reading = Instant::now().elapsed();
        let began = Instant::now();
        let now = self.now();
        let idle = self.from.iter().all(|ring| ring.is_empty());
        let due = self.replicas.wake_us(self.placement.gossip_us());
        let spent = began.elapsed().saturating_sub(reading).as_nanos() as f64;
        if idle && spent < INTERRUPTED_NS {
            std::hint::black_box(due);
            self.sampled.looks += 1.0;
            self.sampled.ns += spent;
        }
        self.seen = now;
        self.attend(now);
    }

    /// Takes messages and sends what there is, until nothing is left; true where it did anything.
    fn settle(&mut self) -> bool {
        let mut now = self.now();
        // All that waits for a time is due.
        now.mono_us += 10_000_000;
        let before = self.replicas.figures();
        self.merge(now);
        self.multicast(now);
        let after = self.replicas.figures();
        let left = self.from.iter().any(|ring| !ring.is_empty());
        left || !self.shard.changeset().is_empty() || after.sent_messages > before.sent_messages
    }
}

impl Client for Worker {
    fn update(&mut self, keys: &[Key]) {
        self.write(keys, self.seen);
        self.turns += 1;
        if self.turns.is_multiple_of(LOOK * SAMPLED) {
            self.sampled_look();
        } else if self.turns.is_multiple_of(LOOK) {
            self.seen = self.now();
            self.attend(self.seen);
        }
    }

    fn split(&self) -> Split {
        let per_look = self.sampled.ns / self.sampled.looks.max(1.0);
        Split {
            other_ns: per_look * (self.turns / LOOK) as f64,
            ..self.split
        }
    }

    fn worker(&mut self) -> Option<&mut Worker> {
        Some(self)
    }
}

/// Lets all workers send and merge until there is nothing more, and compares what they hold.
pub(crate) fn converge(all: &mut [&mut Worker], keys: u64) -> Result<()> {
    let mut rounds = 0;
    loop {
        let busy = all.iter_mut().map(|worker| worker.settle());
        let busy = busy.filter(|&busy| busy);
        if busy.count() == 0 {
            break;
        }
        rounds += 1;
        ensure!(rounds < 100_000, "replicas do not come to rest");
    }
    for n in 0..keys {
        let name = key(n);
        let mut values = all.iter_mut().map(|worker| {
            let (key, now) = (worker.shard.key(&name), worker.now());
            let held = worker.shard.get(0, key, now).ok().flatten();
            held.map(|value| value.bytes().to_vec())
        });
        let first = values.next();
        ensure!(
            values.all(|value| Some(value) == first),
            "replicas of {n} differ"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::TURN;
    use crate::requests::Popularity;
    use rufous_base::rng::Rng;

    const KEYS: u64 = 500;

    fn run(all: &mut [Worker], turns: usize) {
        let popularity = Popularity::new(KEYS, 0.5);
        for turn in 0..turns {
            for worker in all.iter_mut() {
                let requests = popularity.requests(TURN, &mut Rng::new(turn as u64));
                worker.update(&requests);
            }
        }
    }

    #[test]
    fn replicas_hold_the_same_in_the_end() {
        let mut all = workers(KEYS, 2, 0).unwrap();
        run(&mut all, 300);
        converge(&mut all.iter_mut().collect::<Vec<_>>(), KEYS).unwrap();
        let split = all[0].split().plus(&all[1].split());
        assert_eq!(split.updates, 2.0 * 300.0 * TURN as f64);
        assert!(split.sent_keys >= KEYS as f64 && split.merged_keys == split.sent_keys);
    }

    #[test]
    fn one_that_hears_nothing_is_found() {
        let mut all = workers(KEYS, 2, 0).unwrap();
        run(&mut all[..1], 3);
        all[0].shard.changeset().clear();
        assert!(converge(&mut all.iter_mut().collect::<Vec<_>>(), KEYS).is_err());
    }
}
