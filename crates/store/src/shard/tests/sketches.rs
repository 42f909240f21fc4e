//! Replicated HyperLogLogs: of each register the higher rank wins, and a deletion removes what was added to the
//! sketch that it deletes.

use super::replicas::{Model, Write, run};
use crate::shard::strings;
use crate::shard::{Key, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_datatype::hll::{Observation, Registers, Sketch};
use rufous_datatype::object::Tag;
use rufous_lattice::Stamp;
use std::collections::BTreeSet;

/// What was added since the last deletion; `None`: there is no sketch.
#[derive(Clone, Debug, Default, PartialEq)]
struct Added {
    deleted: Stamp,
    elements: Option<BTreeSet<u64>>,
    /// The last deletion that any replica has forgotten.
    forgotten: Stamp,
}

fn name(element: u64) -> Vec<u8> {
    format!("element {element}").into_bytes()
}

fn registers(elements: &BTreeSet<u64>) -> Registers {
    let mut registers = Registers::default();
    for element in elements {
        registers.raise(Observation::of(&name(*element)));
    }
    registers
}

impl Model for Added {
    const STRINGS: Tag = Tag::Sketch;

    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self {
        let Write { stamp, now, rng } = write;
        // Few elements, or enough for the dense form of such strings.
        let count = match rng.below(8) {
            0 => 0,
            1 => 3_000,
            _ => 1 + rng.below(3),
        };
        let elements: BTreeSet<_> = (0..count).map(|_| rng.below(100 + 10 * count)).collect();
        match rng.below(6) {
            0 => {
                let removed = shard.remove(0, key, now);
                assert_eq!(removed, self.elements.is_some());
                if removed {
                    (self.deleted, self.elements) = (stamp, None);
                }
            }
            1 => {
                strings::merge_sketches(&mut shard.at(0, key, now), &registers(&elements));
                self.elements.get_or_insert_default().extend(elements);
            }
            _ => {
                let names: Vec<_> = elements.iter().map(|e| name(*e)).collect();
                let names = names.iter().map(|name| &name[..]);
                let changed =
                    strings::add_to_sketch(&mut shard.at(0, key, now), names).expect("a replica");
                let before = self.elements.clone();
                self.elements.get_or_insert_default().extend(elements);
                let ranks =
                    |e: &Option<BTreeSet<u64>>| e.as_ref().map(|e| registers(e).ranks().to_vec());
                assert_eq!(changed, ranks(&before) != ranks(&self.elements));
            }
        }
        self.clone()
    }

    fn merge(&mut self, other: &Added, _: u64) {
        let forgotten = self.forgotten.max(other.forgotten);
        if other.deleted > self.deleted {
            self.clone_from(other);
        } else if other.deleted == self.deleted
            && let Some(theirs) = &other.elements
        {
            self.elements.get_or_insert_default().extend(theirs);
        }
        self.forgotten = forgotten;
    }

    fn expire(&mut self, _: Now) {}

    /// Forgetting must not be visible, as with texts.
    fn forget(&mut self, horizon: u64) {
        assert!(self.elements.is_none());
        assert!(self.deleted.time <= horizon || self.deleted <= self.forgotten);
        self.forgotten = self.forgotten.max(self.deleted);
    }

    /// Elements that raise no register are not sent.
    fn shown(&self) -> String {
        format!("{:?}", self.elements.as_ref().map(registers))
    }

    fn check(&self, shard: &mut Shard, key: Key<'_>, now: Now) {
        let seen = shard.peek(0, key, now).expect("a string");
        let seen = seen.map(|text| {
            let text = text.bytes().to_vec();
            let registers = Sketch::parse(&text).and_then(Sketch::registers);
            registers.expect("a sketch").ranks().to_vec()
        });
        let expected = self.elements.as_ref().map(registers);
        let expected = expected.map(|registers| registers.ranks().to_vec());
        assert_eq!(seen, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn replicas_count_what_they_have_heard_of_and_converge(seed in any::<u64>(), steps in 1usize..200) {
        run::<Added>(seed, steps);
    }
}

/// Two replicas add at the same time, one of which has forgotten a removal that the other one has not.
#[test]
fn what_is_added_on_a_removal_and_where_it_is_forgotten_is_counted() {
    for seed in [18379150004084017991, 1054401825945847579] {
        run::<Added>(seed, 200);
    }
}
