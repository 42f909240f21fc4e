//! Slots of which all copies have stopped, for the log and for monitoring: which of them wait for
//! what, and with which copies others continue.

use rufous_mapping::planner::{self, Limits, Loss, Seen, Verdict};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeMap;

/// Numbers of slots that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halted {
    /// Slots that wait until this member has reported what it has.
    pub wait_for: BTreeMap<NodeNo, usize>,
    /// Slots of which no member has a copy that may continue, although their writes were logged.
    pub without_copy: usize,
}

/// Numbers of slots that continue by the next mapping: they do so once it is agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continues {
    /// By the member that continues, and why its copy may lack acknowledged writes.
    pub at: BTreeMap<(Loss, NodeNo), usize>,
}

pub(super) fn of(mapping: &Mapping, seen: &Seen, limits: &Limits) -> (Halted, Continues) {
    let (mut halted, mut continues) = (Halted::default(), Continues::default());
    for (slots, verdict) in planner::verdicts(mapping, seen, limits) {
        let count = match verdict {
            Verdict::Waits(no) => halted.wait_for.entry(no).or_default(),
            Verdict::NoCopy => &mut halted.without_copy,
            Verdict::Continues(no, loss) | Verdict::Begins(no, loss) => {
                continues.at.entry((loss, no)).or_default()
            }
        };
        *count += slots.len();
    }
    (halted, continues)
}

impl Continues {
    /// Slots that continue without writes that may have been acknowledged.
    pub fn lossy(&self) -> usize {
        let lossy = self.at.iter().filter(|((loss, _), _)| *loss != Loss::None);
        lossy.map(|(_, slots)| slots).sum()
    }
}
