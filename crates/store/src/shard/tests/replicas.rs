//! Several shards as replicas of the same keys: random writes, deliveries in any order and more than once, snapshots,
//! restarts and forgetting. At every instant each shows what a plain model of the changes that it has received shows.

use crate::effect::Effect;
use crate::shard::{Held, Key, Keyed, Keying, Shard, bring_back};
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_lattice::{Clock, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

const REPLICAS: usize = 3;
const KEYS: u64 = 3;

#[derive(Debug)]
pub(in crate::shard) struct All;

/// All keys, with strings of this type.
#[derive(Debug)]
pub(super) struct Strings(pub(super) Tag);

impl Keying for Strings {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: self.0,
            is_shared: true,
        })
    }
}

impl Keying for All {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: Tag::Register,
            is_shared: true,
        })
    }
}

/// A plain model of what a replica has received of a key.
pub(super) trait Model: Clone + Debug + Default {
    /// The type of strings.
    const STRINGS: Tag = Tag::Register;

    /// A random write, checked; returns its delta for others.
    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self;
    /// `horizon`: a sender of less than a deletion up to there has forgotten it.
    fn merge(&mut self, other: &Self, horizon: u64);
    /// Time passes.
    fn expire(&mut self, now: Now);
    /// The replica has forgotten deletions up to this time.
    fn forget(&mut self, horizon: u64);
    fn shown(&self) -> String;
    /// Checks that the shard shows what this model shows.
    fn check(&self, shard: &mut Shard, key: Key<'_>, now: Now);
}

/// The writer, and the time.
pub(super) struct Write<'a> {
    pub(super) stamp: Stamp,
    pub(super) now: Now,
    pub(super) rng: &'a mut Rng,
}

type Chunks = Vec<(Tag, Vec<u8>)>;

/// A state in transit, as bytes and as the model has it.
#[derive(Clone)]
struct Sent<M> {
    to: usize,
    key: Vec<u8>,
    chunks: Chunks,
    model: M,
    /// When it was made, and up to when its sender had received everything.
    made: u64,
    heard: u64,
}

struct Replica<M> {
    shard: Shard,
    clock: Clock,
    model: BTreeMap<Vec<u8>, M>,
    /// The last snapshot, and what was logged since.
    saved: Vec<u8>,
    logged: Vec<u8>,
    horizon: u64,
    /// Bytes logged before the last cut, and the part of its snapshot so far.
    saving: Option<(usize, Vec<u8>)>,
}

impl<M: Model> Replica<M> {
    fn new(number: usize) -> Self {
        let mut shard = Shard::new(number as u64);
        shard
            .lattice_mut()
            .set_keying(Some(Arc::new(Strings(M::STRINGS))));
        shard.observers_mut().set_journaling(true);
        Self {
            shard,
            clock: Clock::new(number as u16),
            model: BTreeMap::new(),
            saved: Vec::new(),
            logged: Vec::new(),
            horizon: 0,
            saving: None,
        }
    }

    fn log(&mut self) {
        self.logged.append(self.shard.journal());
        self.shard.observers_mut().empty_journal();
    }

    /// The state that a startup finds after a power failure.
    fn load(&mut self, number: usize) -> Option<Box<Held>> {
        let mut shard = Shard::new(number as u64 + 7);
        shard.hold_counts(REPLICAS);
        for bytes in [&self.saved, &self.logged] {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let effect = Effect::decode(&mut rest).expect("an effect");
                shard.apply(&effect).expect("it can be done again");
            }
        }
        shard
            .lattice_mut()
            .set_keying(Some(Arc::new(Strings(M::STRINGS))));
        shard.observers_mut().set_journaling(true);
        shard.check();
        self.shard = shard;
        self.saving = None;
        self.horizon = 0;
        self.shard.take_held()
    }

    fn states(&mut self, now: Now) -> Vec<(Vec<u8>, Chunks)> {
        let mut names = Vec::new();
        self.shard
            .scan(0, 0, 1000, now, &mut |item| names.push(item.key.to_vec()));
        let (graves, _) = self.shard.graves(0, b"", 1000);
        names.extend(graves.iter().map(|key| key.to_vec()));
        let states = names.into_iter().map(|name| {
            let chunks = self.state(&name, now);
            (name, chunks)
        });
        let mut states: Vec<_> = states.collect();
        // Walks are in the order of hashes, which depend on seeds.
        states.sort();
        states
    }

    fn state(&mut self, name: &[u8], now: Now) -> Chunks {
        let mut chunks = Vec::new();
        let key = self.shard.key(name);
        self.shard.show_replica(0, key, now, &mut |tag, chunk| {
            chunks.push((tag, chunk.to_vec()))
        });
        chunks
    }

    fn forget(&mut self, horizon: u64, budget: usize, now: Now) -> bool {
        let more = self.shard.forget_step(horizon, budget);
        self.shard.tell_horizon();
        assert!(
            !self.shard.observers().journal_tells(),
            "nobody waits for it"
        );
        self.log();
        self.drop_forgotten(horizon, now);
        more
    }

    /// The model forgets what the shard has forgotten.
    fn drop_forgotten(&mut self, horizon: u64, now: Now) {
        for (name, model) in &mut self.model {
            let key = self.shard.key(name);
            if self
                .shard
                .show_replica(0, key, now, &mut |_, _| ())
                .is_none()
            {
                model.forget(horizon);
            }
        }
    }

    fn shown(&self) -> Vec<String> {
        let keys = (0..KEYS).map(|n| vec![b'a' + n as u8]);
        let shown = keys.map(|name| self.model.get(&name).cloned().unwrap_or_default().shown());
        shown.collect()
    }

    fn take_in(&mut self, name: &[u8], chunks: &[(Tag, Vec<u8>)], now: Now) {
        for (tag, chunk) in chunks {
            let key = self.shard.key(name);
            self.shard.merge(0, key, *tag, chunk, now).expect("a state");
        }
    }
}

pub(super) struct World<M> {
    replicas: Vec<Replica<M>>,
    under_way: Vec<Sent<M>>,
    /// The time up to which any replica has forgotten.
    forgotten: u64,
    us: u64,
    rng: Rng,
}

impl<M: Model> World<M> {
    fn new(seed: u64) -> Self {
        Self {
            replicas: (0..REPLICAS).map(Replica::new).collect(),
            under_way: Vec::new(),
            forgotten: 0,
            us: 1_000_000,
            rng: Rng::new(seed),
        }
    }

    fn now(&self) -> Now {
        Now {
            mono_us: self.us,
            unix_us: self.us,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    /// The time up to which a replica has received everything.
    fn heard(&self, at: usize) -> u64 {
        let to_come = self.under_way.iter().filter(|sent| sent.to == at);
        let first = to_come.map(|sent| sent.made - 1).min();
        first.unwrap_or(self.us << 12)
    }

    fn horizon(&self) -> u64 {
        let heard = (0..REPLICAS).map(|at| self.heard(at));
        heard
            .chain(self.under_way.iter().map(|sent| sent.heard))
            .min()
            .unwrap_or(0)
    }

    fn write(&mut self) {
        let at = self.below(REPLICAS as u64) as usize;
        let name = vec![b'a' + self.below(KEYS) as u8];
        let (now, heard) = (self.now(), self.heard(at));
        let replica = &mut self.replicas[at];
        let stamp = replica.clock.tick(now.unix_us);
        let model = replica.model.entry(name.clone()).or_default();
        model.expire(now);
        let key = replica.shard.key(&name);
        replica.shard.begin_lattice(Writer { stamp });
        let write = Write {
            stamp,
            now,
            rng: &mut self.rng,
        };
        let told = model.write(&mut replica.shard, key, write);
        let ended = replica.shard.end_lattice().expect("it had begun");
        assert_eq!(ended.refused, None);
        replica.clock.observe(ended.next);
        replica.log();
        self.send(at, heard, &told);
    }

    /// Sends a replica's changes to the others.
    fn send(&mut self, at: usize, heard: u64, told: &M) {
        let now = self.now();
        let changes = std::mem::take(self.replicas[at].shard.changeset());
        for changed in changes.iter() {
            let name = changed.key.bytes.to_vec();
            let replica = &mut self.replicas[at];
            // The operations, or occasionally the whole state.
            let (chunks, model) = match changed.delta {
                Some(delta) if self.rng.below(4) > 0 => {
                    let mut chunk = Vec::new();
                    assert_eq!(delta.chunk(0, usize::MAX, &mut chunk), None);
                    (vec![(delta.tag(), chunk)], told.clone())
                }
                _ => (replica.state(&name, now), replica.model[&name].clone()),
            };
            let sent = Sent {
                to: at,
                key: name,
                chunks,
                model,
                made: replica.clock.last(),
                heard,
            };
            for to in (0..REPLICAS).filter(|&to| to != at) {
                for _ in 0..=self.rng.below(3) / 2 {
                    self.under_way.push(Sent { to, ..sent.clone() });
                }
            }
        }
    }

    fn deliver(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let which = self.below(self.under_way.len() as u64) as usize;
        let sent = self.under_way.swap_remove(which);
        let now = self.now();
        let replica = &mut self.replicas[sent.to];
        replica.take_in(&sent.key, &sent.chunks, now);
        let text = replica.model.entry(sent.key).or_default();
        text.expire(now);
        text.merge(&sent.model, replica.horizon);
        replica.shard.tell_horizon();
        assert!(
            !replica.shard.observers().journal_tells(),
            "its writer logs it"
        );
        replica.log();
    }

    /// All snapshots begin at one instant.
    fn cut(&mut self) {
        for replica in &mut self.replicas {
            replica.log();
            replica.shard.begin_snapshot();
            let mut saved = Vec::new();
            replica.shard.horizons().encode(&mut saved);
            // Part of it now, the rest after more writes.
            replica.shard.snapshot_step(200, &mut saved);
            replica.saving = Some((replica.logged.len(), saved));
        }
    }

    /// Completes the snapshots under way: earlier logs do not count any more.
    fn save(&mut self) {
        for replica in &mut self.replicas {
            let Some((before, mut saved)) = replica.saving.take() else {
                continue;
            };
            let mut more = true;
            while more {
                let mut step = Vec::new();
                more = replica.shard.snapshot_step(200, &mut step);
                saved.append(&mut step);
            }
            replica.saved = saved;
            replica.logged.drain(..before);
        }
    }

    /// A power failure; then all replicas send their whole state to all others.
    fn restart(&mut self) {
        self.under_way.clear();
        let now = self.now();
        let mut model = BTreeMap::<Vec<u8>, M>::new();
        let mut files = Vec::new();
        for (number, replica) in self.replicas.iter_mut().enumerate() {
            files.extend(replica.load(number));
            for (name, text) in &mut replica.model {
                text.expire(now);
                model.entry(name.clone()).or_default().merge(text, 0);
            }
        }
        let states: Vec<_> = self.replicas.iter_mut().map(|r| r.states(now)).collect();
        for replica in &mut self.replicas {
            for (name, chunks) in states.iter().flatten() {
                replica.take_in(name, chunks, now);
            }
            bring_back(&mut replica.shard, &files, |_| true, now);
            for held in &files {
                replica.shard.horizons_mut().forget(held.horizon());
            }
            replica.shard.tell_horizon();
            replica.log();
            replica.model = model.clone();
            // A replica that had forgotten a key has noted that for all.
            replica.drop_forgotten(self.forgotten, now);
        }
    }

    fn check(&mut self) {
        let now = self.now();
        for replica in &mut self.replicas {
            replica.shard.check();
            for (name, model) in &mut replica.model {
                let key = replica.shard.key(name);
                model.expire(now);
                model.check(&mut replica.shard, key, now);
            }
        }
    }

    fn step(&mut self) {
        self.us += 1 + self.rng.below(3000);
        match self.below(20) {
            0..9 => self.write(),
            9..16 => self.deliver(),
            16 => self.cut(),
            17 => self.save(),
            18 if self.below(6) == 0 => self.restart(),
            _ => {
                let (horizon, at) = (self.horizon(), self.below(REPLICAS as u64) as usize);
                let (budget, now) = (1 + self.below(4) as usize, self.now());
                let settled = self.replicas.iter().map(|r| r.horizon).min();
                let settled = settled.unwrap_or(0);
                self.forgotten = self.forgotten.max(settled);
                let replica = &mut self.replicas[at];
                replica.shard.horizons_mut().raise(horizon);
                replica.horizon = replica.horizon.max(horizon);
                replica.forget(settled, budget, now);
            }
        }
        self.check();
    }

    /// Everything is delivered, and all replicas forget.
    fn quiet(&mut self) {
        while !self.under_way.is_empty() {
            self.deliver();
        }
        self.us += 1_000_000;
        self.check();
        let (horizon, now) = (self.horizon(), self.now());
        for replica in &mut self.replicas {
            while replica.forget(horizon, 2, now) {}
            assert_eq!(replica.shard.graves_len(), 0);
            assert_eq!(replica.shard.memory().grave_bytes, 0);
        }
        self.check();
        // Each shows what its model shows.
        let contents: BTreeSet<_> = self.replicas.iter().map(Replica::shown).collect();
        assert_eq!(contents.len(), 1, "they converge");
    }
}

/// Random steps, and then quiet.
pub(super) fn run<M: Model>(seed: u64, steps: usize) {
    let mut world = World::<M>::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world.quiet();
}
