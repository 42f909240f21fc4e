//! Chains by which no node acts: those that have lost members, and those that are halted.

use super::*;
use rufous_mapping::Phase;

impl World {
    /// The next epoch, with this chain of the slots in use.
    pub(super) fn agree_on(&mut self, chain: Chain) {
        let mut mapping = Mapping::clone(&self.mapping);
        mapping.epoch += 1;
        let mut ranges = Vec::new();
        for (at, slot) in SLOTS_USED.into_iter().enumerate() {
            let next = SLOTS_USED.get(at + 1).copied().unwrap_or(SLOTS as u16);
            ranges.push((slot..slot + 1, chain));
            ranges.push((slot + 1..next, Chain::default()));
        }
        mapping.chains = Chains::of_ranges(ranges).expect("all slots");
        mapping.follows(&self.mapping).expect("a next one");
        self.mapping = Arc::new(mapping);
    }

    fn chain(&self) -> Chain {
        *self.mapping.chains.of(0)
    }

    fn held(&mut self, node: u16) -> Option<Copy> {
        let (replica, _) = self.at(node, 0);
        let held = replica.held().find(|(slot, _)| *slot == 0);
        held.and_then(|(_, copy)| copy)
    }

    /// A cluster of two, with a write that both have.
    fn with_a_write() -> Self {
        let mut world = Self::new(&[1, 1]);
        world.agree(&[0, 1], None);
        world.all_take_up();
        world.run(20);
        world.write(0, 0, 7);
        world.run(20);
        world
    }

    /// The second one is lost.
    fn lose_the_second(&mut self) {
        let lost = Members::of(&[NodeNo(1)]).expect("few");
        let (former, acted) = (lost, self.chain().since);
        self.agree_on(Chain {
            members: Members::of(&[NodeNo(0)]).expect("few"),
            since: self.mapping.epoch + 1,
            phase: Phase::Confirms { former, acted },
            ..self.chain()
        });
        self.all_take_up();
    }
}

#[test]
fn a_lost_member_keeps_its_copy_until_the_chain_acts() {
    let mut world = World::with_a_write();
    world.lose_the_second();
    world.run(3_000);
    assert!(!world.serves(0, 0), "it has not confirmed");
    let since = world.chain().since;
    assert_eq!(world.held(0), Some(Copy { since, seq: 1 }));
    assert_eq!(world.held(1), Some(Copy { since: 1, seq: 1 }));
    assert_eq!(world.at(1, 0).1.of(0), [[7]]);
    world.agree_on(Chain {
        phase: Phase::Acts,
        ..world.chain()
    });
    world.all_take_up();
    world.run(20);
    assert!(world.serves(0, 0));
    assert_eq!(world.at(1, 0).1.of(0), [[0; 1]; 0]);
    assert_eq!((world.held(0), world.held(1)), (None, None));
}

/// The member that is left has stopped, and has lost its copy.
#[test]
fn a_lost_member_may_continue() {
    let mut world = World::with_a_write();
    world.lose_the_second();
    world.run(20);
    world.restart(0);
    let before = world.chain();
    let both = Members::of(&[NodeNo(0), NodeNo(1)]).expect("few");
    world.agree_on(Chain {
        members: both,
        phase: Phase::Halted { acted: 1 },
        ..before
    });
    world.all_take_up();
    world.run(20);
    assert!(!world.serves(0, 0) && !world.serves(1, 0));
    assert_eq!(world.held(0), None);
    assert_eq!(world.held(1), Some(Copy { since: 1, seq: 1 }));
    let former = Members::of(&[NodeNo(0)]).expect("few");
    world.agree_on(Chain {
        members: Members::of(&[NodeNo(1)]).expect("few"),
        since: world.mapping.epoch + 1,
        phase: Phase::Confirms { former, acted: 1 },
        ..before
    });
    world.all_take_up();
    world.agree_on(Chain {
        phase: Phase::Acts,
        ..world.chain()
    });
    world.all_take_up();
    world.run(3_000);
    assert!(world.serves(1, 0));
    assert_eq!(world.at(1, 0).1.of(0), [[7]]);
}

/// Chains that continue at the first node of two.
impl World {
    /// Both nodes restart with this copy of each slot, and the chain halts.
    fn halt(&mut self, copy: Option<Copy>) {
        let before = self.chain();
        let acted = before.acted();
        for node in 0..2 {
            self.restart(node);
            for slot in SLOTS_USED {
                let (replica, _) = self.at(node, slot);
                match copy {
                    Some(copy) => replica.restore(slot, copy),
                    None => replica.found_incomplete(slot),
                }
            }
        }
        let all: Vec<NodeNo> = before.holders().collect();
        self.agree_on(Chain {
            members: Members::of(&all).expect("few"),
            learner: None,
            phase: Phase::Halted { acted },
            ..before
        });
        self.all_take_up();
    }

    /// A halted chain continues at the first node, and is changed by `change` before that.
    fn resume(&mut self, change: impl Fn(&mut Chain)) {
        let before = self.chain();
        let former = before.members.iter().filter(|no| **no != NodeNo(0));
        let former = Members::of(&former.copied().collect::<Vec<_>>()).expect("few");
        let acted = before.acted();
        let mut next = Chain {
            members: Members::of(&[NodeNo(0)]).expect("few"),
            since: self.mapping.epoch + 1,
            phase: Phase::Confirms { former, acted },
            ..before
        };
        change(&mut next);
        self.agree_on(next);
        self.all_take_up();
        // It is not in the chain.
        assert_eq!(self.lossy(1), []);
    }

    fn resume_with_loss(&mut self) {
        self.resume(|chain| chain.lost = chain.since);
    }

    /// The chain acts, the second node learns, and becomes a member.
    fn complete(&mut self) {
        let chain = self.chain();
        let acts = Phase::Acts;
        self.agree_on(Chain {
            phase: acts,
            ..chain
        });
        self.all_take_up();
        self.run(20);
        for (members, learner) in [(&[NodeNo(0)][..], Some(NodeNo(1))), (&BOTH, None)] {
            self.agree_on(Chain {
                members: Members::of(members).expect("few"),
                learner,
                since: self.mapping.epoch + 1,
                ..self.chain()
            });
            self.all_take_up();
            self.run(50);
        }
    }

    fn lossy(&mut self, node: u16) -> Vec<u16> {
        self.at(node, 0).0.take_lossy()
    }
}

const BOTH: [NodeNo; 2] = [NodeNo(0), NodeNo(1)];
const OLD: Copy = Copy { since: 1, seq: 1 };

#[test]
fn the_node_that_continues_with_loss_is_told_once() {
    let mut world = World::with_a_write();
    world.halt(Some(OLD));
    assert_eq!(world.lossy(0), [], "it is not decided yet");
    world.resume_with_loss();
    assert_eq!(world.lossy(0), SLOTS_USED);
    world.complete();
    assert!(world.serves(0, 0));
    assert_eq!(world.at(1, 0).1.of(0), [[7]]);
    assert_eq!((world.lossy(0), world.lossy(1)), (vec![], vec![]));
}

#[test]
fn a_node_that_continues_without_loss_is_not_told() {
    let mut world = World::with_a_write();
    world.halt(Some(OLD));
    world.resume(|_| ());
    world.complete();
    assert_eq!((world.lossy(0), world.lossy(1)), (vec![], vec![]));
}

/// A node that stops before it has noted the chain in its log is told again, by whichever chain.
#[test]
fn a_restart_is_told_of_loss_that_its_mark_does_not_have() {
    for is_noted in [false, true] {
        let mut world = World::with_a_write();
        world.halt(Some(OLD));
        world.resume_with_loss();
        world.complete();
        let since = world.chain().lost;
        world.halt(Some(if is_noted {
            Copy { since, seq: 1 }
        } else {
            OLD
        }));
        world.resume(|_| ());
        let told = if is_noted { &[][..] } else { &SLOTS_USED };
        assert_eq!(world.lossy(0), told);
    }
}

/// Its member has nothing, or a part that is dropped before it owns the slot.
#[test]
fn the_node_at_which_a_slot_is_born_again_is_told() {
    for has_part in [false, true] {
        let mut world = World::with_a_write();
        world.halt(None);
        if !has_part {
            world.restart(0);
            world.at(0, 0).1.slots.clear();
        }
        world.resume(|chain| {
            let (former, acted) = (chain.former(), chain.since);
            (chain.born, chain.lost) = (chain.since, chain.since);
            chain.phase = Phase::Confirms { former, acted };
        });
        assert_eq!(world.lossy(0), SLOTS_USED);
        world.run(20);
        world.complete();
        assert_eq!(world.at(0, 0).1.of(0), [[0; 1]; 0]);
        assert_eq!((world.lossy(0), world.lossy(1)), (vec![], vec![]));
    }
}
