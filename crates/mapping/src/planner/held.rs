//! What the members of halted chains have of their slots, as they report it, and which copy
//! continues.
//!
//! A chain is halted when all of its members have stopped. Each acknowledged write is at all of
//! them, as far as their logs had it. So the copy that was in the latest chain and has the most
//! writes continues, and it is chosen when all members have reported. A member whose files are
//! gone reports that it has nothing; a member with files from the past reports an earlier chain, or
//! fewer writes. While a member is away, or no member has a copy, the slot waits: writes that were
//! acknowledged may be in files that are missing. The operator can end that wait: with
//! `cluster-accept-loss`, or by removing a member that is away.
//!
//! A copy of an earlier chain than the one in force continues only if no member has a later one.
//! Then either no member had begun to act by that chain, or all of their files are from the past:
//! nothing in them tells one from the other. The leader logs such slots.

use crate::chains::Chain;
use crate::member::NodeNo;
use crate::planted::{self, Planted};
use rufous_base::limits::SLOTS;
use std::collections::BTreeMap;
use std::ops::Range;

/// A copy of a slot in a node's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Copy {
    /// The epoch of the last chain in which the node had all writes of the slot. The order of the
    /// fields is that of copies: in a later chain earlier writes may have been replaced.
    pub since: u64,
    /// The last write.
    pub seq: u64,
}

impl Copy {
    /// What a node has of a slot in whose first chain it never acted, if its files have all that it
    /// ever logged: nothing was acknowledged in that chain without it. Any other copy is better.
    pub const NEVER_ACTED: Self = Self { since: 0, seq: 0 };
}

/// What one node reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The start of the node that reports.
    pub incarnation: u64,
    /// Its writes are logged: data of which it has no copy was lost.
    pub logs: bool,
    /// The operator accepts that writes are lost which no reported copy has.
    pub accepts: bool,
    /// By the first slot: the slot after the range, and the copy of each of its slots, if there is
    /// one. Slots in no range are not reported.
    pub slots: BTreeMap<u16, (u16, Option<Copy>)>,
}

impl Report {
    pub fn new(incarnation: u64, logs: bool, accepts: bool) -> Self {
        Self {
            incarnation,
            logs,
            accepts,
            slots: BTreeMap::new(),
        }
    }

    /// Ranges have to be added in their order; one that is not is left out.
    pub fn add(&mut self, slots: Range<u16>, copy: Option<Copy>) {
        let end = slots.end.min(SLOTS as u16);
        let last = self.slots.last_entry();
        if slots.start >= end || last.as_ref().is_some_and(|last| last.get().0 > slots.start) {
            return;
        }
        if let Some(mut last) = last
            && *last.get() == (slots.start, copy)
        {
            last.get_mut().0 = end;
            return;
        }
        self.slots.insert(slots.start, (end, copy));
    }

    /// Whether it says something of a slot, and the copy.
    fn of(&self, slot: u16) -> Option<Option<Copy>> {
        let (_, (end, copy)) = self.slots.range(..=slot).next_back()?;
        (slot < *end).then_some(*copy)
    }
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held(BTreeMap<NodeNo, Report>);

impl Held {
    /// Replaces the last report of a node.
    pub fn hear(&mut self, node: NodeNo, report: Report) {
        self.0.insert(node, report);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn of(&self, node: NodeNo) -> Option<&Report> {
        self.0.get(&node)
    }

    /// Ranges within which no report differs.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u16>> {
        let all = self.0.values().flat_map(|report| &report.slots);
        all.map(|(start, (end, _))| *start..*end)
    }
}

/// What is known of a member of a halted chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Presence<'a> {
    /// It is alive, and this is its report.
    Reports(&'a Report),
    /// It has yet to report.
    Silent,
    /// It has been away for so long.
    Away(u64),
    /// It was removed: its files do not come back.
    Removed,
}

/// What becomes of a halted chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This member continues with its copy, or with nothing.
    Continues(NodeNo, Option<Copy>),
    /// A member has yet to report its copy, or is away.
    Waits(NodeNo),
    /// No member has a copy, although their writes were logged.
    NoCopy,
}

/// Decides which member of a halted chain continues.
pub(super) fn decide<'a>(
    chain: &Chain,
    slot: u16,
    reunion_ms: u64,
    presence: impl Fn(NodeNo) -> Presence<'a>,
) -> Verdict {
    let members = || chain.members.iter().map(|no| (*no, presence(*no)));
    let reports = || {
        members().filter_map(|(no, presence)| match presence {
            Presence::Reports(report) => Some((no, report, report.of(slot)?)),
            _ => None,
        })
    };
    let accepts = reports().any(|(_, report, _)| report.accepts);
    let first_back = planted::is(Planted::FirstBack);
    let waits = members().find(|(_, presence)| match presence {
        Presence::Reports(report) => report.of(slot).is_none(),
        Presence::Silent => true,
        Presence::Away(ms) => !(accepts && *ms >= reunion_ms),
        Presence::Removed => false,
    });
    if let Some((no, _)) = waits.filter(|_| !first_back) {
        return Verdict::Waits(no);
    }
    // Of equal copies the one nearest the head.
    let mut best: Option<(NodeNo, Copy)> = None;
    for (no, _, copy) in reports() {
        if let Some(copy) = copy
            && best.is_none_or(|(_, known)| rank(copy) > rank(known))
        {
            best = Some((no, copy));
        }
    }
    let first = reports().next().map(|(no, _, copy)| (no, copy));
    let best = best.map(|(no, copy)| (no, Some(copy)));
    match (best, first) {
        (_, Some((no, copy))) if first_back => Verdict::Continues(no, copy),
        (Some((no, copy)), _) => Verdict::Continues(no, copy),
        (None, Some((no, _))) if accepts || reports().all(|(_, report, _)| !report.logs) => {
            Verdict::Continues(no, None)
        }
        _ => Verdict::NoCopy,
    }
}

fn rank(copy: Copy) -> (u64, u64) {
    match copy {
        Copy { since, .. } if planted::is(Planted::EpochAlone) => (since, 0),
        Copy { seq, .. } if planted::is(Planted::SequenceAlone) => (0, seq),
        Copy { since, seq } => (since, seq),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::Members;

    const REUNION_MS: u64 = 5_000;

    /// A member that has reported this; `None` is the answer of a member without a copy.
    fn has(since: u64, seq: u64) -> Option<Option<Copy>> {
        Some(Some(Copy { since, seq }))
    }

    struct Case {
        /// By member; `None`: it is away.
        reports: Vec<Option<Option<Copy>>>,
        logs: bool,
        accepts: bool,
        removed: bool,
    }

    fn check(case: &Case, expected: Verdict) {
        let nodes: Vec<NodeNo> = (0..case.reports.len() as u16).map(NodeNo).collect();
        let chain = Chain {
            members: Members::of(&nodes).expect("few"),
            learner: None,
            born: 1,
            since: 9,
            halted: true,
        };
        let reports = case.reports.iter().map(|copy| {
            let mut report = Report::new(1, case.logs, case.accepts);
            report.add(3..5, (*copy)?);
            Some(report)
        });
        let reports: Vec<Option<Report>> = reports.collect();
        let verdict = decide(&chain, 4, REUNION_MS, |no| {
            match &reports[usize::from(no.0)] {
                Some(report) => Presence::Reports(report),
                None if case.removed => Presence::Removed,
                None => Presence::Away(REUNION_MS),
            }
        });
        assert_eq!(verdict, expected, "{:?}", case.reports);
    }

    fn logged(reports: Vec<Option<Option<Copy>>>) -> Case {
        Case {
            reports,
            logs: true,
            accepts: false,
            removed: false,
        }
    }

    fn continues(no: u16, since: u64, seq: u64) -> Verdict {
        Verdict::Continues(NodeNo(no), Some(Copy { since, seq }))
    }

    #[test]
    fn the_copy_of_the_latest_chain_with_most_writes_continues() {
        check(&logged(vec![has(9, 4), has(9, 5)]), continues(1, 9, 5));
        check(&logged(vec![has(9, 5), has(9, 5)]), continues(0, 9, 5));
        check(&logged(vec![has(8, 70), has(9, 5)]), continues(1, 9, 5));
        check(&logged(vec![Some(None), has(9, 5)]), continues(1, 9, 5));
        check(&logged(vec![has(8, 5), has(7, 9)]), continues(0, 8, 5));
    }

    /// Nothing was written in a chain in which a member never acted.
    #[test]
    fn a_member_that_never_acted_continues_where_no_other_has_a_copy() {
        let never = Some(Some(Copy::NEVER_ACTED));
        check(&logged(vec![Some(None), never]), continues(1, 0, 0));
        check(&logged(vec![never, has(9, 0)]), continues(1, 9, 0));
        check(&logged(vec![never, None]), Verdict::Waits(NodeNo(1)));
    }

    #[test]
    fn it_is_not_decided_before_all_members_have_reported() {
        check(&logged(vec![has(9, 5), None]), Verdict::Waits(NodeNo(1)));
        check(&logged(vec![Some(None), None]), Verdict::Waits(NodeNo(1)));
        let removed = Case {
            removed: true,
            ..logged(vec![has(9, 5), None])
        };
        check(&removed, continues(0, 9, 5));
        let accepts = Case {
            accepts: true,
            ..logged(vec![has(8, 5), None])
        };
        check(&accepts, continues(0, 8, 5));
    }

    #[test]
    fn without_any_copy_it_continues_empty_only_where_nothing_was_logged() {
        let none = || logged(vec![Some(None), Some(None)]);
        check(&none(), Verdict::NoCopy);
        let empty = Verdict::Continues(NodeNo(0), None);
        check(
            &Case {
                logs: false,
                ..none()
            },
            empty,
        );
        let accepts = Case {
            accepts: true,
            ..none()
        };
        check(&accepts, empty);
    }

    #[test]
    fn ranges_of_a_report_are_in_order() {
        let mut report = Report::new(1, true, false);
        let copy = Some(Copy { since: 1, seq: 2 });
        report.add(5..7, copy);
        report.add(7..9, copy);
        report.add(8..20, None);
        report.add(30..u16::MAX, None);
        assert_eq!(report.slots.len(), 2);
        assert_eq!((report.of(4), report.of(8)), (None, Some(copy)));
        assert_eq!((report.of(9), report.of(16_383)), (None, Some(None)));
    }
}
