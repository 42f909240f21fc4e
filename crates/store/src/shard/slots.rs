//! The keys of single slots: copied in parts while commands run, dropped, and listed.
//!
//! The index has no order by slot. So while any slot has to be copied or dropped, a single walk goes round over all
//! keys, in the order of databases and hashes, and serves all such slots together: a slot takes part from the
//! position of the walk at its start until the walk reaches that position again. A call examines no more records than
//! it is allowed.
//!
//! The result of a copy is effects. Applied in order to an empty slot, they give the contents that the slot has when
//! [`Slots::copy`] returns that there is no more:
//! 1. A key that the walk reaches is put whole.
//! 2. Every change of the slot meanwhile must be reported ([`Slots::note`]) before the next part is taken.
//!    An effect on a key that was put follows it; one on a key that the walk has not reached is omitted.
//! 3. A large value is put in chunks, as it was when the walk reached it. Effects on it wait until it is complete.
//! 4. A key that received the value of a key that was not put is put whole, if the walk does not reach it any
//!    more; so is a key changed by an effect that is too large for a part.
//!
//! Keys of lattice keyspaces reach other nodes by gossip, and are omitted. Databases must not be flushed or swapped
//! meanwhile.

mod copy;

use super::beside::Outside;
use super::databases::Databases;
use super::garbage::GarbageList;
use super::observers::PUT_CHUNK;
use crate::effect::Effect;
use copy::{Copy, Large};
use rufous_base::limits::ALL_DATABASES;
use rufous_base::slot::slot_of;
use std::collections::BTreeMap;

/// A part ends with the effect that makes it this long.
const PART: usize = PUT_CHUNK;

/// A longer effect is not put into a part.
const LARGE: usize = 4 * PART;

/// While this many bytes wait to be taken, the walk pauses.
const BACKLOG: usize = 16 << 20;

/// Records that are examined together.
const BATCH: usize = 64;

/// The length of one round of the walk.
const ROUND: u64 = (ALL_DATABASES as u64) << 32;

/// The slots that the walk serves, and its position: rounds, database, hash.
#[derive(Debug, Default)]
pub(super) struct Slots {
    walked: u64,
    jobs: BTreeMap<u16, Job>,
    /// Bytes in all parts that wait to be taken.
    backlog: usize,
}

/// The work on a slot, and the position of the walk at its start.
#[derive(Debug)]
struct Job {
    began: u64,
    /// `None` if the slot is dropped.
    copy: Option<Copy>,
}

/// How much of a key the receiver of a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Nothing; the walk will reach the key.
    Not,
    /// A part, or an earlier state.
    Partly,
    Wholly,
}

impl Job {
    /// Whether the walk has passed this place since the job began.
    fn is_past(&self, place: u64, walked: u64) -> bool {
        let away = (place + ROUND - self.began % ROUND) % ROUND;
        self.began + away < walked
    }

    fn is_through(&self, walked: u64) -> bool {
        walked >= self.began + ROUND
    }
}

fn place(db: usize, hash: u32) -> u64 {
    (db as u64) << 32 | u64::from(hash)
}

/// The slot of all keys of an effect, if they are of one slot, so that the effect can be applied to the slot alone.
pub fn slot_of_effect(effect: &Effect<'_>) -> Option<u16> {
    let mut slots = effect.keys().map(|(_, key)| slot_of(key));
    let first = slots.next()?;
    slots.all(|slot| slot == first).then_some(first)
}

/// Whether an effect is on strict keys of a slot alone.
pub(super) fn is_on_slot(effect: &Effect<'_>, slot: u16) -> bool {
    let tag = match effect {
        Effect::Put { tag, .. } | Effect::More { tag, .. } | Effect::Update { tag, .. } => {
            Some(*tag)
        }
        _ => None,
    };
    let is_lattice = tag.is_some_and(|tag| tag.is_replicated());
    slot_of_effect(effect) == Some(slot) && !is_lattice
}

fn throw(value: Large, garbage: &mut GarbageList) {
    garbage.throw(match value {
        Large::Object(object) => Outside::Object(object),
        Large::String(whole) => Outside::Big(whole),
    });
}

impl Slots {
    #[cfg(test)]
    pub(super) fn backlog(&self) -> usize {
        self.backlog
    }

    /// Starts a copy of a slot, for [`Slots::copy`]; restarts it if the slot is being copied already.
    pub(super) fn begin_copy(&mut self, slot: u16, garbage: &mut GarbageList) {
        self.begin_job(slot, Some(Copy::default()), garbage);
    }

    /// Whether any slot is being copied or dropped.
    pub(super) fn are_walked(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Ends a copy; what is left of it is discarded.
    pub(super) fn end_copy(&mut self, slot: u16, garbage: &mut GarbageList) {
        let copies = |job: &Job| job.copy.is_some();
        if self.jobs.get(&slot).is_some_and(copies) {
            self.end_job(slot, garbage);
        }
    }

    fn begin_job(&mut self, slot: u16, copy: Option<Copy>, garbage: &mut GarbageList) {
        self.end_job(slot, garbage);
        let began = self.walked;
        self.jobs.insert(slot, Job { began, copy });
    }

    fn end_job(&mut self, slot: u16, garbage: &mut GarbageList) {
        let Some(Job { copy, .. }) = self.jobs.remove(&slot) else {
            return;
        };
        for rest in copy.iter().flat_map(|copy| &copy.parts) {
            self.backlog -= rest.len();
        }
        for rest in copy.into_iter().flat_map(|copy| copy.rests) {
            throw(rest.value, garbage);
        }
    }

    /// The next part of a copy: effects, at most a few times 64 KiB of them. It is empty if `looks`, which is reduced
    /// by the number of examined records, is used up. `None` at the end of the copy.
    pub(super) fn copy(
        &mut self,
        slot: u16,
        looks: &mut usize,
        data: &mut Databases,
    ) -> Option<Vec<u8>> {
        loop {
            let walked = self.walked;
            let backlog = &mut self.backlog;
            let job = self.jobs.get_mut(&slot)?;
            let is_through = job.is_through(walked);
            let copy = job.copy.as_mut()?;
            let is_full = copy.parts.front().is_some_and(|part| part.len() >= PART);
            let is_resting = *looks == 0 || *backlog >= BACKLOG;
            if !is_full && !copy.rests.is_empty() {
                let whole = copy.write_on(backlog);
                whole
                    .into_iter()
                    .for_each(|it| throw(it, &mut data.env.garbage));
            } else if !is_full && let Some((db, key)) = copy.again.pop_first() {
                self.put_again(slot, (db, &key), data);
            } else if is_full || is_through || is_resting {
                let Some(part) = copy.parts.pop_front() else {
                    if is_through {
                        self.end_job(slot, &mut data.env.garbage);
                        return None;
                    }
                    return Some(Vec::new());
                };
                *backlog -= part.len();
                return Some(part);
            } else {
                self.walk(looks, data);
            }
        }
    }

    fn put_again(&mut self, slot: u16, (db, bytes): (u8, &[u8]), data: &Databases) {
        let key = data.key(bytes);
        let at = &data.dbs[usize::from(db)];
        let job = self.jobs.get_mut(&slot);
        let Some(copy) = job.and_then(|job| job.copy.as_mut()) else {
            return;
        };
        match at.records.find(key) {
            Some(found) => {
                let item = at.records.item(found.handle);
                copy.put(db, &item, &mut self.backlog);
            }
            None => copy.say(&Effect::Delete { db, key: bytes }, &mut self.backlog),
        }
    }

    /// Drops keys of a slot, as many as are found among `looks` records, which is reduced. Returns true when none is
    /// left. Keys added meanwhile may be dropped as well.
    pub(super) fn clear(&mut self, slot: u16, looks: &mut usize, data: &mut Databases) -> bool {
        let drops = |job: &Job| job.copy.is_none();
        if !self.jobs.get(&slot).is_some_and(drops) {
            self.begin_job(slot, None, &mut data.env.garbage);
        }
        loop {
            let job = self.jobs.get(&slot);
            if job.is_none_or(|job| job.is_through(self.walked)) {
                self.end_job(slot, &mut data.env.garbage);
                return true;
            }
            if *looks == 0 {
                return false;
            }
            self.walk(looks, data);
        }
    }

    /// Examines the next few records.
    fn walk(&mut self, looks: &mut usize, data: &mut Databases) {
        let at = self.walked % ROUND;
        let (number, from) = ((at >> 32) as usize, at as u32);
        let next_db = self.walked - at + place(number + 1, 0);
        let db = &data.dbs[number];
        if db.len() == 0 {
            self.walked = next_db;
            return;
        }
        let mut entries = std::mem::take(&mut data.env.entries);
        let count = (*looks).clamp(1, BATCH);
        let next = db.records.collect(from, count, &mut entries);
        *looks = looks.saturating_sub(entries.len().max(BATCH / 4));
        db.records.warm_all(&entries);
        for &(hash, handle) in &entries {
            self.visit(number, hash, handle, data);
        }
        data.env.entries = entries;
        self.walked = match next {
            Some(hash) => self.walked - at + place(number, hash),
            None => next_db,
        };
    }

    fn visit(&mut self, number: usize, hash: u32, handle: u32, data: &mut Databases) {
        let (db, env) = (&mut data.dbs[number], &mut data.env);
        let item = db.records.item(handle);
        let Some(job) = self.jobs.get_mut(&slot_of(item.key)) else {
            return;
        };
        let is_lattice = item.value.tag().is_some_and(|tag| tag.is_replicated());
        if is_lattice || job.is_past(place(number, hash), self.walked) {
            return;
        }
        if let Some(copy) = &mut job.copy {
            return copy.put(number as u8, &item, &mut self.backlog);
        }
        let Some(found) = db.records.find_where(hash, |other| other == handle) else {
            return;
        };
        env.counters.changes += 1;
        if env.observers.any() {
            env.tell_removal(db, handle, hash);
        }
        db.remove(found, hash, &mut env.garbage);
    }

    /// Reports an effect on a slot that is being copied, after it was applied.
    pub(super) fn note(&mut self, slot: u16, bytes: &[u8], data: &mut Databases) {
        let mut rest = bytes;
        while !rest.is_empty() && self.jobs.contains_key(&slot) {
            let before = rest;
            let Ok(effect) = Effect::decode(&mut rest) else {
                debug_assert!(false, "effects come from a journal");
                return;
            };
            let one = &before[..before.len() - rest.len()];
            self.note_effect(slot, (&effect, one), data);
        }
    }

    fn note_effect(
        &mut self,
        slot: u16,
        (effect, bytes): (&Effect<'_>, &[u8]),
        data: &mut Databases,
    ) {
        let mut keys = effect.keys();
        let (first, second) = (keys.next(), keys.next());
        let Some(first) = first else { return };
        let known = self.knows(slot, first, data);
        let target = second.map(|second| (second, self.knows(slot, second, data)));
        let garbage = &mut data.env.garbage;
        let backlog = &mut self.backlog;
        let job = self.jobs.get_mut(&slot);
        let Some(copy) = job.and_then(|job| job.copy.as_mut()) else {
            return;
        };
        let Some((second, of_target)) = target else {
            let waits = copy.rest_of(first);
            match known {
                Known::Not => {}
                Known::Wholly if bytes.len() <= LARGE => copy.push(bytes, backlog),
                Known::Partly if bytes.len() <= LARGE && waits.is_some() => {
                    let rest = waits.and_then(|at| copy.rests.get_mut(at));
                    rest.into_iter()
                        .for_each(|rest| rest.later.push(bytes.into()));
                }
                Known::Partly | Known::Wholly => self.forget_rest(slot, first, true, garbage),
            }
            return;
        };
        if known == Known::Wholly && of_target != Known::Not {
            copy.push(bytes, backlog);
            copy.again.remove(&(second.0, Box::from(second.1)));
            return self.forget_rest(slot, second, false, garbage);
        }
        // For the receiver, a key that the walk has not reached did not exist before.
        if matches!(effect, Effect::Move { .. }) && known != Known::Not {
            self.forget_rest(slot, first, true, garbage);
        }
        if of_target != Known::Not {
            self.forget_rest(slot, second, true, garbage);
        }
    }

    /// Stops sending the chunks of a large value; `again`: the whole key is to be put again.
    fn forget_rest(
        &mut self,
        slot: u16,
        name: (u8, &[u8]),
        again: bool,
        garbage: &mut GarbageList,
    ) {
        let job = self.jobs.get_mut(&slot);
        let Some(copy) = job.and_then(|job| job.copy.as_mut()) else {
            return;
        };
        if again {
            copy.again.insert((name.0, name.1.into()));
        }
        if let Some(at) = copy.rest_of(name) {
            let rest = copy.rests.swap_remove(at);
            throw(rest.value, garbage);
        }
    }

    /// How much of a key the receiver of the copy has.
    fn knows(&self, slot: u16, (db, bytes): (u8, &[u8]), data: &Databases) -> Known {
        let Some(job) = self.jobs.get(&slot) else {
            return Known::Not;
        };
        let Some(copy) = &job.copy else {
            return Known::Not;
        };
        let place = place(usize::from(db), data.key(bytes).hash);
        if copy.rest_of((db, bytes)).is_some() || copy.again.contains(&(db, Box::from(bytes))) {
            return Known::Partly;
        }
        match job.is_past(place, self.walked) {
            true => Known::Wholly,
            false => Known::Not,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::types::{ExpirySetting, NewValue};
    use rufous_base::Now;

    const NOW: Now = Now {
        mono_us: 0,
        unix_us: 1_000_000,
    };

    fn put(data: &mut Databases, name: &[u8], value: &[u8]) -> Vec<u8> {
        let key = data.key(name);
        let (setting, env) = (ExpirySetting::Clear, &mut data.env);
        data.dbs[0].set(key, NewValue::Copy(value), setting, NOW, env);
        let mut bytes = Vec::new();
        Effect::Set {
            db: 0,
            key: name,
            value,
            expire_at: None,
        }
        .encode(&mut bytes);
        bytes
    }

    /// The names of the keys that all parts put, up to the end.
    fn rest(slots: &mut Slots, slot: u16, data: &mut Databases) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        while let Some(part) = slots.copy(slot, &mut 1000, data) {
            let mut part = &part[..];
            while !part.is_empty() {
                let effect = Effect::decode(&mut part).expect("an effect");
                names.extend(effect.keys().map(|(_, key)| key.to_vec()));
            }
        }
        names
    }

    #[test]
    fn a_copy_has_the_keys_of_its_slot_and_what_happens_to_them() {
        let (mut slots, mut data) = (Slots::default(), Databases::new(1));
        let slot = slot_of(b"{a}");
        for name in [&b"{a}1"[..], b"{b}1", b"{a}2"] {
            put(&mut data, name, b"value");
        }
        assert!(slots.copy(slot, &mut 1000, &mut data).is_none());
        slots.begin_copy(slot, &mut data.env.garbage);
        assert!(slots.are_walked());
        let part = slots.copy(slot, &mut 0, &mut data);
        assert_eq!(part, Some(Vec::new()), "nothing may be examined");
        // The walk has not reached the key, and will put it as it is.
        let early = put(&mut data, b"{a}1", b"again");
        slots.note(slot, &early, &mut data);
        assert_eq!(slots.backlog(), 0);
        let mut names = rest(&mut slots, slot, &mut data);
        names.sort();
        assert_eq!(names, [b"{a}1", b"{a}2"]);
        assert!(!slots.are_walked());
    }

    #[test]
    fn a_slot_is_dropped_within_the_budget() {
        let (mut slots, mut data) = (Slots::default(), Databases::new(1));
        for n in 0..300 {
            put(&mut data, format!("{{a}}{n}").as_bytes(), b"value");
            put(&mut data, format!("{{b}}{n}").as_bytes(), b"value");
        }
        let slot = slot_of(b"{a}");
        let mut steps = 0;
        while !slots.clear(slot, &mut 100, &mut data) {
            steps += 1;
        }
        assert!(steps >= 5 && !slots.are_walked());
        let left = data.dbs[0].records.handles();
        let left: Vec<_> = left.map(|handle| data.dbs[0].records.key(handle)).collect();
        assert_eq!(left.len(), 300);
        assert!(left.iter().all(|key| key.starts_with(b"{b}")));
        data.check();
    }

    #[test]
    fn an_ended_copy_leaves_nothing() {
        let (mut slots, mut data) = (Slots::default(), Databases::new(1));
        put(&mut data, b"{a}1", &[7; 300_000]);
        let slot = slot_of(b"{a}");
        slots.begin_copy(slot, &mut data.env.garbage);
        let part = slots.copy(slot, &mut 1000, &mut data).expect("a part");
        assert!(!part.is_empty());
        slots.end_copy(slot, &mut data.env.garbage);
        assert_eq!((slots.backlog(), slots.are_walked()), (0, false));
        assert!(slots.copy(slot, &mut 1000, &mut data).is_none());
    }
}
