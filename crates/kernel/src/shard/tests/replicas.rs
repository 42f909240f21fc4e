//! Several shards as replicas of the same keys: random writes, deliveries in
//! any order and more than once, snapshots, restarts and forgetting. At every
//! instant each shows what a plain model of what it has heard says.

use crate::durable::effect::Effect;
use crate::shard::{ExpirySetting, Keyed, Keying, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_lattice::{Clock, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const REPLICAS: usize = 3;
const KEYS: u64 = 3;

#[derive(Debug)]
pub(super) struct All;

impl Keying for All {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: Tag::Register,
            is_shared: true,
        })
    }
}

/// What a replica has heard of a string: the last write, and what was added
/// to it, each addition with its dot.
#[derive(Clone, Debug, Default, PartialEq)]
struct Text {
    stamp: Stamp,
    value: Option<Vec<u8>>,
    deadline: u64,
    added: BTreeMap<Stamp, i64>,
}

impl Text {
    /// `horizon`: whoever sends less than a deletion up to there has forgotten it.
    fn merge(&mut self, other: &Text, horizon: u64) {
        let is_old = self.read().is_none() && self.stamp.time <= horizon;
        if other.stamp > self.stamp || is_old && other.stamp < self.stamp {
            self.clone_from(other);
        } else if other.stamp == self.stamp {
            self.added.extend(&other.added);
        }
    }

    fn expire(&mut self, now: Now) {
        if self.deadline > 0 && self.deadline <= now.unix_ms() {
            *self = Text {
                stamp: self.stamp.expired(),
                ..Text::default()
            };
        }
    }

    fn read(&self) -> Option<Vec<u8>> {
        if self.added.is_empty() {
            return self.value.clone();
        }
        let base = self.value.as_deref().unwrap_or(b"0");
        let base: i64 = std::str::from_utf8(base).ok()?.parse().ok()?;
        let sum = base + self.added.values().sum::<i64>();
        Some(sum.to_string().into_bytes())
    }
}

type Chunks = Vec<(Tag, Vec<u8>)>;

/// A state under way, as bytes and as the model has it.
#[derive(Clone)]
struct Sent {
    to: usize,
    key: Vec<u8>,
    chunks: Chunks,
    model: Text,
    /// When it was made, and up to when its sender had heard of everything.
    made: u64,
    heard: u64,
}

struct Replica {
    shard: Shard,
    clock: Clock,
    model: BTreeMap<Vec<u8>, Text>,
    /// As of a cut, and what was logged since.
    saved: Vec<u8>,
    logged: Vec<u8>,
    horizon: u64,
    /// Bytes logged before the last cut, and what there is of its snapshot.
    saving: Option<(usize, Vec<u8>)>,
}

impl Replica {
    fn new(number: usize) -> Self {
        let mut shard = Shard::new(number as u64);
        shard.set_keying(Some(Arc::new(All)));
        shard.set_journaling(true);
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
        self.shard.empty_journal();
    }

    /// What a start after a loss of power finds.
    fn load(&mut self, number: usize) {
        let mut shard = Shard::new(number as u64 + 7);
        for bytes in [&self.saved, &self.logged] {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let effect = Effect::decode(&mut rest).expect("an effect");
                shard.apply(&effect).expect("it can be done again");
            }
        }
        shard.set_keying(Some(Arc::new(All)));
        shard.set_journaling(true);
        shard.check();
        self.shard = shard;
        self.saving = None;
        self.horizon = 0;
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
        // Walks go by hashes, and these by seeds.
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
        for (name, text) in &mut self.model {
            let key = self.shard.key(name);
            if self
                .shard
                .show_replica(0, key, now, &mut |_, _| ())
                .is_none()
            {
                assert!(text.read().is_none() && text.stamp.time <= horizon);
                *text = Text::default();
            }
        }
        more
    }

    fn take_in(&mut self, name: &[u8], chunks: &[(Tag, Vec<u8>)], now: Now) {
        for (tag, chunk) in chunks {
            let key = self.shard.key(name);
            self.shard.merge(0, key, *tag, chunk, now).expect("a state");
        }
    }
}

struct World {
    replicas: Vec<Replica>,
    under_way: Vec<Sent>,
    us: u64,
    rng: Rng,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            replicas: (0..REPLICAS).map(Replica::new).collect(),
            under_way: Vec::new(),
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

    /// Up to when a replica has heard of everything.
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
        let (what, by) = (self.below(8), self.below(100) as i64 - 50);
        let long = if self.below(6) == 0 { 5000 } else { 3 };
        let (now, later) = (self.now(), self.us / 1000 + self.rng.below(40));
        let heard = self.heard(at);
        let replica = &mut self.replicas[at];
        let stamp = replica.clock.tick(now.unix_us);
        let text = replica.model.entry(name.clone()).or_default();
        text.expire(now);
        let shard = &mut replica.shard;
        let key = shard.key(&name);
        shard.begin_lattice(Writer { stamp });
        let set = |value: Vec<u8>, deadline| Text {
            stamp,
            value: Some(value),
            deadline,
            added: BTreeMap::new(),
        };
        match what {
            0 | 1 => {
                let digits = by.to_string().into_bytes();
                shard.set(0, key, NewValue::Copy(&digits), ExpirySetting::Clear, now);
                *text = set(digits, 0);
            }
            2 => {
                let value = vec![b'x'; long];
                shard.set(
                    0,
                    key,
                    NewValue::Copy(&value),
                    ExpirySetting::At(later),
                    now,
                );
                *text = set(value, later);
            }
            3 => {
                let removed = shard.remove(0, key, now);
                assert_eq!(removed, text.read().is_some());
                if removed {
                    *text = Text {
                        stamp,
                        ..Text::default()
                    };
                }
            }
            4 => {
                let there = shard.set_expire_at(0, key, Some(later), now);
                assert_eq!(there, text.read().is_some());
                if let Some(value) = text.read() {
                    *text = set(value, later);
                }
            }
            _ => match shard.increment(0, key, by, now) {
                Some(Ok(sum)) => {
                    text.added.insert(stamp, by);
                    assert_eq!(text.read(), Some(sum.to_string().into_bytes()));
                }
                Some(Err(_)) => assert!(text.value.as_ref().is_some_and(|v| v[0] == b'x')),
                None => panic!("the key is replicated"),
            },
        }
        let ended = shard.end_lattice().expect("it had begun");
        assert_eq!(ended.refused, None);
        replica.clock.observe(ended.next);
        replica.log();
        self.send(at, heard);
    }

    /// What a replica has changed goes to the others.
    fn send(&mut self, at: usize, heard: u64) {
        let now = self.now();
        let changes = std::mem::take(self.replicas[at].shard.changeset());
        for changed in changes.iter() {
            let name = changed.key.bytes.to_vec();
            let chunks = self.replicas[at].state(&name, now);
            let model = self.replicas[at].model[&name].clone();
            for to in (0..REPLICAS).filter(|&to| to != at) {
                let sent = Sent {
                    to,
                    key: name.clone(),
                    chunks: chunks.clone(),
                    model: model.clone(),
                    made: self.replicas[at].clock.last(),
                    heard,
                };
                for _ in 0..=self.rng.below(3) / 2 {
                    self.under_way.push(sent.clone());
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
        assert!(replica.shard.journal().is_empty(), "its writer logs it");
    }

    /// All snapshots begin at one instant.
    fn cut(&mut self) {
        for replica in &mut self.replicas {
            replica.log();
            replica.shard.begin_snapshot();
            let mut saved = Vec::new();
            // Part of it now, the rest after more writes.
            replica.shard.snapshot_step(200, &mut saved);
            replica.saving = Some((replica.logged.len(), saved));
        }
    }

    /// Snapshots under way are finished: what was before does not count.
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

    /// The power goes; then everybody tells everybody everything.
    fn restart(&mut self) {
        self.under_way.clear();
        let now = self.now();
        let mut model = BTreeMap::<Vec<u8>, Text>::new();
        for (number, replica) in self.replicas.iter_mut().enumerate() {
            replica.load(number);
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
            replica.model = model.clone();
        }
    }

    fn check(&mut self) {
        let now = self.now();
        for (number, replica) in self.replicas.iter_mut().enumerate() {
            replica.shard.check();
            for name in (0..KEYS).map(|n| vec![b'a' + n as u8]) {
                let key = replica.shard.key(&name);
                let seen = replica.shard.peek(0, key, now).expect("a string");
                let seen = seen.map(|value| value.bytes().to_vec());
                let text = replica.model.entry(name).or_default();
                text.expire(now);
                assert_eq!(seen, text.read(), "at {number}: {text:?}");
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
                let replica = &mut self.replicas[at];
                replica.shard.set_horizon(horizon);
                replica.horizon = replica.horizon.max(horizon);
                replica.forget(settled.unwrap_or(0), budget, now);
            }
        }
        self.check();
    }

    /// Everything arrives, and everybody forgets.
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
        let states: BTreeSet<_> = self.replicas.iter_mut().map(|r| r.states(now)).collect();
        assert_eq!(states.len(), 1, "they converge");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 400 }))]

    #[test]
    fn replicas_show_what_they_have_heard_and_converge(seed in any::<u64>(), steps in 1usize..400) {
        let mut world = World::new(seed);
        for _ in 0..steps {
            world.step();
        }
        world.quiet();
    }
}
