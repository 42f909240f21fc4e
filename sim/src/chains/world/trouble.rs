//! What goes wrong, and the end of it.

use super::super::SLOTS;
use super::super::node::Node;
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
        if self.rng.below(300) == 0 {
            self.break_copies();
        }
        if self.folders.below(600) == 0 {
            let no = NodeNo(self.folders.below(self.nodes.len() as u64) as u16);
            self.node(no, Node::back_up);
        }
        let back = self.coordinator.away_until;
        if back != 0 && self.engine.now_us >= back {
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
        let until = self.engine.now_us + 100_000 + self.rng.below(6_000_000);
        let what = self.rng.below(11);
        self.note(format_args!("fault {what} of {a}, {b} until {until}"));
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
            10 => {
                let n = self.rng.below(6) as usize;
                let deaf = self.rng.below(2) == 0;
                self.node(a, |node| {
                    let at = n % node.workers.len();
                    let worker = &mut node.workers[at];
                    match deaf {
                        true => worker.deaf_until = until,
                        false => worker.paused_until = until,
                    }
                });
            }
            _ => (),
        }
    }

    /// The worst case for leases: nodes leave chains, and one worker of a leaving node
    /// does not receive the epoch, while the other workers do.
    pub(super) fn deafen_one(&mut self, left: &[(u16, NodeNo)]) {
        let at = self.rng.below(left.len().max(1) as u64) as usize;
        if let Some((slot, no)) = left.get(at).filter(|_| self.faults) {
            let until = self.engine.now_us + self.rng.below(3_000_000);
            self.note(format_args!(
                "{no} does not hear of slot {slot} until {until}"
            ));
            self.node(*no, |node| node.worker_mut(*slot).deaf_until = until);
        }
    }

    /// Sessions break in the middle of copies, and new ones come up: parts that
    /// were on their way are lost, and those behind them come.
    fn break_copies(&mut self) {
        for slot in SLOTS {
            let chain = self.coordinator.mapping.chains.of(slot);
            let (Some(tail), Some(learner)) = (chain.tail(), chain.learner) else {
                continue;
            };
            let copies = self.nodes.get(&tail).filter(|node| node.is_up);
            if copies.is_some_and(|node| node.worker(slot).store.copies(slot)) {
                self.note(format_args!(
                    "{tail} loses {learner} while it copies {slot}"
                ));
                self.reach("a copy was broken off");
                self.network.begin(tail, learner, self.engine.now_us);
            }
        }
    }

    pub(super) fn node(&mut self, no: NodeNo, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(&no) {
            change(node);
        }
    }

    pub(super) fn stop(&mut self, no: NodeNo) {
        self.node(no, Node::stop);
        self.network.forget(no);
        self.clients.lose(no);
    }

    fn start(&mut self, no: NodeNo) {
        let now = self.engine.now_us;
        let Some(node) = self.nodes.get_mut(&no).filter(|node| !node.is_up) else {
            return;
        };
        let before = node.count();
        node.start(now, &mut self.rng);
        let count = node.count();
        self.network.has_workers(no, count);
        if count != before {
            self.reach("a node has started with other workers");
        }
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

    pub(super) fn restart(&mut self, numbers: &[NodeNo]) {
        numbers.iter().for_each(|no| self.stop(*no));
        numbers.iter().for_each(|no| self.start(*no));
    }

    /// As after a power cut.
    fn restart_all(&mut self) {
        self.note(format_args!("all nodes start again"));
        self.reach("all nodes have started again");
        let all: Vec<NodeNo> = self.nodes.keys().copied().collect();
        let what = self.folders.below(4);
        if !self.spoilt && what < 3 {
            all.iter().for_each(|no| self.stop(*no));
            self.spoil_one(what == 0);
        }
        self.restart(&all);
    }

    /// A node comes back without its data, or with that of an earlier time, where others have all of it.
    fn spoil_one(&mut self, is_old: bool) {
        let chains = SLOTS.map(|slot| *self.coordinator.mapping.chains.of(slot));
        let has_only_copy = |no: &NodeNo| chains.iter().any(|chain| *chain.members == [*no]);
        let is_head = |no: &NodeNo| chains.iter().any(|chain| chain.head() == Some(*no));
        let all = self.nodes.keys().copied();
        let may: Vec<NodeNo> = all.filter(|no| is_head(no) && !has_only_copy(no)).collect();
        if may.is_empty() {
            return;
        }
        let no = may[self.folders.below(may.len() as u64) as usize];
        let node = self.nodes.get_mut(&no);
        if is_old && node.is_some_and(Node::put_back) {
            self.spoilt = true;
            self.note(format_args!("the folder of {no} is from the past"));
            self.reach("a node has started with an old folder");
        } else if !is_old {
            self.spoilt = true;
            self.node(no, Node::empty);
            self.note(format_args!("the folder of {no} is emptied"));
            self.reach("a node has started with an emptied folder");
        }
    }

    fn lose_coordinator(&mut self) {
        let until = self.engine.now_us + 500_000 + self.rng.below(12_000_000);
        self.note(format_args!("the coordinator is away until {until}"));
        self.reach("the coordinator was away");
        self.coordinator.away_until = until;
    }

    /// The worst case: the coordinator is back and reaches all nodes but one, and
    /// that one may still answer by the leases that the others had granted it.
    fn restart_but_one(&mut self) {
        let stays = self.random_node();
        self.note(format_args!("all but {stays} start again"));
        self.node(stays, |node| node.coordinated = false);
        let all = self.nodes.keys().copied();
        let others: Vec<NodeNo> = all.filter(|no| *no != stays).collect();
        self.restart(&others);
    }

    /// No more faults: everything finishes.
    pub(super) fn quieten(&mut self) {
        self.note(format_args!("quiet"));
        self.faults = false;
        self.coordinator.away_until = 0;
        self.network.heal(self.engine.now_us);
        let numbers: Vec<NodeNo> = self.nodes.keys().copied().collect();
        numbers.into_iter().for_each(|no| self.start(no));
        for node in self.nodes.values_mut() {
            node.coordinated = true;
            node.pause(0);
            for worker in &mut node.workers {
                (worker.paused_until, worker.deaf_until) = (0, 0);
            }
        }
        self.clients.stop = true;
    }
}
