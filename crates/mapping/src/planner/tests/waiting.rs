//! Chains by which no node acts: which copies are kept, and which one continues.

use super::*;
use crate::member::{Folder, Was};

#[test]
fn those_that_have_all_started_again_wait_for_each_other() {
    let mut world = World::new(2, 2);
    world.settle();
    let (first, second) = (world.number(0), world.number(1));
    let second = second.expect("a member");
    world.stop(1);
    world.start(0, 2);
    assert!(world.step());
    assert!(world.mapping.chains.of(0).is_halted());
    let first = first.expect("a member");
    assert_eq!(
        world.mapping.members[&first].incarnation, 2,
        "it takes part"
    );
    // However long the other is away: it may have more.
    world.seen.away_ms.insert(second, 1 << 40);
    world.settle();
    assert!(world.mapping.chains.of(0).is_halted());
    world.start(1, 2);
    world.settle();
    world.check_rest();
    let members = world.mapping.members.values();
    let workers: Vec<_> = members.map(|member| member.workers).collect();
    assert_eq!(workers, [3, 3], "as they have started");
}

/// Both members lose power. One is taken for dead first; the other comes back with an emptied folder.
#[test]
fn a_member_is_dropped_only_for_one_that_has_confirmed() {
    let mut world = World::new(2, 2);
    world.settle();
    let chain = |world: &World| *world.mapping.chains.of(0);
    let (first, second) = (chain(&world).members[0], chain(&world).members[1]);
    let number = |world: &World, no| world.mapping.members[&no].id.0[0];
    let (head, other) = (number(&world, first), number(&world, second));
    world.stop(head);
    assert!(world.step());
    assert_eq!(chain(&world).former().to_vec(), [first]);
    assert!(!world.step(), "the other one has not confirmed");
    // Its start with the folder that it had would have 1 here.
    world.stop(other);
    let emptied = Member {
        folder: Folder::After(0),
        ..node(other, 3)
    };
    world.seen.alive.insert(emptied.id, emptied);
    assert!(world.step());
    assert!(chain(&world).is_halted());
    assert_eq!(
        world.mapping.members[&second].folder.was(),
        Some(Was::Empty)
    );
    for has_all in &mut world.has_all {
        has_all.remove(&second);
    }
    world.settle();
    assert!(chain(&world).is_halted(), "the first one may have a copy");
    world.start(head, 3);
    world.settle();
    assert_eq!(chain(&world).members.len(), 2);
    assert_eq!(chain(&world).born, 1);
    world.check_rest();
}

/// A later restart with the same folder does not make its copies newer.
#[test]
fn a_folder_from_the_past_stays_one_while_its_chains_wait() {
    let mut world = World::new(1, 1);
    world.settle();
    world.start(1, 5);
    world.settle();
    let (no, folder) = (world.number(1).expect("a member"), |world: &World, no| {
        world.mapping.members[&no].folder
    });
    let start = |world: &mut World, incarnation, before| {
        let past = Member {
            folder: Folder::After(before),
            ..node(1, incarnation)
        };
        world.seen.alive.insert(past.id, past);
        world.settle();
    };
    start(&mut world, 6, 4);
    assert_eq!(folder(&world, no).was(), Some(Was::Past));
    start(&mut world, 7, 6);
    assert_eq!(folder(&world, no).was(), Some(Was::Past));
    let has = |chain: &Chain| chain.members.contains(&no) && !chain.is_halted();
    let chains = &world.mapping.chains;
    assert!(
        !chains.ranges().any(|(_, chain)| has(chain)),
        "nothing is served from it"
    );
    assert!(matches!(
        verdicts(&world.mapping, &world.seen, &world.limits)[..],
        [(_, Verdict::NoCopy), ..]
    ));
    let accepts = world.seen.held.of(no).cloned().map(|report| Report {
        accepts: true,
        ..report
    });
    world.seen.held.hear(no, accepts.expect("it reports"));
    assert!(world.step());
    world.settle();
    world.check_rest();
    // The next stop of all is one as any other.
    world.start(0, 8);
    world.settle();
    start(&mut world, 9, 7);
    assert_eq!(folder(&world, no), Folder::After(7));
}

/// The operator accepts that no copy is left. The members may know that they had the slot: only the
/// new birth tells them that nothing of it is left.
#[test]
fn a_slot_without_any_copy_is_born_again_at_a_member_that_confirms() {
    for copies in [1, 2] {
        let mut world = World::new(copies, 2);
        world.settle();
        let before = *world.mapping.chains.of(0);
        world.start(0, 2);
        world.start(1, 2);
        while world.step() {
            world.has_all.iter_mut().for_each(BTreeSet::clear);
            world.report();
        }
        assert!(world.mapping.chains.of(0).is_halted());
        for no in [NodeNo(0), NodeNo(1)] {
            let mut report = world.seen.held.of(no).cloned().expect("it reports");
            report.accepts = true;
            world.seen.held.hear(no, report);
        }
        let halted = world.mapping.clone();
        let next = next(&halted, &world.seen, &world.limits).expect("it is decided");
        let chain = *next.chains.of(0);
        assert_eq!((chain.born, chain.acted()), (next.epoch, next.epoch));
        assert_eq!((before.lost, chain.lost), (0, next.epoch));
        assert_eq!(chain.members.len(), 1);
        // Only then the node has certainly heard of the birth.
        assert!(matches!(chain.phase, Phase::Confirms { .. }));
        assert_eq!(chain.holders().count(), before.members.len());
        world.mapping = next;
        for has_all in &mut world.has_all {
            *has_all = world.mapping.chains.of(0).holders().collect();
        }
        world.seen.held.clear();
        assert!(!world.step(), "it has not confirmed");
        world.report();
        assert!(world.step());
        assert_eq!(world.mapping.chains.of(0).phase, Phase::Acts);
        assert_eq!(world.mapping.chains.of(0).born, chain.born);
        world.settle();
        world.check_rest();
    }
}

/// A node with an emptied folder is killed before it has its copies again.
#[test]
fn an_emptied_folder_is_told_until_a_start_with_all_copies() {
    let mut world = World::new(2, 3);
    world.settle();
    for n in 0..3 {
        world.start(n, 2);
    }
    let emptied = Member {
        folder: Folder::After(0),
        ..node(0, 2)
    };
    world.seen.alive.insert(emptied.id, emptied);
    let no = world.number(0).expect("a member");
    let folder = |world: &World| world.mapping.members[&no].folder;
    let is_learning = |world: &World| {
        let mut chains = world.mapping.chains.ranges();
        chains.any(|(_, chain)| chain.learner == Some(no))
    };
    while !is_learning(&world) {
        assert!(world.step());
        for has_all in &mut world.has_all {
            has_all.remove(&no);
        }
        world.report();
    }
    assert!(!folder(&world).is_behind(), "its later copies count");
    let start = |world: &mut World, incarnation| {
        let later = Member {
            folder: Folder::After(incarnation - 1),
            ..node(0, incarnation)
        };
        world.seen.alive.insert(later.id, later);
    };
    start(&mut world, 3);
    while world.mapping.members[&no].incarnation < 3 {
        assert!(world.step());
    }
    assert_eq!(folder(&world).was(), Some(Was::Empty));
    assert!(!folder(&world).is_behind());
    world.settle();
    world.check_rest();
    assert_eq!(folder(&world).was(), Some(Was::Empty), "until it starts");
    start(&mut world, 4);
    world.settle();
    assert_eq!(folder(&world), Folder::After(3));
}

impl World {
    /// Both nodes stop and come back, and report what `copy` has of a halted chain; `may_lack`: their
    /// logs may lack their last writes. Returns the chain that continues.
    fn restart_both(
        &mut self,
        incarnation: u64,
        may_lack: bool,
        copy: impl Fn(&Chain) -> Copy,
    ) -> Chain {
        (0..2).for_each(|n| self.start(n, incarnation));
        assert!(self.step());
        let halted = *self.mapping.chains.of(0);
        assert!(halted.is_halted());
        for no in [NodeNo(0), NodeNo(1)] {
            let mut report = Report::new(incarnation, true, false);
            report.may_lack = may_lack;
            for (slots, chain) in self.mapping.chains.ranges() {
                let is_holder = chain.members.contains(&no);
                report.add(slots, is_holder.then(|| copy(chain)));
            }
            self.seen.held.hear(no, report);
        }
        assert!(self.step());
        *self.mapping.chains.of(0)
    }
}

fn last_copy(chain: &Chain) -> Copy {
    let (since, seq) = (chain.since, 7);
    Copy { since, seq }
}

#[test]
fn a_chain_says_when_it_continued_with_loss() {
    let mut world = World::new(2, 2);
    world.settle();
    let chain = world.restart_both(2, false, last_copy);
    assert_eq!(chain.lost, 0, "nothing is missing");
    world.settle();
    let chain = world.restart_both(3, true, last_copy);
    assert_eq!((chain.lost, chain.since), (world.mapping.epoch, chain.lost));
    assert!(matches!(chain.phase, Phase::Confirms { .. }));
    // No node acted since: what is missing is missing still.
    let chain = world.restart_both(4, false, last_copy);
    let lost = chain.lost;
    assert_eq!((lost, chain.since), (world.mapping.epoch, lost));
    world.report();
    assert!(world.step());
    let acts = *world.mapping.chains.of(0);
    assert_eq!((acts.phase, acts.lost), (Phase::Acts, lost));
    // It has acted by now, and the next loss would be another one.
    let chain = world.restart_both(5, false, last_copy);
    assert!(chain.since > lost && chain.lost == lost, "{chain:?}");
    world.settle();
    world.check_rest();
    for (_, chain) in world.mapping.chains.ranges() {
        assert_eq!(chain.lost, lost, "all later chains of the slot say so");
    }
    let chain = world.restart_both(6, true, last_copy);
    assert_eq!(chain.lost, world.mapping.epoch);
}

/// A birth counts as an epoch in which the chain acted, although its member may never have done so.
#[test]
fn a_slot_that_was_born_again_with_loss_and_never_acted_is_lossy_again() {
    let mut world = World::new(2, 2);
    world.settle();
    (0..2).for_each(|n| world.start(n, 2));
    assert!(world.step());
    for no in [NodeNo(0), NodeNo(1)] {
        let mut report = Report::new(2, true, true);
        report.add(0..SLOTS as u16, None);
        world.seen.held.hear(no, report);
    }
    assert!(world.step());
    let born = *world.mapping.chains.of(0);
    assert_eq!((born.born, born.lost), (world.mapping.epoch, born.since));
    let again = world.restart_both(3, false, |_| Copy::NEVER_ACTED);
    assert!(again.born > born.born);
    assert_eq!((again.born, again.lost), (world.mapping.epoch, again.since));
    // By now it has a copy: it has acted.
    world.report();
    assert!(world.step());
    let chain = world.restart_both(4, false, last_copy);
    assert_eq!((chain.born, chain.lost), (again.born, again.lost));
}
