//! Slots whose data is not what it ought to be: said in the log, with what is to be
//! done about it.

use super::links::Links;

impl Links {
    /// Takes notice of slots of this worker that another member's effects could not be
    /// done to.
    pub(super) fn look_for_damage(&mut self, slots: &[u16]) {
        let (before, count) = (self.broken, slots.len() as u64);
        self.broken = count;
        if let Some(first) = slots.first().filter(|_| count > before) {
            tracing::error!(
                slots = count,
                first,
                worker = self.worker.0,
                "what another node has written cannot be done to this node's data, so writes of these slots wait: \
                 stop this node, move its data folder away, and start it with an empty one, so that it gets all data from the others"
            );
        } else if before > 0 && count == 0 {
            tracing::info!(
                worker = self.worker.0,
                "this node's data is as it ought to be again"
            );
        }
    }
}
