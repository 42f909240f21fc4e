//! Writes to the second keyspace, between the operations that are judged.

use super::World;

impl World {
    /// Now and then, at one of these nodes.
    pub(super) fn write_beside(&mut self, serving: &[usize]) {
        let Some(side) = &mut self.side else {
            return;
        };
        let at = side.pick(serving);
        let node = &mut self.nodes[at];
        if !node.serves {
            return;
        }
        if let Some((worker, key)) = side.draw(node.seats.len())
            && node.seats[worker].has_replica(key.as_bytes())
        {
            side.write(&mut node.seats[worker], key, self.engine.now_us);
            self.engine.reach("two keyspaces");
            self.end_turn(at, worker);
        }
    }
}
