//! One fault that lasts, and nothing else: while it does, clients at healthy nodes are answered.
//! Every eighth seed has one, and another one in 32.

use super::node::{Node, Power};
use super::plan::Plan;
use super::wishes::Wish;
use super::world::{TROUBLES_US, World};
use crate::engine::Fault;
use crate::node::plan::Mode;
use crate::node::seat::Seat;
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
    /// Its disk answers no request, and it is not replaced: the coordinator is away.
    Kept,
    /// One of its workers does nothing.
    Still,
}

const ALL: [Lasting; 7] = [
    Lasting::Parted,
    Lasting::OneWay,
    Lasting::Full,
    Lasting::Hung,
    Lasting::Paused,
    Lasting::Stranger,
    Lasting::Kept,
];

/// When it begins.
const BEGINS_US: u64 = 10_000_000;
/// So much before, clients ask for keys of other nodes alone.
const EARLIER_US: u64 = 2_000_000;
/// How often a wish is drawn until it is one for such a key.
const TRIES: usize = 50;
/// How long a client at a healthy node may wait until its requests are done.
const LIMIT_US: u64 = 7_000_000;
/// Likewise where no copy of the key is at the node with the fault: so no node waits for that one.
const APART_LIMIT_US: u64 = 2_000_000;
/// Likewise where the node with the fault does not acknowledge a write, and is not replaced.
const KEPT_LIMIT_US: u64 = 11_500_000;

impl Lasting {
    /// Of which plan is made of this seed.
    fn of(seed: u64) -> Option<Self> {
        if seed % 32 == 3 {
            return Some(Self::Still);
        }
        (seed % 8 == 5).then(|| ALL[(seed / 8) as usize % ALL.len()])
    }

    fn is_of_disk(self) -> bool {
        matches!(self, Self::Full | Self::Hung | Self::Kept)
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
        if lasting == Lasting::Kept {
            // Some slots have no copy at the node, and no request waits behind one for another slot.
            (self.copies, self.pipeline) = (2, 1);
        }
        self.first = match lasting {
            Lasting::Stranger => self.workers.len() - 1,
            _ => self.workers.len(),
        };
        if lasting == Lasting::Still {
            // The others keep up its sessions.
            self.workers[0] = self.workers[0].max(4);
        }
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
            Lasting::Kept => {
                self.nodes[sick].disk.hangs = true;
                self.coordinator.away_until_us = end_us;
            }
            Lasting::Paused => {
                let found = &mut self.nodes[sick];
                found.paused_until_us = self.engine.now_us + 1_000_000;
            }
            Lasting::Still => self.nodes[sick].stand_still(TROUBLES_US + self.plan.trouble_us),
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
        match lasting {
            Lasting::Kept => {
                self.look_at_waits(APART_LIMIT_US, Self::is_apart);
                self.look_at_waits(KEPT_LIMIT_US, Self::is_behind);
            }
            _ => self.look_at_waits(LIMIT_US, |_, _| true),
        }
    }

    /// Whether no key that a client asks for has a copy at the node with the fault.
    fn is_apart(&self, client: usize) -> bool {
        let asks = &self.clients[client].wishes;
        // One that has given up asks for nothing.
        !asks.is_empty() && asks.iter().all(|wish| self.is_of_others(wish))
    }

    /// Whether no key that a client asks for has its head at the node with the fault.
    fn is_behind(&self, client: usize) -> bool {
        let mapping = &self.coordinator.mapping;
        let sick = self.coordinator.number_of(self.nodes[self.sick()].id);
        let has_head = |slot: u16| mapping.chains.of(slot).head() == sick;
        let asks = &self.clients[client].wishes;
        !asks.is_empty() && asks.iter().all(|wish| !wish.slot().is_some_and(has_head))
    }

    fn is_of_others(&self, wish: &Wish) -> bool {
        let mapping = &self.coordinator.mapping;
        let sick = self.coordinator.number_of(self.nodes[self.sick()].id);
        let chain = wish.slot().map(|slot| mapping.chains.of(slot));
        chain.is_some_and(|chain| !chain.named().any(|no| Some(no) == sick))
    }

    /// What a client asks for next. While a node with the fault is not replaced, half of the clients
    /// ask for keys without a copy there, where there are any: all others come to wait.
    pub(super) fn next_suitable(&mut self, client: usize) -> Wish {
        let is_apart = self.lasting() == Some(Lasting::Kept) && client.is_multiple_of(2);
        for _ in 0..TRIES {
            let wish = self.next_wish(client);
            if !is_apart || self.engine.now_us < BEGINS_US - EARLIER_US || self.is_of_others(&wish)
            {
                return wish;
            }
        }
        self.next_wish(client)
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

    /// No client at a healthy node waits for too long, of those that this holds for.
    fn look_at_waits(&mut self, limit_us: u64, is_meant: impl Fn(&Self, usize) -> bool) {
        let now = self.engine.now_us;
        let late = (0..self.clients.len()).find(|number| {
            let client = &self.clients[*number];
            let since = client.since_us.map(|since| since.max(BEGINS_US));
            let is_late = since.is_some_and(|since| now > since + limit_us);
            let here = client.connection.as_ref();
            let is_sick = here.is_some_and(|connection| self.is_sick(connection.at.node));
            is_late && !is_sick && is_meant(self, *number)
        });
        if let Some(client) = late {
            let what = format!(
                "client {client} waits at a healthy node while {:?} lasts: {}",
                self.lasting(),
                self.clients[client].describe()
            );
            self.fail(what);
        }
    }
}

impl Node {
    /// Of its workers the one that stands still has the fewest sessions with nodes: others would miss
    /// those.
    fn stand_still(&mut self, until_us: u64) {
        if self.stalled_until_us == until_us {
            return;
        }
        self.stalled_until_us = until_us;
        let until_us = self.clock(until_us);
        let sessions = |seat: &&mut Seat| {
            let links = seat.front.links();
            links.map_or(0, |links| links.figures().peers.len())
        };
        if let Some(seat) = self.seats.iter_mut().min_by_key(sessions) {
            seat.busy_until_us = until_us;
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
