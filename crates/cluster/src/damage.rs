//! Slots whose data does not accept another member's effects: logged, with what the operator
//! has to do.

use rufous_base::{Now, WorkerId};

/// The minimum time between two looks at a worker's slots.
const PERIOD_US: u64 = 50_000;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Damage {
    /// Slots of this worker that were damaged at the last look.
    broken: usize,
    due_us: u64,
}

impl Damage {
    /// Whether it is time to look.
    pub fn is_due(&mut self, now: Now) -> bool {
        let is_due = now.mono_us >= self.due_us;
        if is_due {
            self.due_us = now.mono_us + PERIOD_US;
        }
        is_due
    }

    /// Takes the damaged slots of a worker.
    pub fn on_look(&mut self, worker: WorkerId, slots: &[u16]) {
        let before = std::mem::replace(&mut self.broken, slots.len());
        if let Some(first) = slots.first().filter(|_| slots.len() > before) {
            tracing::error!(
                slots = slots.len(),
                first,
                worker = worker.0,
                "what another node has written cannot be done to this node's data, so writes of these slots wait: \
                 stop this node, move its data folder away, and start it with an empty one, so that it gets all data from the others"
            );
        } else if before > 0 && slots.is_empty() {
            tracing::info!(
                worker = worker.0,
                "this node's data is as it ought to be again"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_at_once_in_a_period() {
        let mut damage = Damage::default();
        let at = |mono_us| Now {
            mono_us,
            unix_us: 0,
        };
        assert!(damage.is_due(at(1)));
        assert!(!damage.is_due(at(PERIOD_US)));
        assert!(damage.is_due(at(PERIOD_US + 1)));
    }
}
