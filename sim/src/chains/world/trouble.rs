//! What goes wrong, and the end of it.

use super::super::SLOTS;
use super::World;
use super::coordinator::id_of;
use rufous_mapping::NodeNo;

impl World {
    pub(super) fn trouble(&mut self) {
        if self.rng.below(400) == 0 {
            self.fault();
        }
        if self.rng.below(4_000) == 0 {
            self.restart_all();
        }
        if self.rng.below(2_000) == 0 {
            self.lose_coordinator();
        }
        let back = self.coordinator.away_until;
        if back != 0 && self.now >= back {
            self.coordinator.away_until = 0;
            if self.rng.below(3) == 0 {
                self.restart_but_one();
            }
        }
    }

    fn random_node(&mut self) -> NodeNo {
        NodeNo(self.rng.below(self.nodes.len() as u64) as u16)
    }

    fn fault(&mut self) {
        let (a, b) = (self.random_node(), self.random_node());
        let until = self.now + 100_000 + self.rng.below(6_000_000);
        let what = self.rng.below(10);
        self.note(|_| format!("fault {what} of {a}, {b} until {until}"));
        match what {
            0 => self.node(a, |node| node.pause(until)),
            1 => self.stop(a),
            2 => self.start(a),
            3 => self.node(a, |node| node.coordinated = !node.coordinated),
            4 | 5 if a != b => {
                let both = self.rng.below(2) == 0;
                self.network.cut(a, b, both, until);
            }
            6 => self.join(),
            7 if self.rng.below(4) == 0 && self.coordinator.seen.alive.len() > 2 => {
                let drains = self.coordinator.mapping.number_of(id_of(a));
                self.coordinator.seen.draining.extend(drains);
            }
            8 => {
                let chains = SLOTS.map(|slot| self.coordinator.mapping.chains.of(slot).learner);
                if let Some(learner) = chains.into_iter().flatten().next() {
                    self.reach("a learner has stopped");
                    self.stop(learner);
                }
            }
            9 => self.start(b),
            _ => (),
        }
    }

    fn node(&mut self, no: NodeNo, change: impl FnOnce(&mut super::Node)) {
        if let Some(node) = self.nodes.get_mut(&no) {
            change(node);
        }
    }

    fn stop(&mut self, no: NodeNo) {
        self.node(no, super::Node::stop);
        self.network.forget(no);
        self.clients.lose(no);
    }

    fn start(&mut self, no: NodeNo) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&no).filter(|node| !node.is_up) else {
            return;
        };
        node.start(now);
        for other in self.nodes.keys().filter(|other| **other != no) {
            self.network.begin(no, *other, now);
        }
    }

    /// In the order of their numbers, as a mapping gives them.
    fn join(&mut self) {
        let admitted = self.coordinator.mapping.next;
        let mut later = self.nodes.values_mut().filter(|node| !node.announced);
        if let Some(node) = later.next().filter(|node| node.no.0 == admitted) {
            node.announced = true;
            let no = node.no;
            self.start(no);
        }
    }

    fn restart(&mut self, numbers: &[NodeNo]) {
        numbers.iter().for_each(|no| self.stop(*no));
        numbers.iter().for_each(|no| self.start(*no));
    }

    /// As after a power cut.
    fn restart_all(&mut self) {
        self.note(|_| "all nodes start again".to_owned());
        self.reach("all nodes have started again");
        let all: Vec<NodeNo> = self.nodes.keys().copied().collect();
        self.restart(&all);
    }

    fn lose_coordinator(&mut self) {
        let until = self.now + 500_000 + self.rng.below(12_000_000);
        self.note(|_| format!("the coordinator is away until {until}"));
        self.reach("the coordinator was away");
        self.coordinator.away_until = until;
    }

    /// The worst moment: the coordinator is back, and hears of all but one, and
    /// that one may still answer by what the others had granted it.
    fn restart_but_one(&mut self) {
        let stays = self.random_node();
        self.note(|_| format!("all but {stays} start again"));
        self.node(stays, |node| node.coordinated = false);
        let all = self.nodes.keys().copied();
        let others: Vec<NodeNo> = all.filter(|no| *no != stays).collect();
        self.restart(&others);
    }

    /// No more faults: everything finishes.
    pub(super) fn quieten(&mut self) {
        self.note(|_| "quiet".to_owned());
        self.faults = false;
        self.coordinator.away_until = 0;
        self.network.heal(self.now);
        let numbers: Vec<NodeNo> = self.nodes.keys().copied().collect();
        numbers.into_iter().for_each(|no| self.start(no));
        for node in self.nodes.values_mut() {
            node.coordinated = true;
            node.pause(0);
        }
        self.clients.stop = true;
    }
}
