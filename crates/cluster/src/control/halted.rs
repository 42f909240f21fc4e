//! Slots of which all copies have stopped, for the log and for monitoring: which of them wait for
//! what, and with which copies others continue.

use rufous_mapping::planner::{self, Limits, Loss, Seen, Verdict};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeMap;

/// Numbers of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halted {
    /// Slots that wait until this member has reported what it has.
    pub wait_for: BTreeMap<NodeNo, usize>,
    /// Slots of which no member has a copy that may continue, although their writes were logged.
    pub without_copy: usize,
    /// Slots that continue with this member, and why its copy may lack acknowledged writes.
    pub continue_at: BTreeMap<(Loss, NodeNo), usize>,
}

impl Halted {
    pub(super) fn of(mapping: &Mapping, seen: &Seen, limits: &Limits) -> Self {
        let mut halted = Self::default();
        for (slots, verdict) in planner::verdicts(mapping, seen, limits) {
            let count = match verdict {
                Verdict::Waits(no) => halted.wait_for.entry(no).or_default(),
                Verdict::NoCopy => &mut halted.without_copy,
                Verdict::Continues(no, loss) => halted.continue_at.entry((loss, no)).or_default(),
            };
            *count += slots.len();
        }
        halted
    }

    /// Slots that continue.
    pub fn continues(&self) -> usize {
        self.continue_at.values().sum()
    }

    /// Slots that continue without writes that may have been acknowledged.
    pub fn lossy(&self) -> usize {
        let all = self.continue_at.iter();
        let lossy = all.filter(|((loss, _), _)| *loss != Loss::None);
        lossy.map(|(_, slots)| slots).sum()
    }
}
