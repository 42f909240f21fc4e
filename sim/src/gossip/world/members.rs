//! Mappings: nodes are dropped, and rejoin as new members.

use super::{Event, Node, Session, World};
use crate::engine::Fault;
use crate::gossip::seat::View;

impl World {
    /// A mapping comes to all workers of its members, sooner or later.
    pub(super) fn publish(&mut self) {
        for at in 0..self.nodes.len() {
            if !self.view.nodes.contains(&self.nodes[at].number) {
                continue;
            }
            let life = self.nodes[at].life;
            for worker in 0..self.nodes[at].seats.len() {
                let after = self.random.between(1, self.plan.away_us);
                let view = self.view.clone();
                self.after(after, Event::Adopt((at, worker), life, view));
            }
        }
    }

    pub(super) fn on_adopt(&mut self, at: usize, worker: usize, view: &View) {
        self.nodes[at].seats[worker].act_by(view);
        let numbers: Vec<u16> = self.nodes.iter().map(|node| node.number).collect();
        let ends = |(&(a, b), session): (&(usize, usize), &Session)| {
            let is_its =
                (a, session.workers.0) == (at, worker) || (b, session.workers.1) == (at, worker);
            let other = if a == at { b } else { a };
            (is_its && !view.nodes.contains(&numbers[other])).then_some((a, b))
        };
        let ended: Vec<_> = self.sessions.iter().filter_map(ends).collect();
        ended.into_iter().for_each(|(a, b)| self.disconnect(a, b));
        self.end_turn(at, worker);
    }

    pub(super) fn on_drop(&mut self, at: usize) {
        let number = self.nodes[at].number;
        // A node that is dropped before the others have its changes loses them.
        let has_left = |node: &Node| node.number == number || !self.is_member(node);
        let others: Vec<_> = self.nodes.iter().filter(|node| !has_left(node)).collect();
        let is_fine = !others.is_empty() && others.iter().all(|node| node.serves);
        if !is_fine || !self.view.nodes.remove(&number) {
            return;
        }
        self.engine.reach("dropped");
        self.note(at, format_args!("is dropped"));
        self.view.epoch += 1;
        self.deeds.drop_member(self.nodes[at].member);
        self.publish();
        // Some go at once, others have not noticed yet.
        if self.random.chance(0.5) && self.nodes[at].is_running {
            self.stop(at);
        }
        let after = self.random.between(1, 2 * self.plan.away_us);
        self.after(after, Event::Rejoin(at));
    }

    /// It rejoins as a new member: its files may hold values deleted long ago.
    pub(super) fn on_rejoin(&mut self, at: usize) {
        if self.nodes[at].is_running {
            self.stop(at);
        }
        self.engine.reach("back");
        self.view.epoch += 1;
        let number = self.view.next;
        self.view.next += 1;
        self.view.nodes.insert(number);
        let node = &mut self.nodes[at];
        (node.number, node.member) = (number, self.members);
        // A start drops what is of an earlier number.
        node.has_served = self.fault == Fault::KeepsOldData;
        self.members += 1;
        self.note(at, format_args!("joins"));
        self.publish();
        self.on_start(at);
    }
}
