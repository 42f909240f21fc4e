//! Sessions that change their worker: they take along what they have seen, and go on at another worker of any node once that
//! lacks nothing of it.

use super::World;
use crate::gossip::seat::Said;
use rufous_kernel::replicate::vector::Vector;

/// Where sessions begin to be counted that may change their worker.
const FIRST: usize = 1 << 20;

/// A client whose session may change its worker.
#[derive(Debug, Default)]
pub(super) struct Walker {
    session: usize,
    at: (usize, usize),
    /// Of its node.
    life: usize,
    step: Step,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    Stays,
    /// It has asked what it has seen.
    Asks,
    Goes(Vector),
}

impl World {
    /// An operation of a client whose session may change its worker.
    pub(super) fn walk(&mut self, number: usize) {
        let walker = &self.walkers[number];
        let goes = matches!(walker.step, Step::Goes(_));
        if goes {
            return self.arrive(number);
        }
        let (at, worker) = walker.at;
        let is_there = self.nodes[at].serves && self.nodes[at].life == walker.life;
        if walker.session == 0 || !is_there {
            return self.begin_session(number);
        }
        if matches!(walker.step, Step::Asks) {
            return;
        }
        if !self.random.chance(0.15) {
            return self.read_or_write(number, walker.session, (at, worker));
        }
        let ups: Vec<u16> = self.nodes_with_session(at);
        let seat = &mut self.nodes[at].seats[worker];
        let is_up = |node| ups.contains(&node);
        if let Some(seen) = seat.replicas.seen(seat.shard.changeset(), &is_up) {
            seat.say(Said::Token(number, seen));
            self.walkers[number].step = Step::Asks;
        }
        self.end_turn(at, worker);
    }

    /// What a session has seen may be known: its worker's log has all of it.
    pub(super) fn on_token(&mut self, at: (usize, usize), number: usize, seen: Vector) {
        let walker = &mut self.walkers[number];
        let is_its = walker.at == at && walker.life == self.nodes[at.0].life;
        if is_its && matches!(walker.step, Step::Asks) {
            walker.step = Step::Goes(seen);
        }
    }

    fn arrive(&mut self, number: usize) {
        let at = self.random.index(self.nodes.len());
        let node = &self.nodes[at];
        let Step::Goes(seen) = &self.walkers[number].step else {
            return;
        };
        if !node.serves {
            return;
        }
        let worker = self.random.index(node.seats.len());
        let seat = &node.seats[worker];
        if !seat.replicas.lacks(seen, &seat.placement).is_empty() {
            return self.engine.reach("waited for a session");
        }
        self.engine.reach("session moved");
        let (life, walker) = (node.life, &mut self.walkers[number]);
        (walker.at, walker.life, walker.step) = ((at, worker), life, Step::Stays);
        let text = format!("session {} goes on at {at}.{worker}", walker.session);
        self.note(at, format_args!("{text}"));
    }

    fn begin_session(&mut self, number: usize) {
        let reader = &self.plan.readers[number];
        let (at, worker) = (reader.node, reader.worker);
        if self.nodes[at].serves {
            self.begun += 1;
            self.walkers[number] = Walker {
                session: FIRST + self.begun,
                at: (at, worker),
                life: self.nodes[at].life,
                step: Step::Stays,
            };
        }
    }

    fn nodes_with_session(&self, at: usize) -> Vec<u16> {
        let pairs = self.sessions.keys();
        let others = pairs.filter_map(|&(a, b)| match at {
            _ if a == at => Some(b),
            _ if b == at => Some(a),
            _ => None,
        });
        others.map(|other| self.nodes[other].number).collect()
    }
}
