//! What goes wrong, and the end of it.

use super::node::Power;
use super::world::{What, World};
use crate::node::plan::Mode;
use crate::node::seat::Arrival;

/// How often it is drawn what goes wrong.
const PERIOD_US: u64 = 50_000;

impl World {
    pub(super) fn on_trouble(&mut self) {
        if self.calm {
            return;
        }
        self.push(self.engine.now_us + PERIOD_US, None, What::Trouble);
        self.last();
        self.operate();
        let troubles = self.plan.troubles.clone();
        if self.comes(troubles.cut_us) {
            self.cut_one();
        }
        if self.comes(troubles.part_us) {
            self.part();
        }
        if self.comes(troubles.flap_us) {
            self.flap();
        }
        if self.comes(troubles.slow_us) {
            self.slow_down();
        }
        if self.comes(troubles.pause_us) {
            self.pause();
        }
        if self.comes(troubles.end_us) {
            self.end_one();
        }
        if self.comes(troubles.end_all_us) {
            self.end_all();
        }
        if self.comes(troubles.away_us) {
            self.lose_coordinator();
        }
        if self.comes(troubles.join_us) {
            let new = self.nodes.iter().position(|node| node.power == Power::New);
            if let Some(node) = new {
                self.start(node);
            }
        }
        if self.comes(troubles.drain_us) {
            self.drain();
        }
        if self.comes(troubles.return_us) {
            self.take_back();
        }
    }

    /// Whether an event that happens once in `every_us` microseconds on average happens now.
    fn comes(&mut self, every_us: u64) -> bool {
        every_us > 0 && self.chance.below(every_us) < PERIOD_US
    }

    fn any_up(&mut self) -> Option<usize> {
        let up = self.nodes.iter().filter(|node| node.power == Power::Up);
        let up: Vec<usize> = up.map(|node| node.index).collect();
        (!up.is_empty()).then(|| *self.chance.pick(&up))
    }

    fn cut_one(&mut self) {
        let open = |at: &usize| self.wires[*at].open == [true; 2];
        let wires: Vec<usize> = (0..self.wires.len()).filter(open).collect();
        if wires.is_empty() {
            return;
        }
        let wire = *self.chance.pick(&wires);
        let who = self.wires[wire].who;
        self.note("world", format_args!("cuts {who:?}"));
        self.reach("a connection was cut");
        self.cut(wire);
    }

    /// A node is cut off from some others, or all; one way or both.
    fn part(&mut self) {
        let node = self.chance.index(self.nodes.len());
        let until = self.engine.now_us + self.chance.skewed(50_000, 8_000_000);
        let (is_all, one_way) = (self.chance.chance(0.5), self.chance.index(3));
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            if !is_all && self.chance.chance(0.5) {
                continue;
            }
            for (way, link) in [(node, other), (other, node)].into_iter().enumerate() {
                if one_way != way {
                    let known = self.parted.entry(link).or_default();
                    *known = until.max(*known);
                }
            }
        }
        let alone = self.chance.chance(0.4);
        if alone {
            self.nodes[node].alone_until_us = until;
        }
        self.reach(match one_way {
            2 => "the network was parted",
            _ => "a node was silent one way",
        });
        self.note(
            "world",
            format_args!("parts n{node} until {until}, way {one_way}, alone {alone}"),
        );
    }

    /// Some links break and come back, many times in a row, one way or both.
    fn flap(&mut self) {
        let count = self.nodes.len();
        let node = self.chance.index(count);
        let is_all = self.chance.chance(0.3);
        let ways = 1 + self.chance.index(3);
        let mut links = Vec::new();
        for other in (0..count).filter(|other| *other != node) {
            if is_all || self.chance.chance(0.5) {
                links.extend((ways & 1 > 0).then_some((node, other)));
                links.extend((ways & 2 > 0).then_some((other, node)));
            }
        }
        self.reach("links broke and came back in a row");
        self.note("world", format_args!("links that flap: {links:?}"));
        let times = 3 + self.chance.index(20);
        self.on_flap(links, times);
    }

    pub(super) fn on_flap(&mut self, links: Vec<(usize, usize)>, left: usize) {
        if self.calm || left == 0 {
            return;
        }
        let down_us = self.chance.skewed(5_000, 1_500_000);
        let up_us = self.chance.skewed(1_000, 500_000);
        for link in &links {
            let known = self.parted.entry(*link).or_default();
            *known = (self.engine.now_us + down_us).max(*known);
        }
        let at = self.engine.now_us + down_us + up_us;
        self.push(at, None, What::Flap(links, left - 1));
    }

    /// A node's work takes longer for a while.
    fn slow_down(&mut self) {
        let Some(node) = self.any_up() else {
            return;
        };
        let (times, us) = (
            self.chance.skewed(3, 300),
            self.chance.skewed(100_000, 8_000_000),
        );
        self.reach("a node was slow");
        self.note(
            "world",
            format_args!("n{node} is {times} times as slow for {us}"),
        );
        self.nodes[node].slow = (times, self.engine.now_us + us);
        self.trouble_node(node, us);
    }

    fn trouble_node(&mut self, node: usize, us: u64) {
        let until_us = self.engine.now_us + us;
        let known = &mut self.nodes[node].troubled_us;
        *known = until_us.max(*known);
    }

    /// A node that has left is started again, with the data that it had.
    fn take_back(&mut self) {
        let operator = &self.coordinator.operator;
        let is_gone =
            |node: &super::node::Node| node.power == Power::Gone && !operator.waits_for(node.id);
        let gone = self.nodes.iter().position(is_gone);
        let Some(node) = gone.filter(|_| self.plan.mode != Mode::Off) else {
            return;
        };
        self.reach("a node that had left came back");
        self.nodes[node].drains = false;
        self.nodes[node].power = Power::Down;
        self.start(node);
    }

    fn pause(&mut self) {
        let Some(node) = self.any_up() else {
            return;
        };
        let us = self.chance.skewed(10_000, 5_000_000);
        let workers = self.nodes[node].workers;
        let worker = self.chance.index(workers);
        self.trouble_node(node, us);
        if self.chance.chance(0.5) {
            self.reach("a node paused");
            self.note("world", format_args!("n{node} pauses for {us}"));
            self.nodes[node].paused_until_us = self.engine.now_us + us;
        } else {
            self.reach("a worker paused");
            self.note("world", format_args!("n{node}w{worker} pauses for {us}"));
            let local = self.nodes[node].clock(self.engine.now_us);
            self.nodes[node].seats[worker].busy_until_us = local + us;
            self.nodes[node].stalled_until_us = self.engine.now_us + us;
        }
    }

    /// Whether a node may end now: without logs only one at a time may be gone.
    fn may_end(&self, node: usize) -> bool {
        let is_member = self.coordinator.number_of(self.nodes[node].id).is_some();
        match self.plan.mode {
            Mode::Off => is_member && self.is_at_rest(),
            _ => true,
        }
    }

    fn end_one(&mut self) {
        let Some(node) = self.any_up().filter(|node| self.may_end(*node)) else {
            return;
        };
        if self.chance.chance(0.2) {
            return self.stop(node);
        }
        self.end_at_once(node);
        let down_us = self.chance.skewed(10_000, 6_000_000);
        self.push(self.engine.now_us + down_us, None, What::Start(node));
    }

    fn end_at_once(&mut self, node: usize) {
        // What is not synced may be lost only where nothing else is acknowledged.
        let power = self.plan.mode == Mode::Always && self.chance.chance(0.5);
        self.reach(match power {
            true => "a node lost power",
            false => "a node was killed",
        });
        if self.plan.mode == Mode::Off {
            let id = self.nodes[node].id;
            self.coordinator.dead.insert(id);
        }
        self.end(node, power);
        if self.plan.mode != Mode::Off && self.chance.chance(0.3) {
            self.nodes[node].workers = 1 + self.chance.index(3);
        }
    }

    pub(super) fn end_all(&mut self) {
        if self.plan.mode == Mode::Off {
            return;
        }
        self.reach("all nodes were killed");
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_up() {
                self.end_at_once(node);
                let down_us = self.chance.skewed(10_000, 3_000_000);
                self.push(self.engine.now_us + down_us, None, What::Start(node));
            }
        }
    }

    /// It stops in order, and comes back later.
    pub(super) fn stop(&mut self, node: usize) {
        let workers = self.nodes[node].workers;
        self.note("world", format_args!("stops n{node}"));
        self.nodes[node].power = Power::Stopping(workers);
        self.nodes[node].stop_us = self.engine.now_us;
        let shared = self.nodes[node].shared.as_ref();
        if let Some(cluster) = shared.and_then(|shared| shared.cluster.as_ref()) {
            cluster.on_left();
        }
        if self.plan.mode == Mode::Off {
            let id = self.nodes[node].id;
            self.coordinator.dead.insert(id);
        }
        for worker in 0..workers {
            self.arrive(node, worker, Arrival::Stop);
        }
    }

    fn lose_coordinator(&mut self) {
        let until = self.engine.now_us + self.chance.skewed(100_000, 8_000_000);
        self.reach("the coordinator was away");
        self.note("coord", format_args!("is away until {until}"));
        self.coordinator.away_until_us = until;
    }

    /// A member is to leave for good, where enough are left.
    fn drain(&mut self) {
        let stay = |node: &&super::node::Node| !node.drains && node.power == Power::Up;
        let stay = self.nodes.iter().filter(stay).count();
        let Some(node) = self.any_up().filter(|_| stay > self.plan.copies.max(2)) else {
            return;
        };
        if self.coordinator.number_of(self.nodes[node].id).is_some() {
            self.note("world", format_args!("drains n{node}"));
            self.nodes[node].drains = true;
        }
    }

    /// No more faults; what they have done is undone.
    pub(super) fn quieten(&mut self) {
        self.note("world", format_args!("quiet"));
        self.calm = true;
        self.unrest_us = self.engine.now_us;
        self.coordinator.away_until_us = 0;
        self.put_back();
        self.parted.clear();
        self.end_lasting();
        for wire in 0..self.wires.len() {
            for to in 0..2 {
                self.push(self.engine.now_us, None, What::Deliver { wire, to });
            }
        }
        for node in 0..self.nodes.len() {
            let found = &mut self.nodes[node];
            found.alone_until_us = 0;
            found.slow = (1, 0);
            let left = found.drains && self.coordinator.has_left(found.id);
            if found.power == Power::Down && left {
                found.power = Power::Gone;
            }
            // Those that pause go on when they would have.
            if found.power == Power::Down {
                self.start(node);
            }
        }
    }
}
