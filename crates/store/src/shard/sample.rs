//! Drawing records that might be evicted, and evicting them.
//!
//! A drawn record has no handle, since records move: it is found again by its hash and its access stamp, and not
//! found if it was accessed meanwhile.

use super::databases::Databases;
use super::db::Db;
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_base::rng::Rng;
use std::hint::black_box;

/// A record as it was when it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub db: u8,
    pub hash: u32,
    /// The access stamp, 24 bits; see [`super::Policy`].
    pub access: u32,
    /// Unix milliseconds.
    pub expire_at: Option<u64>,
}

/// How many records are drawn, and of which.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Only of those that expire.
    pub volatile: bool,
    pub count: usize,
}

/// The result of evicting a drawn record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    Evicted,
    /// It stays for now, as its removal has to leave a grave, here and at every other replica: its key, and its bytes.
    Replicated(Box<[u8]>, usize),
    /// It had expired and counts as that.
    Expired,
    /// It was removed or accessed since.
    Changed,
    /// The caller protects it.
    Kept,
}

/// The databases, for drawing from them.
#[derive(Clone, Copy, Debug)]
pub struct Draws<'a>(&'a [Db]);

impl<'a> Draws<'a> {
    pub(super) fn new(data: &'a Databases) -> Self {
        Self(&data.dbs)
    }
}

impl Draws<'_> {
    /// Draws at least so many records of clients and a few more at most, each with the same probability in whichever
    /// database it is, and adds those that are good.
    pub fn draw(
        &self,
        sample: Sample,
        rng: &mut Rng,
        is_good: &mut dyn FnMut(u8, &[u8]) -> bool,
        out: &mut Vec<Drawn>,
    ) {
        let Sample { volatile, count } = sample;
        let size = |db: &Db| match volatile {
            true => db.deadlines.pairs() as u64,
            false => db.len() as u64,
        };
        let sizes: [u64; DATABASES] = std::array::from_fn(|db| size(&self.0[db]));
        let total: u64 = sizes.iter().sum();
        let mut counts = [0; DATABASES];
        if let Some(only) = sizes.iter().position(|&size| size == total) {
            counts[only] = count.min(total as usize);
            let count = counts[only];
            return draw(&self.0[only], Sample { volatile, count }, rng, is_good, out);
        }
        for _ in 0..count.min(total as usize) {
            let mut at = rng.below(total);
            let in_it = |&size: &u64| {
                let hit = at < size;
                at = at.saturating_sub(size);
                hit
            };
            if let Some(db) = sizes.iter().position(in_it) {
                counts[db] += 1;
            }
        }
        for (number, count) in counts.into_iter().enumerate().filter(|c| c.1 > 0) {
            draw(
                &self.0[number],
                Sample { volatile, count },
                rng,
                is_good,
                out,
            );
        }
    }

    /// Warms the caches for the eviction of these records.
    pub fn warm(&self, drawn: impl Iterator<Item = Drawn> + Clone) {
        let db = |d: &Drawn| &self.0[usize::from(d.db)];
        let handle = |d: &Drawn| db(d).records.candidate(d.hash);
        // In a separate pass, so that the cache misses overlap.
        black_box(drawn.clone().fold(0, |all, d| all ^ handle(&d)));
        black_box(drawn.fold(0, |all, d| all ^ db(&d).records.warm(handle(&d))));
    }

    /// The record that expires next.
    pub fn soonest(&self) -> Option<Drawn> {
        let firsts = self.0[..DATABASES].iter().enumerate();
        let firsts = firsts.filter_map(|(number, db)| Some((db.deadlines.first()?, number)));
        let ((unix_ms, hash), number) = firsts.min()?;
        expiring_at(&self.0[number], unix_ms, hash)
    }

    /// Whether there are records of clients to draw from.
    pub fn can_draw(&self, volatile: bool) -> bool {
        let any = |db: &Db| match volatile {
            true => db.deadlines.len() > 0,
            false => db.len() > 0,
        };
        self.0[..DATABASES].iter().any(any)
    }
}

/// Evicts a drawn record, unless `keep` returns true for its key.
pub(super) fn evict(
    data: &mut Databases,
    drawn: Drawn,
    now: Now,
    keep: impl FnOnce(&[u8]) -> bool,
) -> Eviction {
    let (db, env) = (&mut data.dbs[usize::from(drawn.db)], &mut data.env);
    let is_it = |handle| {
        db.records.stamp(handle) == drawn.access && db.records.expiry(handle) == drawn.expire_at
    };
    let Some(found) = db.records.find_where(drawn.hash, is_it) else {
        return Eviction::Changed;
    };
    let handle = found.handle;
    if db.is_guest(handle, env) || keep(db.records.key(handle)) {
        return Eviction::Kept;
    }
    if drawn.expire_at.is_some() && db.is_due(handle, now.unix_ms(), env) {
        db.expire_one(found, drawn.hash, env);
        return Eviction::Expired;
    }
    if db.records.is_replicated(handle) {
        return Eviction::Replicated(db.records.key(handle).into(), db.memory_of(handle));
    }
    env.counters.changes += 1;
    if env.observers.any() {
        env.tell_removal(db, handle, drawn.hash);
    }
    db.remove(found, drawn.hash, &mut env.garbage);
    Eviction::Evicted
}

fn draw(
    db: &Db,
    Sample { volatile, count }: Sample,
    rng: &mut Rng,
    is_good: &mut dyn FnMut(u8, &[u8]) -> bool,
    out: &mut Vec<Drawn>,
) {
    let mut is_good = |handle| is_good(db.number, db.records.key(handle));
    if volatile {
        out.extend((0..count).filter_map(|_| {
            let (unix_ms, hash) = db.deadlines.random(rng)?;
            let found = expires_at(db, unix_ms, hash).filter(|handle| is_good(*handle))?;
            Some(drawn(db, hash, found))
        }));
        return;
    }
    let entries = db.records.draw(count, rng).into_iter();
    let good = entries.filter(|(_, handle)| is_good(*handle));
    out.extend(good.map(|(hash, handle)| drawn(db, hash, handle)));
}

fn expiring_at(db: &Db, unix_ms: u64, hash: u32) -> Option<Drawn> {
    let found = expires_at(db, unix_ms, hash)?;
    Some(drawn(db, hash, found))
}

fn expires_at(db: &Db, unix_ms: u64, hash: u32) -> Option<u32> {
    let is_it = |handle| db.records.expiry(handle) == Some(unix_ms);
    Some(db.records.find_where(hash, is_it)?.handle)
}

fn drawn(db: &Db, hash: u32, handle: u32) -> Drawn {
    Drawn {
        db: db.number,
        hash,
        access: db.records.stamp(handle),
        expire_at: db.records.expiry(handle),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ExpirySetting, NewValue, Shard};
    use super::*;
    use std::collections::BTreeMap;

    const NOW: Now = Now {
        mono_us: 7_000_000,
        unix_us: 1_000_000_000,
    };

    fn filled() -> Shard {
        let mut shard = Shard::new(1);
        // 900 keys in database 0, 100 in 5; every third expires.
        for i in 0..1000u64 {
            let db = if i % 10 == 0 { 5 } else { 0 };
            let name = i.to_le_bytes();
            let key = shard.key(&name);
            let expiry = match i % 3 {
                0 => ExpirySetting::At(2_000_000 + i),
                _ => ExpirySetting::Clear,
            };
            shard.set(db, key, NewValue::Copy(b"value"), expiry, NOW);
        }
        shard
    }

    #[test]
    fn records_of_all_databases_are_drawn_evenly() {
        let shard = filled();
        let mut rng = Rng::new(5);
        for (volatile, keys) in [(false, 1000), (true, 334)] {
            let mut drawn = Vec::new();
            shard.draws().draw(
                Sample { volatile, count: 5 },
                &mut rng,
                &mut |_, _| true,
                &mut drawn,
            );
            assert!(drawn.len() >= 5);
            let mut hits = BTreeMap::<(u8, u32), u32>::new();
            let mut all = 0;
            while all < keys * 100 {
                drawn.clear();
                shard.draws().draw(
                    Sample { volatile, count: 5 },
                    &mut rng,
                    &mut |_, _| true,
                    &mut drawn,
                );
                all += drawn.len();
                for d in &drawn {
                    assert!(!volatile || d.expire_at.is_some());
                    *hits.entry((d.db, d.hash)).or_default() += 1;
                }
            }
            assert_eq!(hits.len(), keys);
            assert!(hits.values().all(|&n| n > 20 && n < 200));
        }
    }

    #[test]
    fn only_what_is_as_it_was_drawn_is_evicted() {
        let mut shard = filled();
        let soonest = shard.draws().soonest().expect("some expire");
        assert_eq!(soonest.expire_at, Some(2_000_000));
        let name = 0u64.to_le_bytes();
        let key = shard.key(&name);
        assert_eq!(shard.evict(soonest, NOW, |k| k == name), Eviction::Kept);
        let later = Now {
            mono_us: 17_000_000,
            ..NOW
        };
        assert!(shard.get(5, key, later).expect("a string").is_some());
        assert_eq!(shard.evict(soonest, NOW, |_| false), Eviction::Changed);
        let again = shard.draws().soonest().expect("it still is the soonest");
        assert_ne!(again, soonest);
        assert_eq!(shard.evict(again, NOW, |_| false), Eviction::Evicted);
        assert!(!shard.contains(5, key, NOW));
        let next = shard.draws().soonest().expect("more expire");
        let after = Now {
            unix_us: 3_000_000_000,
            ..later
        };
        assert_eq!(shard.evict(next, after, |_| false), Eviction::Expired);
        assert_eq!(shard.counters().expired, 1);
        shard.check();
    }

    #[test]
    fn nothing_is_drawn_where_nothing_is() {
        let mut out = Vec::new();
        let shard = Shard::new(1);
        shard.draws().draw(
            Sample {
                volatile: false,
                count: 5,
            },
            &mut Rng::new(1),
            &mut |_, _| true,
            &mut out,
        );
        shard.draws().draw(
            Sample {
                volatile: true,
                count: 5,
            },
            &mut Rng::new(1),
            &mut |_, _| true,
            &mut out,
        );
        assert!(out.is_empty() && shard.draws().soonest().is_none());
        assert!(!shard.draws().can_draw(false) && !shard.draws().can_draw(true));
    }
}
