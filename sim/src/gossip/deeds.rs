//! The clients' operations at nodes, and whether their results are right.
//!
//! Every member is added once and every value written once. A client that removes
//! something has seen it, so it must not come back. Operations at a node that
//! was dropped may be lost, done and undone alike.

use super::plan::{Mode, Plan};
use super::seat::Seat;
use crate::engine::random::Random;
use rufous_base::Now;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::set::{self, Set};
use rufous_kernel::shard::strings;
use rufous_kernel::shard::{ExpirySetting, NewValue, Shard};
use std::collections::BTreeSet;

const SETS: [&str; 3] = ["ks1", "ks2", "ks3"];
const REGISTERS: [&str; 2] = ["kr1", "kr2"];
/// Of fields that are counted once.
const HASHES: [&str; 2] = ["kh1", "kh2"];
/// The first one is never removed.
const COUNTERS: [&str; 2] = ["kc", "kd"];
const DAY_MS: u64 = 86_400_000;

type Things = BTreeSet<u64>;

#[derive(Clone, Debug)]
enum Deed {
    Make(u64),
    Remove(Things),
    Count(u64),
    /// Removes a counter.
    Uncount,
    See(Things),
    /// Sets a deadline, which does not come, or removes it.
    Date,
}

#[derive(Clone, Debug)]
struct Event {
    /// Which life of which member it was done in, and by which worker.
    life: usize,
    member: usize,
    worker: usize,
    key: &'static str,
    deed: Deed,
    /// What was shown there before.
    seen: Things,
    replied: bool,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Deeds {
    events: Vec<Event>,
    made: u64,
    has_hashes: bool,
    has_deadlines: bool,
    /// Members that were dropped.
    dropped: BTreeSet<usize>,
    /// Where the round began, and what the removable counter was then.
    round: (usize, u64),
}

/// Where something is done.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub member: usize,
    pub life: usize,
    pub worker: usize,
    pub us: u64,
}

impl Deeds {
    pub fn new(plan: &Plan) -> Self {
        Self {
            has_hashes: plan.mode == Mode::Saved,
            has_deadlines: plan.has_deadlines(),
            ..Self::default()
        }
    }

    /// Of what a client of this worker wants next, which key.
    pub fn key(&self, random: &mut Random) -> &'static str {
        let all = SETS.into_iter().chain(REGISTERS).chain(COUNTERS);
        let hashes = HASHES.into_iter().filter(|_| self.has_hashes);
        let all: Vec<_> = all.chain(hashes).collect();
        all[random.index(all.len())]
    }

    /// Does something with a key, and answers the event's number.
    pub fn act(
        &mut self,
        seat: &mut Seat,
        place: Place,
        key: &'static str,
        random: &mut Random,
    ) -> usize {
        let us = place.us;
        let seen = see(seat, key, us);
        let is_counter = COUNTERS.contains(&key);
        let before = seen.clone();
        let deed = match random.below(6) {
            0 | 1 => Deed::See(seen),
            2 | 3 if self.has_deadline(key) => date(seat, key, us, random),
            2 if !is_counter => Deed::Remove(remove(seat, key, seen, us, random)),
            2 if key == COUNTERS[1] && random.chance(0.2) => {
                seat.write(us, |shard, now| {
                    let name = shard.key(key.as_bytes());
                    shard.remove(0, name, now);
                });
                Deed::Uncount
            }
            _ => self.make(seat, key, us, random),
        };
        self.events.push(Event {
            life: place.life,
            member: place.member,
            worker: place.worker,
            key,
            deed,
            seen: before,
            replied: false,
        });
        self.events.len() - 1
    }

    /// Whether a key is given deadlines, and is not removed: what is gone is not forgotten before a deadline that was set
    /// at the same time, and that does not come.
    fn has_deadline(&self, key: &str) -> bool {
        self.has_deadlines && (REGISTERS.contains(&key) || key == COUNTERS[0])
    }

    fn make(&mut self, seat: &mut Seat, key: &str, us: u64, random: &mut Random) -> Deed {
        self.made += 1;
        let (made, by) = (self.made, random.between(1, 9));
        let long = random.chance(0.02);
        seat.write(us, |shard, now| {
            let name = shard.key(key.as_bytes());
            if COUNTERS.contains(&key) {
                let sum = strings::increment(&mut shard.at(0, name, now), by as i64);
                assert!(matches!(sum, Some(Ok(_))), "it is a counter");
            } else if is_collection(key) {
                update(shard, key, now, &made.to_string(), true);
            } else {
                let mut text = made.to_string().into_bytes();
                if long {
                    // More than a piece.
                    text.push(b' ');
                    text.resize(300_000, b'x');
                }
                let value = NewValue::Copy(&text);
                shard.set(0, name, value, ExpirySetting::Clear, now);
            }
        });
        match COUNTERS.contains(&key) {
            true => Deed::Count(by),
            false => Deed::Make(made),
        }
    }

    pub fn tell(&self, event: usize) -> String {
        let Event { key, deed, .. } = &self.events[event];
        format!("{deed:?} at {key}")
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn reply(&mut self, event: usize) {
        self.events[event].replied = true;
    }

    /// What was done there may be lost from now on.
    pub fn drop_member(&mut self, member: usize) {
        self.dropped.insert(member);
    }

    /// When all is quiet, of the workers of all nodes.
    pub fn judge(&mut self, seats: &mut [&mut Seat], us: u64) -> Result<(), String> {
        self.nothing_came_back()?;
        for key in SETS.into_iter().chain(HASHES).chain(REGISTERS) {
            let shown = same(seats, key, |seat| see(seat, key, us))?;
            self.judge_things(key, &shown)?;
            same(seats, key, |seat| seat.deadline(us, key.as_bytes()))?;
        }
        for (at, key) in COUNTERS.into_iter().enumerate() {
            let text = same(seats, key, |seat| seat.text(us, key.as_bytes()))?;
            let text = text.unwrap_or_else(|| b"0".to_vec());
            let sum = String::from_utf8_lossy(&text).parse().unwrap_or(u64::MAX);
            self.judge_count((key, at == 1), sum)?;
        }
        Ok(())
    }

    /// One that is removed is judged where it was not, since the last quiet.
    fn judge_count(&mut self, (key, is_removed): (&str, bool), sum: u64) -> Result<(), String> {
        let (from, before) = match is_removed {
            true => self.round,
            false => (0, 0),
        };
        let since = &self.events[from..];
        let of_key = || since.iter().filter(|event| event.key == key);
        let by = |event: &Event| match event.deed {
            Deed::Count(by) => by,
            _ => 0,
        };
        let most = before + of_key().map(by).sum::<u64>();
        let stays = |event: &&Event| event.replied && !self.dropped.contains(&event.member);
        let is_removal = |(_, event): &(_, &Event)| matches!(event.deed, Deed::Uncount);
        let mut removals = of_key().enumerate().filter(is_removal);
        let least = match (removals.next(), removals.next()) {
            (None, _) => before + of_key().filter(stays).map(by).sum::<u64>(),
            // What was counted where the only removal was made has seen it.
            (Some((at, removal)), None) => {
                let place = |event: &Event| (event.member, event.worker);
                let later = of_key().skip(at).filter(stays);
                let later = later.filter(|event| place(event) == place(removal));
                later.map(by).sum::<u64>()
            }
            _ => 0,
        };
        if is_removed {
            self.round = (self.events.len(), sum);
        }
        match (least..=most).contains(&sum) {
            true => Ok(()),
            false => Err(format!("{key} is {sum}, not from {least} to {most}")),
        }
    }

    fn judge_things(&self, key: &str, shown: &Things) -> Result<(), String> {
        let (mut made, mut kept, mut touched, mut gone) =
            (Things::new(), Things::new(), Things::new(), Things::new());
        let mut replaced = Things::new();
        for event in self.events.iter().filter(|event| event.key == key) {
            let stays = event.replied && !self.dropped.contains(&event.member);
            match &event.deed {
                Deed::Make(thing) => {
                    made.insert(*thing);
                    kept.extend(stays.then_some(*thing));
                    replaced.extend(event.seen.iter().filter(|_| stays));
                }
                Deed::Remove(things) => {
                    touched.extend(things);
                    gone.extend(things.iter().filter(|_| stays));
                }
                Deed::Count(_) | Deed::Uncount | Deed::See(_) | Deed::Date => {}
            }
        }
        if let Some(thing) = shown.iter().find(|thing| !made.contains(thing)) {
            return Err(format!("{key} has {thing}, which nobody made"));
        }
        if let Some(thing) = shown.intersection(&gone).next() {
            return Err(format!("{key} has {thing} again, which was removed"));
        }
        let undone = shown.intersection(&replaced).next();
        if let Some(thing) = undone.filter(|_| !is_collection(key)) {
            let what = "which a write that was acknowledged had replaced";
            return Err(format!("{key} has {thing} again, {what}"));
        }
        let lost = kept.difference(&touched).find(|t| !shown.contains(t));
        match lost {
            Some(thing) if is_collection(key) => {
                Err(format!("{key} has lost {thing}, which nobody removed"))
            }
            Some(_) if touched.is_empty() && shown.is_empty() => {
                Err(format!("{key} has nothing, and nobody removed anything"))
            }
            _ => Ok(()),
        }
    }

    /// What was removed at a worker is not seen there any more.
    fn nothing_came_back(&self) -> Result<(), String> {
        let from = self.round.0.saturating_sub(200);
        for (number, event) in self.events.iter().enumerate().skip(from) {
            let Deed::See(seen) = &event.deed else {
                continue;
            };
            let here = |earlier: &&Event| {
                let stays = earlier.replied || earlier.life == event.life;
                let place = |of: &Event| (of.key, of.member, of.worker);
                place(earlier) == place(event) && stays
            };
            for earlier in self.events[..number].iter().filter(here) {
                if let Deed::Remove(gone) = &earlier.deed
                    && let Some(thing) = gone.intersection(seen).next()
                {
                    let Event { key, member, .. } = event;
                    return Err(format!("member {member} shows {thing} in {key} again"));
                }
            }
        }
        Ok(())
    }
}

/// Removes one member of those seen, or the key with all of them.
fn remove(seat: &mut Seat, key: &str, mut seen: Things, us: u64, random: &mut Random) -> Things {
    let whole = !is_collection(key) || random.chance(0.2);
    if !whole && !seen.is_empty() {
        let one = seen.iter().nth(random.index(seen.len())).copied();
        seen = one.into_iter().collect();
    }
    seat.write(us, |shard, now| {
        if whole {
            let name = shard.key(key.as_bytes());
            shard.remove(0, name, now);
            return;
        }
        for member in &seen {
            update(shard, key, now, &member.to_string(), false);
        }
    });
    seen
}

/// Sets a deadline long after the end of the run on what is shown, or removes the one that it has.
fn date(seat: &mut Seat, key: &str, us: u64, random: &mut Random) -> Deed {
    let after_ms = DAY_MS + random.below(DAY_MS);
    let is_set = random.chance(0.8);
    seat.write(us, |shard, now| {
        let name = shard.key(key.as_bytes());
        let deadline = is_set.then_some(now.unix_ms() + after_ms);
        shard.set_expire_at(0, name, deadline, now);
    });
    Deed::Date
}

/// What all workers that have a replica say.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(
    seats: &mut [&mut Seat],
    key: &str,
    mut ask: impl FnMut(&mut Seat) -> T,
) -> Result<T, String> {
    let mut first = None;
    for seat in seats {
        if !seat.has_replica(key.as_bytes()) {
            continue;
        }
        let said = ask(seat);
        match &first {
            None => first = Some((seat.replicas.replica(), said)),
            Some((_, expected)) if *expected == said => {}
            Some((at, expected)) => {
                let other = seat.replicas.replica();
                return Err(format!(
                    "after quiet {key} is {expected:?} at {at} and {said:?} at {other}"
                ));
            }
        }
    }
    first
        .map(|(_, said)| said)
        .ok_or_else(|| format!("nobody has {key}"))
}

/// Things of it are removed one by one, or all that are seen.
fn is_collection(key: &str) -> bool {
    SETS.contains(&key) || HASHES.contains(&key)
}

fn update(shard: &mut Shard, key: &str, now: Now, member: &str, add: bool) {
    let (name, member) = (shard.key(key.as_bytes()), member.as_bytes());
    if HASHES.contains(&key) {
        let field = member;
        let op = match add {
            true => hash::Op::Increment { field, by: 1 },
            false => hash::Op::Delete { field },
        };
        let done = shard.update::<Hash, _>(0, name, now, |editor| {
            editor.apply(&op);
        });
        return assert!(done.is_ok(), "it is a hash");
    }
    let op = match add {
        true => set::Op::Add { member },
        false => set::Op::Remove { member },
    };
    let done = shard.update::<Set, _>(0, name, now, |editor| editor.apply(&op));
    assert!(done.is_ok(), "it is a set");
}

/// The present elements.
fn see(seat: &mut Seat, key: &str, us: u64) -> Things {
    let number = |bytes: &[u8]| {
        let digits = bytes.split(|byte| *byte == b' ').next();
        String::from_utf8_lossy(digits.unwrap_or_default())
            .parse::<u64>()
            .ok()
    };
    if COUNTERS.contains(&key) || REGISTERS.contains(&key) {
        let text = seat.text(us, key.as_bytes());
        return text.iter().filter_map(|text| number(text)).collect();
    }
    let now = seat.now(us);
    let name = seat.shard.key(key.as_bytes());
    if HASHES.contains(&key) {
        let view = seat.shard.collection::<Hash>(0, name, now);
        let reply = view.map(|view| view.map(|view| Hash::execute(view, &hash::Op::All)));
        let Ok(Some(hash::Reply::Pairs(fields))) = reply else {
            return Things::new();
        };
        // What was counted twice is another thing.
        let counted = fields.iter().filter(|(_, sum)| *sum == b"1");
        return counted.filter_map(|(field, _)| number(field)).collect();
    }
    let view = seat.shard.collection::<Set>(0, name, now);
    let reply = view.map(|view| view.map(|view| Set::execute(view, &set::Op::Members)));
    match reply {
        Ok(Some(set::Reply::Members(members))) => {
            members.iter().filter_map(|member| number(member)).collect()
        }
        _ => Things::new(),
    }
}
