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
