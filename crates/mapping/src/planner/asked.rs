//! Since when the leader asks for reports of copies. A node reports what it has of slots by whose chains no node
//! acts, and nothing once all of them act: then its last report stays with the leader, and does not hold any more.
//! Its copies change meanwhile.
//!
//! So a report counts if the node has made it by the mapping in which the leader has last found slots that began to
//! wait, or by a later one. What it says of other slots holds as well: their chains have not acted in between.

use crate::chains::Phase;
use crate::mapping::Mapping;
use std::sync::Arc;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The mapping that was looked at last.
    last: Option<Arc<Mapping>>,
    since: u64,
}

impl Asked {
    /// Takes the mapping in force, and returns the epoch of the earliest mapping whose reports count.
    pub fn look(&mut self, mapping: &Arc<Mapping>) -> u64 {
        let last = self.last.replace(Arc::clone(mapping));
        let is_news = match last {
            Some(last) if last.epoch == mapping.epoch => false,
            // In epochs between the two, chains may have acted.
            Some(last) => last.epoch + 1 != mapping.epoch || begins(&last, mapping),
            None => true,
        };
        if is_news {
            self.since = mapping.epoch;
        }
        self.since
    }

    /// This node does not plan any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Whether slots wait of which some node acted by the mapping before.
fn begins(before: &Mapping, now: &Mapping) -> bool {
    let waits = now.chains.ranges();
    let waits = waits.filter(|(_, chain)| chain.phase != Phase::Acts);
    let mut slots = waits.flat_map(|(slots, _)| slots);
    slots.any(|slot| before.chains.of(slot).phase == Phase::Acts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::{Chain, Chains};

    /// Slots from the first to the second number wait.
    fn mapping(epoch: u64, waits: std::ops::Range<u16>) -> Arc<Mapping> {
        let waiting = Chain {
            phase: Phase::Halted { acted: 1 },
            ..Chain::default()
        };
        let ranges = [
            (0..waits.start, Chain::default()),
            (waits.clone(), waiting),
            (waits.end..16384, Chain::default()),
        ];
        let ranges = ranges.into_iter().filter(|(slots, _)| !slots.is_empty());
        Arc::new(Mapping {
            epoch,
            chains: Chains::of_ranges(ranges).expect("all slots"),
            ..Mapping::new(2)
        })
    }

    #[test]
    fn nodes_are_asked_anew_when_further_slots_wait() {
        let mut asked = Asked::default();
        assert_eq!(asked.look(&mapping(5, 0..0)), 5);
        assert_eq!(asked.look(&mapping(6, 10..20)), 6);
        assert_eq!(asked.look(&mapping(6, 10..20)), 6);
        // Some of them act again, and those that do not were asked for.
        assert_eq!(asked.look(&mapping(7, 12..20)), 6);
        assert_eq!(asked.look(&mapping(8, 0..0)), 6);
        assert_eq!(asked.look(&mapping(9, 10..20)), 9);
        assert_eq!(asked.look(&mapping(10, 10..21)), 10);
        // In the epoch between they may have acted.
        assert_eq!(asked.look(&mapping(12, 10..21)), 12);
        asked.forget();
        assert_eq!(asked.look(&mapping(12, 10..21)), 12);
    }
}
