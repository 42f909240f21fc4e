//! Every order of what may happen, within small bounds.

use super::bounds;
use super::ops::{Command, Do, Op, Reader, plain, typed};
use super::search::{Broken, Found};
use super::world::{Action, Bounds, End, Plan, World};
use rufous_linear::planted::{self, Off};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

impl World {
    /// All faults that the bounds allow yet.
    fn all_faults(&self) -> Vec<Action> {
        let mut all = Vec::new();
        for (no, slot) in (0u16..).zip(&self.slots) {
            let heads = (0..=slot.unkept(false)).map(|lost| Action::Head(no, lost));
            all.extend(heads.filter(|_| self.left.heads > 0));
            let losses = (0..=slot.unkept(true)).map(|lost| Action::Loss(no, lost));
            all.extend(losses.filter(|_| self.left.losses > 0));
        }
        let pairs = self.links.iter().filter(|(_, queue)| !queue.is_empty());
        let breaks = pairs.map(|((a, b), _)| Action::Break(*a, *b));
        all.extend(breaks.filter(|_| self.left.links > 0));
        let origins = (0..self.bounds.origins).map(Action::Origin);
        all.extend(origins.filter(|_| self.left.ends > 0));
        if self.left.misses > 0 {
            for ((a, b), queue) in self.links.iter() {
                all.extend((0..queue.len()).map(|at| Action::Miss(*a, *b, at)));
            }
        }
        if self.left.resends > 0 {
            let ends: Vec<End> = self.ends().collect();
            let pairs = ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b)));
            all.extend(
                pairs
                    .filter(|(a, b)| a != b)
                    .map(|(a, b)| Action::Resend(a, b)),
            );
        }
        all
    }

    /// A number of the state, the same for equal ones.
    fn number(&self) -> u64 {
        let links = self.links.iter().filter(|(_, queue)| !queue.is_empty());
        let links: Vec<(&(End, End), _)> = links.collect();
        // Of time, only what ended before something else began.
        let clients: Vec<_> = self
            .clients
            .iter()
            .map(|(id, client)| {
                let ended = client.ended.map(|(_, outcome)| outcome);
                let before = self.clients.values();
                let before = before.filter(|of| of.ended.is_some_and(|(at, _)| at < client.began));
                let before: Vec<_> = before.map(|of| of.txn.id).collect();
                (id, ended, before)
            })
            .collect();
        let parts = (&self.slots, &self.origins, &self.workers, links, clients);
        let left = (
            self.plans.len(),
            self.left.heads,
            self.left.links,
            self.left.losses,
            self.left.misses,
            self.left.resends,
            self.rounds,
        );
        let text = format!("{parts:?}{left:?}{}{}", self.left.ends, self.has_lost);
        BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
    }
}

/// Transactions over two slots, by their origins.
pub type Plans = Vec<(u16, Vec<Plan>)>;

/// A small case, with its name.
pub type Case = (&'static str, Bounds, Plans);

fn calm() -> Bounds {
    Bounds {
        slots: 2,
        keys: 2,
        origins: 1,
        txns: 2,
        ..bounds::calm()
    }
}

fn part(key: u16, ops: &[Do], observes: bool) -> Plan {
    Plan {
        key,
        ops: ops.iter().map(|what| plain(*what)).collect(),
        observes,
        typed: false,
    }
}

/// Both keys.
fn both(op: Do) -> (u16, Vec<Plan>) {
    (0, vec![part(0, &[op], false), part(1, &[op], false)])
}

fn adds() -> (u16, Vec<Plan>) {
    both(Do::Add)
}

fn appends() -> (u16, Vec<Plan>) {
    both(Do::Append)
}

/// It observes one key and appends to the other.
fn observes(key: u16) -> (u16, Vec<Plan>) {
    let parts = vec![
        part(key, &[Do::Read], true),
        part(1 - key, &[Do::Append], false),
    ];
    (0, parts)
}

fn of(name: &'static str, plans: Plans, change: fn(&mut Bounds)) -> Case {
    let mut bounds = calm();
    change(&mut bounds);
    (name, bounds, plans)
}

/// The small cases: what transactions do to keys 0 and 1, and one fault.
pub fn cases() -> Vec<Case> {
    [apart(), beside()].concat()
}

/// The slots are at one worker.
fn beside() -> Vec<Case> {
    vec![
        of(
            "beside, one over three slots, heads and an origin that end",
            vec![(
                0,
                [0, 1, 2].map(|key| part(key, &[Do::Append], false)).into(),
            )],
            |of| {
                (of.slots, of.keys, of.beside) = (3, 3, true);
                (of.heads, of.ends) = (2, 1);
            },
        ),
        of(
            "beside, appends, and a head that ends",
            vec![appends(), appends()],
            |of| (of.beside, of.heads) = (true, 1),
        ),
        of(
            "beside, a condition, and a head that ends",
            vec![observes(1), adds()],
            |of| (of.beside, of.heads) = (true, 1),
        ),
        of(
            "beside, one transaction, and slots that lose the ends of their logs",
            vec![observes(0)],
            |of| {
                (of.beside, of.heads) = (true, 1);
                (of.losses, of.always) = (1, false);
            },
        ),
    ]
}

fn apart() -> Vec<Case> {
    vec![
        of("appends to both", vec![appends(), appends()], |_| ()),
        of(
            "each observes what the other appends to",
            vec![observes(0), observes(1)],
            |_| (),
        ),
        of(
            "adds and appends, and a head that ends",
            vec![adds(), appends()],
            |of| of.heads = 1,
        ),
        of(
            "conditions, and a head that ends",
            vec![observes(0), observes(1)],
            |of| of.heads = 1,
        ),
        of(
            "a condition, and a link that breaks",
            vec![observes(0), appends()],
            |of| of.links = 1,
        ),
        of(
            "appends, and an origin that ends",
            vec![appends(), appends()],
            |of| of.ends = 1,
        ),
        of(
            "one transaction, and a slot that loses the end of its log",
            vec![observes(0)],
            |of| (of.losses, of.always) = (1, false),
        ),
        of(
            "one transaction, and a message that is lost",
            vec![observes(0)],
            |of| of.misses = 1,
        ),
        of(
            "appends, and what is sent again",
            vec![appends(), appends()],
            |of| of.resends = 1,
        ),
        typed_case("typed: an add and the last removal", last_member()),
        typed_case("typed: counts near the limit", counts()),
    ]
}

fn typed_case(name: &'static str, plans: Plans) -> Case {
    let (typed, keys) = (true, 6);
    let bounds = Bounds {
        typed,
        keys,
        ..calm()
    };
    (name, bounds, plans)
}

/// A part of a typed transaction.
fn command(key: u16, all: &[Command]) -> Plan {
    let ops: Vec<Op> = all.iter().map(|of| typed(*of, Reader::AtTheEnd)).collect();
    Plan {
        key,
        ops,
        observes: false,
        typed: true,
    }
}

/// Sets of two slots: one removes all members, the other adds one and asks for the deadline.
fn last_member() -> Plans {
    let removes = |key| command(key, &[0, 1, 2].map(Command::Srem));
    let adds = |key| command(key, &[Command::Sadd(3), Command::Ttl]);
    vec![
        (0, vec![removes(1), command(4, &[Command::Get])]),
        (0, vec![adds(1), command(4, &[Command::Incr(1)])]),
    ]
}

/// Counters of two slots that cannot take all that is added.
fn counts() -> Plans {
    let quiet = |key, by| Plan {
        ops: vec![typed(Command::Incr(by), Reader::None)],
        ..command(key, &[])
    };
    vec![
        (0, vec![quiet(0, 3), command(5, &[Command::Scard])]),
        (0, vec![quiet(0, -2), command(5, &[Command::Srem(0)])]),
    ]
}

/// Tries every order, up to so many states. The second value: whether these are all.
pub fn every(bounds: &Bounds, plans: &Plans, off: Option<Off>, most: usize) -> (Found, bool) {
    planted::set(off);
    let mut first = World::new(&Arc::new(bounds.clone()), 0);
    first.plans = plans.clone().into();
    if bounds.beside {
        first.workers.fill(0);
    }
    let mut visited = HashSet::from([first.number()]);
    let (mut found, mut trace, mut all) = (Found::default(), Vec::new(), true);
    let mut way = vec![(actions(&first), first)];
    while let Some((actions_left, world)) = way.last_mut() {
        let Some(action) = actions_left.pop() else {
            way.pop();
            trace.pop();
            continue;
        };
        let mut next = world.clone();
        trace.push(action);
        let mut result = next.act(action);
        if result.is_ok() && next.progress().is_empty() {
            found.histories += 1;
            result = next.check();
        }
        if let Err(why) = result {
            let (seed, trace) = (0, trace.clone());
            found.broken = Some(Broken { seed, why, trace });
            break;
        }
        if visited.len() >= most {
            all = false;
            break;
        }
        if visited.insert(next.number()) {
            way.push((actions(&next), next));
        } else {
            trace.pop();
        }
    }
    found.steps = visited.len();
    planted::set(None);
    (found, all)
}

fn actions(world: &World) -> Vec<Action> {
    let mut all = world.all_faults();
    all.extend(world.progress());
    all
}
