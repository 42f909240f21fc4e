//! The planner's inputs.

use super::held::Held;
use crate::member::{Member, NodeId, NodeNo};
use rufous_base::limits::SLOTS;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The observed state of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Live nodes, members or not, with their announcements.
    pub alive: BTreeMap<NodeId, Member>,
    /// For how long members have been away, in milliseconds.
    pub away_ms: BTreeMap<NodeNo, u64>,
    /// Slots whose learners are complete, and slots that last members may leave.
    pub learned: Learned,
    /// What members have of slots whose chains are halted.
    pub held: Held,
    /// Members that are to leave for good.
    pub draining: BTreeSet<NodeNo>,
    /// Live members that others have to replace: they cannot take writes, or others do not hear
    /// them.
    pub unfit: BTreeSet<NodeNo>,
    /// Pairs of members that do not hear one another, the lower number first: none of them learns
    /// what the other has.
    pub apart: BTreeSet<(NodeNo, NodeNo)>,
}

/// What a node says of itself beside its announcement, for the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why it cannot take writes, if it cannot.
    pub ails: Option<String>,
    /// The members that it has heard lately; `None` if it does not say.
    pub hears: Option<BTreeSet<NodeNo>>,
    /// Why it serves no key of lattice keyspaces, if there are such keyspaces and it does not.
    pub waits: Option<String>,
    /// The number of slots of which it is the head and which it does not serve.
    pub unserved: usize,
    /// Whether it serves keys of lattice keyspaces.
    pub serves: bool,
}

/// Limits on the speed of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Slots that one node learns at a time.
    pub learning: usize,
    /// How long a halted chain waits for members that are away, where the operator has accepted
    /// the loss of their writes.
    pub reunion_ms: u64,
    /// After how long a member that is away leaves for good, if no chain has it.
    pub absence_ms: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            learning: SLOTS / 16,
            reunion_ms: 5_000,
            absence_ms: None,
        }
    }
}

/// Slots whose learners are complete: by the learner, and by the epoch since which it learns. A
/// report about an earlier epoch has no effect. A last member that the ring does not place here
/// reports itself when no client waits for its earlier writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned(BTreeMap<(NodeNo, u64), Slots>);

/// Ends of ranges by their starts; none touch.
type Slots = BTreeMap<u16, u16>;

impl Learned {
    pub fn add(&mut self, slots: Range<u16>, learner: NodeNo, since: u64) {
        let (mut start, mut end) = (slots.start, slots.end.min(SLOTS as u16));
        if start >= end {
            return;
        }
        let all = self.0.entry((learner, since)).or_default();
        while let Some((at, to)) = all.range(..=end).next_back().map(|(at, to)| (*at, *to)) {
            if to < start {
                break;
            }
            all.remove(&at);
            (start, end) = (start.min(at), end.max(to));
        }
        all.insert(start, end);
    }

    pub fn has(&self, slots: &Range<u16>, learner: NodeNo, since: u64) -> bool {
        let all = self.0.get(&(learner, since));
        let before = all.and_then(|all| all.range(..=slots.start).next_back());
        before.is_some_and(|(_, end)| slots.end <= *end)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u16>> {
        let all = self.0.values().flatten();
        all.map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let (mut learned, mut slots) = (Learned::default(), BTreeSet::new());
            for _ in 0..rng.below(12) {
                let start = rng.below(60) as u16;
                let range = start..start + rng.below(12) as u16;
                slots.extend(range.clone());
                learned.add(range, NodeNo(1), 7);
            }
            let told: Vec<u16> = learned.ranges().flatten().collect();
            assert_eq!(told, slots.iter().copied().collect::<Vec<_>>());
            let ranges: Vec<_> = learned.ranges().collect();
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            for slot in 0..80 {
                let has = learned.has(&(slot..slot + 1), NodeNo(1), 7);
                assert_eq!(has, slots.contains(&slot));
                assert!(!learned.has(&(slot..slot + 1), NodeNo(1), 8));
                assert!(!learned.has(&(slot..slot + 1), NodeNo(2), 7));
            }
        }
        let mut learned = Learned::default();
        learned.add(10..u16::MAX, NodeNo(0), 1);
        assert!(learned.has(&(10..SLOTS as u16), NodeNo(0), 1));
    }
}
