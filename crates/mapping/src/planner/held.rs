//! What the members of halted chains have of their slots, as they report it, and which copy
//! continues.
//!
//! A chain is halted when all of its members have stopped. Each acknowledged write is at all of
//! them, as far as their logs had it. So the copy that was in the latest chain and has the most
//! writes continues, and it is chosen when all members have reported. A member whose files are
//! gone reports that it has nothing; a member with files from the past reports an earlier chain, or
//! fewer writes, and is recognised where a later start of its node is known ([`Folder`]): then its copy
//! does not continue.
//!
//! While a member is away, the slot waits for some seconds, and then continues with a copy that
//! certainly has everything ([`Report::keeps_all`]). If there is none, or no member has a copy, the slot waits
//! for the operator: writes that were acknowledged may be in files that are missing. The operator ends
//! that with `cluster-accept-loss`, or by removing a member that is away.
//!
//! A copy of an earlier chain than the last one that acted continues only if no member has a later one.
//! Then either no member had begun to act by that chain, or all of their files are from the past:
//! nothing in them tells one from the other. The leader logs such slots.

use crate::chains::Chain;
use crate::member::{Folder, NodeNo};
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
    /// The epoch of the mapping by which it reports; older programs do not say it.
    pub epoch: Option<u64>,
    /// Its writes are logged: data of which it has no copy was lost.
    pub logs: bool,
    /// The operator accepts that writes are lost which no reported copy has.
    pub accepts: bool,
    /// Its files may lack writes that it has acknowledged.
    pub may_lack: bool,
    /// Its files have everything that it has ever logged.
    pub keeps_all: bool,
    /// By the first slot: the slot after the range, and the copy of each of its slots, if there is
    /// one. Slots in no range are not reported.
    pub slots: BTreeMap<u16, (u16, Option<Copy>)>,
}

impl Report {
    pub fn new(incarnation: u64, logs: bool, accepts: bool) -> Self {
        Self {
            incarnation,
            epoch: None,
            logs,
            accepts,
            may_lack: false,
            keeps_all: false,
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

    /// Whether it has a copy that belongs to the chain of this epoch.
    pub(super) fn has_mark_of(&self, slot: u16, since: u64) -> bool {
        let copy = self.of(slot).flatten();
        copy.is_some_and(|copy| copy.since == since)
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

    /// Without reports by earlier mappings than this one; see [`Asked`](super::Asked).
    #[must_use]
    pub fn since(mut self, epoch: u64) -> Self {
        let counts = |report: &Report| report.epoch.is_none_or(|by| by >= epoch);
        self.0.retain(|_, report| counts(report));
        self
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
    /// It is alive, and this is its report, of this folder.
    Reports(&'a Report, Folder),
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
    /// This member continues with its copy.
    Continues(NodeNo, Loss),
    /// The slot begins again at this member, without data: no member has a copy.
    Begins(NodeNo, Loss),
    /// A member has yet to report its copy, or is away.
    Waits(NodeNo),
    /// No member has a copy that may continue, although their writes were logged.
    NoCopy,
}

/// Why acknowledged writes may be missing in a copy that continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// They are not.
    None,
    /// The copy is of an earlier chain than the last one that acted.
    Earlier,
    /// No member is certain that its files have the last writes: they were not synced, and its
    /// machine has stopped, too.
    Unsynced,
    /// Its folder is from the past.
    Past,
    /// There is no copy.
    Empty,
}

/// A member of a halted chain that has reported.
type Reported<'a> = (NodeNo, &'a Report, Folder, Option<Copy>);

/// Decides which member of a halted chain continues. `is_only`: the cluster has no other node, whose
/// copy could be better.
pub(super) fn decide<'a>(
    chain: &Chain,
    slot: u16,
    (reunion_ms, is_only): (u64, bool),
    presence: impl Fn(NodeNo) -> Presence<'a>,
) -> Verdict {
    let members = || chain.members.iter().map(|no| (*no, presence(*no)));
    let reports = members().filter_map(|(no, presence)| match presence {
        Presence::Reports(report, folder) => Some((no, report, folder, report.of(slot)?)),
        _ => None,
    });
    let reports: Vec<Reported<'_>> = reports.collect();
    let accepts = is_only || reports.iter().any(|(_, report, ..)| report.accepts);
    let waits = members().find(|(_, presence)| match presence {
        Presence::Reports(report, _) => report.of(slot).is_none(),
        Presence::Silent => true,
        Presence::Away(ms) => !(accepts && *ms >= reunion_ms),
        Presence::Removed => false,
    });
    match (waits, reports.first()) {
        (_, Some((no, ..))) if planted::is(Planted::FirstBack) => {
            return Verdict::Continues(*no, Loss::None);
        }
        (Some((waits, Presence::Away(ms))), _) => {
            // Nothing was acknowledged without this one; others may still be about to come back.
            let whole = reports
                .iter()
                .copied()
                .filter(|(_, report, ..)| report.keeps_all);
            let whole: Vec<Reported<'_>> = whole.collect();
            let found = best(&whole, |folder| !folder.is_behind());
            let silent = members().any(|(_, presence)| matches!(presence, Presence::Silent));
            return match found.filter(|_| ms >= reunion_ms && !silent) {
                Some((no, copy)) => continues(no, copy, Loss::None),
                None => Verdict::Waits(waits),
            };
        }
        (Some((no, _)), _) => return Verdict::Waits(no),
        _ => {}
    }
    if let Some((no, copy)) = best(&reports, |folder| !folder.is_behind()) {
        return continues(no, copy, loss(chain, copy, &reports));
    }
    let logged = reports.iter().any(|(_, report, ..)| report.logs);
    match (best(&reports, |_| true), reports.first()) {
        (Some((no, copy)), _) if accepts => continues(no, copy, Loss::Past),
        (None, Some((no, ..))) if accepts || !logged => Verdict::Begins(*no, Loss::Empty),
        _ => Verdict::NoCopy,
    }
}

fn continues(no: NodeNo, copy: Copy, loss: Loss) -> Verdict {
    match copy {
        Copy::NEVER_ACTED => Verdict::Begins(no, loss),
        _ => Verdict::Continues(no, loss),
    }
}

/// The best copy of certain folders; of equal ones that nearest the head.
fn best(reports: &[Reported<'_>], may: impl Fn(Folder) -> bool) -> Option<(NodeNo, Copy)> {
    let mut best: Option<(NodeNo, Copy)> = None;
    for (no, _, folder, copy) in reports {
        let Some(copy) = *copy else {
            continue;
        };
        if may(*folder) && best.is_none_or(|(_, known)| rank(copy) > rank(known)) {
            best = Some((*no, copy));
        }
    }
    best
}

fn loss(chain: &Chain, copy: Copy, reports: &[Reported<'_>]) -> Loss {
    let has_all = |(_, report, folder, copy): &Reported<'_>| {
        copy.is_some() && !folder.is_behind() && !report.may_lack
    };
    // It would have logged the mark of the last chain before any write of it: without that mark it
    // has acknowledged none, and no write is acknowledged without it.
    let keeps_all = |(_, report, folder, copy): &Reported<'_>| {
        copy.is_some() && !folder.is_behind() && report.keeps_all
    };
    if copy == Copy::NEVER_ACTED || reports.iter().any(keeps_all) {
        return Loss::None;
    }
    if copy.since < chain.acted() {
        return Loss::Earlier;
    }
    if reports.iter().any(has_all) {
        return Loss::None;
    }
    Loss::Unsynced
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
    use crate::chains::{Members, Phase};
    use crate::member::Was;

    const REUNION_MS: u64 = 5_000;
    const BEHIND: Folder = Folder::Behind {
        was: Was::Past,
        is_renewed: false,
        is_whole: false,
    };

    /// What a member is known to have.
    #[derive(Clone, Copy, Debug)]
    enum Is {
        /// A copy: epoch, and last write.
        With(u64, u64),
        /// The same in a folder from the past.
        Past(u64, u64),
        /// It has no copy.
        Without,
        Away,
        Removed,
    }
    use Is::{Away, Past, Removed, With, Without};

    #[derive(Clone, Copy)]
    struct Case {
        logs: bool,
        accepts: bool,
        may_lack: bool,
        keeps_all: bool,
        is_only: bool,
    }

    const LOGGED: Case = Case {
        logs: true,
        accepts: false,
        may_lack: false,
        keeps_all: false,
        is_only: false,
    };
    const ACCEPTED: Case = Case {
        accepts: true,
        ..LOGGED
    };

    fn decided(case: Case, all: &[Is]) -> Verdict {
        let nodes: Vec<NodeNo> = (0..all.len() as u16).map(NodeNo).collect();
        let chain = Chain {
            members: Members::of(&nodes).expect("few"),
            learner: None,
            born: 1,
            since: 10,
            lost: 0,
            phase: Phase::Halted { acted: 9 },
        };
        let reports = all.iter().map(|is| {
            let mut report = Report::new(1, case.logs, case.accepts);
            report.may_lack = case.may_lack;
            report.keeps_all = case.keeps_all;
            let copy = match *is {
                With(since, seq) | Past(since, seq) => Some(Copy { since, seq }),
                _ => None,
            };
            report.add(3..5, copy);
            report
        });
        let reports: Vec<Report> = reports.collect();
        decide(&chain, 4, (REUNION_MS, case.is_only), |no| {
            let at = usize::from(no.0);
            match all[at] {
                With(..) => Presence::Reports(&reports[at], Folder::After(1)),
                Past(..) => Presence::Reports(&reports[at], BEHIND),
                Without => Presence::Reports(&reports[at], BEHIND),
                Away => Presence::Away(REUNION_MS),
                Removed => Presence::Removed,
            }
        })
    }

    fn check(case: Case, all: &[Is], expected: Verdict) {
        assert_eq!(decided(case, all), expected, "{all:?}");
    }

    fn continues(no: u16, loss: Loss) -> Verdict {
        Verdict::Continues(NodeNo(no), loss)
    }

    #[test]
    fn the_copy_of_the_latest_chain_with_most_writes_continues() {
        check(LOGGED, &[With(9, 4), With(9, 5)], continues(1, Loss::None));
        check(LOGGED, &[With(9, 5), With(9, 5)], continues(0, Loss::None));
        check(LOGGED, &[With(8, 70), With(9, 5)], continues(1, Loss::None));
        check(LOGGED, &[Without, With(9, 5)], continues(1, Loss::None));
        // Chain 10 never acted: a copy of chain 9 lacks nothing.
        check(LOGGED, &[With(9, 5), With(10, 5)], continues(1, Loss::None));
        check(
            LOGGED,
            &[With(8, 5), With(7, 9)],
            continues(0, Loss::Earlier),
        );
    }

    /// A chain that has begun is marked in the logs of its members before its first write.
    #[test]
    fn no_loss_is_told_where_the_last_chain_had_no_write() {
        let whole = Case {
            keeps_all: true,
            may_lack: true,
            ..LOGGED
        };
        check(whole, &[With(8, 5), With(7, 9)], continues(0, Loss::None));
        check(whole, &[With(8, 5), Without], continues(0, Loss::None));
        check(
            ACCEPTED,
            &[With(8, 5), Past(9, 9)],
            continues(0, Loss::Earlier),
        );
    }

    #[test]
    fn a_folder_from_the_past_does_not_continue() {
        check(LOGGED, &[Past(9, 9), With(9, 5)], continues(1, Loss::None));
        check(LOGGED, &[Past(9, 9), Without], Verdict::NoCopy);
        check(LOGGED, &[Past(9, 9)], Verdict::NoCopy);
        check(ACCEPTED, &[Past(9, 9)], continues(0, Loss::Past));
        // There is no other node that could have more.
        let is_only = Case {
            is_only: true,
            ..LOGGED
        };
        check(is_only, &[Past(9, 9)], continues(0, Loss::Past));
    }

    #[test]
    fn it_is_told_that_the_last_writes_may_not_be_synced() {
        let case = Case {
            may_lack: true,
            ..LOGGED
        };
        check(
            case,
            &[With(9, 4), With(9, 5)],
            continues(1, Loss::Unsynced),
        );
    }

    /// Nothing was written in a chain in which a member never acted.
    #[test]
    fn a_member_that_never_acted_continues_where_no_other_has_a_copy() {
        let never = With(0, 0);
        let begins = |no| Verdict::Begins(NodeNo(no), Loss::None);
        check(LOGGED, &[Without, never], begins(1));
        check(LOGGED, &[never, With(9, 0)], continues(1, Loss::None));
        check(LOGGED, &[never, Away], Verdict::Waits(NodeNo(1)));
    }

    #[test]
    fn it_is_not_decided_before_all_members_have_reported() {
        check(LOGGED, &[With(9, 5), Away], Verdict::Waits(NodeNo(1)));
        check(LOGGED, &[Without, Away], Verdict::Waits(NodeNo(1)));
        check(LOGGED, &[With(9, 5), Removed], continues(0, Loss::None));
        check(ACCEPTED, &[With(8, 5), Away], continues(0, Loss::Earlier));
    }

    #[test]
    fn it_continues_without_a_member_that_is_away_if_another_certainly_has_all() {
        let whole = Case {
            keeps_all: true,
            ..LOGGED
        };
        check(whole, &[Away, With(9, 5)], continues(1, Loss::None));
        check(
            whole,
            &[With(9, 4), With(9, 5), Away],
            continues(1, Loss::None),
        );
        check(whole, &[Away, Past(9, 5)], Verdict::Waits(NodeNo(0)));
        check(whole, &[Away, Without], Verdict::Waits(NodeNo(0)));
    }

    #[test]
    fn without_any_copy_it_begins_again_only_where_nothing_was_logged() {
        check(LOGGED, &[Without, Without], Verdict::NoCopy);
        let case = Case {
            logs: false,
            ..LOGGED
        };
        check(
            case,
            &[Without, Without],
            Verdict::Begins(NodeNo(0), Loss::Empty),
        );
        check(
            ACCEPTED,
            &[Without, Without],
            Verdict::Begins(NodeNo(0), Loss::Empty),
        );
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
