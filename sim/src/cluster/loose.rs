//! Keys of the lattice keyspace: the operations of clients at each node, and what
//! each connection was shown.
//!
//! [`crate::oracle::lattice`] defines what must hold of them; `verdict` runs it after
//! quiet.

mod verdict;

pub(super) use crate::oracle::lattice::{Deed, Shape};

use super::world::World;
use crate::engine::random::Random;
use crate::history::Outcome;
use crate::node::seat::Seat;
use crate::oracle::lattice::{Account, Done, Shown, Told};
use rufous_kernel::shard::NO_NODE;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const LOOSE: [(&str, Shape); 4] = [
    ("l:n", Shape::Counter),
    ("l:m", Shape::Counter),
    ("l:s", Shape::Set),
    ("l:t", Shape::Set),
];

/// How long nothing may happen before all changes are taken to have reached all nodes: no
/// request waits for longer at a node, and epochs are shorter.
const REST_US: u64 = 8_000_000;

/// A node, and which worker of it.
type Worker = (usize, usize);

/// What a connection was shown.
#[derive(Debug, Default)]
pub(super) struct Sight([Shown; LOOSE.len()]);

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Loose {
    account: Account,
    /// Of nodes in their lives: the numbers by which the cluster knows them.
    numbers: BTreeMap<(usize, u32), u16>,
    /// The elements of the sets that any connection has seen.
    visible: BTreeMap<usize, BTreeSet<u64>>,
    /// The last replies to the connection that reads everything, by node and worker.
    last: BTreeMap<usize, Vec<(Worker, Told)>>,
}

impl Loose {
    /// An element for a client to remove.
    pub(super) fn any_seen(&mut self, key: usize, random: &mut Random) -> Option<u64> {
        let visible = self.visible.get(&key)?;
        let element = *visible.iter().nth(random.index(visible.len()))?;
        self.account.want_away(element);
        Some(element)
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
        if let (Some(told), Some(worker)) = (&done.told, connection.at.worker)
            && client == self.plan.clients
        {
            let last = self.loose.last.entry(key).or_default();
            last.push(((place.0, worker), told.clone()));
        }
        if let Some(Told::All(all)) = &done.told {
            self.loose.visible.insert(key, all.clone());
        }
        let shown = &mut connection.sight.0[key];
        let fits = self.loose.account.note(LOOSE[key].0, shown, done);
        self.clients[client].connection = Some(connection);
        if let Err(wrong) = fits {
            self.fail(wrong);
        }
    }

    /// The number of a node, once one of its workers serves by it.
    fn number_of_node(&self, node: usize) -> Option<u16> {
        let seats = self.nodes[node].seats.iter();
        let mut numbers = seats.filter_map(|seat| seat.front.kernel.shard.marks().node());
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

    /// Notes whether any work is pending.
    pub(super) fn look_for_rest(&mut self) {
        let clients = &self.clients[..self.plan.clients];
        let is_done = clients.iter().all(|client| client.is_done());
        let is_told = self.plan.loose.is_none() || self.look_at_loose();
        if !is_done || !is_told {
            self.unrest_us = self.engine.now_us;
        }
    }

    /// Whether all workers have sent each other all changes.
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
        if seats.any(|seat| seat.front.kernel.shard.marks().node() == Some(NO_NODE)) {
            self.reach("a node ended before it first served lattice keys");
        }
        let mut seats = self.nodes[node].seats.iter();
        let figures = |seat: &Seat| seat.front.kernel.node_figures();
        if seats.any(|seat| figures(seat).is_some_and(|of| of.serving == 1 && of.excused > 0)) {
            self.reach("a start served lattice keys without a node that was away");
        }
    }

    /// No request waits, and all workers have all changes.
    pub(super) fn is_quiet(&self) -> bool {
        self.engine.now_us >= self.unrest_us + REST_US
    }
}
