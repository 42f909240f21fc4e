//! One fault that lasts, and nothing else: while it does, clients at healthy nodes are answered.
//! Every eighth seed has one.

use super::node::Power;
use super::plan::Plan;
use super::world::World;
use crate::engine::Fault;
use crate::node::plan::Mode;
use rufous_mapping::planner::Health;

/// The fault, at the first node or between the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Two members do not reach one another, both ways.
    Parted,
    /// The second does not reach the first.
    OneWay,
    /// Its disk has no room.
    Full,
    /// Its disk answers no request.
    Hung,
    /// It does nothing.
    Paused,
    /// A node that joins reaches no other, or is reached by none.
    Stranger,
}

const ALL: [Lasting; 6] = [
    Lasting::Parted,
    Lasting::OneWay,
    Lasting::Full,
    Lasting::Hung,
    Lasting::Paused,
    Lasting::Stranger,
];

/// When it begins.
const BEGINS_US: u64 = 10_000_000;
/// How long a client at a healthy node may wait until its requests are done.
const LIMIT_US: u64 = 7_000_000;

impl Lasting {
    /// Of which plan is made of this seed.
    fn of(seed: u64) -> Option<Self> {
        (seed % 8 == 5).then(|| ALL[(seed / 8) as usize % ALL.len()])
    }

    fn is_of_disk(self) -> bool {
        matches!(self, Self::Full | Self::Hung)
    }
}

impl Plan {
    /// With the fault that lasts, if the seed has one, and without others.
    pub(super) fn with_lasting(mut self) -> Self {
        let Some(lasting) = Lasting::of(self.seed) else {
            return self;
        };
        self.troubles = Default::default();
        self.trouble_us = 30_000_000;
        // A slot with one copy ends with its node.
        self.copies = self.copies.max(2);
        if self.workers.len() == self.copies {
            self.workers.push(1);
            if let Some(loose) = &mut self.loose {
                loose.threads.push(0);
                loose.gossip_ms.push(50);
            }
        }
        // A lattice keyspace has replicas everywhere, and needs all nodes: see `docs/keyspaces.md`.
        self.loose = None;
        self.first = match lasting {
            Lasting::Stranger => self.workers.len() - 1,
            _ => self.workers.len(),
        };
        if lasting.is_of_disk() && self.mode == Mode::Off {
            self.mode = Mode::Always;
        }
        self
    }
}

impl World {
    pub(super) fn lasting(&self) -> Option<Lasting> {
        Lasting::of(self.plan.seed)
    }

    fn lasts(&self) -> bool {
        !self.calm && self.engine.now_us >= BEGINS_US
    }

    /// The node with the fault; of two that do not hear one another the one that is replaced.
    fn sick(&self) -> usize {
        match self.lasting() {
            Some(Lasting::Stranger) => self.plan.workers.len() - 1,
            Some(Lasting::Parted | Lasting::OneWay) => 1,
            _ => 0,
        }
    }

    /// Whether nothing is promised to clients at this node.
    pub(super) fn is_sick(&self, node: usize) -> bool {
        self.lasting().is_some() && self.lasts() && node == self.sick()
    }

    /// What the fault does; called all the time.
    pub(super) fn last(&mut self) {
        let Some(lasting) = self.lasting().filter(|_| self.lasts()) else {
            return;
        };
        let (sick, end_us) = (self.sick(), 1 << 60);
        match lasting {
            Lasting::Parted => {
                self.parted.insert((0, 1), end_us);
                self.parted.insert((1, 0), end_us);
            }
            Lasting::OneWay => drop(self.parted.insert((1, 0), end_us)),
            Lasting::Full => self.nodes[sick].disk.full = true,
            Lasting::Hung => self.nodes[sick].disk.hangs = true,
            Lasting::Paused => {
                let found = &mut self.nodes[sick];
                found.paused_until_us = self.engine.now_us + 1_000_000;
            }
            Lasting::Stranger => {
                let both = (self.plan.seed / 64).is_multiple_of(2);
                for other in 0..sick {
                    self.parted.insert((other, sick), end_us);
                    if both {
                        self.parted.insert((sick, other), end_us);
                    }
                }
                if self.nodes[sick].power == Power::New {
                    self.start(sick);
                }
            }
        }
        self.reach("a fault lasted");
        self.look_at_waits();
    }

    /// It is over.
    pub(super) fn end_lasting(&mut self) {
        for node in 0..self.nodes.len() {
            self.nodes[node].disk.full = false;
            if std::mem::take(&mut self.nodes[node].disk.hangs) {
                self.disk_answers(node);
            }
        }
    }

    /// No client at a healthy node waits for too long.
    fn look_at_waits(&mut self) {
        let now = self.engine.now_us;
        let late = self.clients.iter().position(|client| {
            let since = client.since_us.map(|since| since.max(BEGINS_US));
            let is_late = since.is_some_and(|since| now > since + LIMIT_US);
            let here = client.connection.as_ref();
            is_late && !here.is_some_and(|connection| self.is_sick(connection.at.node))
        });
        if let Some(client) = late {
            let what = format!(
                "client {client} waits at a healthy node while {:?} lasts",
                self.lasting()
            );
            self.fail(what);
        }
    }
}

/// What the leader hears of a node's health: nothing, where that is the planted fault.
pub(super) fn heard_health(fault: Fault, health: Health) -> Health {
    match fault {
        Fault::HealthNotSaid => Health::default(),
        _ => health,
    }
}
