//! Links between replicas. Packets are late, lost, doubled and overtake one
//! another; ends of a link number them, send what was lost again, and hand
//! them on in order and once, as TCP does.

use super::plan::Plan;
use crate::engine::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A message with its number on its link.
#[derive(Clone, Debug)]
pub struct Packet {
    pub from: usize,
    pub to: usize,
    pub bytes: Arc<[u8]>,
    number: u64,
    /// Links are new after a crash.
    life: u64,
}

#[derive(Debug, Default)]
struct Link {
    sent: u64,
    taken: u64,
    /// Came before others that were sent earlier.
    early: BTreeMap<u64, Arc<[u8]>>,
}

#[derive(Debug)]
pub struct Wires {
    links: Vec<Vec<Link>>,
    random: Random,
    life: u64,
    /// One side of a partition.
    apart: Option<Vec<bool>>,
    /// Nothing is lost any more.
    calm: bool,
}

impl Wires {
    pub fn new(plan: &Plan) -> Self {
        Self {
            links: Self::links(plan.nodes),
            random: Random::new(plan.seed, "wires"),
            life: 0,
            apart: None,
            calm: false,
        }
    }

    fn links(nodes: usize) -> Vec<Vec<Link>> {
        let row = || (0..nodes).map(|_| Link::default()).collect();
        (0..nodes).map(|_| row()).collect()
    }

    /// All links are lost, with all that is on them.
    pub fn reset(&mut self) {
        self.links = Self::links(self.links.len());
        self.life += 1;
    }

    pub fn calm(&mut self, calm: bool) {
        self.calm = calm;
        self.apart = None;
    }

    pub fn part(&mut self) {
        let nodes = self.links.len();
        let side = (0..nodes).map(|_| self.random.chance(0.5)).collect();
        self.apart = Some(side);
    }

    pub fn heal(&mut self) {
        self.apart = None;
    }

    /// Sends a message; answers when which packets of it arrive, if they do.
    pub fn send(
        &mut self,
        plan: &Plan,
        (from, to): (usize, usize),
        bytes: Arc<[u8]>,
    ) -> Vec<(u64, Packet)> {
        let link = &mut self.links[from][to];
        let packet = Packet {
            from,
            to,
            bytes,
            number: link.sent,
            life: self.life,
        };
        link.sent += 1;
        let copies = 1 + usize::from(self.random.chance(plan.twice));
        let delay = |random: &mut Random| {
            let mut after = random.between(1, plan.delays[from][to]);
            while random.chance(plan.loss) {
                after += plan.resend_us;
            }
            after
        };
        (0..copies)
            .map(|_| (delay(&mut self.random), packet.clone()))
            .collect()
    }

    /// A packet comes; answers what can be handed on, or when it is sent again.
    pub fn arrive(&mut self, plan: &Plan, packet: Packet) -> Result<Vec<Arc<[u8]>>, (u64, Packet)> {
        let Packet { from, to, .. } = packet;
        let is_apart = |side: &Vec<bool>| side[from] != side[to];
        if packet.life != self.life {
            return Ok(Vec::new());
        }
        if !self.calm && self.apart.as_ref().is_some_and(is_apart) {
            return Err((plan.resend_us, packet));
        }
        let link = &mut self.links[from][to];
        if packet.number >= link.taken {
            link.early.insert(packet.number, packet.bytes);
        }
        let mut ready = Vec::new();
        while let Some(bytes) = link.early.remove(&link.taken) {
            link.taken += 1;
            ready.push(bytes);
        }
        Ok(ready)
    }
}
