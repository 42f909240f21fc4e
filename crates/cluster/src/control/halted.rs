//! Slots of which all copies have stopped, for the log and for monitoring: which of them wait for
//! what, and with which copies others continue.

use rufous_mapping::planner::{self, Copy, Limits, Seen, Verdict};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeMap;

/// Numbers of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halted {
    /// Slots that wait until this member has reported what it has.
    pub wait_for: BTreeMap<NodeNo, usize>,
    /// Slots of which no member has a copy, although their writes were logged.
    pub without_copy: usize,
    /// Slots that continue with the copy of this member, which is of the chain in force.
    pub current: BTreeMap<NodeNo, usize>,
    /// Slots that continue with a copy of an earlier chain: writes that were acknowledged since may
    /// be lost.
    pub earlier: BTreeMap<NodeNo, usize>,
    /// Slots that continue empty.
    pub empty: BTreeMap<NodeNo, usize>,
}

impl Halted {
    pub(super) fn of(mapping: &Mapping, seen: &Seen, limits: &Limits) -> Self {
        let mut halted = Self::default();
        for (slots, verdict) in planner::verdicts(mapping, seen, limits) {
            let count = slots.len();
            let since = mapping.chains.of(slots.start).since;
            let (counts, no) = match verdict {
                Verdict::Waits(no) => (&mut halted.wait_for, no),
                Verdict::NoCopy => {
                    halted.without_copy += count;
                    continue;
                }
                Verdict::Continues(no, None) => (&mut halted.empty, no),
                Verdict::Continues(no, Some(copy))
                    if copy.since == since || copy == Copy::NEVER_ACTED =>
                {
                    (&mut halted.current, no)
                }
                Verdict::Continues(no, Some(_)) => (&mut halted.earlier, no),
            };
            *counts.entry(no).or_default() += count;
        }
        halted
    }

    /// Slots that continue.
    pub fn continues(&self) -> usize {
        let counts = [&self.current, &self.earlier, &self.empty];
        counts.into_iter().flat_map(BTreeMap::values).sum()
    }

    /// Slots that continue without writes that may have been acknowledged.
    pub fn lossy(&self) -> usize {
        let counts = [&self.earlier, &self.empty];
        counts.into_iter().flat_map(BTreeMap::values).sum()
    }
}
