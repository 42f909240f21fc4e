//! Snapshots of nodes. Those of the workers of a node are as of one instant, and count together: what
//! one has forgotten must not be in the snapshot of another.

use super::{Event, World};
use crate::gossip::seat::Seat;

impl World {
    pub(super) fn begin_save(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        // No node has all that counts before it serves.
        if !node.serves || node.seats.iter().any(Seat::is_saving) {
            return;
        }
        node.seats.iter_mut().for_each(Seat::begin_snapshot);
        self.after(self.plan.save_us, Event::Save(at, self.nodes[at].life));
    }

    pub(super) fn on_save(&mut self, at: usize) {
        let (bytes, node) = (self.plan.save_bytes, &mut self.nodes[at]);
        let mut complete = true;
        for seat in &mut node.seats {
            complete &= seat.save_on(bytes);
        }
        if complete {
            node.seats.iter_mut().for_each(Seat::adopt_snapshot);
            self.engine.reach("snapshot");
        } else {
            self.after(self.plan.save_us, Event::Save(at, self.nodes[at].life));
        }
    }
}
