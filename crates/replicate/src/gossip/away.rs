//! Nodes without a session. What such a node had sent here may be missing at others; after a moment these are told
//! ([`Replicas::relay`](crate::replicas::Replicas::relay)).

use rufous_base::Now;
use std::collections::BTreeMap;

/// Most sessions that end begin again within this time.
const MOMENT_US: u64 = 200_000;

#[derive(Clone, Copy, Debug)]
struct Absence {
    since_us: u64,
    is_told: bool,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Away {
    nodes: BTreeMap<u16, Absence>,
}

impl Away {
    /// These nodes are away. Returns those of which others are to be told now.
    pub(super) fn look(&mut self, now: Now, away: impl Iterator<Item = u16>) -> Vec<u16> {
        let before = std::mem::take(&mut self.nodes);
        let new = Absence {
            since_us: now.mono_us,
            is_told: false,
        };
        let all = away.map(|node| (node, before.get(&node).copied().unwrap_or(new)));
        self.nodes = all.collect();
        let due = self
            .nodes
            .iter_mut()
            .filter(|(_, absence)| !absence.is_told && now.mono_us >= absence.since_us + MOMENT_US);
        due.map(|(node, absence)| {
            absence.is_told = true;
            *node
        })
        .collect()
    }

    /// A stream begins, whose receiver has not been told.
    pub(super) fn tell_again(&mut self) {
        let all = self.nodes.values_mut();
        all.for_each(|absence| absence.is_told = false);
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        let waits = self.nodes.values().filter(|absence| !absence.is_told);
        waits.map(|absence| absence.since_us + MOMENT_US).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_absence_is_told_of_once_and_a_short_one_is_not() {
        let mut away = Away::default();
        let look = |away: &mut Away, us: u64, nodes: &[u16]| {
            let now = Now {
                mono_us: us,
                ..Now::default()
            };
            away.look(now, nodes.iter().copied())
        };
        assert_eq!(look(&mut away, 1, &[1]), []);
        assert_eq!(away.wake_us(), Some(1 + MOMENT_US));
        assert_eq!(look(&mut away, MOMENT_US, &[1, 2]), []);
        assert_eq!(look(&mut away, 1 + MOMENT_US, &[1, 2]), [1]);
        assert_eq!(away.wake_us(), Some(2 * MOMENT_US));
        assert_eq!(look(&mut away, 2 + MOMENT_US, &[1]), []);
        assert_eq!(away.wake_us(), None);
        assert_eq!(look(&mut away, 3 * MOMENT_US, &[1]), []);
        away.tell_again();
        assert_eq!(look(&mut away, 3 * MOMENT_US, &[1]), [1]);
        assert_eq!(look(&mut away, 4 * MOMENT_US, &[]), []);
        assert_eq!(look(&mut away, 5 * MOMENT_US, &[1]), []);
        assert_eq!(look(&mut away, 6 * MOMENT_US, &[1]), [1]);
    }
}
