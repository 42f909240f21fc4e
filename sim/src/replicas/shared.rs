//! Sets, hashes of counts, counters and registers that are deleted: no level, but nothing
//! acknowledged is lost, nothing deleted comes back, and tombstones are forgotten.
//!
//! Every member is added once, every field counted once and every value written once. A client that
//! removes something has seen it, so it must not come back, at that node at once and
//! everywhere in the end.

use super::node::Node;
use crate::engine::random::Random;
use rufous_base::Now;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::set::{self, Set};
use rufous_kernel::shard::{ExpirySetting, NewValue, Shard};
use std::collections::BTreeSet;

const SETS: [&str; 2] = ["ks1", "ks2"];
const HASHES: [&str; 2] = ["kh1", "kh2"];
const REGISTERS: [&str; 2] = ["kr1", "kr2"];
const COUNTER: &str = "kc";
const KEYS: [&str; 7] = [
    SETS[0],
    SETS[1],
    HASHES[0],
    HASHES[1],
    REGISTERS[0],
    REGISTERS[1],
    COUNTER,
];

/// Members and values, by their numbers.
type Things = BTreeSet<u64>;

#[derive(Clone, Debug)]
enum Deed {
    Make(u64),
    /// Those that were there and were removed.
    Remove(Things),
    Count(u64),
    See(Things),
}

#[derive(Clone, Debug)]
struct Event {
    session: usize,
    /// How many crashes there had been.
    life: u64,
    at: usize,
    key: &'static str,
    deed: Deed,
    replied: bool,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    events: Vec<Event>,
    made: u64,
}

impl Shared {
    /// Does something at the node that has a replica of a key; answers which
    /// node that is, and the event's number.
    pub(super) fn act(
        &mut self,
        nodes: &mut [Node],
        home: usize,
        owner: impl Fn(&Node, &[u8]) -> usize,
        (session, life, us): (usize, u64, u64),
        random: &mut Random,
    ) -> (usize, usize) {
        let key = *random.pick(&KEYS);
        let at = owner(&nodes[home], key.as_bytes());
        let node = &mut nodes[at];
        let seen = see(node, key, us);
        let deed = match random.below(6) {
            0 | 1 => Deed::See(seen),
            2 if key != COUNTER => Deed::Remove(self.remove(node, key, seen, us, random)),
            _ => self.make(node, key, us, random),
        };
        self.events.push(Event {
            session,
            life,
            at,
            key,
            deed,
            replied: false,
        });
        (at, self.events.len() - 1)
    }

    fn make(&mut self, node: &mut Node, key: &str, us: u64, random: &mut Random) -> Deed {
        self.made += 1;
        let (made, by) = (self.made, random.between(1, 9));
        node.write(us, 0, None, |shard, now| {
            let name = shard.key(key.as_bytes());
            if key == COUNTER {
                let sum = shard.increment(0, name, by as i64, now);
                assert!(matches!(sum, Some(Ok(_))), "it is a counter");
            } else if is_collection(key) {
                update(shard, key, now, &made.to_string(), true);
            } else {
                let text = made.to_string();
                let value = NewValue::Copy(text.as_bytes());
                shard.set(0, name, value, ExpirySetting::Clear, now);
            }
        });
        match key {
            COUNTER => Deed::Count(by),
            _ => Deed::Make(made),
        }
    }

    /// Removes one member of those seen, or the key with all of them.
    fn remove(
        &mut self,
        node: &mut Node,
        key: &str,
        mut seen: Things,
        us: u64,
        random: &mut Random,
    ) -> Things {
        let whole = !is_collection(key) || random.chance(0.2);
        if !whole && !seen.is_empty() {
            let one = seen.iter().nth(random.index(seen.len())).copied();
            seen = one.into_iter().collect();
        }
        node.write(us, 0, None, |shard, now| {
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

    pub(super) fn tell(&self, event: usize) -> String {
        let Event {
            session, key, deed, ..
        } = &self.events[event];
        format!("session {session}: {deed:?} at {key}")
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns the session of the event.
    pub(super) fn reply(&mut self, event: usize) -> usize {
        self.events[event].replied = true;
        self.events[event].session
    }

    /// When all is quiet.
    pub(super) fn judge(&self, nodes: &mut [Node], us: u64) -> Result<(), String> {
        self.nothing_came_back()?;
        for key in SETS.into_iter().chain(HASHES).chain(REGISTERS) {
            let shown = same(nodes, us, key, |node| see(node, key, us))?;
            self.judge_things(key, &shown)?;
        }
        let count = |node: &mut Node| node.text(us, COUNTER.as_bytes());
        let text = same(nodes, us, COUNTER, count)?;
        let text = text.unwrap_or_else(|| b"0".to_vec());
        let sum = String::from_utf8_lossy(&text).parse().unwrap_or(u64::MAX);
        let by = |event: &Event| match event.deed {
            Deed::Count(by) => by,
            _ => 0,
        };
        let least: u64 = self.events.iter().filter(|e| e.replied).map(by).sum();
        let most: u64 = self.events.iter().map(by).sum();
        match (least..=most).contains(&sum) {
            true => Ok(()),
            false => Err(format!("{COUNTER} is {sum}, not from {least} to {most}")),
        }
    }

    fn of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.key == key)
    }

    fn judge_things(&self, key: &str, shown: &Things) -> Result<(), String> {
        let (mut made, mut kept, mut touched, mut gone) =
            (Things::new(), Things::new(), Things::new(), Things::new());
        for event in self.of(key) {
            match &event.deed {
                Deed::Make(thing) => {
                    made.insert(*thing);
                    kept.extend(event.replied.then_some(*thing));
                }
                Deed::Remove(things) => {
                    touched.extend(things);
                    gone.extend(things.iter().filter(|_| event.replied));
                }
                Deed::Count(_) | Deed::See(_) => {}
            }
        }
        if let Some(thing) = shown.iter().find(|thing| !made.contains(thing)) {
            return Err(format!("{key} has {thing}, which nobody made"));
        }
        if let Some(thing) = shown.intersection(&gone).next() {
            return Err(format!("{key} has {thing} again, which was removed"));
        }
        // Values of registers are replaced by others, members are not.
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

    /// What was removed at a node is not seen there any more.
    fn nothing_came_back(&self) -> Result<(), String> {
        for (number, event) in self.events.iter().enumerate() {
            let Deed::See(seen) = &event.deed else {
                continue;
            };
            let here = |earlier: &&Event| {
                let stays = earlier.replied || earlier.life == event.life;
                earlier.key == event.key && earlier.at == event.at && stays
            };
            for earlier in self.events[..number].iter().filter(here) {
                if let Deed::Remove(gone) = &earlier.deed
                    && let Some(thing) = gone.intersection(seen).next()
                {
                    let Event { key, at, .. } = event;
                    return Err(format!("node {at} shows {thing} in {key} again"));
                }
            }
        }
        Ok(())
    }
}

/// What all nodes that have a replica say.
fn same<T: PartialEq + std::fmt::Debug>(
    nodes: &mut [Node],
    _us: u64,
    key: &str,
    mut ask: impl FnMut(&mut Node) -> T,
) -> Result<T, String> {
    let owners: Vec<_> = nodes[0].placement.owners(key.as_bytes()).collect();
    let first = ask(&mut nodes[owners[0].index()]);
    for owner in &owners[1..] {
        let other = ask(&mut nodes[owner.index()]);
        if other != first {
            return Err(format!("after quiet {key} is {first:?} and {other:?}"));
        }
    }
    Ok(first)
}

/// Things of it are removed one by one, or all that are seen.
fn is_collection(key: &str) -> bool {
    SETS.contains(&key) || HASHES.contains(&key)
}

fn update(shard: &mut Shard, key: &str, now: Now, member: &str, add: bool) {
    let member = member.as_bytes();
    if HASHES.contains(&key) {
        return count(shard, key, now, member, add);
    }
    let op = match add {
        true => set::Op::Add { member },
        false => set::Op::Remove { member },
    };
    let name = shard.key(key.as_bytes());
    let done = shard.update::<Set, _>(0, name, now, |editor| editor.apply(&op));
    assert!(done.is_ok(), "it is a set");
}

fn count(shard: &mut Shard, key: &str, now: Now, field: &[u8], add: bool) {
    let op = match add {
        true => hash::Op::Increment { field, by: 1 },
        false => hash::Op::Delete { field },
    };
    let name = shard.key(key.as_bytes());
    let done = shard.update::<Hash, _>(0, name, now, |editor| {
        editor.apply(&op);
    });
    assert!(done.is_ok(), "it is a hash");
}

/// The present elements.
fn see(node: &mut Node, key: &str, us: u64) -> Things {
    let number = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<u64>().ok();
    if key == COUNTER {
        return Things::new();
    }
    if REGISTERS.contains(&key) {
        let text = node.text(us, key.as_bytes());
        return text.iter().filter_map(|text| number(text)).collect();
    }
    let now = node.now(us);
    let name = node.shard.key(key.as_bytes());
    if HASHES.contains(&key) {
        let view = node.shard.collection::<Hash>(0, name, now);
        let reply = view.map(|view| view.map(|view| Hash::execute(view, &hash::Op::All)));
        let Ok(Some(hash::Reply::Pairs(fields))) = reply else {
            return Things::new();
        };
        // What was counted twice is another thing.
        let counted = fields.iter().filter(|(_, sum)| *sum == b"1");
        return counted.filter_map(|(field, _)| number(field)).collect();
    }
    let view = node.shard.collection::<Set>(0, name, now);
    let reply = view.map(|view| view.map(|view| Set::execute(view, &set::Op::Members)));
    match reply {
        Ok(Some(set::Reply::Members(members))) => {
            members.iter().filter_map(|member| number(member)).collect()
        }
        _ => Things::new(),
    }
}
