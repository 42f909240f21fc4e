//! Keys of the lattice keyspace: what clients did with them at which node, and what
//! each connection was shown.
//!
//! Every element is added once, and who removes one knows that somebody has seen it. A
//! connection stays at one replica of a key: what it was shown stays until it may have
//! been removed, and does not come back; a counter does not fall.
//!
//! `verdict` judges all of it after quiet.

mod verdict;

use super::world::World;
use crate::history::Outcome;
use crate::random::Random;
use rufous_kernel::shard::NO_NODE;
use rufous_resp::Reply;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Counter,
    Set,
}

pub(super) const LOOSE: [(&str, Shape); 4] = [
    ("l:n", Shape::Counter),
    ("l:m", Shape::Counter),
    ("l:s", Shape::Set),
    ("l:t", Shape::Set),
];

/// How long nothing is to happen before all are taken to have heard all: no request
/// waits for longer at a node, and epochs are shorter.
const REST_US: u64 = 8_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Add(u64),
    Remove(u64),
    Members,
    Count(u64),
    Sum,
}

impl Shape {
    pub(super) fn look(self) -> Deed {
        match self {
            Shape::Counter => Deed::Sum,
            Shape::Set => Deed::Members,
        }
    }
}

impl Deed {
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Deed::Members | Deed::Sum)
    }

    pub(super) fn request(&self, key: &str) -> Vec<Vec<u8>> {
        let (name, rest) = match self {
            Deed::Add(element) => ("SADD", Some(element)),
            Deed::Remove(element) => ("SREM", Some(element)),
            Deed::Count(by) => ("INCRBY", Some(by)),
            Deed::Members => ("SMEMBERS", None),
            Deed::Sum => ("GET", None),
        };
        let rest = rest.map(|number| number.to_string().into_bytes());
        let words = [name.into(), key.into()];
        words.into_iter().chain(rest).collect()
    }

    /// What a reply says; nothing, where it is none to this.
    fn told(&self, reply: &Reply) -> Option<Told> {
        match (self, reply) {
            (Deed::Members, Reply::Array(all) | Reply::Set(all)) => {
                all.iter().map(number).collect::<Option<_>>().map(Told::All)
            }
            (Deed::Sum, Reply::Null) => Some(Told::Number(0)),
            (Deed::Sum, text) => number(text).map(Told::Number),
            (_, Reply::Integer(n)) => u64::try_from(*n).ok().map(Told::Number),
            _ => None,
        }
    }
}

fn number(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// What a reply said.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Number(u64),
    All(BTreeSet<u64>),
}

/// A node, and which worker of it.
type Worker = (usize, usize);

/// Something that a client did.
#[derive(Debug)]
struct Done {
    key: usize,
    deed: Deed,
    /// The number of the node that it was done at, if that is known.
    number: Option<u16>,
    /// Nothing, if that is in doubt.
    told: Option<Told>,
}

/// What a connection knows of one key.
#[derive(Debug, Default)]
struct Shown {
    there: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    sum: u64,
}

/// What a connection was shown.
#[derive(Debug, Default)]
pub(super) struct Sight([Shown; LOOSE.len()]);

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Loose {
    done: Vec<Done>,
    /// Of nodes in their lives: the numbers by which the cluster knows them.
    numbers: BTreeMap<(usize, u32), u16>,
    /// What is in the sets, as far as anybody has seen, and what somebody has
    /// wanted to remove.
    visible: BTreeMap<usize, BTreeSet<u64>>,
    unwanted: BTreeSet<u64>,
    /// What is not seen any more where it was, and by which node's word.
    gone: Vec<(usize, u64, Option<u16>)>,
    /// What the one that reads everything was told last, by node and worker.
    last: BTreeMap<usize, Vec<(Worker, Told)>>,
}

impl Loose {
    /// An element that somebody may remove.
    pub(super) fn any_seen(&mut self, key: usize, random: &mut Random) -> Option<u64> {
        let visible = self.visible.get(&key)?;
        let element = *visible.iter().nth(random.index(visible.len()))?;
        self.unwanted.insert(element);
        Some(element)
    }

    /// Of a connection at one replica: what it is told fits what it was told before.
    fn look(&mut self, shown: &mut Shown, done: &Done) -> Result<(), String> {
        let Some(told) = &done.told else {
            return Ok(());
        };
        let name = LOOSE[done.key].0;
        match (&done.deed, told) {
            (Deed::Add(element), Told::Number(new)) => {
                shown.there.insert(*element);
                if *new != 1 {
                    return Err(format!("{name} had {element} before it was added"));
                }
            }
            (Deed::Remove(element), Told::Number(count)) => {
                if *count > 1 {
                    return Err(format!("{count} elements of {name} were removed for one"));
                }
                let was_there = shown.there.remove(element);
                if *count == 1 || was_there {
                    shown.gone.insert(*element);
                    self.gone.push((done.key, *element, done.number));
                }
            }
            (Deed::Members, Told::All(all)) => self.look_at_members(shown, done, all)?,
            (Deed::Count(by), Told::Number(sum)) if *sum < shown.sum + by => {
                return Err(format!(
                    "{name} was {}, and is {sum} with {by} more",
                    shown.sum
                ));
            }
            (Deed::Sum, Told::Number(sum)) if *sum < shown.sum => {
                return Err(format!("{name} was {}, and is {sum}", shown.sum));
            }
            (Deed::Count(_) | Deed::Sum, Told::Number(sum)) => shown.sum = *sum,
            _ => return Err(format!("{done:?} makes no sense")),
        }
        Ok(())
    }

    fn look_at_members(
        &mut self,
        shown: &mut Shown,
        done: &Done,
        all: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let name = LOOSE[done.key].0;
        let missing: Vec<u64> = shown.there.difference(all).copied().collect();
        if let Some(element) = missing.iter().find(|of| !self.unwanted.contains(of)) {
            return Err(format!(
                "{name} has lost {element}, which nobody removed, for a connection"
            ));
        }
        if let Some(element) = shown.gone.intersection(all).next() {
            return Err(format!(
                "{name} has {element} again, which was gone, for a connection"
            ));
        }
        let gone = missing.iter().map(|of| (done.key, *of, done.number));
        self.gone.extend(gone);
        shown.gone.extend(missing);
        shown.there.clone_from(all);
        self.visible.insert(done.key, all.clone());
        Ok(())
    }
}

impl World {
    /// What a client has done, or may have done.
    pub(super) fn note_deed(
        &mut self,
        client: usize,
        (key, deed): (usize, Deed),
        outcome: &Outcome,
    ) {
        let Some(mut connection) = self.clients[client].connection.take() else {
            return;
        };
        self.number_nodes();
        let place = (connection.at.node, connection.life);
        let told = match outcome {
            Outcome::Seen(reply) => match deed.told(reply) {
                None => return self.fail(format!("{deed:?} was answered by {reply:?}")),
                told => told,
            },
            _ => None,
        };
        let done = Done {
            key,
            deed,
            number: self.loose.numbers.get(&place).copied(),
            told,
        };
        let fits = self.loose.look(&mut connection.sight.0[key], &done);
        if let (Some(told), Some(worker)) = (&done.told, connection.at.worker)
            && client == self.plan.clients
        {
            let last = self.loose.last.entry(key).or_default();
            last.push(((place.0, worker), told.clone()));
        }
        self.loose.done.push(done);
        self.clients[client].connection = Some(connection);
        if let Err(wrong) = fits {
            self.fail(wrong);
        }
    }

    /// The number of a node, once one of its workers serves by it.
    fn number_of_node(&self, node: usize) -> Option<u16> {
        let seats = self.nodes[node].seats.iter();
        let mut numbers = seats.filter_map(|seat| seat.front.kernel.shard.node());
        numbers.find(|number| *number != NO_NODE)
    }

    fn number_nodes(&mut self) {
        for node in 0..self.nodes.len() {
            if let Some(number) = self.number_of_node(node) {
                let life = self.nodes[node].life;
                self.loose.numbers.insert((node, life), number);
            }
        }
    }

    /// Takes notice of whether anything is under way.
    pub(super) fn look_for_rest(&mut self) {
        let clients = &self.clients[..self.plan.clients];
        let is_done = clients.iter().all(|client| client.is_done());
        let is_told = self.plan.loose.is_none() || self.look_at_loose();
        if !is_done || !is_told {
            self.unrest_us = self.now_us;
        }
    }

    /// Whether all have told all.
    fn look_at_loose(&mut self) -> bool {
        self.number_nodes();
        let is_told = |worker: &(usize, usize)| {
            let kernel = &self.nodes[worker.0].seats[worker.1].front.kernel;
            kernel.node_figures().is_some_and(|figures| {
                let gossip = figures.gossip;
                figures.serving == 1 && gossip.behind == 0 && gossip.kept_bytes == 0
            })
        };
        self.all_workers().iter().all(is_told)
    }

    /// A node ends.
    pub(super) fn note_end_of_loose(&mut self, node: usize) {
        let mut seats = self.nodes[node].seats.iter();
        if seats.any(|seat| seat.front.kernel.shard.node() == Some(NO_NODE)) {
            self.reach("a node ended before it first served lattice keys");
        }
    }

    /// Nobody waits for anything, and all have heard of all.
    pub(super) fn is_quiet(&self) -> bool {
        self.now_us >= self.unrest_us + REST_US
    }
}
